"""Four doubles at a time, on rows of C-contiguous arrays.

LLVM does not vectorise loops over short rows by itself: it cannot know that arrays are disjoint,
and a loop over ten numbers does not repay its checks. Offsets count elements from the start
of the array, whatever its shape; nothing checks them.
"""

from __future__ import annotations

from typing import Any

from dperm_cli.loops import WIDTH as WIDTH
from dperm_cli.loops.jit import Operation, compile_inline, compile_loop, fma

# Any: what a type checker sees is called in loops alone
load: Any = Operation("load")
load_one: Any = Operation("load_one")
store: Any = Operation("store")
store_one: Any = Operation("store_one")
gather: Any = Operation("gather")
prefetch: Any = Operation("prefetch")
spread: Any = Operation("spread")
pick: Any = Operation("pick")
add: Any = Operation("add")
sub: Any = Operation("sub")
mul: Any = Operation("mul")
mul_add: Any = Operation("mul_add")
lane_sum: Any = Operation("lane_sum")


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
def two_dots(a, i, b, j, other, length):
    """``dot(a, i, b, j, length)`` and ``dot(a, i, b, other, length)``: a is read once for both."""
    s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = spread(0.0)
    wide, whole = length - length % 16, length - length % 4
    for k in range(0, wide, 16):
        one, two = load(a, i + k), load(a, i + k + 4)
        s0, t0 = mul_add(one, load(b, j + k), s0), mul_add(one, load(b, other + k), t0)
        s1, t1 = mul_add(two, load(b, j + k + 4), s1), mul_add(two, load(b, other + k + 4), t1)
        one, two = load(a, i + k + 8), load(a, i + k + 12)
        s2, t2 = mul_add(one, load(b, j + k + 8), s2), mul_add(one, load(b, other + k + 8), t2)
        s3, t3 = mul_add(two, load(b, j + k + 12), s3), mul_add(two, load(b, other + k + 12), t3)
    for k in range(wide, whole, 4):
        one = load(a, i + k)
        s0, t0 = mul_add(one, load(b, j + k), s0), mul_add(one, load(b, other + k), t0)
    total = lane_sum(add(add(s0, s1), add(s2, s3)))
    second = lane_sum(add(add(t0, t1), add(t2, t3)))
    for k in range(whole, length):
        total = fma(load_one(a, i + k), load_one(b, j + k), total)
        second = fma(load_one(a, i + k), load_one(b, other + k), second)
    return total, second


@compile_inline
def scale(factor, a, i, length):
    """a[i : i + length] *= factor."""
    whole = length - length % 4
    for k in range(0, whole, 4):
        store(a, i + k, mul(spread(factor), load(a, i + k)))
    for k in range(whole, length):
        store_one(a, i + k, factor * load_one(a, i + k))
