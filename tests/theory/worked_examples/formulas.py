"""Formulas that several worked examples begin with, written out once more beside the package."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit
from scipy.stats import norm

from dperm_cli.core import registry
from dperm_cli.losses.logistic import Logistic
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec, bare_spec
from dperm_cli.sets import make_ball

PURE, BOTH = Budget(1.0, 0.0), Budget(1.0, 1e-6)


def find_delta(epsilon: float, mu: float) -> float:
    """The delta of N(mu, 1) against N(0, 1)."""
    low = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return float(norm.cdf(mu / 2 - epsilon / mu) - low)


def find_mu(epsilon: float, delta: float) -> float:
    """The mu whose delta at epsilon is the given one."""
    return float(brentq(lambda mu: find_delta(epsilon, mu) - delta, 1e-3, 50.0, xtol=1e-14))


def find_logistic_gap() -> float:
    """The distance of logistic gradients at margins up to 1: max of 2 sqrt(1 - c^2) sigma(c)."""
    found = minimize_scalar(
        lambda c: -2 * math.sqrt(1 - c * c) * expit(c), bounds=(0.0, 1.0), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    return float(-found.fun)


def state_facts(p: int = 5, **facts) -> ProblemSpec:
    """1000 records, the unit ball in p dimensions, Lipschitz constant 1."""
    return bare_spec(1000, 1.0, make_ball(1.0, p), **facts)


def state_logistic() -> ProblemSpec:
    """Logistic regression of 1000 unit rows of five columns, on the unit ball."""
    data = Data.of_records(
        "toy", "binary", np.zeros((1000, 5)), np.ones(1000), 1.0, 1.0, fingerprint=""
    )
    return Problem(data, Logistic(), make_ball(1.0, 5)).spec()


def make_plan(name: str, budget: Budget, spec: ProblemSpec | None = None, **keys) -> Plan:
    """The mechanism's plan, for ``state_facts()`` unless another problem is given."""
    return registry.load("mechanism", name)(**keys).plan(spec or state_facts(), budget)


def compose_laws(losses: np.ndarray, chances: np.ndarray, count: int, epsilon: float) -> float:
    """Delta of ``count`` steps of one loss law, by a Fourier transform on multiples of 1e-5.

    What is missing from the chances is at loss 0. Sums of losses have to stay within 2.6.
    """
    size, step = 2**19, 1e-5
    grid = np.zeros(size)
    place, share = np.divmod(losses / step, 1.0)
    np.add.at(grid, place.astype(int) % size, chances * (1 - share))
    np.add.at(grid, (place.astype(int) + 1) % size, chances * share)
    grid[0] += 1.0 - grid.sum()
    wide = np.fft.irfft(np.fft.rfft(grid) ** count, size)
    values = step * np.where(np.arange(size) < size // 2, np.arange(size), np.arange(size) - size)
    return float(wide @ np.maximum(0.0, -np.expm1(epsilon - values)))
