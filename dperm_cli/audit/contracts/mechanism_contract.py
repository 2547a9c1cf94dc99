"""What every mechanism promises: its plan is public, its release keeps to it, noise hides records.

``mechanism_neighbours.py`` has the promises about neighbouring data sets.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit.contracts.mechanism_subject import DELTA, Subject, make_subject
from dperm_cli.audit.contracts.promises import Broken, NotTried, count_tried, promise, require, show
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.fields import fields_of
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import KINDS, RELATIONS, Budget
from dperm_cli.solvers.optimum import solve

LEVELS = (0.1, 1.0, 10.0)
LARGE = 1e4  # an epsilon at which there is hardly any noise
_TRIALS, _OTHERS = 4, 3
__all__ = ["Subject", "make_subject"]


@promise(
    "it says which guarantees it gives, under which relations, and checks its fields",
    mend="guarantees is a tuple of pure, approx, local; relations of replace_one, add_remove; "
    "a __post_init__ of your own calls super().__post_init__() first",
)
def check_declaration(subject: Subject) -> str:
    made = subject.whole
    require(
        made.guarantees and set(made.guarantees) <= set(KINDS),
        f"guarantees = {made.guarantees}: must be some of {', '.join(KINDS)}",
    )
    require("none" not in made.guarantees, "guarantees holds none: there is nothing to check")
    require(
        made.relations and set(made.relations) <= set(RELATIONS),
        f"relations = {made.relations}: must be some of {', '.join(RELATIONS)}",
    )
    fields = [field for field in fields_of(type(made)).values() if {int, float} & set(field.types)]
    for field in fields:
        try:
            replace(made, **{field.name: "no such thing"})  # type: ignore[call-arg]
        except InputError:
            continue
        raise Broken(f"{field.name}='no such thing' is taken, though it must be a number")
    return f"{', '.join(made.guarantees)}; {', '.join(made.relations)}; {len(fields)} fields"


@promise(
    "the plan is made of public facts alone, and remembers no release",
    mend="events, settings, scale and check may use spec (n, p, lipschitz, gradient_gap, "
    "constraint, ...) and budget: neither records nor what an earlier release left "
    "behind",
)
def check_plan_is_public(subject: Subject) -> str:
    count = 0
    for problem in subject.problems():
        for relation in subject.mechanism.relations:
            before = _plan(subject, problem, relation)
            if before is None:
                continue
            for seed in (0, 1):
                other = subject.other_records(problem, seed)
                subject.release(other, before, seed=seed)
                after = _plan(subject, other, relation)
                found = list_differences(before, after, "plan")
                require(
                    not found,
                    f"{subject.words(problem)}: planned again after a release on "
                    f"other records, {', '.join(found[:3])} differ: the plan follows the "
                    "records",
                )
                count += 1
            if count >= 4:
                return f"planned again after {count} releases"
    if not count:
        raise NotTried("no problem that was tried is supported")
    return f"planned again after {count} releases"


def _plan(subject: Subject, problem: Any, relation: str) -> Plan | None:
    try:
        return subject.plan(problem, Budget(1.0, DELTA, relation))
    except AttributeError as error:
        asked = f"spec.{error.name}" if error.obj is not None else str(error)
        if type(error.obj).__name__.endswith("Spec"):
            raise Broken(
                f"events or plan ask for {asked}, which is no public fact of a problem"
            ) from error
        raise


@promise(
    "the events of each plan add up to the budget or less, and what is spent is what is said",
    mend="let the base class find the scale, or return from scale(spec, budget) one at which "
    "account(events) keeps to epsilon and delta; take delta > 0 where there is no pure "
    "form",
)
def check_budget(subject: Subject) -> str:
    count = 0
    for problem, plan, budget in _plans_at_levels(subject):
        words = f"{subject.words(problem)}, epsilon {budget.epsilon:g}, {budget.relation}"
        require(plan.events, f"{words}: the plan has no events")
        claim = plan.guarantee
        require(claim.kind != "none", f"{words}: the plan has no guarantee")
        require(
            claim.within(budget),
            f"{words}: the events cost epsilon {claim.epsilon:.6g} and "
            f"delta {claim.delta:.3g}, more than the budget",
        )
        again = account(plan.events, delta=claim.delta, relation=budget.relation)
        require(
            again.epsilon <= budget.epsilon * (1 + 1e-12),
            f"{words}: added up again the "
            f"events cost epsilon {again.epsilon:.6g}, more than the budget",
        )
        require(budget.delta > 0 or "approx" not in claim.kind, f"{words}: approx at delta = 0")
        require(plan.noise_scale >= 0 and plan.steps >= 0, f"{words}: a negative scale or step")
        count += 1
    what = f"plans at epsilon {', '.join(f'{one:g}' for one in LEVELS)}"
    return count_tried(count, what, "no problem that was tried is supported")


def _plans_at_levels(subject: Subject) -> Iterator[tuple[Any, Plan, Budget]]:
    """The first problem at every epsilon, each other one at one of them."""
    for number, problem in enumerate(subject.problems()):
        levels = LEVELS if number == 0 else (LEVELS[number % len(LEVELS)],)
        yield from subject.plans(levels, (0.0, DELTA), [problem])


@promise(
    "a larger epsilon takes no more noise",
    mend="make the events at a scale, and let scale find the least one for the budget",
)
def check_noise_falls(subject: Subject) -> str:
    problem = subject.first_problem()
    costs = []
    for epsilon in LEVELS:
        plans = [plan for _, plan, _ in subject.plans((epsilon,), (DELTA,), [problem])]
        if plans:
            costs.append(float(plans[0].noise_scale))
    for less, more in itertools.pairwise(costs):
        require(more <= less * (1 + 1e-9), f"noise scales {show(costs)} at epsilon {show(LEVELS)}")
    return f"noise scales {show(costs)}"


@promise(
    "settings are public values that JSON can hold",
    mend="return from settings a dict of "
    "numbers, texts, booleans and lists of them: result rows show it",
)
def check_settings(subject: Subject) -> str:
    names: list[str] = []
    for _, plan, _ in subject.plans((1.0,), (DELTA,)):
        try:
            json.dumps(dict(plan.settings))
        except TypeError as error:
            raise Broken(f"settings = {dict(plan.settings)}: {error}") from None
        names += plan.settings
    return ", ".join(dict.fromkeys(names)) or "no settings"


@promise(
    "the release keeps to its plan: all noise comes through the gate, for the plan's events",
    mend="ask gate.stream(event, dim) for each event of plan.events, as it stands there, and "
    "draw each step of its stream once; never make noise of your own",
)
def check_gate(subject: Subject) -> str:
    count = 0
    for problem, plan, budget in subject.plans((1.0,), (0.0, DELTA)):
        with _gate_refuses(f"{subject.words(problem)}:"):
            subject.release(problem, plan, relation=budget.relation)
        count += 1
    return f"{count} releases"


@contextlib.contextmanager
def _gate_refuses(where: str) -> Iterator[None]:
    """A refusal of the gate is a broken promise; ``where`` begins its words."""
    try:
        yield
    except PrivacyError as error:
        raise Broken(f"{where} the gate refuses: {error}") from None


@promise(
    "theta has the shape [trials, p], and every row lies in the constraint set",
    mend="draw gate.trials outputs at once, and end with view.spec.constraint.project(theta)",
)
def check_output(subject: Subject) -> str:
    count = 0
    for problem, plan, budget in subject.plans((1.0,), (DELTA,), subject.problems(sets=True)):
        theta = np.asarray(subject.release(problem, plan, _TRIALS, relation=budget.relation))
        words = subject.words(problem)
        shape = (_TRIALS, subject.outputs(problem))
        require(
            theta.shape == shape,
            f"{words}: theta has shape {list(theta.shape)}, and for "
            f"{_TRIALS} trials it must be {list(shape)}",
        )
        require(np.isfinite(theta), f"{words}: theta has numbers that are not finite")
        inside = subject.contains(problem, theta)
        require(
            inside, f"{words}: theta {show(theta[int(np.argmin(inside))])} lies outside of the set"
        )
        varies = subject.is_kernel or len(np.unique(theta, axis=0)) > 1
        require(varies, f"{words}: all trials gave the same theta")
        count += 1
    return f"{count} releases of {_TRIALS} trials"


@promise(
    "the same seed gives the same bytes, another seed others",
    mend="take all random numbers from the gate: np.random in a release is noise that no "
    "seed fixes and no event pays for",
)
def check_determinism(subject: Subject) -> str:
    problem, plan = subject.first_plan()
    one = subject.release(problem, plan, 3)
    for number in range(5, 5 + _OTHERS):
        subject.release(subject.other_records(problem, number), plan, 3)
        again = subject.release(problem, plan, 3)
        same = one.tobytes() == again.tobytes()
        require(same, "two releases of one seed are not the same bytes")
    if not subject.is_kernel:  # whose answers may be what is known without the data
        more = subject.release(problem, plan, 3, seed=1)
        require(not np.array_equal(one, more), "another seed gives the same theta")
    return f"{1 + _OTHERS} releases of one seed, with others on other records between them"


@promise(
    "trials are independent: none depends on how many stand beside it, or in which order",
    mend="work along the last axis, row by row: no mean or sum over axis 0 of a value [trials, p]",
)
def check_trials(subject: Subject) -> str:
    problem, plan = subject.first_plan()
    every = subject.release(problem, plan, _TRIALS)
    for trial in range(_TRIALS):
        alone = subject.release(problem, plan, chosen=[trial])
        near = np.allclose(alone[0], every[trial], rtol=1e-7, atol=1e-9)
        require(
            near,
            f"trial {trial} alone gives {show(alone[0])}, and among {_TRIALS} trials "
            f"{show(every[trial])}",
        )
    turned = subject.release(problem, plan, chosen=list(range(_TRIALS))[::-1])
    require(
        np.allclose(turned[::-1], every, rtol=1e-7, atol=1e-9),
        "in another order the trials give other outputs",
    )
    return f"{_TRIALS} trials, each alone and in another order"


@promise("the records are not written to", mend="work on a copy: np.array(view.x)")
def check_records_kept(subject: Subject) -> str:
    problem, plan = subject.first_plan()
    x, y = problem.data.x, problem.data.y
    before = x.tobytes(), y.tobytes()
    x.setflags(write=False)
    y.setflags(write=False)
    try:
        subject.release(problem, plan)
    finally:
        x.setflags(write=True)
        y.setflags(write=True)
    require(before == (x.tobytes(), y.tobytes()), "a release wrote to the records")
    return "a release on records that cannot be written"


@promise(
    "with next to no noise it does better than a point that uses no data",
    mend="check the sign and size of the steps: at epsilon = 10^4 the objective must fall "
    "below that at the centre of the set",
)
def check_large_epsilon(subject: Subject) -> str:
    share = excess_share(subject)
    require(
        share < 1.0,
        f"at epsilon {LARGE:g} its excess risk is {share:.3g} times that of the centre of the set",
    )
    return f"{100 * share:.2g} % of the excess risk of the centre of the set at epsilon {LARGE:g}"


def excess_share(subject: Subject) -> float:
    """The median excess risk at a large epsilon over that of the centre of the set."""
    if subject.is_kernel:
        raise NotTried("its risk is one of predictions: dperm run shows it")
    problem = subject.large_problem()
    budget = Budget(LARGE, DELTA, subject.whole.relations[0])
    plan = subject.plan(problem, budget, subject.whole)
    if plan is None:
        raise NotTried("the problem it is tried on is not supported")
    best = solve(problem)
    floor = float(problem.objective(problem.constraint.centre())) - best.value
    theta = subject.release(problem, plan, whole=True)
    return float(np.median(problem.objective(theta) - best.value)) / max(floor, 1e-300)


@promise(
    "what it cannot do it refuses with Unsupported and a reason of one line, from the plan alone",
    mend='raise Unsupported("why, and what to change") in check(spec, budget), the one '
    "place for it; a plan that is made must be released on any records",
)
def check_refusals(subject: Subject) -> str:
    reasons: list[str] = []
    planned = 0
    for spec, budget in subject.strange_facts():
        try:
            subject.mechanism.plan(spec, budget)
            planned += 1
        except Unsupported as refusal:
            reason = refusal.reason
            fits = isinstance(reason, str) and reason.strip() and "\n" not in reason
            require(fits, f"the reason {reason!r} is no line that says why")
            reasons.append(reason)
        except PrivacyError as error:
            raise Broken(f"a plan ends with {error}, and no Unsupported") from None
    require(
        subject.first_plan_or_none() is not None,
        "it refuses every problem that was tried: " + "; ".join(dict.fromkeys(reasons[:3])),
    )
    told = "; ".join(dict.fromkeys(reasons))
    short = told if len(told) <= 240 else told[:237] + "..."
    refusals = f"{len(reasons)} refusals" + (f": {short}" if short else "")
    return f"{planned} plans and {refusals}"


@promise(
    "what is strange in the records makes no release stop",
    mend="a release that stops tells something of the records: handle rows of zeros, equal "
    "rows and tiny numbers as any others",
)
def check_strange_records(subject: Subject) -> str:
    problem, plan = subject.first_plan()
    kinds = subject.strange_records(problem)
    for words, strange in kinds.items():
        with _gate_refuses(f"with {words}"):
            theta = np.asarray(subject.release(strange, plan))
        require(np.isfinite(theta), f"with {words} theta is not finite")
    return ", ".join(kinds)
