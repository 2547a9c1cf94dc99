"""The proximal sampler's step count against its kernel in one dimension, by quadrature.

The discrete kernel is reversible and its rows add up to one, exactly, so its spectrum and its
iterates are those of the chain up to the error of two quadratures of analytic functions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.samplers import proximal
from dperm_cli.samplers.shared.potential import Records
from tests.samplers import problem, target

NODES = 160
CASES = [
    (loss, n, epsilon)
    for loss in ("logistic", "hinge", "absolute", "linear")
    for n, epsilon in ((50, 0.1), (50, 1.0), (300, 1.0), (1000, 0.1), (1000, 1.0))
]


def kernel(f: np.ndarray, x: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
    """P[x, z], the probability of node z after a step from node x."""
    scale, reach = math.sqrt(h), float(np.max(x) - np.min(x))
    # the law of y given (x, z) is a Gaussian moved by at most the length of the interval
    y = np.arange(np.min(x) - reach - 9 * scale, np.max(x) + reach + 9 * scale, scale / 5)
    square = (x[:, None] - y) ** 2 / (2 * h)
    forth = np.exp(-square)
    forth /= np.sum(forth, axis=1, keepdims=True)
    back = np.log(w)[:, None] - f[:, None] - square
    back = np.exp(back - np.max(back, axis=0))
    return forth @ (back / np.sum(back, axis=0)).T


def made(loss: str, n: int, epsilon: float) -> tuple[proximal.Target, np.ndarray, ...]:
    interval = registry.load("constraint", "l2_ball")(1.0, 1)
    case = problem(loss, n, interval)
    if loss == "linear":  # every record pulls the same way: f rises by F
        case.data.x[:], case.data.y[:] = 1.0, 1.0
    law = target(case, 0.98 * epsilon)
    x, w = np.polynomial.legendre.leggauss(NODES)
    return law, Records(case.loss, case.data, law).value(x[:, None]), x, w


def spread(density: np.ndarray) -> float:
    """sup |log| of a density relative to pi."""
    return float(np.max(np.abs(np.log(density))))


@pytest.mark.parametrize(("loss", "n", "epsilon"), CASES)
@pytest.mark.parametrize("width", [0.25, 1.0])
def test_step_count(loss, n, epsilon, width):
    law, f, x, w = made(loss, n, epsilon)
    h = (width * law.constraint.diameter) ** 2
    p = kernel(f, x, w, h)
    pi = w * np.exp(np.min(f) - f)
    pi /= np.sum(pi)

    # reversible, with a second eigenvalue below 1 / (1 + alpha h)
    flow = pi[:, None] * p
    assert np.allclose(flow, flow.T, rtol=1e-6, atol=1e-12)
    root = np.sqrt(pi)
    eigenvalues = np.linalg.eigvalsh(0.5 * (flow + flow.T) / np.outer(root, root))
    assert eigenvalues[-1] == pytest.approx(1.0, abs=1e-6)
    assert eigenvalues[-2] <= 1.0 / (1.0 + proximal.poincare(law) * h)

    # the density of one step
    assert np.max(f) - np.min(f) <= law.oscillation
    assert np.log(np.max(p / pi)) <= proximal.log_density_bound(law, h)

    # the distance after T steps, from both starts
    dist_inf = epsilon / 100
    uniform = 0.5 * w / pi
    steps = proximal.count_needed_steps(law, h, dist_inf)
    assert spread(np.linalg.matrix_power(p, steps) @ uniform) <= dist_inf
    from_centre = proximal.count_needed_steps(law, h, dist_inf, "centre")
    middle = p[NODES // 2] / pi
    assert spread(np.linalg.matrix_power(p, from_centre - 1) @ middle) <= dist_inf


def test_one_step_is_not_enough():
    """What the test above would say of a chain that is too short."""
    law, f, x, w = made("linear", 300, 1.0)
    p = kernel(f, x, w, 0.25)
    pi = w * np.exp(np.min(f) - f)
    pi /= np.sum(pi)
    assert spread(p @ (0.5 * w / pi)) > 0.01
    assert np.log(np.max(p / pi)) > proximal.log_density_bound(law, 0.25) - law.oscillation


def test_step_count_by_hand():
    """alpha = pi^2 / 4, F = .5 * .1 * 1000 = 50 and h = 2.56 for n = 1000, eps = .1, p = 10."""
    ball = registry.load("constraint", "l2_ball")(1.0, 10)
    law = target(problem("logistic", 1000, ball), 0.1)
    assert law.oscillation == pytest.approx(50.0)
    assert proximal.poincare(law) == pytest.approx(math.pi**2 / 4)
    b = 50.0 + 10 * math.log(1.0) + 4.0 / 2.56
    assert proximal.log_density_bound(law, 2.56) == pytest.approx(b)
    need = 25.0 + b / 2 + math.log(1.0 / (1.0 - math.exp(-0.001)))
    steps = 1 + math.ceil(need / math.log(1.0 + math.pi**2 / 4 * 2.56))
    assert proximal.count_needed_steps(law, 2.56, 0.001) == steps == 30
