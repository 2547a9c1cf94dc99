"""Compile the loops of this room: one decorator, and the exact machine operations they use.

No loop uses fast-math. Sums have a fixed order and fused multiply-adds are written explicitly. So
an expression has the same bits wherever it is inlined, vectorised or called from.

Numba is imported when a loop is first called. Planning, accounting and looking up need none.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from dperm_cli.core.digests import hash_parts
from dperm_cli.loops import KEEPS_CODE

_LOCK = threading.RLock()


class CompiledLoop:
    """A function that is compiled when it is first called, or by the first loop that calls it.

    What it does not have itself is taken from numba's dispatcher: ``signatures``, for instance.

    Args:
        function: What is compiled.
        options: Numba's options.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._options = function, options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of this function."""
        if self._dispatcher is None:
            with _LOCK:
                if self._dispatcher is None:
                    self._dispatcher = _make_dispatcher(self.py_func, self._options)
        return self._dispatcher

    def __call__(self, *args: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself, which asks before there is a function
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__


class Operation:
    """A machine operation of ``machine_operations`` by its name, for compiled loops alone."""

    def __init__(self, name: str) -> None:
        self.name = name


def compile_loop(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``njit`` with the interpreter lock released and the machine code kept where that is safe."""
    if function is None:
        return lambda f: compile_loop(f, **options)
    return CompiledLoop(function, options)


def compile_inline(function: Callable[..., Any]) -> Any:
    """Compile a function that only other compiled loops call: it is inlined into them."""
    return compile_loop(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


# Any: what a type checker sees is called in loops alone
fma: Any = Operation("fma")
as_float: Any = Operation("as_float")
as_bits: Any = Operation("as_bits")


@cache
def room_digest() -> str:
    """Digest of every source file of this room."""
    return hash_parts(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


def _make_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    _teach_numba()
    from numba import njit

    dispatcher = njit(nogil=True, cache=KEEPS_CODE, error_model="numpy", **options)(function)
    _stamp(dispatcher)
    _need_no_room(dispatcher)
    _read_without_tables(dispatcher)
    _parse_when_linked(dispatcher)
    return dispatcher


@cache
def _teach_numba() -> None:
    """Have numba take a compiled loop for its dispatcher, and an operation for its intrinsic."""
    from numba.core.registry import cpu_target
    from numba.extending import typeof_impl

    from dperm_cli.loops import machine_operations

    typing: Any = cpu_target.typing_context

    @typeof_impl.register(CompiledLoop)
    def find_loop(loop: CompiledLoop, context: Any) -> Any:
        return typeof_impl(loop.dispatcher, context)

    @typeof_impl.register(Operation)
    def find_operation(operation: Operation, _context: Any) -> Any:
        made = getattr(machine_operations, operation.name)
        return typing.resolve_value_type(made)


def _stamp(dispatcher: Any) -> None:
    """Make the stored machine code depend on the whole room, not on one file.

    Kernels inline functions of neighbouring files; numba looks only at the file that holds the
    kernel and would go on using machine code that contains an older neighbour.
    """
    with contextlib.suppress(AttributeError):  # without a cache there is nothing to mark
        store = dispatcher._cache._cache_file
        store._source_stamp = (store._source_stamp, room_digest())


def _need_no_room(dispatcher: Any) -> None:
    """Go on where machine code cannot be kept, as on a full disk: what was compiled is there."""
    store = dispatcher._cache
    keep = store.save_overload

    def keep_if_possible(signature: Any, compiled: Any) -> None:
        # RuntimeError: of numba, where it does not have the bytes of what it has just compiled
        with contextlib.suppress(OSError, RuntimeError):
            keep(signature, compiled)

    store.save_overload = keep_if_possible


def _read_without_tables(dispatcher: Any) -> None:
    """Read kept machine code without numba's tables of all that it can compile.

    Numba fills them before it looks for kept code, which takes half as long as importing it. When
    it compiles, it fills them by itself.
    """
    from numba.core.runtime.nrt import rtsys

    store = dispatcher._cache
    try:
        load, pass_over = store._load_overload, store._guard_against_spurious_io_errors
    except AttributeError:  # nothing is kept, or another release
        return

    def read(signature: Any, target: Any) -> Any:
        rtsys.initialize(target)  # the code may ask it for memory
        with pass_over():
            return load(signature, target)
        return None  # where the block met such an error

    store.load_overload = read


def _parse_when_linked(dispatcher: Any) -> None:
    """Read the second form of kept code, which other code is linked with, when that happens.

    Numba reads both forms at once, and takes several times as long for the second one. Processes
    that compile nothing have no use for it.
    """
    store = dispatcher._cache
    try:
        rebuild_at_once = store._impl.rebuild
    except AttributeError:  # nothing is kept, or another release
        return

    def rebuild(target: Any, payload: Any) -> Any:
        try:
            (name, kind, (machine_code, to_link)), description, *rest = payload
            entry, engine = description.llvm_cpython_wrapper_name, target.codegen()._engine
            symbols = engine._defined_symbols
        except (AttributeError, TypeError, ValueError):  # it has one form, or is of another release
            return rebuild_at_once(target, payload)
        if entry.encode() + b"\0" not in machine_code:  # only other code calls it
            return rebuild_at_once(target, payload)
        symbols.add(entry)
        without = (name, kind, (machine_code, _empty_module()))
        found = rebuild_at_once(target, (without, description, *rest))
        library = found.library

        def parse() -> Any:
            from llvmlite import binding

            del library._get_module_for_linking  # from now on it has the usual one
            library._shared_module = binding.parse_bitcode(to_link)
            engine._load_defined_symbols(library._shared_module)
            return library._shared_module

        library._get_module_for_linking = parse
        return found

    store._impl.rebuild = rebuild


@cache
def _empty_module() -> bytes:
    from llvmlite import binding

    return binding.parse_assembly("").as_bitcode()
