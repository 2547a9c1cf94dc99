"""The finders of roots and minima have the bits of scipy's, and its calls of the function."""

import math
import platform

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, log_ndtr

from dperm_cli.core.brent import find_minimum, find_root

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


VALLEYS = {
    "parabola": (lambda x, a: (x - a) ** 2, 0.0, 50.0),
    "quartic": (lambda x, a: (x - a) ** 4 + 3.0, -9.0, 90.0),
    "corner": (lambda x, a: abs(x - a), -2.0, 80.0),
    "slope": (lambda x, a: a * x, -1.0, 60.0),
    "level": (lambda x, a: 1.0, -1.0, 60.0),
    "waves": (lambda x, a: math.sin(a * x) + 0.01 * (x - a) ** 2, 0.0, 60.0),
    "step": (lambda x, a: 1.0 if x < a else 0.0, 0.0, 60.0),
    "wall": (lambda x, a: math.inf if x < a else x, 0.0, 60.0),
}


@pytest.mark.parametrize("name", VALLEYS)
@pytest.mark.parametrize(("xtol", "steps"), [(1e-5, 500), (1e-12, 500), (1.0, 500), (1e-9, 6)])
def test_a_minimum_is_that_of_scipy(name, xtol, steps):
    formula, low, high = VALLEYS[name]
    for a in np.random.default_rng(8).uniform(0.1, 40.0, 40).tolist():
        seen: list[float] = []
        known: list[float] = []
        found = find_minimum(
            lambda x, a=a, seen=seen: seen.append(x) or formula(x, a), low, high, xtol=xtol,
            steps=steps,
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # scipy's numbers are numpy's
            expected = minimize_scalar(
                lambda x, a=a, known=known: known.append(float(x)) or formula(float(x), a),
                bounds=(low, high), method="bounded", options={"xatol": xtol, "maxiter": steps},
            )  # fmt: skip
        assert seen == known
        assert found == (expected.x, expected.fun)


def test_a_minimum_of_one_step_is_the_first_place():
    assert find_minimum(lambda x: x, 0.0, 1.0, steps=1).x == pytest.approx(0.381966)
