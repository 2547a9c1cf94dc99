"""The machine operations of compiled loops: on one double, and on four at a time.

Loops name them by ``jit.Operation``. This file imports numba, and is imported by it alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from dperm_cli.loops import WIDTH

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


class Lanes(types.Type):
    """The compiled type of four doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes4")


_lanes = Lanes()
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_SLOT = ir.IntType(32)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _address(context, builder, kind, array, offset, target):
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), target.as_pointer())


def _reader(result, target, single):
    """Reads numbers of double precision, or of single precision, which become double ones."""

    @operation
    def read(_context, array, offset):
        is_single = array.dtype == types.float32

        def emit(context, builder, signature, args):
            stored = single if is_single else target
            place = _address(context, builder, signature.args[0], args[0], args[1], stored)
            read = builder.load(place, align=4 if is_single else 8)
            return builder.fpext(read, target) if is_single else read

        return result(array, types.int64), emit

    return read


def _writer(result, target):
    @operation
    def write(_context, array, offset, value):
        def emit(context, builder, signature, args):
            place = _address(context, builder, signature.args[0], args[0], args[1], target)
            builder.store(args[2], place, align=8)
            return context.get_dummy_value()

        return types.void(array, types.int64, result), emit

    return write


load = _reader(_lanes, _VECTOR, ir.VectorType(ir.FloatType(), WIDTH))
load_one = _reader(types.float64, _DOUBLE, ir.FloatType())
store, store_one = _writer(_lanes, _VECTOR), _writer(types.float64, _DOUBLE)


@operation
def gather(_context, array, i, j, k, m):
    """The doubles at four offsets, one to a lane."""

    def emit(context, builder, signature, args):
        found = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(WIDTH):
            place = _address(context, builder, signature.args[0], args[0], args[1 + lane], _DOUBLE)
            one = builder.load(place, align=8)
            found = builder.insert_element(found, one, _SLOT(lane))
        return found

    return _lanes(array, *[types.int64] * WIDTH), emit


@operation
def prefetch(_context, array, offset):
    """Ask for the cache line of an element that will be read soon."""

    def emit(context, builder, signature, args):
        byte = ir.IntType(8)
        place = _address(context, builder, signature.args[0], args[0], args[1], byte)
        kind = ir.FunctionType(ir.VoidType(), [place.type, _SLOT, _SLOT, _SLOT])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [place, _SLOT(0), _SLOT(3), _SLOT(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@operation
def spread(_context, value):
    """A double in all four lanes."""

    def emit(_ctx, builder, _signature, args):
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], _SLOT(0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_SLOT, 4), [0] * 4))

    return _lanes(types.float64), emit


@operation
def pick(_context, a, lane):
    """The double in one lane."""

    def emit(_ctx, builder, _signature, args):
        return builder.extract_element(args[0], builder.trunc(args[1], _SLOT))

    return types.float64(_lanes, types.int64), emit


def _operation(name):
    @operation
    def operate(_context, a, b):
        def emit(_ctx, builder, _signature, args):
            return getattr(builder, name)(*args)

        return _lanes(_lanes, _lanes), emit

    return operate


add, sub, mul = _operation("fadd"), _operation("fsub"), _operation("fmul")


@operation
def mul_add(_context, a, b, c):
    """a * b + c in every lane, rounded once."""

    def emit(_ctx, builder, _signature, args):
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v4f64")
        return builder.call(fused, args)

    return _lanes(_lanes, _lanes, _lanes), emit


@operation
def lane_sum(_context, a):
    """(a0 + a2) + (a1 + a3)."""

    def emit(_ctx, builder, _signature, args):
        a0, a1, a2, a3 = (builder.extract_element(args[0], _SLOT(i)) for i in range(4))
        return builder.fadd(builder.fadd(a0, a2), builder.fadd(a1, a3))

    return types.float64(_lanes), emit


@operation
def lane_sums(_context, a, b, c, d):
    """``lane_sum`` of each of four, one to a lane."""

    def emit(_ctx, builder, _signature, args):
        def mix(one, two, places):
            return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(_SLOT, 4), places))

        a, b, c, d = args
        left = builder.fadd(mix(a, b, [0, 1, 4, 5]), mix(a, b, [2, 3, 6, 7]))
        right = builder.fadd(mix(c, d, [0, 1, 4, 5]), mix(c, d, [2, 3, 6, 7]))
        return builder.fadd(mix(left, right, [0, 2, 4, 6]), mix(left, right, [1, 3, 5, 7]))

    return _lanes(_lanes, _lanes, _lanes, _lanes), emit
