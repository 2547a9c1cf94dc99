"""Load plug-ins from outside the package: from a file, or from the entry points of a package.

Code is loaded from where the user points alone: ``--plugin FILE.py``, ``DPERM_PLUGINS``, the
argument ``plugins`` of a Python call, and installed packages with entry points ``dperm.<room>``.
No configuration, study, model or data file leads here.

A file is run once, from the bytes that were hashed, under a module name made of that hash. So a
changed file is another module, and no byte code is written beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import linecache
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

from dperm_cli.core import environment, imported_files
from dperm_cli.core.errors import DpermError, InputError, describe_error, make_printable

VARIABLE = "DPERM_PLUGINS"  # files, or names of packages, with os.pathsep between them
KEY = "--plugin"
HINT = "one of your own needs --plugin FILE.py"
# What plug-ins may be: the kind by the name of its entry points.
ENTRY_POINTS = {
    "dperm.mechanisms": "mechanism",
    "dperm.losses": "loss",
    "dperm.sets": "constraint",
    "dperm.datasets": "dataset",
    "dperm.kernels": "kernel",
    "dperm.samplers": "sampler",
    "dperm.events": "event",
    "dperm.bounds": "bound",
}
KINDS = tuple(ENTRY_POINTS.values())
MODULE = "dperm_plugin_"  # begins the names of the modules of files
_MOST_BYTES = 1 << 22
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")  # of events and bounds: see _TITLE
_TITLE = re.compile(r"[A-Za-z][A-Za-z0-9_ .,-]{0,79}")


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

    >>> PluginSource("mine.py", "0" * 64, "1.0", (("loss", "pinball"),), "m").label
    'mine.py'
    """

    path: str
    digest: str
    version: str
    names: tuple[tuple[str, str], ...]
    module: str
    package: str = ""

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

    _shared: ClassVar[_State]


_State._shared = _State()


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
    found = os.path.abspath(_check_path(path))
    content = _read(found)
    digest = hashlib.sha256(content).hexdigest()
    before = _State._shared.loaded.get(found)
    if before is not None and before.source.digest == digest:
        return before.source
    module = _run_file(found, content, digest)
    objects = _collect(found, module)
    source = PluginSource(found, digest, _find_version(module), tuple(objects), module.__name__)
    _keep(source, objects)
    return source


def add_package(name: str) -> PluginSource:
    """Offer all plug-ins of an installed package with entry points ``dperm.*``.

    Raises:
        InputError: There is no such package, or it cannot be imported.
    """
    points = [point for point in _list_entry_points() if _distribution(point) == name]
    if not points:
        known = sorted({_distribution(point) for point in _list_entry_points()})
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
    kind = find_kind(cls)
    if not kind or inspect.isabstract(cls):
        words = "is no plug-in: a class below Mechanism, Loss, ConvexSet, ..."
        if kind and inspect.isabstract(cls):
            words = f"lacks {', '.join(sorted(cls.__abstractmethods__))}"
        raise InputError("plugins", cls.__name__, words)
    objects = {(kind, _name(path, kind, cls)): cls}
    version = _find_version(sys.modules[cls.__module__])
    source = PluginSource(path, digest, version, tuple(objects), cls.__module__)
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
    points = _list_entry_points()
    wanted = {
        _distribution(point)
        for point in points
        if kind in ("", ENTRY_POINTS[point.group]) and name in ("", point.name)
    }
    return tuple(
        _add_points([point for point in points if _distribution(point) == one])
        for one in sorted(wanted)
    )


def add_installed(tell: Callable[[str], None]) -> None:
    """Offer the plug-ins of all installed packages; of one that cannot be used, ``tell`` why."""
    for package in dict.fromkeys(_distribution(point) for point in _list_entry_points()):
        try:
            add_package(package)
        except InputError as error:
            tell(str(error))


def list_installed(kind: str) -> tuple[str, ...]:
    """The names that entry points of installed packages have for a kind; nothing is imported."""
    points = _list_entry_points()
    return tuple(sorted({p.name for p in points if ENTRY_POINTS[p.group] == kind}))


def add(word: str | os.PathLike[str]) -> PluginSource:
    """``add_file`` for what looks like a path, else ``add_package``."""
    text = os.fspath(word)
    is_file = text.endswith(".py") or os.sep in text or os.path.exists(text)
    return add_file(text) if is_file or not text else add_package(text)


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


@contextlib.contextmanager
def use_plugins(words: Iterable[str | os.PathLike[str]] = ()) -> Iterator[None]:
    """Forget what was added in the block when it ends, beside what was there before."""
    before = _State._shared
    _State._shared = _State(dict(before.loaded), before.seen)
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
                             if s.path in kept and kept[s.path].source == s})  # fmt: skip
    try:
        for source in wanted:
            _add_same(source)
        yield
    finally:
        # modules stay: they are named by their bytes
        _State._shared = before


def _add_same(source: PluginSource) -> None:
    try:
        found = add_package(source.package) if source.package else add_file(source.path)
    except InputError as error:
        raise DpermError(f"a worker cannot load the plug-in {source.label}: {error}") from None
    if found.digest != source.digest:
        raise DpermError(
            f"{source.label} has changed since the study was planned: a worker reads sha256 "
            f"{found.digest[:12]} at {source.path}, and not {source.digest[:12]}"
        )


def _check_path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(KEY, text, "must be the name of a file ending in .py")
    text = os.path.expanduser(text)
    if os.path.isdir(text):
        raise InputError(KEY, text, "is a folder: name one file ending in .py")
    if not text.endswith(".py"):
        raise InputError(KEY, text, "must be a file ending in .py, or an installed package")
    return text


def _read(path: str) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(KEY, path, "is not a regular file")
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(KEY, path, "is not there") from None
    except OSError as error:
        raise InputError(KEY, path, f"cannot be read ({error.strerror})") from None
    if len(content) > _MOST_BYTES:
        raise InputError(KEY, path, f"is larger than {_MOST_BYTES} bytes")
    return content


def _run_file(path: str, content: bytes, digest: str) -> ModuleType:
    name = MODULE + digest[:20]
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path
    before = set(sys.modules)
    sys.modules[name] = module  # dataclasses and pickles look it up there
    try:
        with blame_plugin(path), quiet_stdout():
            code = compile(content, path, "exec", dont_inherit=True)
            imported_files.refuse_neighbours(KEY, path, content)
            exec(code, vars(module))
            imported_files.refuse_loaded(KEY, path, set(sys.modules) - before - {name})
    except BaseException:
        del sys.modules[name]
        raise
    linecache.checkcache(path)
    return module


@contextlib.contextmanager
def quiet_stdout() -> Iterator[None]:
    """Send to stderr what code from outside prints in the block: stdout carries results only."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)  # also what a library or another program writes
    except OSError:  # one of them is closed
        kept = None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


@contextlib.contextmanager
def blame_plugin(label: str) -> Iterator[None]:
    """Turn whatever the code of a plug-in raises, while it is loaded, into one line."""
    try:
        yield
    except (InputError, environment.Terminated):
        raise
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise InputError(KEY, label, f"has a syntax error{where}: {error.msg}") from None
    except SystemExit:
        raise InputError(KEY, label, "ends the program when it is loaded (SystemExit)") from None
    except BaseException as error:
        words = make_printable(describe_error(error), 300)
        words += _find_line(error, label)
        raise InputError(KEY, label, f"cannot be loaded: {words}") from None


def _find_line(error: BaseException, path: str) -> str:
    """``, line 12`` for the last line of the file that the error came through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f" (line {line})"


def _find_version(module: ModuleType) -> str:
    found = getattr(module, "__version__", None)
    return found if isinstance(found, str) and _VERSION.fullmatch(found) else ""


def _collect(label: str, module: ModuleType) -> dict[tuple[str, str], Any]:
    """The plug-ins that a module of a file defines, each under its kind and name."""
    found: dict[tuple[str, str], Any] = {}
    unfinished = []
    for word, made in list(vars(module).items()):
        kind = find_kind(made)
        own = isinstance(made, type) and made.__module__ == module.__name__
        if word.startswith("_") or not kind or not (own or kind == "bound"):
            continue
        if isinstance(made, type) and inspect.isabstract(made):
            unfinished.append(made)
            continue
        name = _name(label, kind, made)
        if found.setdefault((kind, name), made) is not made:
            raise InputError(KEY, label, f"holds two plug-ins of the name {kind} {name}")
    if not found:
        words = "holds no plug-in: a class below Mechanism, MarginLoss, ConvexSet, ... "
        for cls in unfinished:
            lacks = ", ".join(sorted(cls.__abstractmethods__))
            words = f"holds no plug-in: class {cls.__name__} lacks {lacks}"
        raise InputError(KEY, label, words.rstrip())
    return found


def find_kind(made: Any) -> str:
    """What an object is, by the mark on its base class; empty for anything else."""
    kind = getattr(made, "plugin_kind", "") if isinstance(made, type) else ""
    if not kind and not isinstance(made, type):
        kind = getattr(type(made), "plugin_kind", "")
        return kind if kind == "bound" else ""
    return kind if kind in KINDS and kind != "bound" else ""


def _name(label: str, kind: str, made: Any, given: str = "") -> str:
    """The checked name of a plug-in; a class below ``Plugin`` is given it."""
    if kind == "bound":
        name = made.id
    elif kind == "event":
        name = made.__name__
    else:
        _check_class(label, made)
        own = vars(made).get("name")
        name = own if isinstance(own, str) else given or snake_case(made.__name__)
    form = _TITLE if kind in ("event", "bound") else _NAME
    if not isinstance(name, str) or not form.fullmatch(name):
        words = "must be a word of a-z, 0-9 and _" if form is _NAME else "must be plain words"
        raise InputError(KEY, label, f"the name of a {kind}, {name!r}, {words}")
    if given and name != given:
        raise InputError(KEY, label, f"the entry point {given} names a {kind} called {name}")
    if kind not in ("bound", "event", "mechanism"):
        made.name = name
    return name


def _check_class(label: str, cls: Any) -> None:
    from dperm_cli.core.fields import fields_of

    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise InputError(KEY, label, f"class {cls.__name__} needs the line @dataclass(frozen=True) "
                         "above it")  # fmt: skip
    with blame_plugin(label):
        fields_of(cls)


def snake_case(word: str) -> str:
    """``OneStep`` -> ``one_step``; ``DPFTRL2`` -> ``dpftrl2``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word)
    return parted.lower()


def _keep(source: PluginSource, objects: dict[tuple[str, str], Any]) -> None:
    _refuse_taken(source)
    loaded = _State._shared.loaded
    loaded.pop(source.path, None)
    loaded[source.path] = _Loaded(source, objects)


def _refuse_taken(source: PluginSource) -> None:
    from dperm_cli.core import registry

    taken = {
        name: other.describe()
        for other in list_sources()
        if other.path != source.path
        for name in other.names
    }
    for point in _list_entry_points():
        if _distribution(point) != source.package:
            taken.setdefault((ENTRY_POINTS[point.group], point.name),
                             f"the installed package {_distribution(point)}")  # fmt: skip
    for kind, name in source.names:
        if name in (*registry.list_shipped(kind), *_list_shipped_others(kind)):
            words = f"shadows the shipped {kind} {name}; give it another name"
            raise InputError(KEY, source.path, words)
        if (kind, name) in taken:
            words = f"offers {kind} {name}, and so does {taken[kind, name]}; give one another name"
            raise InputError(KEY, source.path, words)


def _list_shipped_others(kind: str) -> tuple[str, ...]:
    """The names of choices (``loss=auto`` is no loss), and of shipped events and bounds."""
    if kind == "event":
        return tuple(importlib.import_module("dperm_cli.privacy.events").list_shipped())
    if kind == "bound":
        every = importlib.import_module("dperm_cli.bounds.all_bounds").ALL
        return tuple(bound.id for bound in every)
    return tuple(importlib.import_module("dperm_cli.core.catalogue").list_shipped(kind))


def _list_entry_points() -> tuple[Any, ...]:
    """The entry points of all installed packages in the groups of ``ENTRY_POINTS``."""
    from importlib.metadata import entry_points

    every = entry_points()
    found = {
        (point.group, point.name, point.value, _distribution(point)): point
        for group in ENTRY_POINTS
        for point in every.select(group=group)
    }
    return tuple(found[key] for key in sorted(found))


def _distribution(point: Any) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(":")[0]


def _add_points(points: list[Any]) -> PluginSource:
    """The plug-ins of one package."""
    package = _distribution(points[0])
    top = points[0].module.partition(".")[0]
    objects: dict[tuple[str, str], Any] = {}
    for point in points:
        if point.module.partition(".")[0] != top:
            words = f"its entry points are in two packages, {top} and {point.module}"
            raise InputError("package", package, words)
        kind = ENTRY_POINTS[point.group]
        with _blame("package"), blame_plugin(package), quiet_stdout():
            made = point.load()
            if find_kind(made) != kind:
                raise InputError(KEY, package, f"the entry point {point.name} names no {kind}")
            if isinstance(made, type) and inspect.isabstract(made):
                lacks = ", ".join(sorted(made.__abstractmethods__))
                raise InputError(KEY, package, f"class {made.__name__} lacks {lacks}")
            name = _name(package, kind, made, point.name)
            if objects.setdefault((kind, name), made) is not made:
                words = f"has two entry points for {kind} {name}"
                raise InputError(KEY, package, words)
    path, digest = imported_files.hash_package(importlib.import_module(top))
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
        raise InputError(key, error.value, error.allowed) from None
