"""Forecast the risk of mechanisms from public facts, and the n or epsilon that a target needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from dperm_cli.core.brent import find_root
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.mechanisms.shared import predicted_risk
from dperm_cli.mechanisms.shared.inner_mechanism import name_of
from dperm_cli.mechanisms.shared.predicted_risk import Prediction
from dperm_cli.mechanisms.shared.secure_plan import secure_plan
from dperm_cli.mechanisms.shared.tuning_candidates import Choice, change_facts
from dperm_cli.privacy.accounting.attack_risk import AttackRisk, find_attack_risk
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data, PublicFacts
from dperm_cli.problem.problem import ProblemSpec, spec_of
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.cells.cell_budget import delta_of, plan_with_reserve
from dperm_cli.runner.forecasts.likely_range import find_likely_range
from dperm_cli.runner.forecasts.rehearsal import Rehearsal, take_choice
from dperm_cli.runner.forecasts.risk_curves import RiskCurves, simulate_public, simulate_synthetic
from dperm_cli.runner.sweep.preflight import guess_release

BAND = (0.05, 0.95)
# What simulated curves leave out, as a factor on either side of the band: fitted, docs/plan.md.
SYNTHETIC_SPREAD, PUBLIC_SPREAD = 1.2, 1.5  # the first of single releases alone
COUNTS = np.logspace(1.0, 9.0, 9)  # numbers of records among which a target is looked for
EPSILONS = np.logspace(-3.0, 3.0, 9)
FIGURE_POINTS = 9
TARGET = "target"
# Of the mechanisms that look best on curves, those that also run on the public records.
MOST_REHEARSED, REHEARSED_WITHIN = 4, 4.0
ROUNDS = 3  # of a search for n or epsilon that is corrected by a run
SIMULATED, RUN = "simulated", "run on like"


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
        rehearsal: runs on the public records, of ``simulate``; None without such records.
        tune: candidates of a private choice, by key, or None.
        choice: the candidate that is in force, empty where there is none. What is found is judged
            without it.
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
    rehearsal: Rehearsal | None = None
    tune: Mapping[str, list[Any]] | None = None
    choice: Choice = field(default_factory=dict)

    def spec(self, n: int, epsilon: float) -> ProblemSpec:
        """The public facts of the problem at a number of records."""
        facts = replace(self.facts, n=n)
        found = spec_of(facts, self.loss, self.make_constraint(facts, epsilon), self.regulariser)
        return change_facts(found, self.choice) if self.choice else found

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
        spec, ridge = self.spec(self.n or 1000, self.epsilon or 1.0), self.regulariser.ridge
        if self.like is None:
            return replace(self, curves=simulate_synthetic(spec, judged_ridge=ridge))
        curves = simulate_public(spec, take_choice(self.like, self.choice), judged_ridge=ridge)
        return replace(self, curves=curves, rehearsal=self.rehearsal or Rehearsal(self.like))

    def rehearse(self, mechanism: Mechanism, plan: Plan, answer: Answer) -> np.ndarray:
        """Risks of runs on the public records, over the optimum without a choice, [trials]."""
        assert self.rehearsal is not None
        spec = self.spec(answer.n, answer.epsilon)
        judge = replace(self, choice={}).spec(answer.n, answer.epsilon)
        relation = plan.guarantee.relation
        return self.rehearsal.measure(mechanism, plan, relation, spec, self.choice, judge)


@dataclass(frozen=True)
class Forecast:
    """What is foreseen.

    Attributes:
        rows: a dict for each mechanism that fits, the best first.
        refusals: why each of the others does not, by name.
        verdict: whether a private choice pays, where one was asked about.
    """

    rows: list[dict[str, Any]]
    refusals: dict[str, str]
    verdict: str = ""


def make_forecast(question: PlanQuestion, attacks: bool = True) -> Forecast:
    """The row of every mechanism that fits, or why it does not.

    The best has the least risk, or reaches the target with the least n or epsilon. The risk of
    attacks takes the accountant's time, and can be left out.
    """
    answers, refusals = [], dict[str, str]()
    question = question.simulate()
    for mechanism in question.mechanisms.candidates:
        try:
            answers.append(_answer(question, mechanism, *_find_third(question, mechanism)))
        except Unsupported as reason:
            refusals[name_of(mechanism)] = str(reason)
    answers.sort(key=lambda one: _order(question, one))
    if question.rehearsal is not None:
        answers = rehearse_best(question, answers)
    rows = [make_row(question, one, attacks) for one in answers]
    return Forecast(rows, refusals)


@dataclass(frozen=True)
class Answer:
    """What is foreseen of one mechanism.

    Attributes:
        mechanism: which.
        found: its plan, and the risk that was predicted from public facts.
        n: number of records, given or found.
        epsilon: given or found.
        risks: excess risks per record that its noise makes, [curves], or those of runs, [trials].
        source: ``SIMULATED`` or ``RUN``.
    """

    mechanism: Mechanism
    found: Prediction
    n: int
    epsilon: float
    risks: np.ndarray
    source: str = SIMULATED

    @property
    def median(self) -> float:
        """The median of the risks."""
        return float(np.median(self.risks))


def _answer(question: PlanQuestion, mechanism: Mechanism, n: int, epsilon: float) -> Answer:
    found, risks = predict(question, mechanism, n, epsilon)
    return Answer(mechanism, found, n, epsilon, risks)


def _order(question: PlanQuestion, answer: Answer) -> tuple[float, str]:
    """What the best answer has least of: the n or epsilon that is sought, else risk."""
    if question.n is None:
        return answer.n, answer.found.name
    return (answer.median if question.epsilon is not None else answer.epsilon), answer.found.name


def rehearse_best(question: PlanQuestion, answers: list[Answer]) -> list[Answer]:
    """The answers, of which the first few come from runs on the public records: those first."""
    if not answers:
        return []
    most = REHEARSED_WITHIN * _order(question, answers[0])[0]
    chosen = [one for one in answers[:MOST_REHEARSED] if _order(question, one)[0] <= most]
    run = [_rehearse(question, one) for one in chosen]
    others = answers[len(chosen) :]
    return sorted(run, key=lambda one: _order(question, one)) + others


def can_rehearse(question: PlanQuestion, answer: Answer) -> bool:
    """Whether there are public records, and runs on them are small enough."""
    if question.rehearsal is None:
        return False
    seconds, _memory = _guess(question, answer)
    return question.rehearsal.can_run(question.spec(answer.n, answer.epsilon), seconds)


def _rehearse(question: PlanQuestion, answer: Answer) -> Answer:
    """The answer by runs on the public records; by curves where those would be too large.

    What is sought is found on the curves, for a target that is corrected by what a run at the
    place found last has shown.
    """
    for _ in range(1 if question.target is None else ROUNDS):
        if not can_rehearse(question, answer):
            return answer
        risks = question.rehearse(answer.mechanism, answer.found.plan, answer)
        run = replace(answer, risks=risks, source=RUN)
        if question.target is None or run.median <= 0.0:
            return run
        target = question.target * answer.median / run.median
        try:
            place = _find_third(replace(question, target=target), answer.mechanism)
            answer = _answer(question, answer.mechanism, *place)
        except Unsupported:
            return run
    return run


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
        here = _answer(question, by_name[row["mechanism"]], row["n"], row["epsilon"])
        # as far as a run was off its curve there, it is taken to be everywhere
        raised = row["excess_risk_per_record"] / here.median if row["source"] == RUN else 1.0
        for value in np.geomspace(max(middle / 100.0, 2.0 if axis == "n" else 1e-6),
                                  middle * 100.0, FIGURE_POINTS):  # fmt: skip
            n, epsilon = (round(value), row["epsilon"]) if axis == "n" else (row["n"], value)
            try:
                answer = _answer(question, by_name[row["mechanism"]], n, epsilon)
            except Unsupported:
                continue
            place = {"mechanism": row["mechanism"], "axis": axis, "value": float(value)}
            answer = replace(answer, risks=raised * answer.risks)
            found.append(place | _summarise(question, answer))
    return found


def predict(
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
    assert question.curves is not None
    return best, correct_risks(question.curves, spec, best.name, best.risk)


def correct_risks(curves: RiskCurves, spec: ProblemSpec, name: str, risk: float) -> np.ndarray:
    """The risk on each curve of a mechanism whose predicted risk is known, [curves]."""
    found = curves.at(find_noise(spec, risk) * math.sqrt(spec.p) / spec.n)
    known, floors = CORRECTIONS.get(name, Correction()), curves.floors
    fade = 1.0 - found / (known.fades * floors)
    raised = found * known.factor ** np.clip(fade, 0.0, 1.0)
    return np.minimum(raised, known.most * floors)


def find_noise(spec: ProblemSpec, risk: float) -> float:
    """The noise per coordinate of the sum of gradients to which a predicted risk amounts."""
    unit = spec.n * predicted_risk.gradient_unit(spec) / math.sqrt(spec.p)

    def excess(log_noise: float) -> float:
        found = predicted_risk.predict_from_noise(spec, unit * math.exp(log_noise))
        return math.log(found) - math.log(risk)

    ends = (-60.0, 60.0)
    if excess(ends[0]) >= 0.0 or excess(ends[1]) <= 0.0:
        raise Unsupported(f"its predicted risk {risk:.3g} amounts to no noise that is known of")
    return unit * math.exp(find_root(excess, *ends, xtol=1e-9))


def _summarise(question: PlanQuestion, answer: Answer) -> dict[str, float]:
    """The median, where it may lie, and 5 and 95 % of single releases."""
    assert question.curves is not None
    spread = SYNTHETIC_SPREAD if question.like is None else PUBLIC_SPREAD
    risks, problems = answer.risks, question.curves.problems
    q05, middle, q95 = np.quantile(risks, (BAND[0], 0.5, BAND[1]))
    low = high = middle  # runs are of one problem
    if answer.source == SIMULATED:
        each = [problems == one for one in np.unique(problems)]
        medians = np.array([np.median(risks[one]) for one in each])
        low, high = float(medians.min()), float(medians.max())
        if question.like is None:
            floors = np.array([np.median(question.curves.floors[one]) for one in each])
            spec = question.spec(answer.n, answer.epsilon)
            low, high = find_likely_range(spec, medians, floors)
            low, high = min(low, middle), max(high, middle)
    if question.like is not None:
        low, high = low / spread, high * spread
    found = {
        "excess_risk_per_record": middle, "median_low": low, "median_high": high,
        "q05": min(low, q05 / spread), "q95": max(high, q95 * spread),
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
        _, risks = predict(question, mechanism, max(1, round(n)), epsilon)
        return math.log(float(np.median(risks)) / question.target)  # type: ignore[operator]

    grid = COUNTS if question.n is None else EPSILONS
    low, high = _bracket(gap, grid, question.target, "n" if question.n is None else "epsilon")
    if low < high:
        ends = (math.log(low), math.log(high))
        high = math.exp(find_root(lambda x: gap(math.exp(x)), *ends, xtol=1e-3))
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


def _guess(question: PlanQuestion, answer: Answer) -> tuple[float, int]:
    """Seconds and bytes of one release, roughly."""
    spec = question.spec(answer.n, answer.epsilon)
    facts = replace(question.facts, n=answer.n, p=spec.bounds.columns)
    return guess_release(answer.found.plan, facts, spec.p)


def make_row(question: PlanQuestion, answer: Answer, attacks: bool) -> dict[str, Any]:
    """What is told of an answer."""
    found = answer.found
    guarantee = found.plan.guarantee
    seconds, memory = _guess(question, answer)
    return {
        "mechanism": found.name,
        "noise_law": found.plan.settings.get("noise"),
        "n": answer.n,
        "p": question.spec(answer.n, answer.epsilon).p,
        "epsilon": answer.epsilon,
        "delta": guarantee.delta,
        "guarantee": guarantee.kind,
        "relation": guarantee.relation,
        **_summarise(question, answer),
        "seconds": seconds,
        "memory": memory,
        **(_name_risks(find_attack_risk(found.plan.events, guarantee)) if attacks else {}),
        "reads_data": False,
        "like": None if question.like is None else question.like.name,
        "source": answer.source,
    }


def _name_risks(risk: AttackRisk) -> dict[str, float]:
    rates = {f"tpr_at_fpr_{rate:g}": value for rate, value in risk.true_positive_rates.items()}
    return rates | {"membership_advantage": risk.advantage}


def check_two(n: Any, epsilon: Any, target: Any, choice: bool = False) -> None:
    """InputError unless two of the three are given, with a private choice n and epsilon."""
    given = {"n": n, "epsilon": epsilon, TARGET: target}
    if choice:
        if target is not None:
            raise InputError(TARGET, target, "is not for tune=: give n and epsilon")
        missing = ", ".join(name for name in ("n", "epsilon") if given[name] is None)
        if missing:
            raise InputError(missing, "none", "tune= needs n and epsilon; the risk is told")
        return
    names = [name for name, value in given.items() if value is not None]
    if len(names) == 2:
        return
    words = "give two of n, epsilon and target; the third is told"
    if len(names) > 2:
        raise InputError(TARGET, target, f"is one too many: {words}")
    missing = ", ".join(name for name in given if name not in names)
    raise InputError(missing, "none", words)
