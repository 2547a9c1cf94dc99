"""Predict the excess risk of mechanisms from public facts alone, and rank mechanisms by it.

Nothing here sees a record: a prediction follows from n, p, the declared bounds, the set, the loss
and the noise of a plan. How predictions were fitted: docs/proofs/auto.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.shared.inner_mechanism import name_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec

# ln(excess) = LEVEL + REACH_POWER ln(x r) - KNEE_POWER ln(1 + KNEE / x) + ..., of logistic cells
LEVEL, NOISE_POWER, KNEE_POWER, KNEE = -5.20, 0.28, 1.80, 1.0 / 30.0
COLUMNS_POWER, REACH_POWER = 0.58, 0.82
LEAST_SHARE = 1e-300


@dataclass(frozen=True)
class Prediction:
    """A mechanism that has a plan, with the excess risk per record that is predicted for it."""

    name: str
    mechanism: Mechanism
    plan: Plan
    risk: float


@dataclass(frozen=True)
class Ranking:
    """What is known of some mechanisms on one problem.

    Attributes:
        fits: those with a plan and a prediction, the least risk first.
        refusals: why each of the others has none, by name.
    """

    fits: tuple[Prediction, ...]
    refusals: dict[str, str]


def rank(mechanisms: Iterable[Mechanism], spec: ProblemSpec, budget: Budget) -> Ranking:
    """Plan each mechanism and sort by predicted risk; of equal risks the first given is first.

    Args:
        mechanisms: what is compared.
        spec: the problem's public facts.
        budget: what may be spent.
    """
    fits, refusals = [], {}
    for mechanism in mechanisms:
        name = name_of(mechanism)
        try:
            fits.append(_predict(name, mechanism, spec, budget))
        except Unsupported as reason:
            refusals[name] = str(reason)
    return Ranking(tuple(sorted(fits, key=lambda one: one.risk)), refusals)


def find_kind(budget: Budget) -> str:
    """The kind of guarantee that a budget is for: ``local``, ``approx`` or ``pure``."""
    if budget.trust == "local":
        return "local"
    return "approx" if budget.delta > 0.0 else "pure"


def _predict(name: str, mechanism: Mechanism, spec: ProblemSpec, budget: Budget) -> Prediction:
    kind = find_kind(budget)
    if kind not in mechanism.guarantees:
        raise Unsupported(f"gives {' or '.join(mechanism.guarantees)} guarantees, not {kind}")
    if budget.relation not in mechanism.relations:
        raise Unsupported(f"is proved for {' or '.join(mechanism.relations)}")
    if mechanism.predict_risk is None:
        raise Unsupported("has no prediction of its risk")
    plan = mechanism.plan(spec, budget)
    risk = mechanism.predict_risk(spec, plan)
    if not risk < math.inf:
        raise Unsupported("its risk cannot be predicted here")
    return Prediction(name, mechanism, plan, risk)


def predict_from_noise(spec: ProblemSpec, noise: float) -> float:
    """About the median excess risk per record of noise on the sum of gradients.

    Fitted to logistic cells; for other losses units are changed by the slope at the centre.

    Args:
        spec: the problem's public facts.
        noise: its standard deviation per coordinate, all steps together.

    Returns:
        A risk that grows with the noise.
    """
    share = predict_share(relative_noise(spec, noise), spec.p, typical_reach(spec))
    found, modulus = loss_unit(spec) * share, spec.n * spec.strong_convexity
    # what noise moves the minimiser of a strongly convex sum by
    return min(found, noise**2 * spec.p / (2.0 * modulus * spec.n)) if modulus > 0.0 else found


def predict_share(x: float, p: int, reach: float) -> float:
    """The predicted excess risk per record, over the size of a record's loss.

    Args:
        x: the relative noise.
        p: the number of columns.
        reach: the largest margin of the set, in units of those at which the loss bends.
    """
    x = max(x, LEAST_SHARE)
    logs = LEVEL + NOISE_POWER * math.log(x * reach) - KNEE_POWER * math.log1p(KNEE / x)
    return math.exp(logs + COLUMNS_POWER * math.log(p) + REACH_POWER * math.log(reach))


def relative_noise(spec: ProblemSpec, noise: float) -> float:
    """x = noise sqrt(p) / (n g): the length of the noise over that of n gradients at the centre."""
    return noise * math.sqrt(spec.p) / (spec.n * gradient_unit(spec))


def gradient_unit(spec: ProblemSpec) -> float:
    """g, the size of a gradient: that at the centre for a quadratic loss, else L."""
    form: Any = spec.form
    if form is None or not form.quadratic:
        return spec.lipschitz
    return form.lipschitz(replace(spec.bounds, radius=0.0)) or spec.lipschitz


def margin_unit(spec: ProblemSpec) -> float:
    """The size of margins at which the loss bends: that of targets in a regression, else 1."""
    return spec.target_bound if spec.task == "regression" and spec.target_bound > 0.0 else 1.0


def loss_unit(spec: ProblemSpec) -> float:
    """The size of a record's loss, in units of which risks are alike."""
    return gradient_unit(spec) / (spec.row_bound or 1.0) * margin_unit(spec)


def typical_reach(spec: ProblemSpec) -> float:
    """The largest margin of the set, in units of those at which the loss bends."""
    return max(spec.constraint.radius * (spec.row_bound or 1.0) / margin_unit(spec), 1e-3)
