"""Compile the loops of this room: one decorator, and the exact machine operations they use.

No loop uses fast-math. Sums have a fixed order and fused multiply-adds are written explicitly. So
an expression has the same bits wherever it is inlined, vectorised or called from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from dperm_cli.core.digests import hash_parts
from dperm_cli.loops import KEEPS_CODE


def compile_loop(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``njit`` with the interpreter lock released and the machine code kept where that is safe."""
    if function is None:
        return lambda f: compile_loop(f, **options)
    dispatcher = njit(nogil=True, cache=KEEPS_CODE, error_model="numpy", **options)(function)
    _stamp(dispatcher)
    _need_no_room(dispatcher)
    return dispatcher


def compile_inline(function: Callable[..., Any]) -> Any:
    """Compile a function that only other compiled loops call: it is inlined into them."""
    return compile_loop(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@cache
def room_digest() -> str:
    """Digest of every source file of this room."""
    return hash_parts(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


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


# Any: a type checker would see the typing function, not the operation it describes
operation: Any = intrinsic
_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)


@operation
def fma(_context, a, b, c):
    """a * b + c, rounded once."""

    def emit(_ctx, builder, _signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), emit


@operation
def as_float(_context, word):
    """The double whose bits are ``word``."""

    def emit(_ctx, builder, _signature, args):
        return builder.bitcast(args[0], _DOUBLE)

    return types.float64(types.uint64), emit


@operation
def as_bits(_context, value):
    """The bits of a double, as uint64."""

    def emit(_ctx, builder, _signature, args):
        return builder.bitcast(args[0], _WORD)

    return types.uint64(types.float64), emit
