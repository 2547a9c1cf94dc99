"""Load plug-ins from outside the package: from a file, or from the entry points of a package.

Code is loaded from where the user points alone: ``--plugin FILE.py``, ``DPERM_PLUGINS``, the
argument ``plugins`` of a Python call, and installed packages with entry points ``dperm.<room>``.
No configuration, study, model or data file leads here.

A file is run once, from the bytes that were hashed, under a module name made of that hash. So a
changed file is another module, and no byte code is written beside it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any, ClassVar

from dperm_cli.core import imported_files
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.entry_points import find_package, list_entry_points
from dperm_cli.core.errors import DpermError, InputError
from dperm_cli.core.patched_code import refuse_patches
from dperm_cli.core.plugin_files import (
    ENTRY_POINTS,
    KEY,
    KINDS,
    blame_plugin,
    check_name,
    check_path,
    collect_plugins,
    find_abstract,
    find_class,
    find_kind,
    find_version,
    import_package,
    quiet_stdout,
    read_file,
    run_file,
)

VARIABLE = "DPERM_PLUGINS"  # files, or names of packages, with os.pathsep between them
ARGUMENT = "plugins"  # of a Python call
_HINTS = {
    KEY: "one of your own needs --plugin FILE.py",
    ARGUMENT: "one of your own needs plugins=['FILE.py']",
}


@dataclass(frozen=True)
class PluginSource:
    """Where plug-ins come from: a file, or a package; it can be sent to another process.

    Attributes:
        path: The file, or the package's folder or module.
        digest: SHA-256 of the file's bytes; of a package, of all of its source files.
        version: ``__version__`` of the file, or the version of the package; may be empty.
        names: (kind, name) of each plug-in.
        module: The module of the file, or the package's topmost one.
        package: The name of the installed package; empty for a file.
        classes: Of classes of a package that was imported: (module, name of the class) of each.

    >>> PluginSource("mine.py", "0" * 64, "1.0", (("loss", "pinball"),), "m").label
    'mine.py'
    """

    path: str
    digest: str
    version: str
    names: tuple[tuple[str, str], ...]
    module: str
    package: str = ""
    classes: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The name of the package, or of the file without its folder."""
        return self.package or os.path.basename(self.path)

    def describe(self) -> str:
        """``mine.py, version 1.0, sha256 0123456789ab``."""
        version = f"version {self.version}" if self.version else "no version"
        return f"{self.label}, {version}, sha256 {self.digest[:12]}"

    def owns(self, module: str) -> bool:
        """Whether a module is of this file or package."""
        return module == self.module or module.startswith(f"{self.module}.")


@dataclass
class _Loaded:
    source: PluginSource
    objects: dict[tuple[str, str], Any]


@dataclass
class _State:
    """What this process has loaded, by path."""

    loaded: dict[str, _Loaded] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()  # kinds whose entry points were all looked at
    key: str = KEY  # what the user gives them by

    _shared: ClassVar[_State]


_State._shared = _State()
_reserved: dict[str, list[Callable[[], Iterable[str]]]] = {}


def add_file(path: str | os.PathLike[str]) -> PluginSource:
    """Run a file, and offer the plug-ins that it defines under their names.

    A plug-in is a public class below one of the bases (mechanism, loss, set, data set, kernel,
    sampler, event), or a bound. Its name is the class's own ``name``, else the snake case of the
    class's name; of an event the class's name, of a bound its id. A file that was added before is
    looked up; where it has changed, it is run anew in the place of what it was.

    Args:
        path: The file, ending in ``.py``.

    Returns:
        What it offers.

    Raises:
        InputError: It cannot be read or run, offers nothing, or has a name that is taken.
    """
    found = os.path.abspath(check_path(path))
    return _add_content(found, read_file(found))


def _add_content(found: str, content: bytes) -> PluginSource:
    """``add_file`` of bytes that were read."""
    digest = hash_sha256(content)
    before = _State._shared.loaded.get(found)
    if before is not None and before.source.digest == digest:
        return before.source
    module = run_file(found, content, digest)
    objects = collect_plugins(found, module)
    source = PluginSource(found, digest, find_version(module), tuple(objects), module.__name__)
    _keep(source, objects)
    return source


def add_package(name: str) -> PluginSource:
    """Offer all plug-ins of an installed package with entry points ``dperm.*``.

    Raises:
        InputError: There is no such package, or it cannot be imported.
    """
    points = [point for point in list_entry_points() if find_package(point) == name]
    if not points:
        known = sorted({find_package(point) for point in list_entry_points()})
        raise InputError(KEY, name, "must be a file ending in .py, or an installed package with "
                         "entry points dperm.mechanisms, dperm.losses, ...", known)  # fmt: skip
    return _add_points(points)


def add_class(cls: type, path: str, digest: str) -> PluginSource:
    """Offer a class of this process as it is: ``plugin_classes`` says where it was written.

    Args:
        cls: A plug-in's class.
        path: What an error or a record calls its place.
        digest: SHA-256 of its source.

    Raises:
        InputError: It is no plug-in, is unfinished, or has a name that is taken.
    """
    kind, lacks = find_kind(cls), find_abstract(cls)
    if not kind or lacks:
        words = "is no plug-in: a class below Mechanism, Loss, ConvexSet, ..."
        raise InputError("plugins", cls.__name__, f"lacks {lacks}" if kind else words)
    objects = {(kind, check_name(path, kind, cls)): cls}
    before = _State._shared.loaded.get(path)
    if before is not None and before.source.digest == digest:  # another class of the same file
        objects = {**before.objects, **objects}
    version = find_version(sys.modules[cls.__module__])
    in_package = os.path.isdir(path)
    module = cls.__module__.partition(".")[0] if in_package else cls.__module__
    places = tuple((made.__module__, made.__qualname__) for made in objects.values())
    source = PluginSource(path, digest, version, tuple(objects), module,
                          classes=places if in_package else ())  # fmt: skip
    with _blame(_State._shared.key):
        _keep(source, objects)
    return source


def add_entry_points(kind: str = "", name: str = "") -> tuple[PluginSource, ...]:
    """Offer plug-ins of the installed packages: all, those of a kind, or those of one name.

    Args:
        kind: One of ``KINDS``; empty for all.
        name: The plug-in's name; empty for all. Packages without it are not imported.

    Raises:
        InputError: A package cannot be imported, or two plug-ins have one name.
    """
    points = list_entry_points()
    wanted = {
        find_package(point)
        for point in points
        if kind in ("", ENTRY_POINTS[point.group]) and name in ("", point.name)
    }
    return tuple(
        _add_points([point for point in points if find_package(point) == one])
        for one in sorted(wanted)
    )


def add_installed(tell: Callable[[str], None]) -> None:
    """Offer the plug-ins of all installed packages; of one that cannot be used, ``tell`` why."""
    for package in dict.fromkeys(find_package(point) for point in list_entry_points()):
        try:
            add_package(package)
        except InputError as error:
            tell(str(error))


def list_installed(kind: str) -> tuple[str, ...]:
    """The names that entry points of installed packages have for a kind; nothing is imported."""
    points = list_entry_points()
    return tuple(sorted({p.name for p in points if ENTRY_POINTS[p.group] == kind}))


def add(word: str | os.PathLike[str]) -> PluginSource:
    """``add_file`` for what looks like a path, else ``add_package``."""
    text = os.fspath(word)
    is_file = text.endswith(".py") or os.sep in text or os.path.exists(text)
    with _blame(_State._shared.key):
        return add_file(text) if is_file or not text else add_package(text)


def add_importable(word: str | os.PathLike[str]) -> PluginSource:
    """``add``, and the plug-ins that a package without entry points has, by its import name.

    Args:
        word: A file, an installed package, or a package that can be imported: its name, or its
            folder. All plug-ins in the namespace of its topmost module are offered.

    Raises:
        InputError: It is none of these, or offers nothing.
    """
    text = os.fspath(word)
    folder = os.path.abspath(os.path.expanduser(text)) if text else ""
    in_folder = os.path.isfile(os.path.join(folder, "__init__.py"))
    known = any(find_package(point) == text for point in list_entry_points())
    is_name = text.isidentifier() and not os.path.exists(text)
    if known or not (in_folder or is_name):
        return add(text)
    where, name = os.path.split(folder) if in_folder else ("", text)
    with _blame(_State._shared.key):
        module = import_package(where, name, text)
        objects = collect_plugins(text, module)
        path, digest = imported_files.hash_package(module)
        source = PluginSource(path, digest, find_version(module), tuple(objects), module.__name__)
        _keep(source, objects)
    return source


def add_environment() -> None:
    """Offer what ``DPERM_PLUGINS`` names: files or packages, with ``:`` between them."""
    for word in os.environ.get(VARIABLE, "").split(os.pathsep):
        if word:
            with _blame(VARIABLE):
                add(word)


def list_sources() -> tuple[PluginSource, ...]:
    """What was added so far, in that order."""
    return tuple(one.source for one in _State._shared.loaded.values())


def classes(kind: str) -> dict[str, Any]:
    """The plug-ins of a kind by name, of what was added so far: classes, or bounds.

    Args:
        kind: One of ``KINDS``.
    """
    found = {}
    for one in _State._shared.loaded.values():
        found.update({name: made for (group, name), made in one.objects.items() if group == kind})
    return found


def find(kind: str, name: str) -> Any:
    """The plug-in of this name, or None. Entry points are looked at where nothing else has it."""
    known = classes(kind)
    if name not in known and kind in KINDS and kind not in _State._shared.seen:
        add_entry_points(kind, name)
        known = classes(kind)
    return known.get(name)


def choose(kind: str, name: Any, known: Iterable[str]) -> str:
    """One of the known names of a kind, as ``checks.choice``.

    Raises:
        InputError: It is none; of a kind of plug-in the message says how to give one's own.
    """
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    raise refuse_name(kind, name, names)


def refuse_name(kind: str, name: Any, known: Iterable[str]) -> InputError:
    """The error for a name of a kind that is none of the known ones."""
    names = list(known)
    listed = f"must be one of {', '.join(names)}" if names else "is not there"
    return InputError(kind, name, add_hint(kind, listed), names)


def add_hint(kind: str, text: str) -> str:
    """A text that lists the names of a kind, and how to give a plug-in of one's own."""
    hint = _HINTS.get(_State._shared.key)
    return f"{text}; {hint}" if hint and kind in KINDS else text


def find_source(kind: str, name: str) -> PluginSource | None:
    """Where a plug-in that was added comes from."""
    return next((s for s in list_sources() if (kind, name) in s.names), None)


def find_name(made: Any) -> tuple[PluginSource, str, str] | None:
    """Source, kind and name of a class or bound from outside; None for any other object."""
    for one in _State._shared.loaded.values():
        for (kind, name), offered in one.objects.items():
            if offered is made:
                return one.source, kind, name
    return None


def sources_of(modules: Iterable[str]) -> tuple[PluginSource, ...]:
    """The sources that own some of these modules."""
    wanted = tuple(modules)
    return tuple(s for s in list_sources() if any(s.owns(module) for module in wanted))


def reserve_names(kind: str, list_names: Callable[[], Iterable[str]]) -> None:
    """Keep names of a kind from plug-ins; called by whoever ships them.

    Raises:
        InputError: A plug-in that was added has such a name.
    """
    _reserved.setdefault(kind, []).append(list_names)
    for source in list_sources():
        for offered, name in source.names:
            if offered == kind and name in list_names():
                raise _refuse_shadow(source, kind, name)


@contextlib.contextmanager
def use_plugins(words: Iterable[str | os.PathLike[str]] = (), key: str = KEY) -> Iterator[None]:
    """Forget what was added in the block when it ends, beside what was there before.

    Args:
        words: Files or packages that are added.
        key: What the user gives plug-ins by: an option, or the argument of a call.
    """
    before = _State._shared
    _State._shared = _State(dict(before.loaded), before.seen, key)
    try:
        for word in words:
            add(word)
        yield
    finally:
        _State._shared = before


@contextlib.contextmanager
def use_sources(sources: Iterable[PluginSource]) -> Iterator[None]:
    """Have the very same plug-ins as another process while the block runs, and no others.

    Raises:
        DpermError: A file or package is missing here, or has other bytes.
    """
    before = _State._shared
    kept = before.loaded
    wanted = tuple(sources)
    _State._shared = _State({s.path: kept[s.path] for s in wanted
                             if s.path in kept and kept[s.path].source == s},
                            key=before.key)  # fmt: skip
    try:
        for source in wanted:
            _add_same(source)
        yield
    finally:
        # modules stay: they are named by their bytes
        _State._shared = before


def _add_same(source: PluginSource) -> None:
    """Add a source as another process knows it; nothing of other bytes is run."""
    try:
        is_folder = bool(source.package or source.classes)
        content = b"" if is_folder else read_file(source.path)
        digest = hash_sha256(content)
        if source.package:
            digest = add_package(source.package).digest
        elif source.classes:
            digest = imported_files.hash_folders([source.path])
            if digest == source.digest:
                _import_classes(source)
        elif digest == source.digest:
            _add_content(source.path, content)
    except InputError as error:
        raise DpermError(f"a worker cannot load the plug-in {source.label}: {error}") from None
    if digest != source.digest:
        raise DpermError(
            f"{source.label} has changed since the study was planned: a worker reads sha256 "
            f"{digest[:12]} at {source.path}, and not {source.digest[:12]}"
        )


def _import_classes(source: PluginSource) -> None:
    """Import classes of a package in a process that may have other bytes of it, or none."""
    for name in [name for name in sys.modules if source.owns(name)]:
        del sys.modules[name]
    folder = os.path.dirname(source.path)
    made = [find_class(folder, module, name, source.label) for module, name in source.classes]
    _keep(source, dict(zip(source.names, made, strict=True)))


def _keep(source: PluginSource, objects: dict[tuple[str, str], Any]) -> None:
    _refuse_taken(source)
    loaded = _State._shared.loaded
    loaded.pop(source.path, None)
    loaded[source.path] = _Loaded(source, objects)


def _refuse_taken(source: PluginSource) -> None:
    taken = {
        name: other.describe()
        for other in list_sources()
        if other.path != source.path
        for name in other.names
    }
    for point in list_entry_points():
        if find_package(point) != source.package:
            taken.setdefault((ENTRY_POINTS[point.group], point.name),
                             f"the installed package {find_package(point)}")  # fmt: skip
    for kind, name in source.names:
        if any(name in list_names() for list_names in _reserved.get(kind, ())):
            raise _refuse_shadow(source, kind, name)
        if (kind, name) in taken:
            words = f"offers {kind} {name}, and so does {taken[kind, name]}; give one another name"
            raise InputError(KEY, source.path, words)


def _refuse_shadow(source: PluginSource, kind: str, name: str) -> InputError:
    words = f"shadows the shipped {kind} {name}; give it another name"
    return InputError(KEY, source.path, words)


def _add_points(points: list[Any]) -> PluginSource:
    """The plug-ins of one package."""
    package = find_package(points[0])
    top = points[0].module.partition(".")[0]
    objects: dict[tuple[str, str], Any] = {}
    for point in points:
        if point.module.partition(".")[0] != top:
            words = f"its entry points are in two packages, {top} and {point.module}"
            raise InputError("package", package, words)
        kind = ENTRY_POINTS[point.group]
        with _blame("package"), blame_plugin(package), quiet_stdout():
            with refuse_patches(KEY, package):
                made = point.load()
            if find_kind(made) != kind:
                raise InputError(KEY, package, f"the entry point {point.name} names no {kind}")
            lacks = find_abstract(made)
            if lacks:
                raise InputError(KEY, package, f"class {made.__name__} lacks {lacks}")
            name = check_name(package, kind, made, point.name)
            if objects.setdefault((kind, name), made) is not made:
                words = f"has two entry points for {kind} {name}"
                raise InputError(KEY, package, words)
    path, digest = imported_files.hash_package(sys.modules[top])
    known = _State._shared.loaded.get(path)
    version = points[0].dist.version if points[0].dist is not None else ""
    source = PluginSource(path, digest, version, tuple(objects), top, package)
    if known is None or known.source != source:
        with _blame("package"):
            _keep(source, objects)
    return source


@contextlib.contextmanager
def _blame(key: str) -> Iterator[None]:
    """Name in an error where the user pointed, if that was not ``--plugin``."""
    try:
        yield
    except InputError as error:
        if error.key != KEY:
            raise
        known = [error.nearest] if error.nearest else []
        raise InputError(key, error.value, error.allowed, known) from None
