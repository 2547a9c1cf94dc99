"""Private linear models with the interface of scikit-learn; an optional part of the package.

    from dperm_cli.estimators import PrivateLogisticRegression

Each fit is one release: it spends epsilon and delta of the records' privacy. docs/estimators.md has
an example of each.
"""

from __future__ import annotations

from dperm_cli.estimators.classifiers import (
    PrivateKernelClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSoftmaxRegression,
)
from dperm_cli.estimators.regressors import (
    PrivateLasso,
    PrivateQuantileRegressor,
    PrivateRidge,
)

__all__ = [
    "PrivateKernelClassifier",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateQuantileRegressor",
    "PrivateRidge",
    "PrivateSoftmaxRegression",
]
