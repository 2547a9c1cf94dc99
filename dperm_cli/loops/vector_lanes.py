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
lane_sums: Any = Operation("lane_sums")


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
def four_dots(a, i, other, b, j, another, length):
    """``dot`` of a from i and from ``other`` on with b from j and from ``another`` on.

    Returns:
        Those of i and j, ``other`` and j, i and ``another``, ``other`` and ``another``.
    """
    # two of the four sums of each dot, and then the other two: registers hold no more at once
    s0 = t0 = u0 = v0 = s1 = t1 = u1 = v1 = spread(0.0)
    s2 = t2 = u2 = v2 = s3 = t3 = u3 = v3 = spread(0.0)
    wide, whole = length - length % 16, length - length % 4
    for k in range(0, wide, 16):
        s0, t0, u0, v0 = _add_products(a, i + k, other + k, b, j + k, another + k, s0, t0, u0, v0)
        m = k + 4
        s1, t1, u1, v1 = _add_products(a, i + m, other + m, b, j + m, another + m, s1, t1, u1, v1)
    for k in range(wide, whole, 4):
        s0, t0, u0, v0 = _add_products(a, i + k, other + k, b, j + k, another + k, s0, t0, u0, v0)
    s0, t0, u0, v0 = add(s0, s1), add(t0, t1), add(u0, u1), add(v0, v1)
    for k in range(8, wide, 16):
        s2, t2, u2, v2 = _add_products(a, i + k, other + k, b, j + k, another + k, s2, t2, u2, v2)
        m = k + 4
        s3, t3, u3, v3 = _add_products(a, i + m, other + m, b, j + m, another + m, s3, t3, u3, v3)
    s2, t2, u2, v2 = add(s2, s3), add(t2, t3), add(u2, u3), add(v2, v3)
    sums = lane_sums(add(s0, s2), add(t0, t2), add(u0, u2), add(v0, v2))
    s, t, u, v = pick(sums, 0), pick(sums, 1), pick(sums, 2), pick(sums, 3)
    for k in range(whole, length):
        one, two = load_one(a, i + k), load_one(a, other + k)
        x, y = load_one(b, j + k), load_one(b, another + k)
        s, t, u, v = fma(one, x, s), fma(two, x, t), fma(one, y, u), fma(two, y, v)
    return s, t, u, v


@compile_inline
def _add_products(a, i, other, b, j, another, s, t, u, v):
    """Four sums, and the products of four numbers of each of two rows with those of two points."""
    one, two, x, y = load(a, i), load(a, other), load(b, j), load(b, another)
    return mul_add(one, x, s), mul_add(two, x, t), mul_add(one, y, u), mul_add(two, y, v)


@compile_inline
def scale(factor, a, i, length):
    """a[i : i + length] *= factor."""
    whole = length - length % 4
    for k in range(0, whole, 4):
        store(a, i + k, mul(spread(factor), load(a, i + k)))
    for k in range(whole, length):
        store_one(a, i + k, factor * load_one(a, i + k))
