"""diffprivlib: objective perturbation, and least squares by the functional mechanism."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ABOUT = {
    "title": "diffprivlib: LogisticRegression, LinearRegression",
    "source": "IBM diffprivlib 0.6.6; Chaudhuri et al. 2011; Zhang et al. 2012",
    "losses": ["logistic", "squared"],
    "kinds": ["pure"],
    "relations": ["replace_one"],
    "sets": ["l2_ball", "l1_ball"],
    "packages": ["diffprivlib", "numpy", "scikit-learn"],
    "intercept": "none: fit_intercept=False, as the table's problem",
    "clipping": "rows to data_norm; entries and targets to the declared bounds (squared)",
    "differs": "minimises over all points with the ridge of C=1 (logistic; a larger one of its own "
    "where epsilon is small), then projected",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The library's defaults, with the public bounds of the problem."""
    from diffprivlib.models import (  # pyright: ignore[reportMissingImports]
        LinearRegression,
        LogisticRegression,
    )

    seed, bound = int(rng.integers(2**31)), float(problem["row_bound"])
    epsilon, x, y = float(problem["epsilon"]), problem["x"], problem["y"]
    if problem["loss"] == "logistic":
        made = LogisticRegression(
            epsilon=epsilon, data_norm=bound, fit_intercept=False, random_state=seed
        )
    else:
        size = float(problem["target_bound"])
        made = LinearRegression(
            epsilon=epsilon, bounds_X=(-bound, bound), bounds_y=(-size, size),
            fit_intercept=False, random_state=seed,
        )  # fmt: skip
    return made.fit(x, y).coef_


def find_optimum(problem: dict[str, Any]) -> np.ndarray:
    """The point that the library has without its noise, at the ridge that it takes."""
    from sklearn.linear_model import LogisticRegression

    x, y = problem["x"], problem["y"]
    if problem["loss"] == "squared":
        return np.linalg.lstsq(x, y, rcond=None)[0]
    curvature, epsilon = 0.25 * float(problem["row_bound"]), float(problem["epsilon"])
    ridge = 1.0  # of the sum of losses, of C=1; more where the perturbed objective needs it
    if epsilon <= 2.0 * math.log1p(curvature):
        ridge = max(ridge, curvature / math.expm1(epsilon / 4.0))
    made = LogisticRegression(C=1.0 / ridge, fit_intercept=False, tol=1e-8, max_iter=10_000)
    return made.fit(x, y).coef_.ravel()
