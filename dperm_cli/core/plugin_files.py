"""Run the file of a plug-in, and find the plug-ins in it; nothing is kept here."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import linecache
import os
import re
import stat
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from dperm_cli.core import environment, imported_files
from dperm_cli.core.errors import InputError, describe_error, find_line, make_printable
from dperm_cli.core.fields import fields_of
from dperm_cli.core.patched_code import refuse_patches
from dperm_cli.core.system_calls import open_to_read

KEY = "--plugin"
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
RESERVED = ("all", "none", "null", "true", "false", "nan", "inf")  # values that mean other things
_TITLE = re.compile(r"[A-Za-z][A-Za-z0-9_ .,-]{0,79}")


def check_path(path: str | os.PathLike[str]) -> str:
    """The name of a plug-in's file, with ~ written out; InputError for what is no .py file."""
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(KEY, text, "must be the name of a file ending in .py")
    text = os.path.expanduser(text)
    if os.path.isdir(text):
        raise InputError(KEY, text, "is a folder: name one file ending in .py")
    if not text.endswith(".py"):
        raise InputError(KEY, text, "must be a file ending in .py, or an installed package")
    return text


def read_file(path: str) -> bytes:
    """The content of a plug-in's file; InputError where it is no regular file, or too large."""
    try:
        with open(open_to_read(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(KEY, path, "is not a regular file")
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(KEY, path, "is not there: no such file") from None
    except OSError as error:
        raise InputError(KEY, path, f"cannot be read ({error.strerror})") from None
    if len(content) > _MOST_BYTES:
        raise InputError(KEY, path, f"is larger than {_MOST_BYTES} bytes")
    return content


def run_file(path: str, content: bytes, digest: str) -> ModuleType:
    """Run the content of a plug-in's file as a module, once for each digest."""
    name = MODULE + digest[:20]
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path
    before = set(sys.modules)
    sys.modules[name] = module  # dataclasses and pickles look it up there
    try:
        with refuse_patches(KEY, path), blame_plugin(path), quiet_stdout():
            code = compile(content, path, "exec", dont_inherit=True)
            imported_files.refuse_neighbours(KEY, path, content)
            _execute(code, vars(module))
            imported_files.refuse_loaded(KEY, path, set(sys.modules) - before - {name})
    except BaseException:
        del sys.modules[name]
        raise
    linecache.checkcache(path)
    return module


def _execute(code: CodeType, names: dict[str, Any]) -> None:
    """Run a file. A KeyboardInterrupt that it raises is no signal that ends dperm."""
    interrupted = False
    try:
        exec(code, names)
    except environment.Terminated:
        raise
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:  # and not as its cause, which would tell of a signal
        raise RuntimeError("the file raises KeyboardInterrupt")


def import_package(folder: str, name: str, label: str) -> ModuleType:
    """Import a package.

    Args:
        folder: Where it lies; empty for one that is installed.
        name: Its name.
        label: How the user calls it.

    Raises:
        InputError: There is none, or it cannot be imported.
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path[:0] = [folder] if folder else []
    try:
        if not folder and importlib.util.find_spec(name) is None:
            raise InputError(KEY, label, "is neither a file ending in .py nor a package: no such "
                             "file, and nothing of this name can be imported")  # fmt: skip
        with refuse_patches(KEY, label), blame_plugin(label), quiet_stdout():
            return importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = before
        if folder:
            sys.path.remove(folder)


def find_class(folder: str, module: str, name: str, label: str) -> type:
    """A class of a package that lies in a folder.

    Args:
        folder: Where the package lies.
        module: Which of its modules.
        name: What the class is called there.
        label: How the user calls the package.

    Raises:
        InputError: There is none, or the package cannot be imported.
    """
    found: Any = import_package(folder, module, label)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise InputError(KEY, label, f"has no class {name} in {module}")
    return found


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
        words += find_line(error, label)
        raise InputError(KEY, label, f"cannot be loaded: {words}") from None


def find_version(module: ModuleType) -> str:
    """The ``__version__`` of a module, empty where it has none or an odd one."""
    found = vars(module).get("__version__")
    return found if isinstance(found, str) and _VERSION.fullmatch(found) else ""


def collect_plugins(label: str, module: ModuleType) -> dict[tuple[str, str], Any]:
    """The plug-ins that the module of a file, or a package, defines, each under its kind and name.

    Args:
        label: How the user calls the file.
        module: What ``run_file`` gave.

    Raises:
        InputError: There is none, or one has no name that can be typed.
    """
    found: dict[tuple[str, str], Any] = {}
    unfinished = []
    top = module.__name__.partition(".")[0]
    for word, made in list(vars(module).items()):
        kind = find_kind(made)
        own = isinstance(made, type) and made.__module__.partition(".")[0] == top
        if word.startswith("_") or not kind or not (own or kind == "bound"):
            continue
        if find_abstract(made):
            unfinished.append(made)
            continue
        name = check_name(label, kind, made)
        if found.setdefault((kind, name), made) is not made:
            raise InputError(KEY, label, f"holds two plug-ins of the name {kind} {name}")
    if not found:
        words = "holds no plug-in: a class below Mechanism, MarginLoss, ConvexSet, ... "
        for cls in unfinished:
            words = f"holds no plug-in: class {cls.__name__} lacks {find_abstract(cls)}"
        raise InputError(KEY, label, words.rstrip())
    return found


def find_abstract(made: Any) -> str:
    """The methods that a class still lacks, in words; empty for what can be made."""
    return (
        ", ".join(sorted(vars(made).get("__abstractmethods__", ())))
        if isinstance(made, type)
        else ""
    )


def find_kind(made: Any) -> str:
    """What an object is, by the mark on its base class; empty for anything else."""
    is_class = isinstance(made, type)
    line = made.__mro__ if is_class else type(made).__mro__
    kind = next((vars(cls)["plugin_kind"] for cls in line if "plugin_kind" in vars(cls)), "")
    # a bound is an object, everything else a class
    return kind if kind in KINDS and (kind == "bound") != is_class else ""


def check_name(label: str, kind: str, made: Any, given: str = "") -> str:
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
    reserved = form is _NAME and name in RESERVED
    if not isinstance(name, str) or not form.fullmatch(name) or reserved:
        words = "must be a word of a-z, 0-9 and _" if form is _NAME else "must be plain words"
        words += f", and not one of {', '.join(RESERVED)}" if reserved else ""
        raise InputError(KEY, label, f"the name of a {kind}, {name!r}, {words}")
    if given and name != given:
        raise InputError(KEY, label, f"the entry point {given} names a {kind} called {name}")
    if kind not in ("bound", "event", "mechanism"):
        made.name = name
    return name


def snake_case(word: str) -> str:
    """``OneStep`` -> ``one_step``; ``DPFTRL2`` -> ``dpftrl2``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word)
    return parted.lower()


def _check_class(label: str, cls: Any) -> None:
    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise InputError(KEY, label, f"class {cls.__name__} needs the line @dataclass(frozen=True) "
                         "above it")  # fmt: skip
    with blame_plugin(label):
        fields_of(cls)
