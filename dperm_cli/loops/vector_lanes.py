"""Four doubles at a time, on rows of C-contiguous arrays.

LLVM does not vectorise loops over short rows by itself: it cannot know that arrays are disjoint,
and a loop over ten numbers does not repay its checks. Offsets count elements from the start
of the array, whatever its shape; nothing checks them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from dperm_cli.loops.jit import compile_inline, compile_loop, fma, operation

WIDTH = 4


class Lanes(types.Type):
    """The compiled type of four doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes4")


_lanes = Lanes()
_DOUBLE = ir.DoubleType()
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


@compile_loop(forceinline=True)
def dot(a, i, b, j, length):
    """Sum of a[i + k] b[j + k] over k < length, in an order that depends on length alone."""
    s0 = s1 = s2 = s3 = spread(0.0)
    wide, whole = length - length % 16, length - length % 4
    for k in range(0, wide, 16):
        s0 = mul_add(load(a, i + k), load(b, j + k), s0)
        s1 = mul_add(load(a, i + k + 4), load(b, j + k + 4), s1)
        s2 = mul_add(load(a, i + k + 8), load(b, j + k + 8), s2)
        s3 = mul_add(load(a, i + k + 12), load(b, j + k + 12), s3)
    for k in range(wide, whole, 4):
        s0 = mul_add(load(a, i + k), load(b, j + k), s0)
    total = lane_sum(add(add(s0, s1), add(s2, s3)))
    for k in range(whole, length):
        total = fma(load_one(a, i + k), load_one(b, j + k), total)
    return total


@compile_inline
def scale(factor, a, i, length):
    """a[i : i + length] *= factor."""
    whole = length - length % 4
    for k in range(0, whole, 4):
        store(a, i + k, mul(spread(factor), load(a, i + k)))
    for k in range(whole, length):
        store_one(a, i + k, factor * load_one(a, i + k))
