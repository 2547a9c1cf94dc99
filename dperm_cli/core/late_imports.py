"""Load modules that libraries import and hardly ever use when something is taken from them.

SciPy looks through all of NumPy when it is imported, also at NumPy's compiler of Fortran and at its
test helpers; matplotlib imports a table of glyph names for figures in TeX, and Pillow the names of
what cameras write; numba can read its settings from a YAML file. A small run has no use for any of
them, and would spend a tenth of its time on them. Nor has it for docstrings that both libraries put
together while they are imported, nor for most of dperm's own loops and solvers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from importlib import _bootstrap  # type: ignore[attr-defined]
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_WRITES_WORDS = "_update_set_signature_and_docstring"
LATE = (
    "numpy.char", "numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing", "fontTools.agl",
    "PIL.ExifTags", "numba.np.arrayobj", "scipy.sparse", "scipy.special", "yaml",
)  # fmt: skip
LATE_ROOMS = ("dperm_cli.loops.", "dperm_cli.solvers.")  # all modules of these but one
# the one: it registers operations with numba, which has to know them before it compiles
_AT_ONCE = "dperm_cli.loops.machine_operations"
_LOADING = threading.RLock()
_CLAIMS = threading.Lock()  # held for moments only
_MOMENT = 1e-3  # seconds
# whether this thread imports a part of a package that is not to be loaded for it
_wants_part: ContextVar[bool] = ContextVar("wants_part", default=False)
_SCIPY_WORDS = "scipy._lib._array_api"  # adds a note on array libraries to docstrings of functions


class _LateFinder:
    """Finds these modules, with a loader that waits until they are used."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python's own finder; None for every other module."""
        is_own = name.startswith(LATE_ROOMS) and name != _AT_ONCE
        if not is_own and name not in LATE and name != _SCIPY_WORDS:
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            wrap: Any = _ScipyLoader if name == _SCIPY_WORDS else _LateLoader
            found.loader = wrap(found.loader)
        return found


class _LateModule(ModuleType):
    """A module whose code runs when something is taken from it, while other threads wait.

    Before Python 3.12 the module of ``importlib.util.LazyLoader`` shows them what is there so far.
    """

    def __getattribute__(self, name: str) -> Any:
        """Run the module's code; afterwards this is a module like any other."""
        spec = object.__getattribute__(self, "__spec__")
        if name == "__spec__":  # every import statement looks at it
            return spec
        is_package = spec.submodule_search_locations is not None
        if name == "__path__" and is_package:  # a part is imported, which does not wait
            if not _wants_part.get() and _claim(spec):
                _run(self, spec)
            return ModuleType.__getattribute__(self, name)
        if (found := _FIND_EARLY.get(spec.name, _find_nothing)(name)) is not None:
            return found
        _load(self, spec)
        return ModuleType.__getattribute__(self, name)  # with the module's own ``__getattr__``

    def __setattr__(self, name: str, value: Any) -> None:
        """Load the module first: its code would undo what is set from outside."""
        if not name.startswith("__") and not isinstance(value, ModuleType):  # a part of a package
            _load(self, object.__getattribute__(self, "__spec__"))
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Load the module first."""
        _load(self, object.__getattribute__(self, "__spec__"))
        ModuleType.__delattr__(self, name)


def _load(module: ModuleType, spec: Any) -> None:
    """Run the module's code, or wait for the thread that does; its own code does not wait."""
    state, me = spec.loader_state, threading.get_ident()
    while spec.loader_state is not None and state["by"] != me:
        if _claim(spec):
            _run(module, spec)
        elif _imports_part_of(spec.name):
            return  # code of the package itself sees what is there so far, as without this module
        else:
            with _lock(spec.name):
                pass
            time.sleep(_MOMENT)  # the other thread may be about to take the lock


def _claim(spec: Any) -> bool:
    """Whether this thread is the one to run the module's code."""
    with _CLAIMS:
        state = spec.loader_state
        if state is None or state["by"] is not None:
            return False
        state["by"] = threading.get_ident()
        return True


def _run(module: ModuleType, spec: Any) -> None:
    """Run the code of a module that this thread has claimed.

    Who runs it is settled before anybody waits: whoever holds the lock of a part of a package would
    otherwise wait for the package's, and the package's code for the part's.
    """
    try:
        with _lock(spec.name):
            spec.loader.exec_module(module)
            spec.loader_state = None
            object.__setattr__(module, "__class__", ModuleType)
    except BaseException as error:
        if spec.loader_state is not None:
            spec.loader_state["by"] = None  # whoever asks next tries again
        if isinstance(error, AttributeError):  # it would be taken for a package without a path
            raise ImportError(f"{spec.name} cannot be loaded: {error}", name=spec.name) from error
        raise


def _imports_part_of(package: str) -> bool:
    """Whether this thread is importing a module of the package: it holds that module's lock."""
    locks, me = dict(vars(_bootstrap).get("_module_locks", {})), threading.get_ident()
    parts = (find() for name, find in locks.items() if name.startswith(f"{package}."))
    return any(lock is not None and vars(lock).get("owner") == me for lock in parts)


def _lock(name: str) -> AbstractContextManager[Any]:
    """The lock with which Python imports a module: it knows when threads wait for each other."""
    make = vars(_bootstrap).get("_ModuleLockManager")
    return _LOADING if make is None else make(name)


def _find_nothing(_: str) -> None:
    """For modules without anything that can be had before they are loaded."""


def _find_compiled(name: str) -> Any:
    """A compiled function of ``scipy.special``; None for its other names.

    It is the same object in the whole module, which prepares these functions for arrays of other
    libraries. That takes as long as importing NumPy.
    """
    if name.startswith("_") or os.environ.get("SCIPY_ARRAY_API"):
        return None
    token = _wants_part.set(True)
    try:
        import scipy.special._ufuncs  # noqa: F401
    finally:
        _wants_part.reset(token)
    compiled: Any = sys.modules["scipy.special._ufuncs"]  # by name, as an attribute would load all
    found = vars(compiled).get(name) if name in compiled.__all__ else None
    return found if type(found).__name__ == "ufunc" else None


def _find_test(name: str) -> Any:
    """``issparse`` of ``scipy.sparse``; None for its other names."""
    return _is_sparse if name == "issparse" else None


def _is_sparse(x: object) -> bool:
    """As ``scipy.sparse.issparse``: no such array is there before the module is."""
    loaded = sys.modules.get("scipy.sparse._base")
    # another thread may have begun to load it
    test = None if loaded is None else vars(loaded).get("issparse")
    return test is not None and test(x)


def _find_names(name: str) -> Any:
    """The module's own names, to be filled when its code runs; None for any one of them.

    Kept machine code holds on to the names of the modules that its functions are from, and takes
    none of them: what it needs was compiled into it.
    """
    module = sys.modules["numba.np.arrayobj"]
    return ModuleType.__getattribute__(module, name) if name == "__dict__" else None


_FIND_EARLY: dict[str, Callable[[str], Any]] = {
    "scipy.special": _find_compiled, "scipy.sparse": _find_test, "numba.np.arrayobj": _find_names,
}  # fmt: skip


class _Loader:
    """A loader around the usual one."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the usual loader."""
        return self._usual.create_module(spec)


class _LateLoader(_Loader):
    """Makes a ``_LateModule`` of a module that the usual loader would load at once."""

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing yet."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._usual
        module.__spec__.loader_state = {"by": None}  # the thread that runs its code
        module.__class__ = _LateModule


class _ScipyLoader(_Loader):
    """Loads SciPy's module for array libraries, and has it leave docstrings as they are."""

    def exec_module(self, module: ModuleType) -> None:
        """As the usual loader; then the reader of docstrings is replaced, where that works."""
        self._usual.exec_module(module)
        own = vars(module)
        reader, table = own.get("FunctionDoc"), own.get("xp_capabilities_table")
        if reader is None or not isinstance(table, dict):
            return
        own["FunctionDoc"] = _UnreadWords

        def probe() -> None:
            """Words."""

        try:
            own["xp_capabilities"]()(probe)
        except Exception:  # another release, which asks for more
            own["FunctionDoc"] = reader
        finally:
            table.pop(probe, None)


class _UnreadWords:
    """Stands for the sections of a function's docstring, where a note is added to one of them."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._words = function.__doc__ or ""

    def __getitem__(self, section: str) -> list[str]:
        return []

    def __str__(self) -> str:
        return f"\n{self._words}"


def settle_matplotlib_words() -> None:
    """In a process of dperm's own, have matplotlib make no docstrings when it is imported.

    For each kind of what it draws it writes one that lists all properties, which takes as long as
    drawing a figure.
    """
    if _LateFinder not in sys.meta_path or "matplotlib.figure" in sys.modules:
        return
    from matplotlib.artist import Artist

    def keep_short(cls: type[Artist]) -> None:
        cls.set._autogenerated_signature = True  # type: ignore[attr-defined]

    if _WRITES_WORDS in vars(Artist):
        Artist._update_set_signature_and_docstring = classmethod(keep_short)  # type: ignore[assignment]


def load_late() -> None:
    """From now on, load those modules when they are used: for a process of dperm's own.

    A process that imports dperm as a library is left as it is.
    """
    if _LateFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LateFinder)
