"""The root finder of core has the bits of scipy's, and its calls of the function."""

import math
import platform

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from dperm_cli.core.brent import find_root

# elsewhere a compiler may join a product and a sum to one rounding, in scipy's code
PLAIN_PRODUCTS = platform.machine() in ("x86_64", "AMD64")
FUNCTIONS = {
    "cubic": (lambda x, a: x**3 - a, 0.0, 50.0),
    "steep": (lambda x, a: math.expm1(3.0 * (x - a)), -9.0, 90.0),
    "flat": (lambda x, a: (x - a) ** 9, -2.0, 80.0),
    "jump": (lambda x, a: -1.0 if x < a else 2.0, -1.0, 60.0),
    "tiny": (lambda x, a: 1e-310 * (x - a), -1.0, 60.0),
    "tail": (lambda x, a: float(log_ndtr(-x)) + 3.0 * a, 0.0, 100.0),
    "mills": (lambda x, a: float(erfcx(x)) - 1.0 / (1.0 + a), 0.0, 1e6),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("xtol", "rtol"), [(1e-300, 1e-14), (1e-9, 8.9e-16), (1e-3, 1e-3)])
def test_a_root_is_that_of_scipy(name, xtol, rtol):
    formula, low, high = FUNCTIONS[name]
    for a in np.random.default_rng(7).uniform(0.1, 40.0, 40).tolist():
        for ends in ((low, high), (high, low)):
            seen: list[float] = []
            known: list[float] = []
            found = find_root(
                lambda x, a=a, seen=seen: seen.append(x) or formula(x, a), *ends,
                xtol=xtol, rtol=rtol, steps=500,
            )  # fmt: skip
            expected = brentq(
                lambda x, a=a, known=known: known.append(x) or formula(x, a), *ends,
                xtol=xtol, rtol=np.float64(rtol), maxiter=500,
            )  # fmt: skip
            assert found == pytest.approx(expected, rel=2.0 * rtol, abs=2.0 * xtol)
            if PLAIN_PRODUCTS:
                assert (found, seen) == (expected, known)


def test_an_end_may_be_the_root():
    assert find_root(lambda x: x, 0.0, 1.0, xtol=1e-9, rtol=1e-9, steps=9) == 0.0
    assert find_root(lambda x: x - 1.0, 0.0, 1.0, xtol=1e-9, rtol=1e-9, steps=9) == 1.0


def test_what_has_no_root_is_refused():
    with pytest.raises(ValueError, match="same sign"):
        find_root(lambda x: x + 1.0, 0.0, 1.0, xtol=1e-9, rtol=1e-9, steps=9)
    with pytest.raises(ValueError, match="nan"):
        find_root(lambda x: math.nan, 0.0, 1.0, xtol=1e-9, rtol=1e-9, steps=9)
    with pytest.raises(RuntimeError, match="3 steps"):
        find_root(lambda x: x**3 - 2.0, 0.0, 90.0, xtol=1e-9, rtol=1e-9, steps=3)
