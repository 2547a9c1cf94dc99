"""Samplers; what their tests share.

``Numbers`` is the Source of one trial, ``problem`` and ``target`` make a law, and ``cell_p_value``
compares draws with a density in one or two dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import chi2

from dperm_cli.audit.contracts.sampler_contract import Numbers
from dperm_cli.core import registry
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.base import Target

__all__ = ["Numbers", "cell_p_value", "problem", "target"]

TASKS = {"hinge": "binary", "logistic": "binary", "huberized_hinge": "binary"}
TASKS |= {"l1_median": "location", "l2_median": "location"}


def problem(loss: str, n: int, constraint: Any, seed: int = 0, **regulariser: float) -> Problem:
    """n records in the unit ball, labels or targets that follow a plane with noise."""
    rng, task = np.random.default_rng(seed), TASKS.get(loss, "regression")
    x = rng.standard_normal((n, constraint.p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    z = x @ np.linspace(0.3, 1.0, constraint.p) + 0.2 * rng.standard_normal(n)
    y = {"binary": np.where(z < 0, -1.0, 1.0), "location": np.zeros(n)}.get(task)
    y = np.clip(z, -1.0, 1.0) if y is None else y
    data = Data.of_records("test", task, x, y, row_bound=1.0, target_bound=1.0, fingerprint="test")
    return Problem(data, registry.load("loss", loss)(), constraint, **regulariser)


def target(made: Problem, epsilon: float, kappa: float = 0.0) -> Target:
    """The law of the exponential mechanism at epsilon."""
    spec = made.spec()
    return Target(spec, epsilon / spec.oscillation, kappa)


def cell_p_value(
    body: Any,
    draws: np.ndarray,
    log_density: Callable[[np.ndarray], np.ndarray],
    cells: int = 6,
    fine: int = 100,
) -> float:
    """chi2 p-value of draws [m, p] in cells of a set of one or two dimensions.

    A cell's mass is a sum of exp(log_density) over fine^d points of it that are in the set; cells
    that expect fewer than 5 draws are one.
    """
    basis, centre = body.directions(), body.centre()
    d = basis.shape[1]
    high = body.support(basis.T) - basis.T @ centre
    low = -body.support(-basis.T) - basis.T @ centre
    ticks = (np.arange(cells * fine) + 0.5) / (cells * fine)
    axes = np.meshgrid(*(low[j] + (high[j] - low[j]) * ticks for j in range(d)), indexing="ij")
    points = centre + np.stack(axes, axis=-1).reshape(-1, d) @ basis.T
    inside = np.asarray(body.contains(points, 1e-9))
    weight = np.where(inside, log_density(points), -np.inf)
    weight = np.exp(weight - np.max(weight)).reshape((cells, fine) * d)
    mass = np.sum(weight, axis=tuple(range(1, 2 * d, 2))).ravel()
    expected = mass / np.sum(mass) * len(draws)
    share = ((draws - centre) @ basis - low) / (high - low)
    index = np.clip((share * cells).astype(int), 0, cells - 1)
    flat = np.ravel_multi_index(tuple(index.T), (cells,) * d)
    seen = np.bincount(flat, minlength=cells**d)
    large = expected >= 5.0
    seen = np.append(seen[large], np.sum(seen[~large]))
    expected = np.append(expected[large], np.sum(expected[~large]))
    kept = expected > 1e-6 * len(draws)
    statistic = np.sum((seen - expected)[kept] ** 2 / expected[kept])
    return float(chi2.sf(statistic, np.sum(kept) - 1))
