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


def find_optimum(problem: dict[str, Any]) -> np.ndarray:
    """The point that the method has without its noise, at the same ridge."""
    if problem["loss"] == "logistic":
        return _find_minimiser(problem, _choose_ridge(problem))
    x, y = problem["x"], problem["y"]
    return _solve(x.T @ x, x.T @ y, problem)


def _perturb_minimiser(problem: dict[str, Any]) -> np.ndarray:
    ridge = _choose_ridge(problem)
    sensitivity = 2.0 * float(problem["row_bound"]) / (len(problem["x"]) * ridge)
    theta = _find_minimiser(problem, ridge)
    return _add_noise(theta, sensitivity, float(problem["epsilon"]), float(problem["delta"]))


def _choose_ridge(problem: dict[str, Any]) -> float:
    n, p = problem["x"].shape
    slope, epsilon = float(problem["row_bound"]), float(problem["epsilon"])
    return 2.0 * slope * math.sqrt(p / (n * epsilon)) / float(problem["radius"])


def _find_minimiser(problem: dict[str, Any], ridge: float) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    strength = len(problem["x"]) * ridge
    made = LogisticRegression(C=1.0 / strength, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return made.fit(problem["x"], problem["y"]).coef_.ravel()


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
    return _solve(square, noisy[many:] * units[1], problem)


def _solve(square: np.ndarray, cross: np.ndarray, problem: dict[str, Any]) -> np.ndarray:
    """Normal equations with a ridge as large as the noise is, from public facts."""
    epsilon, log = float(problem["epsilon"]), math.log(1.0 / float(problem["delta"]))
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    ridge = math.sqrt(2.0) * float(problem["row_bound"]) ** 2 * math.sqrt(len(square) / rho)
    values, vectors = np.linalg.eigh(square)
    return vectors / (np.maximum(values, 0.0) + ridge) @ (vectors.T @ cross)
