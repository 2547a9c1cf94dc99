"""The error of the compiled exponential, bounded at every margin: Lemma 4 of secure noise needs it.

Its own code is run on polynomials with exact coefficients. So the bound is of the numbers that
stand there, and holds between any two points that a comparison would try.
"""

from __future__ import annotations

import math
import types
from decimal import Decimal, localcontext
from fractions import Fraction

from dperm_cli.loops import slopes

UNIT = Fraction(1, 2**53)
REACH = Fraction(347, 1000)  # of the reduced argument: ln(2)/2, and rounding of the quotient
Poly = tuple[Fraction, ...]  # coefficients of the powers of r


class Polynomial:
    """Just enough of a number for ``slopes.exp``: sums and products, exactly."""

    def __init__(self, terms: Poly) -> None:
        self.terms = terms

    def __mul__(self, other):
        other = of(other)
        found = [Fraction(0)] * (len(self.terms) + len(other.terms) - 1)
        for i, a in enumerate(self.terms):
            for j, b in enumerate(other.terms):
                found[i + j] += a * b
        return Polynomial(tuple(found))

    def __add__(self, other):
        one, two = list(self.terms), list(of(other).terms)
        size = max(len(one), len(two))
        one, two = (terms + [Fraction(0)] * (size - len(terms)) for terms in (one, two))
        return Polynomial(tuple(a + b for a, b in zip(one, two, strict=True)))

    __rmul__, __radd__ = __mul__, __add__

    @property
    def largest(self) -> Fraction:
        """At most this on [-REACH, REACH]."""
        return sum((abs(a) * REACH**k for k, a in enumerate(self.terms)), Fraction(0))


def of(value) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial((Fraction(float(value)),))


def run_exactly(change=lambda terms: terms) -> tuple[Polynomial, Fraction]:
    """What ``slopes.exp`` computes of r without rounding, and a bound on the rounding of it all.

    Every fused operation is off by UNIT times its result. What is multiplied afterwards grows by
    the largest size of its factor; all factors here are below 1.
    """
    results = []

    def fma(a, b, c):
        found = of(a) * b + c
        if not results:  # the quotient of the argument by ln 2: the reduced argument has none
            results.append(Polynomial((Fraction(0),)))
            return slopes.ROUNDER
        results.append(found)
        return found

    names = {
        **vars(slopes), "fma": fma, "min": lambda a, _: a, "max": lambda a, _: a,
        "as_bits": lambda v: v if isinstance(v, Polynomial) else 0, "as_float": lambda v: v,
    }  # fmt: skip
    parts = (slopes._reduce, slopes._exp_of_rest, slopes._scale, slopes.exp)
    names |= {f.__name__: types.FunctionType(f.py_func.__code__, names) for f in parts}
    value = names["exp"](Polynomial((Fraction(0), Fraction(1))))
    # s and s * s, and the last sum, are operations too
    largest = [result.largest for result in results] + [Fraction(1), Fraction(1), value.largest]
    rounding = 2 * UNIT * sum(largest, Fraction(0))
    return Polynomial(change(value.terms)), rounding


def bound_error(value: Polynomial, rounding: Fraction) -> Fraction:
    """Of e^x as it is computed, relative, for all |x| <= 708."""
    series = [Fraction(1, math.factorial(k)) for k in range(30)]
    given = [*value.terms, *[Fraction(0)] * (30 - len(value.terms))]
    terms = zip(given, series, strict=True)
    apart = sum((abs(a - b) * REACH**k for k, (a, b) in enumerate(terms)), Fraction(0))
    apart += 2 * REACH**30 / math.factorial(30)
    with localcontext() as context:
        context.prec = 60
        ln2 = Fraction(Decimal(2).ln())
    # the argument less a whole multiple of ln 2, in two fused operations
    reduced = 1022 * abs(Fraction(slopes.LN2_HIGH) + Fraction(slopes.LN2_LOW) - ln2)
    reduced += 2 * UNIT
    # e^r is at least 0.7 there, and moves by at most 1.5 times its argument
    return (apart + rounding + Fraction(3, 2) * reduced) / Fraction(7, 10)


def test_the_exponential_is_near_enough_at_every_margin():
    """The slope 1 / (1 + e^z) moves by a quarter of the relative error, and by two roundings."""
    error = bound_error(*run_exactly())
    assert Fraction(1, 10**16) < error < Fraction(1, 10**14)
    assert error / 4 + 4 * UNIT < Fraction(1, 2**47)


def test_a_wrong_coefficient_is_noticed():
    def spoil(terms: Poly) -> Poly:
        return (*terms[:5], terms[5] * (1 + Fraction(1, 10**8)), *terms[6:])

    assert bound_error(*run_exactly(spoil)) / 4 > Fraction(1, 2**47)
