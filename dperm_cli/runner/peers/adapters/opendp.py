"""OpenDP's noise on sums of moments, and on a minimiser of scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ABOUT = {
    "title": "OpenDP: Gaussian and Laplace measurements on a vector",
    "source": "OpenDP 0.16.0 (it releases no linear model of several columns); Chaudhuri et al. "
    "2011 for the sensitivity of a minimiser",
    "losses": ["logistic", "squared"],
    "kinds": ["approx"],
    "relations": ["replace_one"],
    "sets": ["l2_ball", "l1_ball"],
    "packages": ["opendp", "numpy", "scikit-learn"],
    "intercept": "none, as the table's problem",
    "clipping": "none: rows and targets are within their declared bounds",
    "differs": "logistic: a ridge of 2 L sqrt(p/(n epsilon))/R; squared: the noisy moments are "
    "solved with a ridge as large as their noise; then projected",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """A vector with a known sensitivity goes through OpenDP; the rest is public. ``rng`` is not
    used: OpenDP's noise has no seed."""
    if problem["loss"] == "logistic":
        return _perturb_minimiser(problem)
    return _solve_moments(problem)


def _add_noise(vector: np.ndarray, sensitivity: float, epsilon: float, delta: float) -> Any:
    """The vector with OpenDP's Gaussian noise."""
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def make(scale: float) -> Any:
        made = space >> dp.m.then_gaussian(scale=scale)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(made), delta)

    made = dp.binary_search_chain(make, d_in=sensitivity, d_out=(epsilon, delta))
    return np.array(made(vector.tolist()))


def _perturb_minimiser(problem: dict[str, Any]) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    x, y, slope = problem["x"], problem["y"], float(problem["row_bound"])
    n, p = x.shape
    epsilon, radius = float(problem["epsilon"]), float(problem["radius"])
    ridge = 2.0 * slope * math.sqrt(p / (n * epsilon)) / radius
    made = LogisticRegression(C=1.0 / (n * ridge), fit_intercept=False, tol=1e-10, max_iter=10_000)
    theta = made.fit(x, y).coef_.ravel()
    return _add_noise(theta, 2.0 * slope / (n * ridge), epsilon, float(problem["delta"]))


def _solve_moments(problem: dict[str, Any]) -> np.ndarray:
    x, y = problem["x"], problem["y"]
    bound, size, p = float(problem["row_bound"]), float(problem["target_bound"]), x.shape[1]
    upper = np.triu_indices(p)
    # each part has sensitivity 1 by itself: |xx' - zz'|_F <= sqrt 2 B^2, |xy - zw| <= 2 B Y
    units = math.sqrt(2.0) * bound**2, 2.0 * bound * size
    vector = np.concatenate([(x.T @ x)[upper] / units[0], x.T @ y / units[1]])
    told = float(problem["epsilon"]), float(problem["delta"])
    noisy = _add_noise(vector, math.sqrt(2.0), *told)
    many = len(upper[0])
    square = np.zeros((p, p))
    square[upper] = noisy[:many] * units[0]
    square += np.triu(square, 1).T
    rho = (math.sqrt(math.log(1.0 / told[1]) + told[0]) - math.sqrt(math.log(1.0 / told[1]))) ** 2
    ridge = units[0] * math.sqrt(p / rho)
    values, vectors = np.linalg.eigh(square)
    inverse = vectors / (np.maximum(values, 0.0) + ridge)
    return inverse @ (vectors.T @ (noisy[many:] * units[1]))
