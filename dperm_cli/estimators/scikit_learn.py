"""The one place that imports scikit-learn; without it one line says how to get it."""

from __future__ import annotations

from dperm_cli.core.extras import say_how_to_install

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    words = "dperm_cli.estimators needs scikit-learn 1.6 or newer"
    raise ImportError(f"{words}: {say_how_to_install('sklearn')}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "check_classification_targets",
    "check_is_fitted",
    "validate_data",
]
