"""Private regressors: squared loss with a ridge or an L1 ball, and absolute loss."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.estimators.base import PrivateEstimator
from dperm_cli.estimators.scikit_learn import RegressorMixin, validate_data


class _Regressor(RegressorMixin, PrivateEstimator):
    """A regressor whose target has declared bounds."""

    _tasks: ClassVar[tuple[str, ...]] = ("regression",)

    def __init__(
        self, epsilon=1.0, *, delta="auto", relation="replace_one", bounds=None, target_bounds=None,
        radius=None, mechanism="auto", noise="secure", ridge=0.0, fit_intercept=True,
        population=None, tune=None, budget=None, schema=None, random_state=None,
    ):  # fmt: skip
        self.epsilon, self.delta, self.relation = epsilon, delta, relation
        self.bounds, self.target_bounds, self.radius = bounds, target_bounds, radius
        self.mechanism, self.noise, self.ridge = mechanism, noise, ridge
        self.fit_intercept, self.population, self.tune = fit_intercept, population, tune
        self.budget, self.schema, self.random_state = budget, schema, random_state

    def fit(self, X: Any, y: Any) -> Any:
        """Fit by one release.

        Args:
            X: rows [n, p], or with ``schema`` a frame; numbers beyond their bounds are clipped.
            y: targets [n]; those beyond ``target_bounds`` are clipped. With ``schema`` the
                record of a missing one is a row of zeros.

        Returns:
            The estimator.

        Raises:
            ValueError: A parameter makes no sense, or nothing with a guarantee fits the problem.
        """
        if self.schema is not None:
            self._fit_frame(X, y)
            return self
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if self.target_bounds is None:
            raise ValueError("target_bounds=None: must be declared: public (low, high) of y")
        low, high = np.asarray(self.target_bounds, dtype=float).tolist()
        self._fit(X, y.astype(np.float64), "regression", {"target_bounds": [low, high]})
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The target of each row [m], in its own unit."""
        values = self._values(X)
        return self.release_.schema.target_of(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateRidge(_Regressor):
    """Linear regression with squared loss, and a ridge where ``ridge`` is above 0.

    >>> X = np.linspace(-1, 1, 300).reshape(-1, 1)
    >>> model = PrivateRidge(5.0, bounds=(-1, 1), target_bounds=(-3, 3)).fit(X, 2 * X[:, 0])
    >>> bool(model.score(X, 2 * X[:, 0]) > 0.7)
    True
    """


class PrivateLasso(_Regressor):
    """Linear regression with squared loss over an L1 ball of ``radius``.

    >>> X = np.linspace(-1, 1, 300).reshape(-1, 1)
    >>> model = PrivateLasso(5.0, bounds=(-1, 1), target_bounds=(-3, 3), radius=2.0)
    >>> bool(model.fit(X, 2 * X[:, 0]).score(X, 2 * X[:, 0]) > 0.6)
    True
    """

    _settings: ClassVar[dict[str, Any]] = {"constraint": "l1_ball"}


class PrivateQuantileRegressor(_Regressor):
    """Median regression: absolute loss, its kink rounded off.

    >>> X = np.linspace(-1, 1, 300).reshape(-1, 1)
    >>> model = PrivateQuantileRegressor(8.0, bounds=(-1, 1), target_bounds=(-3, 3))
    >>> bool(model.fit(X, 2 * X[:, 0]).score(X, 2 * X[:, 0]) > 0.5)
    True
    """

    _loss: ClassVar[str] = "absolute"
