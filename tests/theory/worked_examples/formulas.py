"""Formulas that several worked examples begin with, written out once more beside the package."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import norm

from dperm_cli.core import registry
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec, bare_spec
from dperm_cli.sets import make_ball

PURE, BOTH = Budget(1.0, 0.0), Budget(1.0, 1e-6)


def find_delta(epsilon: float, mu: float) -> float:
    """The delta of N(mu, 1) against N(0, 1)."""
    low = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return float(norm.cdf(mu / 2 - epsilon / mu) - low)


def find_mu(epsilon: float, delta: float) -> float:
    """The mu whose delta at epsilon is the given one."""
    return float(brentq(lambda mu: find_delta(epsilon, mu) - delta, 1e-3, 50.0, xtol=1e-14))


def state_facts(p: int = 5, **facts) -> ProblemSpec:
    """1000 records, the unit ball in p dimensions, Lipschitz constant 1."""
    return bare_spec(1000, 1.0, make_ball(1.0, p), **facts)


def make_plan(name: str, budget: Budget, spec: ProblemSpec | None = None, **keys) -> Plan:
    """The mechanism's plan, for ``state_facts()`` unless another problem is given."""
    return registry.load("mechanism", name)(**keys).plan(spec or state_facts(), budget)
