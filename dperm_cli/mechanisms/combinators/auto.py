"""The mechanism of the least predicted risk: chosen from public facts, then left to do its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import Auto as AutoWord
from dperm_cli.core.fields import Check, FromRun, Help
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism, predicted_risk
from dperm_cli.mechanisms.shared.predicted_risk import Prediction, Ranking, find_kind
from dperm_cli.mechanisms.shared.secure_plan import secure_inner_plan, secure_plan
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec

AMONG = (
    "objective_perturbation", "noisy_gd", "sufficient_statistics", "output_perturbation",
    "frank_wolfe", {"name": "huberized", "width": "auto"}, "exponential", "one_pass_sgd",
    "local_sgd", "local_mirror_descent",
)  # fmt: skip
_LOCAL = {"trust": "local", "guarantees": ("local",), "relations": ("replace_one",)}


def build_candidates(key: str, value: Any) -> tuple[Mechanism, ...]:
    """The mechanisms of a list of names, in its order."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise InputError(key, value, "must be a list of mechanisms, as in [noisy_gd,frank_wolfe]")
    found = tuple(inner_mechanism.build_mechanism(one, key) for one in value)
    names = [inner_mechanism.name_of(one) for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:  # plans and predictions are told apart by names
        raise InputError(key, twice, "is there twice: compare the two in a sweep of mechanism=")
    for one in found:
        if one.predict_risk is None:
            name = inner_mechanism.name_of(one)
            words = (
                f"must be without {name}, whose risk is not predicted (mechanism={name} runs it)"
            )
            raise InputError(key, name, words)
    return found


Candidates = Annotated[
    Sequence[Any] | AutoWord,
    Check(build_candidates),
    Help("a list, as in [noisy_gd,huberized]; auto = all whose risk is predicted"),
]


@dataclass(frozen=True)
class Auto(Mechanism):
    """The mechanism among ``among`` whose predicted excess risk is the least.

    Algorithm: every mechanism that has a plan for the problem, the guarantee, the relation and the
    form of noise gets a prediction of its risk from public facts (docs/proofs/auto.md), and the
    least runs. Guarantee, events, ``noise_scale``, shapes and cost are those of the mechanism that
    is chosen; the choice depends on no record. Relations: replace_one and add_remove; trust:
    central, or local under privacy=local. Unsupported: what none of them supports, with the reason
    of each.

    ``settings`` name the choice, the runner-up, all predicted risks (per record) and the refusals.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> Auto().plan(spec, Budget(1.0, 0.0)).settings["chosen"]
    'objective_perturbation'
    """

    among: Candidates = "auto"
    calibration: Calibration = "tight"
    on_grid: Annotated[bool, FromRun(), Help("noise=secure")] = False
    by_users: Annotated[bool, FromRun(), Help("privacy=local")] = False

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")

    def __post_init__(self) -> None:
        """What the run asks for is what it has: noise on a grid, trust in the user's device."""
        super().__post_init__()
        if self.among == "auto":
            self._keep("among", build_candidates("mechanism.among", AMONG))
        central = not (self.on_grid or self.by_users)
        # no radius is too large for one that is for quadratic losses alone
        free = central and any("quadratic" in one.requires for one in self.candidates)
        for name, value in (("secure", self.on_grid), ("free_of_radius", free)):
            self._keep(name, value)
        if self.by_users:
            for name in ("trust", "guarantees", "relations"):
                self._keep(name, _LOCAL[name])

    @property
    def candidates(self) -> tuple[Mechanism, ...]:
        """The mechanisms of ``among``."""
        return cast(tuple[Mechanism, ...], self.among)

    @property
    def inside(self) -> tuple[Mechanism, ...]:
        """Any of them may be chosen."""
        return self.candidates

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """Only tight calibrations are compared."""
        if self.calibration == "paper":
            raise Unsupported(
                "auto chooses among tight calibrations: name a mechanism for calibration=paper"
            )

    def rank(self, spec: ProblemSpec, budget: Budget) -> Ranking:
        """All mechanisms with a plan, the least predicted risk first."""
        refused, asked = dict[str, str](), []
        for one in self.candidates:
            name = inner_mechanism.name_of(one)
            if one.trust != self.trust:
                refused[name] = f"is for {one.trust} trust"
            elif self.on_grid and not one.secure:
                refused[name] = "has no secure form"
            else:
                try:
                    asked.append(one.choose_secure_form(budget) if self.on_grid else one)
                except Unsupported as reason:
                    refused[name] = str(reason)
        found = predicted_risk.rank(asked, spec, budget)
        fits = tuple(one for one in found.fits if self._keeps_form(one, spec, refused))
        return Ranking(fits, refused | found.refusals)

    def _keeps_form(self, one: Prediction, spec: ProblemSpec, refused: dict[str, str]) -> bool:
        """Whether a plan has the form of noise that the run asks for; ``refused`` says why not."""
        if not self.on_grid or self.by_users or spec.form is None:
            return True
        try:
            secure_plan(one.mechanism, one.plan, spec, spec.form)
        except Unsupported as error:
            refused[one.name] = str(error)
            return False
        return True

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """The secure form of the mechanism that was chosen."""
        return secure_inner_plan(self._find(plan.settings), plan, spec, loss)

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The plan of the mechanism chosen, and why it was; Unsupported where none has one."""
        found = self.rank(spec, budget)
        if not found.fits:
            told = "; ".join(f"{name}: {reason}" for name, reason in found.refusals.items())
            raise Unsupported(f"no mechanism of mechanism.among has a plan here: {told}")
        best, *others = found.fits
        settings = {
            "chosen": best.name,
            "runner_up": others[0].name if others else None,
            "predicted": {one.name: one.risk for one in found.fits},
            "refused": found.refusals,
            "reason": explain_choice(best, others),
            "inner": inner_mechanism.describe_inner(best.mechanism, best.plan),
        }
        return inner_mechanism.wrap_plan(best.plan, settings)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """Unsupported: a noise scale says nothing before a mechanism is chosen."""
        raise Unsupported("auto chooses a mechanism for a budget: give epsilon, or name one")

    def release(self, view: Any, plan: Plan, gate: Gate) -> Release:
        """The chosen mechanism's release."""
        chosen = self._find(plan.settings)
        found = inner_mechanism.inner_plan(plan, plan.events)
        return inner_mechanism.release_inside(chosen, view, found, gate, added_risk=0.0)

    def adversary(self, budget: Budget) -> Adversary:
        """That of the first mechanism which has one for the budget, chosen as the only one."""
        kind = find_kind(budget)
        first = next(one for one in self.candidates if kind in one.guarantees)
        found = first.adversary(budget)
        return replace(found, mechanism=replace(self, among=(found.mechanism,)))

    def _find(self, settings: Mapping[str, Any]) -> Mechanism:
        name = settings["chosen"]
        return next(one for one in self.candidates if inner_mechanism.name_of(one) == name)


def explain_choice(best: Prediction, others: Sequence[Prediction]) -> str:
    """One line: what was chosen, and by how much it is predicted to be better."""
    words = f"{best.name}: predicted excess risk {best.risk:.3g} per record"
    if not others:
        return f"{words}; no other mechanism fits"
    second = others[0]
    return f"{words}, {second.risk / best.risk:.3g} times less than {second.name}"
