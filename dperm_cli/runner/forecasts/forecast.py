"""Forecast the risk of mechanisms from public facts, and the n or epsilon that a target needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import optimize

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.mechanisms.shared import predicted_risk
from dperm_cli.mechanisms.shared.inner_mechanism import name_of
from dperm_cli.mechanisms.shared.predicted_risk import Prediction
from dperm_cli.mechanisms.shared.secure_plan import secure_plan
from dperm_cli.privacy.accounting.attack_risk import AttackRisk, find_attack_risk
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data, PublicFacts
from dperm_cli.problem.problem import ProblemSpec, spec_of
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.cells.cell_budget import delta_of, plan_with_reserve
from dperm_cli.runner.forecasts.risk_curves import RiskCurves, simulate_public, simulate_synthetic
from dperm_cli.runner.sweep.preflight import guess_release

BAND = (0.05, 0.95)
# What simulated curves leave out, as a factor on either side of the band: fitted, docs/plan.md.
SYNTHETIC_SPREAD, PUBLIC_SPREAD = 1.2, 1.5
COUNTS = np.logspace(1.0, 9.0, 9)  # numbers of records among which a target is looked for
EPSILONS = np.logspace(-3.0, 3.0, 9)
FIGURE_POINTS = 9
TARGET = "target"


@dataclass(frozen=True)
class Correction:
    """What was measured of a mechanism beside its formula of noise: fitted, docs/plan.md.

    Attributes:
        factor: of its median over that of exact minimisation with the same noise.
        most: of its risk over that of the centre of the set, where noise is all there is.
        fades: the share of the centre's risk at which the factor has gone.
    """

    factor: float = 1.0
    most: float = math.inf
    fades: float = math.inf


CORRECTIONS = {
    "noisy_gd": Correction(1.6, 1.1, 0.2),
    "sufficient_statistics": Correction(1.45, 1.5),
}


@dataclass(frozen=True)
class PlanQuestion:
    """What is asked: a problem by its public facts, and two of n, epsilon and target.

    Attributes:
        facts: of the data that are to come; of n only where ``n`` is given.
        make_constraint: the set, from the facts and epsilon.
        mechanisms: among which to look, with what the run demands of them.
        like: public records like those to come, or None.
        curves: risk by noise, of ``simulate``.
    """

    facts: PublicFacts
    loss: Any
    make_constraint: Callable[[PublicFacts, float], Any]
    mechanisms: Auto
    relation: str = "replace_one"
    privacy: str = "auto"
    delta: float | None = None
    regulariser: Regulariser = field(default_factory=Regulariser)
    n: int | None = None
    epsilon: float | None = None
    target: float | None = None
    like: Data | None = None
    curves: RiskCurves | None = None

    def spec(self, n: int, epsilon: float) -> ProblemSpec:
        """The public facts of the problem at a number of records."""
        facts = replace(self.facts, n=n)
        return spec_of(facts, self.loss, self.make_constraint(facts, epsilon), self.regulariser)

    def budget(self, mechanism: Mechanism, n: int, epsilon: float) -> Budget:
        """What may be spent; its delta is 0 where none is asked for."""
        if self.privacy == "local" or mechanism.trust == "local":
            return Budget(epsilon, 0.0, self.relation, "local")
        pure = self.privacy == "pure" or self.delta == 0.0
        return Budget(epsilon, 0.0 if pure else delta_of(self.delta, n), self.relation)

    def simulate(self) -> PlanQuestion:
        """The question with its curves, which serve every n, epsilon and relation."""
        if self.curves is not None:
            return self
        spec = self.spec(self.n or 1000, self.epsilon or 1.0)
        if self.like is None:
            return replace(self, curves=simulate_synthetic(spec))
        return replace(self, curves=simulate_public(spec, self.like))


@dataclass(frozen=True)
class Forecast:
    """What is foreseen.

    Attributes:
        rows: a dict for each mechanism that fits, the best first.
        refusals: why each of the others does not, by name.
    """

    rows: list[dict[str, Any]]
    refusals: dict[str, str]


def make_forecast(question: PlanQuestion, attacks: bool = True) -> Forecast:
    """The row of every mechanism that fits, or why it does not.

    The best has the least risk, or reaches the target with the least n or epsilon. The risk of
    attacks takes the accountant's time, and can be left out.
    """
    rows, refusals = [], dict[str, str]()
    question = question.simulate()
    for mechanism in question.mechanisms.candidates:
        name = name_of(mechanism)
        try:
            n, epsilon = _find_third(question, mechanism)
            rows.append(_make_row(question, mechanism, n, epsilon, attacks))
        except Unsupported as reason:
            refusals[name] = str(reason)
    sought = next((key for key in ("n", "epsilon") if getattr(question, key) is None), None)
    order = sought or "excess_risk_per_record"
    return Forecast(sorted(rows, key=lambda row: (row[order], row["mechanism"])), refusals)


def trace_risks(question: PlanQuestion, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Points of the figure: risk of the rows' mechanisms against epsilon, or n if that is sought.

    They span two decades on either side of the first row.
    """
    question = question.simulate()
    by_name = {name_of(one): one for one in question.mechanisms.candidates}
    axis = "n" if question.n is None else "epsilon"
    middle = float(rows[0][axis])
    found = []
    for row in rows:
        for value in np.geomspace(max(middle / 100.0, 2.0 if axis == "n" else 1e-6),
                                  middle * 100.0, FIGURE_POINTS):  # fmt: skip
            n, epsilon = (round(value), row["epsilon"]) if axis == "n" else (row["n"], value)
            try:
                _, risks = _predict(question, by_name[row["mechanism"]], n, epsilon)
            except Unsupported:
                continue
            place = {"mechanism": row["mechanism"], "axis": axis, "value": float(value)}
            found.append(place | _summarise(question, risks))
    return found


def _predict(
    question: PlanQuestion, mechanism: Mechanism, n: int, epsilon: float
) -> tuple[Prediction, np.ndarray]:
    """The prediction of a mechanism, and its risk on each simulated curve."""
    spec, budget = question.spec(n, epsilon), question.budget(mechanism, n, epsilon)
    asked = question.mechanisms
    if mechanism.trust != asked.trust:
        raise Unsupported(f"is for {mechanism.trust} trust")
    if asked.on_grid and not mechanism.secure:
        raise Unsupported("has no secure form")
    ranked = predicted_risk.rank([mechanism], spec, budget)
    if not ranked.fits:
        (reason,) = ranked.refusals.values()
        raise Unsupported(reason)
    (best,) = ranked.fits
    if asked.on_grid and not asked.by_users and spec.form is not None:
        best = replace(best, plan=secure_plan(mechanism, best.plan, spec, spec.form)[0])
    if not asked.on_grid:
        best = replace(best, plan=plan_with_reserve(mechanism, spec, budget))
    noise = find_noise(spec, best.risk)
    assert question.curves is not None
    found, known = question.curves.at(noise * math.sqrt(spec.p) / n), CORRECTIONS.get(best.name)
    known = known or Correction()
    floors = question.curves.floors
    fade = 1.0 - found / (known.fades * floors)
    raised = found * known.factor ** np.clip(fade, 0.0, 1.0)
    return best, np.minimum(raised, known.most * floors)


def find_noise(spec: ProblemSpec, risk: float) -> float:
    """The noise per coordinate of the sum of gradients to which a predicted risk amounts."""
    unit = spec.n * predicted_risk.gradient_unit(spec) / math.sqrt(spec.p)

    def excess(log_noise: float) -> float:
        found = predicted_risk.predict_from_noise(spec, unit * math.exp(log_noise))
        return math.log(found) - math.log(risk)

    ends = (-60.0, 60.0)
    if excess(ends[0]) >= 0.0 or excess(ends[1]) <= 0.0:
        raise Unsupported(f"its predicted risk {risk:.3g} amounts to no noise that is known of")
    root: Any = optimize.brentq(excess, *ends, xtol=1e-9)
    return unit * math.exp(root)


def _summarise(question: PlanQuestion, risks: np.ndarray) -> dict[str, float]:
    """The median, where it may lie, and 5 and 95 % of single releases."""
    assert question.curves is not None
    spread = SYNTHETIC_SPREAD if question.like is None else PUBLIC_SPREAD
    low, middle, high = np.quantile(risks, (BAND[0], 0.5, BAND[1]))
    problems = question.curves.problems
    medians = [float(np.median(risks[problems == one])) for one in np.unique(problems)]
    found = {
        "excess_risk_per_record": middle, "median_low": min(medians) / spread,
        "median_high": max(medians) * spread, "q05": low / spread, "q95": high * spread,
    }  # fmt: skip
    return {name: float(value) for name, value in found.items()}


def _find_third(question: PlanQuestion, mechanism: Mechanism) -> tuple[int, float]:
    """n and epsilon; the one that is not given is the least that reaches the target."""
    if question.n is not None and question.epsilon is not None:
        return question.n, question.epsilon
    assert question.target is not None

    def gap(value: float) -> float:
        """The log of median over target."""
        n, epsilon = (value, question.epsilon) if question.n is None else (question.n, value)
        assert epsilon is not None
        _, risks = _predict(question, mechanism, max(1, round(n)), epsilon)
        return math.log(float(np.median(risks)) / question.target)  # type: ignore[operator]

    grid = COUNTS if question.n is None else EPSILONS
    low, high = _bracket(gap, grid, question.target, "n" if question.n is None else "epsilon")
    if low < high:
        ends = (math.log(low), math.log(high))
        root: Any = optimize.brentq(lambda x: gap(math.exp(x)), *ends, xtol=1e-3)
        high = math.exp(root)
    if question.n is None:
        assert question.epsilon is not None
        return math.ceil(high), question.epsilon
    return question.n, float(high)


def _bracket(
    gap: Callable[[float], float], grid: np.ndarray, target: float, name: str
) -> tuple[float, float]:
    """The neighbours on the grid between which the target is reached; equal at its first point."""
    before, reason = None, None
    for value in grid:
        try:
            found = gap(float(value))
        except Unsupported as error:
            reason, before = reason or str(error), None
            continue
        if found <= 0.0:
            return (float(value) if before is None else before), float(value)
        before = float(value)
    if before is None and reason is not None:
        raise Unsupported(reason)
    raise Unsupported(f"target={target:g} is out of reach with {name} up to {grid[-1]:g}")


def _make_row(
    question: PlanQuestion, mechanism: Mechanism, n: int, epsilon: float, attacks: bool
) -> dict[str, Any]:
    found, risks = _predict(question, mechanism, n, epsilon)
    guarantee = found.plan.guarantee
    facts = replace(question.facts, n=n)
    seconds, memory = guess_release(found.plan, facts, int(question.loss.dimension(facts)))
    return {
        "mechanism": found.name,
        "noise_law": found.plan.settings.get("noise"),
        "n": n,
        "p": question.spec(n, epsilon).p,
        "epsilon": epsilon,
        "delta": guarantee.delta,
        "guarantee": guarantee.kind,
        "relation": guarantee.relation,
        **_summarise(question, risks),
        "seconds": seconds,
        "memory": memory,
        **(_name_risks(find_attack_risk(found.plan.events, guarantee)) if attacks else {}),
        "reads_data": False,
        "like": None if question.like is None else question.like.name,
    }


def _name_risks(risk: AttackRisk) -> dict[str, float]:
    rates = {f"tpr_at_fpr_{rate:g}": value for rate, value in risk.true_positive_rates.items()}
    return rates | {"membership_advantage": risk.advantage}


def check_two(n: Any, epsilon: Any, target: Any) -> None:
    """InputError unless two of the three are given."""
    given = {"n": n, "epsilon": epsilon, TARGET: target}
    names = [name for name, value in given.items() if value is not None]
    if len(names) == 2:
        return
    words = "give two of n, epsilon and target; the third is told"
    if len(names) > 2:
        raise InputError(TARGET, target, f"is one too many: {words}")
    missing = ", ".join(name for name in given if name not in names)
    raise InputError(missing, "none", words)
