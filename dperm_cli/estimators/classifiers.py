"""Private classifiers: logistic, hinge, kernel and softmax."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.estimators.base import PrivateEstimator, raise_value_errors
from dperm_cli.estimators.scikit_learn import (
    ClassifierMixin,
    check_classification_targets,
    validate_data,
)


class _Classifier(ClassifierMixin, PrivateEstimator):
    """A classifier whose classes are declared."""

    def __init__(
        self, epsilon=1.0, *, delta="auto", relation="replace_one", bounds=None, classes=None,
        radius=None, mechanism="auto", noise="secure", ridge=0.0, fit_intercept=True,
        population=None, tune=None, budget=None, schema=None, random_state=None,
    ):  # fmt: skip
        self.epsilon, self.delta, self.relation = epsilon, delta, relation
        self.bounds, self.classes, self.radius = bounds, classes, radius
        self.mechanism, self.noise, self.ridge = mechanism, noise, ridge
        self.fit_intercept, self.population, self.tune = fit_intercept, population, tune
        self.budget, self.schema, self.random_state = budget, schema, random_state

    def fit(self, X: Any, y: Any) -> Any:
        """Fit by one release.

        Args:
            X: rows [n, p], or with ``schema`` a frame; numbers beyond their bounds are clipped.
            y: labels [n], each one of ``classes``. With ``schema`` any other label makes its record
                a row of zeros.

        Returns:
            The estimator.

        Raises:
            ValueError: A parameter makes no sense, or nothing with a guarantee fits the problem.
        """
        if self.schema is not None:
            frame = self._declare_frame()
            with raise_value_errors():
                self.classes_ = frame.list_classes(self.classes)
            self._fit_frame(X, y)
            return self
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = self._find_classes(y)
        places = np.searchsorted(self.classes_, y)
        places = np.minimum(places, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[places], y):
            raise ValueError("y holds a label that is not among `classes`")
        if self._uses_margins(len(self.classes_)):
            self._fit(X, np.where(places == 1, 1.0, -1.0), "binary", {})
        else:
            labels = list(range(len(self.classes_)))
            self._fit(X, places.astype(float), "multiclass", {"labels": labels})
        return self

    def _find_classes(self, y: np.ndarray) -> np.ndarray:
        """The declared classes, sorted; they are not learnt from y."""
        if self.classes is None:
            raise ValueError("classes=None: must be declared, as in classes=['no', 'yes']")
        found = np.unique(np.asarray(self.classes))
        if len(found) < 2:
            words = "Classifier can't train when only one class is present"
            raise ValueError(f"classes={self.classes}: {words}")
        return found

    def _uses_margins(self, count: int) -> bool:
        """Whether there is one score for each row; ValueError for more than two classes."""
        if count > 2:
            raise ValueError(
                f"classes: Only binary classification is supported, and there are {count} classes; "
                "use PrivateSoftmaxRegression"
            )
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each row [m], above 0 for the second class; of several classes [m, classes].

        Args:
            X: rows [m, p], scaled as the training rows were.
        """
        return self._values(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row [m]."""
        values = self._values(X)
        places = (values >= 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return self.classes_[places]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


class _WithChances:
    """A classifier whose loss is a likelihood."""

    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """The probability of each class [m, classes], as the model has it."""
        values = self._values(X)
        chances = self.release_.chances(values)
        return np.column_stack([1.0 - chances, chances]) if chances.ndim == 1 else chances

    def predict_log_proba(self: Any, X: Any) -> np.ndarray:
        """The logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class PrivateLogisticRegression(_WithChances, _Classifier):
    """Logistic regression for two declared classes.

    >>> X, y = np.linspace(-1, 1, 200).reshape(-1, 1), np.repeat(["no", "yes"], 100)
    >>> model = PrivateLogisticRegression(5.0, bounds=(-1, 1), classes=["no", "yes"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.privacy_["noise"]
    (True, 'secure')
    """


class PrivateLinearSVC(_Classifier):
    """A linear support vector classifier (hinge loss, its kink rounded off) for two classes.

    >>> X, y = np.linspace(-1, 1, 200).reshape(-1, 1), np.repeat([0, 1], 100)
    >>> model = PrivateLinearSVC(5.0, bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _loss: ClassVar[str] = "hinge"


class PrivateSoftmaxRegression(_WithChances, _Classifier):
    """Softmax regression for three or more declared classes, logistic regression for two.

    >>> X, y = np.linspace(-1, 1, 300).reshape(-1, 1), np.repeat([0, 1, 2], 100)
    >>> model = PrivateSoftmaxRegression(20.0, bounds=(-1, 1), classes=[0, 1, 2]).fit(X, y)
    >>> model.predict_proba(X[:1]).shape, model.coef_.shape
    ((1, 3), (3, 1))
    """

    _tasks: ClassVar[tuple[str, ...]] = ("binary", "multiclass")

    def _uses_margins(self, count: int) -> bool:
        return count == 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


class PrivateKernelClassifier(_WithChances, _Classifier):
    """Logistic regression on random features of a Gaussian kernel, for two declared classes.

    Args:
        size: how many frequencies; there are twice as many coordinates.
        gamma: of the kernel exp(-gamma |x - z|^2), for rows of norm 1.

    >>> X = np.linspace(-1, 1, 400).reshape(-1, 1)
    >>> y = (np.abs(X[:, 0]) > 0.5).astype(int)
    >>> model = PrivateKernelClassifier(10.0, bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    def __init__(
        self, epsilon=1.0, *, delta="auto", relation="replace_one", bounds=None, classes=None,
        radius=10.0, mechanism="auto", noise="secure", ridge=0.0, population=None, tune=None,
        budget=None, schema=None, random_state=None, size=20, gamma=1.0,
    ):  # fmt: skip
        self.epsilon, self.delta, self.relation = epsilon, delta, relation
        self.bounds, self.classes, self.radius = bounds, classes, radius
        self.mechanism, self.noise, self.ridge = mechanism, noise, ridge
        self.population, self.tune = population, tune
        self.budget, self.schema, self.random_state = budget, schema, random_state
        self.size, self.gamma = size, gamma

    @property
    def fit_intercept(self) -> bool:
        """A constant coordinate is part of every row; the model has no coefficient for it."""
        return False

    def _own_keys(self) -> dict[str, Any]:
        return {
            "dataset.intercept": True, "kernel": "rbf", "kernel.size": self.size,
            "kernel.gamma": self.gamma, "kernel.radius": self.radius,
            "kernel.features": "fourier",
        }  # fmt: skip
