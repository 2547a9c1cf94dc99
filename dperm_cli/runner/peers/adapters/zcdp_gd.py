"""Noisy gradient descent on all records, accounted in zCDP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

STEPS = 32

ABOUT = {
    "title": "noisy full-gradient descent under zCDP",
    "source": "Bassily, Smith and Thakurta 2014; Bun and Steinke 2016, Prop. 1.3 and 1.6",
    "losses": ["logistic", "squared"],
    "kinds": ["approx"],
    "relations": ["replace_one", "add_remove"],
    "sets": ["l2_ball"],
    "packages": ["numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "each gradient to the loss's Lipschitz constant, which changes none",
    "differs": "the same problem; 32 steps, the mean of the points",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The mean of the points of projected descent with equal noise in each step."""
    x, y = problem["x"], problem["y"]
    n, p = x.shape
    lipschitz, radius = float(problem["lipschitz"]), float(problem["radius"])
    epsilon, log = float(problem["epsilon"]), math.log(1.0 / float(problem["delta"]))
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    moved = lipschitz * (2.0 if problem["relation"] == "replace_one" else 1.0)
    scale = moved * math.sqrt(STEPS / (2.0 * rho))
    step = radius / math.sqrt(STEPS * ((n * lipschitz) ** 2 + p * scale**2))
    theta, total = np.zeros(p), np.zeros(p)
    for _ in range(STEPS):
        margins = x @ theta
        slopes = margins - y
        if problem["loss"] == "logistic":
            slopes = -y / (1.0 + np.exp(np.clip(y * margins, -500.0, 500.0)))
        gradients = slopes[:, None] * x
        sizes = np.linalg.norm(gradients, axis=1, keepdims=True)
        gradients *= np.minimum(1.0, lipschitz / np.maximum(sizes, 1e-300))
        theta = theta - step * (gradients.sum(axis=0) + scale * rng.normal(size=p))
        theta *= min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300))
        total += theta
    return total / STEPS
