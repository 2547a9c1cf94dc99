"""Make dual points, slopes and Hessians at a parameter."""

from __future__ import annotations

import numpy as np

from dperm_cli.problem.problem import Problem


def gradient(problem: Problem, dual: np.ndarray) -> np.ndarray:
    """The slope [p] of the summed loss where its records' slopes are ``dual``."""
    return problem.loss.dual_slope(dual, problem.data)


def make_dual_point(problem: Problem, theta: np.ndarray, width: float = 0.0) -> np.ndarray:
    """A dual point that certifies ``theta`` to first order; kinks are rounded off to ``width``."""
    loss = problem.loss
    if width > 0 and loss.envelope_dual is not None:
        return loss.envelope_dual(theta, problem.data, width)
    return loss.dual(theta, problem.data)


def hessian(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """The Hessian [p, p] of the objective without its l1 norm."""
    matrix = problem.loss.hessian(theta, problem.data)
    matrix[np.diag_indices(problem.p)] += problem.penalty.ridge
    return matrix
