"""What the estimators share: declared parameters, one private fit, and what is said of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.estimators.cross_validation import refuse_inside_search
from dperm_cli.estimators.private_fit import release_arrays, save
from dperm_cli.estimators.scikit_learn import BaseEstimator, check_is_fitted, validate_data
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.budget_filter import spend_of
from dperm_cli.runner.cells.run_cell import Planned
from dperm_cli.runner.models import budget_ledger
from dperm_cli.runner.models.publishable import Publishable

RESEARCH, SECURE = "research", "secure"


class PrivateEstimator(BaseEstimator):
    """A linear model that is fitted once, by a mechanism with a privacy guarantee.

    Whatever a fit may learn only from the mechanism is declared: bounds of columns, classes, bounds
    of the target. Rows are scaled by the bounds, get a constant coordinate, and are scaled to norm
    1; predictions go the same way.
    """

    _loss: ClassVar[str] = "auto"  # the one that goes with the task
    _settings: ClassVar[dict[str, Any]] = {}

    epsilon: Any
    delta: Any
    relation: Any
    bounds: Any
    radius: Any
    mechanism: Any
    noise: Any
    ridge: Any
    fit_intercept: Any
    population: Any
    tune: Any
    budget: Any
    random_state: Any

    def _fit(self, X: np.ndarray, y: np.ndarray, task: str, declared: dict[str, Any]) -> None:
        """Fit by one release.

        Args:
            X: rows [n, p] of finite numbers.
            y: labels -1 and 1, class numbers or targets [n].
            task: ``binary``, ``multiclass`` or ``regression``.
            declared: keys of the data set that the task needs.

        Raises:
            ValueError: A parameter makes no sense, or nothing with a guarantee fits the problem.
        """
        refuse_inside_search()
        entry: list[str] = []

        def reserve(planned: Planned, relation: str, mechanism: str) -> None:
            if self.budget is not None:
                spend = spend_of(planned.plan.events, planned.guarantee)
                what = f"a fit of {type(self).__name__}"
                entry.append(budget_ledger.reserve(self.budget, spend, relation, mechanism, what))

        try:
            keys = self._list_keys(X.shape[1], declared | {"task": task})
            self.release_ = release_arrays(X, y, keys, reserve)
        except (Unsupported, InputError) as reason:
            raise ValueError(str(reason)) from None
        if entry:
            budget_ledger.finish(self.budget, entry[0], type(self).__name__)
        assert self.release_.theta is not None
        self.theta_ = self.release_.theta
        self.privacy_ = self._describe(self.release_)
        self.ledger_ = [ledger_totals.to_dict(event) for event in self.release_.events]

    def _list_keys(self, columns: int, declared: dict[str, Any]) -> dict[str, Any]:
        """The keys of the one cell, as a run has them."""
        if self.noise not in (RESEARCH, SECURE):
            raise InputError("noise", self.noise, f"must be {SECURE} or {RESEARCH}")
        if self.noise == SECURE and self.random_state is not None:
            allowed = "cannot be given with noise='secure', whose noise nobody can draw again"
            raise InputError("random_state", self.random_state, allowed)
        if self.budget is not None and self.noise != SECURE:
            raise InputError("budget", self.budget, "is for releases: it needs noise='secure'")
        keys: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "privacy.relation": self.relation,
            "mechanism": self.mechanism, "noise": self.noise, "loss": self._loss, "trials": 1,
            "ridge": self.ridge, "dataset.test_fraction": 0.0,
            "dataset.bounds": read_bounds(self.bounds, columns),
            **{f"dataset.{key}": value for key, value in declared.items()},
        }  # fmt: skip
        if self.population is not None:
            keys["privacy.population"] = self.population
        if self.tune is not None:
            keys["tune"] = dict(self.tune)
        if self.noise == RESEARCH:
            keys["seed"] = find_seed(self.random_state)
        return keys | self._own_keys()

    def _own_keys(self) -> dict[str, Any]:
        """Keys of the model: its set and its constant coordinate."""
        keys = self._settings | {"dataset.intercept": bool(self.fit_intercept)}
        return keys if self.radius is None else keys | {"constraint.radius": self.radius}

    def _values(self, X: Any) -> np.ndarray:
        """f(x) of each row [m], of several classes [m, classes]."""
        check_is_fitted(self, "release_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return self.release_.values(rows)

    def _describe(self, found: Publishable) -> dict[str, Any]:
        """What was promised, in plain values."""
        promise = found.guarantee
        return {
            "epsilon": promise.epsilon, "delta": promise.delta, "relation": found.relation,
            "guarantee": promise.kind, "mechanism": found.mechanism, "noise": found.noise,
            "accountant": promise.source, "level": found.level(),
            "note": "each call of fit is another release of its records",
        }  # fmt: skip

    def save(self, path: str) -> None:
        """Write the model file that ``dperm predict`` reads.

        Args:
            path: a file name that ends in .npz.

        Raises:
            InputError: it is none.
            StorageError: it cannot be written.
        """
        check_is_fitted(self, "release_")
        save(path, self.release_)

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients of the scaled columns: [1, p] or [classes, p], of a regression [p]."""
        return self._split_point()[0]

    @property
    def intercept_(self) -> Any:
        """The constant coordinate's coefficient: [1] or [classes], of a regression a number."""
        return self._split_point()[1]

    def _split_point(self) -> tuple[np.ndarray, Any]:
        check_is_fitted(self, "release_")
        several = self.release_.columns_of_theta
        table = self.theta_.reshape(-1, several).T
        own = bool(self.fit_intercept)
        coef = table[:, :-1] if own else table
        constant = table[:, -1] if own else np.zeros(len(table))
        if self.release_.schema.task == "regression":
            return coef[0], float(constant[0])
        return coef, constant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = False
        return tags


def read_bounds(bounds: Any, columns: int) -> list[list[float]]:
    """Public [low, high] of each column, from one pair or one for each.

    Raises:
        InputError: they are missing, or of another number.
    """
    if bounds is None:
        allowed = "must be declared: public (low, high) of all columns, or one pair for each"
        raise InputError("bounds", None, allowed)
    try:
        found = np.asarray(bounds, dtype=float)
    except (TypeError, ValueError):
        raise InputError("bounds", bounds, "must be (low, high) or a list of such pairs") from None
    if found.shape == (2,):
        found = np.tile(found, (columns, 1))
    if found.shape != (columns, 2):
        allowed = f"must be (low, high), or {columns} such pairs: one for each column"
        raise InputError("bounds", f"<shape {list(found.shape)}>", allowed)
    return found.tolist()


def find_seed(random_state: Any) -> int:
    """The seed of research noise from what scikit-learn calls a random state."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InputError("random_state", random_state, "must be a whole number, 0 or more, or None")
