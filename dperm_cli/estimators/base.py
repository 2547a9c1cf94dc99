"""What the estimators share: declared parameters, one private fit, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.datasets.files.frame import hold_cells
from dperm_cli.estimators.cross_validation import refuse_inside_search
from dperm_cli.estimators.declared_frames import DeclaredFrame
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
    of the target, or all of it in a schema. Rows are scaled by the bounds, get a constant
    coordinate, and are scaled to norm 1; predictions go the same way.
    """

    _loss: ClassVar[str] = "auto"  # the one that goes with the task
    _tasks: ClassVar[tuple[str, ...]] = ("binary",)
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
    schema: Any
    random_state: Any

    def _fit_frame(self, X: Any, y: Any) -> None:
        """Fit by one release of a frame, with y, that the schema declares.

        Raises:
            ValueError: A parameter or the frame makes no sense, or nothing fits the problem.
        """
        refuse_inside_search(self.epsilon)
        frame = self._declare_frame()
        with raise_value_errors():
            cells = frame.join(X, y)
            validate_data(self, X, skip_check_array=True)
            keys = frame.keys | self._list_keys(None) | self._own_keys()
            del keys["dataset.intercept"]
            with hold_cells(cells):
                self._release(None, None, keys)

    def _declare_frame(self) -> DeclaredFrame:
        """What the schema declares; ValueError where another parameter declares the same."""
        with raise_value_errors():
            for name in ("bounds", "target_bounds"):
                if self.get_params().get(name) is not None:
                    allowed = "cannot stand beside schema, which declares it"
                    raise InputError(name, self.get_params()[name], allowed)
            return DeclaredFrame(self.schema, self._tasks)

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
        refuse_inside_search(self.epsilon)
        with raise_value_errors():
            given = declared | {"task": task, "bounds": read_bounds(self.bounds, X.shape[1])}
            self._release(X, y, self._list_keys(given) | self._own_keys())

    def _release(self, X: np.ndarray | None, y: np.ndarray | None, keys: dict[str, Any]) -> None:
        """Make the one release, of arrays or of the frame at hand, and keep what may be told."""
        entry: list[str] = []

        def reserve(planned: Planned, relation: str, mechanism: str) -> None:
            if self.budget is not None:
                spend = spend_of(planned.plan.events, planned.guarantee)
                what = f"a fit of {type(self).__name__}"
                entry.append(budget_ledger.reserve(self.budget, spend, relation, mechanism, what))

        self.release_ = release_arrays(X, y, keys, reserve)
        if entry:
            budget_ledger.finish(self.budget, entry[0], type(self).__name__)
        assert self.release_.theta is not None
        self.theta_ = self.release_.theta
        self.privacy_ = self._describe(self.release_)
        self.ledger_ = [ledger_totals.to_dict(event) for event in self.release_.events]

    def _list_keys(self, declared: dict[str, Any] | None) -> dict[str, Any]:
        """The keys of the one cell, as a run has them, but for those of the model.

        Args:
            declared: keys of the data set; None where a schema has them.
        """
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
            **{f"dataset.{key}": value for key, value in (declared or {}).items()},
        }  # fmt: skip
        if self.population is not None:
            keys["privacy.population"] = self.population
        if self.tune is not None:
            keys["tune"] = dict(self.tune)
        if self.noise == RESEARCH:
            keys["seed"] = find_seed(self.random_state)
        return keys

    def _own_keys(self) -> dict[str, Any]:
        """Keys of the model: its set and its constant coordinate."""
        keys = self._settings | {"dataset.intercept": bool(self.fit_intercept)}
        return keys if self.radius is None else keys | {"constraint.radius": self.radius}

    def _values(self, X: Any) -> np.ndarray:
        """f(x) of each row [m], of several classes [m, classes]."""
        check_is_fitted(self, "release_")
        if self.schema is None:
            rows = validate_data(self, X, reset=False, dtype=np.float64)
        else:
            frame = self._declare_frame()
            with raise_value_errors():
                rows = frame.encode(X)
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
        table_schema = self.release_.schema.table
        own = self.fit_intercept if table_schema is None else table_schema.intercept
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


@contextmanager
def raise_value_errors() -> Iterator[None]:
    """Have what makes no sense raise a ValueError, as scikit-learn does."""
    try:
        yield
    except (Unsupported, InputError) as reason:
        raise ValueError(str(reason)) from None


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
