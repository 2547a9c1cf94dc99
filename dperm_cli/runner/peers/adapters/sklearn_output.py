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
    from sklearn.linear_model import LogisticRegression

    x, y, slope = problem["x"], problem["y"], float(problem["row_bound"])
    n, p = x.shape
    epsilon = float(problem["epsilon"])
    ridge = 2.0 * slope * math.sqrt(p / (n * epsilon)) / float(problem["radius"])
    made = LogisticRegression(C=1.0 / (n * ridge), fit_intercept=False, tol=1e-10, max_iter=10_000)
    theta = made.fit(x, y).coef_.ravel()
    away = rng.normal(size=p)
    length = rng.gamma(p, 2.0 * slope / (n * ridge * epsilon))
    return theta + length * away / np.linalg.norm(away)
