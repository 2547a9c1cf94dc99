"""Forecast whether a private choice among candidates pays, at the budget of no choice at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.core.candidate_lists import RIDGE, SCALING
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.base import Plan
from dperm_cli.mechanisms.combinators.private_selection import PrivateSelection
from dperm_cli.mechanisms.shared import tuning_candidates
from dperm_cli.mechanisms.shared.inner_mechanism import name_of
from dperm_cli.mechanisms.shared.predicted_risk import Prediction
from dperm_cli.mechanisms.shared.secure_plan import require_secure
from dperm_cli.privacy.accounting.random_stopping import RunNumberLaw
from dperm_cli.results.records.row_facts import format_value
from dperm_cli.runner.forecasts import forecast
from dperm_cli.runner.forecasts.forecast import Answer, Forecast, PlanQuestion
from dperm_cli.runner.forecasts.rehearsal import Rehearsal
from dperm_cli.runner.forecasts.risk_curves import RiskCurves

NO_CHOICE = "none"
DRAWS = 16  # of the number of runs and of their candidates, for each curve
FREE, EVERY = "sufficient_statistics", "every mechanism"


def answer(question: PlanQuestion, attacks: bool = True) -> Forecast:
    """The forecast of a question, with or without a choice; a refusal where nothing is foreseen."""
    try:
        if question.tune is None:
            return forecast.make_forecast(question, attacks)
        return compare_with_choice(question, attacks)
    except Unsupported as reason:
        return Forecast([], {EVERY: str(reason)})


def compare_with_choice(question: PlanQuestion, attacks: bool = True) -> Forecast:
    """A row for each candidate without a choice, one with it, and whether it pays.

    Risk is that over the optimum of the largest candidate's set and all columns with the ridge of
    the question, on the same simulated problems with the same noise, or in runs on public records.
    Without a choice the best mechanism runs at one candidate with the whole budget. With it, runs
    have the noise that is left to them; on simulated problems their number, candidates and noisy
    scores are drawn, and where statistics are shared the choice is taken to find the best.
    """
    assert question.tune is not None
    choices = tuning_candidates.list_choices(question.tune)
    if question.like is not None:
        question = replace(question, rehearsal=Rehearsal(question.like))
    asked = [_at(question, choice) for choice in choices]
    least = _find_least(question, asked)
    rows, refused = [], list[dict[str, str]]()
    for one, choice in zip(asked, choices, strict=True):
        fixed, reasons = _find_fixed(one, _curves(one).optima - least)
        refused.append(reasons)
        if fixed is not None:
            rows.append((one, fixed, {"choice": NO_CHOICE, **choice}))
    refusals = _join_refusals(choices, refused)
    if not rows:
        return Forecast([], refusals)
    try:
        chosen = _find_chosen(question, asked, least)
    except Unsupported as reason:
        told = [_tell(*row, attacks) for row in _sort(rows)]
        words = f"with these mechanisms nothing can be chosen privately: {reason}"
        return Forecast(told, {**refusals, "private_selection": str(reason)}, words)
    best = _sort(rows)[0]
    verdict = _judge(best, chosen)
    return Forecast([_tell(*row, attacks) for row in _sort([*rows, chosen])], refusals, verdict)


Row = tuple[PlanQuestion, Answer, dict[str, Any]]


def _at(question: PlanQuestion, choice: Mapping[str, float]) -> PlanQuestion:
    """The question at a candidate, with curves of the problems that all share."""
    return replace(question, choice=choice, tune=None, curves=None).simulate()


def _find_least(question: PlanQuestion, asked: list[PlanQuestion]) -> np.ndarray:
    """The optimum that all are judged against, [curves].

    It is that of the largest set with the question's own ridge and all columns, which need not be
    a candidate.
    """
    assert question.tune is not None
    judges = asked
    if SCALING in question.tune or question.regulariser.ridge not in question.tune.get(
        RIDGE, [question.regulariser.ridge]
    ):
        judges = [*asked, replace(question, tune=None, curves=None).simulate()]
    return np.min([_curves(one).optima for one in judges], axis=0)


def _curves(question: PlanQuestion) -> RiskCurves:
    assert question.curves is not None
    return question.curves


def _join_refusals(choices: list[dict[str, Any]], refused: list[dict[str, str]]) -> dict[str, str]:
    """Why mechanisms do not fit; at which candidate, where one fits at another."""
    found = dict[str, str]()
    for choice, reasons in zip(choices, refused, strict=True):
        for name, reason in reasons.items():
            everywhere = all(name in other for other in refused)
            found.setdefault(name, reason if everywhere else f"at {_name(choice)}: {reason}")
    return found


def _name(choice: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={format_value(value)}" for key, value in choice.items())


def _find_fixed(question: PlanQuestion, lift: np.ndarray) -> tuple[Answer | None, dict[str, str]]:
    """The best mechanism at one candidate, with the whole budget, and why others do not fit.

    ``lift`` is added to risks.
    """
    assert question.n is not None
    assert question.epsilon is not None
    found, refusals = [], dict[str, str]()
    for mechanism in question.mechanisms.candidates:
        try:
            best, risks = forecast.predict(question, mechanism, question.n, question.epsilon)
        except Unsupported as reason:
            refusals[name_of(mechanism)] = str(reason)
            continue
        found.append(Answer(mechanism, best, question.n, question.epsilon, risks + lift))
    found.sort(key=lambda one: (one.median, one.found.name))
    return next(iter(forecast.rehearse_best(question, found)), None), refusals


def _find_chosen(question: PlanQuestion, asked: list[PlanQuestion], least: np.ndarray) -> Row:
    """What a choice gives: that of the mechanism which ``tune=`` of ``dperm run`` takes."""
    assert question.n is not None
    assert question.epsilon is not None
    assert question.tune is not None
    spec = question.spec(question.n, question.epsilon)
    names = {name_of(one): one for one in question.mechanisms.candidates}
    form: Any = spec.form
    inner = names[FREE] if form.quadratic and FREE in names else question.mechanisms
    if len(names) == 1:
        (inner,) = names.values()
    selection = PrivateSelection(candidates=question.tune, inner=inner)
    if question.mechanisms.on_grid:
        require_secure(selection)
    if question.mechanisms.trust != selection.trust:
        raise Unsupported(f"{name_of(selection)} is for {selection.trust} trust")
    budget = question.budget(inner, question.n, question.epsilon)
    plan = selection.plan(spec, budget)
    mechanism = names[plan.settings["inner"]["name"]]
    free, risks = isinstance(plan.inner, Plan), []
    for place, one in enumerate(asked):
        own = one.spec(question.n, question.epsilon)
        run: Any = plan.inner if free else plan.inner[place]  # type: ignore[index]
        foreseen: Any = mechanism.predict_risk
        curves = _curves(one)
        risk = forecast.correct_risks(curves, own, name_of(mechanism), foreseen(own, run))
        risks.append(curves.optima - least + risk)
    curves = _curves(asked[0])
    floors = curves.starts - least
    if free:
        ends, draws = np.min(risks, axis=0), 1
    else:
        score = plan.settings["tuning"]["score_noise"] / spec.n
        law, pure, draws = selection.find_law(budget), budget.delta == 0.0, DRAWS
        ends = _draw_choices(law, (score, pure), np.array(risks), floors, curves.problems)
    problems, floors = np.repeat(curves.problems, draws), np.repeat(floors, draws)
    seen = replace(asked[0], curves=replace(curves, problems=problems, floors=floors))
    found = Prediction(name_of(mechanism), mechanism, plan, float(np.median(ends)))
    answer = Answer(mechanism, found, question.n, question.epsilon, ends)
    if forecast.can_rehearse(question, answer):
        risks = question.rehearse(selection, plan, answer)
        answer = replace(answer, risks=risks, source=forecast.RUN)
    return seen, answer, {"choice": plan.settings["tuning"]["how"]} | dict.fromkeys(question.tune)


def _draw_choices(
    law: RunNumberLaw, score: tuple[float, bool], risks: np.ndarray, floors: np.ndarray,
    problems: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The risk of what is shown, ``DRAWS`` for each curve; ``risks`` are [candidates, curves].

    Every run takes a candidate and the noise of some curve of the same problem at random. ``score``
    is the scale of a score's noise per record, and whether it is Laplace's.
    """
    rng, (scale, pure) = generator(seed_sequence(0, "plan", "choice")), score
    found = []
    for curve, problem in enumerate(problems):
        same = np.flatnonzero(problems == problem)
        for _ in range(DRAWS):
            number = law.find_number(rng.random())
            if number == 0:
                found.append(floors[curve])
                continue
            places = rng.integers(len(risks), size=number), rng.choice(same, number)
            noise = rng.laplace(0.0, scale, number) if pure else rng.normal(0.0, scale, number)
            found.append(risks[places][np.argmin(risks[places] + noise)])
    return np.array(found)


def _sort(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[1].median)


def _tell(question: PlanQuestion, answer: Answer, own: Mapping[str, Any], attacks: bool) -> Any:
    return {**own, **forecast.make_row(question, answer, attacks)}


def _judge(fixed: Row, chosen: Row) -> str:
    """One line: whether the choice has less risk than the best candidate without one.

    Where the line shows the same risk twice, the choice makes no difference.
    """
    without, with_it = fixed[1].median, chosen[1].median
    risks = format_value(with_it), format_value(without)
    pays = "pays" if with_it < without else "does not pay"
    pays = "makes no difference" if risks[0] == risks[1] else pays
    told = _name({key: value for key, value in fixed[2].items() if key != "choice"})
    return (
        f"the choice ({chosen[2]['choice']}) {pays}: risk {risks[0]} with it, "
        f"{risks[1]} without it at {told} and the same budget; "
        f"{_compare_problems(fixed, chosen)}"
    )


def _compare_problems(fixed: Row, chosen: Row) -> str:
    """On how many simulated problems the choice is better, or what was run in their place."""
    sources = [row[1].source for row in (fixed, chosen)]
    if forecast.SIMULATED not in sources:
        return "both are runs on the public records"
    if forecast.RUN in sources:
        return "one of them is simulated"
    medians = []
    for question, answer, _ in (fixed, chosen):
        problems = _curves(question).problems
        medians.append([np.median(answer.risks[problems == one]) for one in np.unique(problems)])
    better = sum(with_it < without for without, with_it in zip(*medians, strict=True))
    return f"it is better on {better} of {len(medians[0])} simulated problems"
