"""Stochastic gradient passes over one permutation, with noise on the last point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PASSES, BATCH = 10, 50

ABOUT = {
    "title": "bolt-on private SGD with a convex loss and a constant step",
    "source": "Wu et al. 2017, Alg. 1 and Cor. 1; Gaussian noise calibrated by zCDP instead of "
    "their Theorem 3, which needs epsilon below 1",
    "losses": ["logistic", "huberized_hinge", "squared"],
    "kinds": ["pure", "approx"],
    "relations": ["replace_one"],
    "sets": ["l2_ball"],
    "packages": ["numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "none: the loss is Lipschitz on the set",
    "differs": "the same problem; 10 passes, batches of 50, step 1/sqrt(n)",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The last point; two runs that differ in a record end within 2 k L eta / b."""
    x, y = problem["x"], problem["y"]
    n, p = x.shape
    lipschitz, smooth = float(problem["lipschitz"]), float(problem["smoothness"])
    radius, batch = float(problem["radius"]), min(BATCH, n)
    step = min(1.0 / math.sqrt(n), 2.0 / smooth)
    order = rng.permutation(n)
    theta = np.zeros(p)
    for _ in range(PASSES):
        for i in range(n // batch):  # what is left over is left out, so that batches are equal
            rows = order[i * batch : (i + 1) * batch]
            slopes = find_slopes(problem, x[rows] @ theta, y[rows])
            theta = theta - step * (slopes @ x[rows]) / batch
            theta *= min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300))
    reach = 2.0 * PASSES * lipschitz * step / batch
    epsilon, delta = float(problem["epsilon"]), float(problem["delta"])
    away = rng.normal(size=p)
    if delta == 0.0:
        return theta + rng.gamma(p, reach / epsilon) * away / np.linalg.norm(away)
    log = math.log(1.0 / delta)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    return theta + reach / math.sqrt(2.0 * rho) * away


def find_slopes(problem: dict[str, Any], z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The derivative of each record's loss in its margin."""
    if problem["loss"] == "squared":
        return z - y
    if problem["loss"] == "logistic":
        return -y / (1.0 + np.exp(np.clip(y * z, -500.0, 500.0)))
    width = float(problem["width"])
    return -y * np.clip((1.0 - y * z + width) / (2.0 * width), 0.0, 1.0)
