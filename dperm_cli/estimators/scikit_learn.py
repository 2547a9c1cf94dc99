"""The one place that imports scikit-learn; without it one line says how to get it."""

from __future__ import annotations

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    words = "dperm_cli.estimators needs scikit-learn 1.6 or newer: pip install 'dperm[sklearn]'"
    raise ImportError(words) from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "check_classification_targets",
    "check_is_fitted",
    "validate_data",
]
