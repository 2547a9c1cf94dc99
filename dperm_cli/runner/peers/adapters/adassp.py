"""Least squares from noisy sums of moments, with a ridge that follows a private eigenvalue."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

FAILURE = 0.05  # chance that the noise is larger than the ridge is made for

ABOUT = {
    "title": "AdaSSP, adaptive perturbation of sufficient statistics",
    "source": "Wang 2018, Alg. 2; its three Gaussians calibrated by zCDP, a third of rho each",
    "losses": ["squared"],
    "kinds": ["approx"],
    "relations": ["replace_one", "add_remove"],
    "sets": ["l2_ball", "l1_ball"],
    "packages": ["numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "none: rows and targets are within their declared bounds",
    "differs": "minimises over all points with a ridge of its own, then projected",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The solution of the noisy normal equations."""
    return _solve(problem, rng.normal)


def find_optimum(problem: dict[str, Any]) -> np.ndarray:
    """The point that the method has without its noise, at the ridge of these records."""
    return _solve(problem, lambda size=None: 0.0 if size is None else np.zeros(size))


def _solve(problem: dict[str, Any], draw: Callable[..., Any]) -> np.ndarray:
    """The normal equations with standard normals of a source."""
    x, y = problem["x"], problem["y"]
    p = x.shape[1]
    bound, size = float(problem["row_bound"]), float(problem["target_bound"])
    log = math.log(1.0 / float(problem["delta"]))
    rho = (math.sqrt(log + float(problem["epsilon"])) - math.sqrt(log)) ** 2 / 3.0
    unit = 1.0 / math.sqrt(2.0 * rho)  # noise for a sensitivity of 1
    # a replaced record moves xx' by sqrt 2 B^2 in the Frobenius norm, a missing one by B^2
    is_replaced = problem["relation"] == "replace_one"
    square_noise = unit * bound**2 * (math.sqrt(2.0) if is_replaced else 1.0)
    cross_noise = unit * bound * size * (2.0 if is_replaced else 1.0)
    square = x.T @ x
    least = float(np.linalg.eigvalsh(square)[0]) + unit * bound**2 * draw()
    least = max(least - unit * bound**2 * math.sqrt(2.0 * math.log(6.0 / FAILURE)), 0.0)
    wanted = square_noise * math.sqrt(p * math.log(2.0 * p**2 / FAILURE))
    upper = np.triu(draw(size=(p, p)))
    square = square + square_noise * (upper + np.triu(upper, 1).T)
    cross = x.T @ y + cross_noise * draw(size=p)
    return np.linalg.solve(square + max(0.0, wanted - least) * np.eye(p), cross)
