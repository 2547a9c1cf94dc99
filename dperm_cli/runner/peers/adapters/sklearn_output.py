"""Output perturbation around scikit-learn's logistic regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ABOUT = {
    "title": "scikit-learn's LogisticRegression with noise on its minimiser",
    "source": "Chaudhuri, Monteleoni and Sarwate 2011, Alg. 1",
    "losses": ["logistic"],
    "kinds": ["pure"],
    "relations": ["replace_one"],
    "sets": ["l2_ball", "l1_ball"],
    "packages": ["scikit-learn", "numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "none: rows are within their declared bound",
    "differs": "minimises over all points with a ridge of 2 L sqrt(p/(n epsilon))/R, then "
    "projected; the sensitivity is that of the exact minimiser, which is found to 1e-10",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The minimiser and noise with density proportional to exp(-epsilon |b| / sensitivity)."""
    n, p = problem["x"].shape
    scale = 2.0 * float(problem["row_bound"]) / (n * choose_ridge(problem))
    away = rng.normal(size=p)
    length = rng.gamma(p, scale / float(problem["epsilon"]))
    return find_optimum(problem) + length * away / np.linalg.norm(away)


def find_optimum(problem: dict[str, Any]) -> np.ndarray:
    """The minimiser around which the noise is put."""
    from sklearn.linear_model import LogisticRegression

    strength = len(problem["x"]) * choose_ridge(problem)
    made = LogisticRegression(C=1.0 / strength, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return made.fit(problem["x"], problem["y"]).coef_.ravel()


def choose_ridge(problem: dict[str, Any]) -> float:
    """The ridge of the mean loss, from public facts."""
    n, p = problem["x"].shape
    slope, epsilon = float(problem["row_bound"]), float(problem["epsilon"])
    return 2.0 * slope * math.sqrt(p / (n * epsilon)) / float(problem["radius"])
