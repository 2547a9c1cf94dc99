"""Audit one mechanism under one budget by all checks: one line of the audit's table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dperm_cli.audit import exact_loss, statistical_attack
from dperm_cli.audit.random_neighbours import search
from dperm_cli.audit.replay import Replay, replay
from dperm_cli.audit.solver_errors import replay_far_points
from dperm_cli.audit.statistical_attack import Finding
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import DpermError, Unsupported, describe_error
from dperm_cli.core.plugin_classes import is_shipped
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy.budget import Budget

ROUNDS = 200  # random neighbours of a mechanism


@dataclass(frozen=True)
class Verdict:
    """What the checks of one mechanism under one relation found.

    ``exact`` is the exact loss of the noise over what its events claim, or None where no density is
    known; ``faults`` says what is wrong, in words, and ``not_attacked`` what could not be shown.
    """

    name: str
    budget: Budget
    finding: Finding
    replay: Replay
    exact: float | None
    faults: tuple[str, ...]
    not_attacked: tuple[str, ...] = ()

    @property
    def is_attacked(self) -> bool:
        """Whether the adversary attacked at all, however weakly."""
        return self.replay.calls > 0

    @property
    def verdict(self) -> str:
        """A violation is only what was measured or proved."""
        if self.faults:
            return "violation"
        if not self.not_attacked:
            return "ok"
        return "weak attack" if self.is_attacked else "not attacked"

    def row(self) -> dict[str, Any]:
        """One flat record, JSON-able."""
        found = self.finding
        return {
            "mechanism": self.name,
            "relation": self.budget.relation,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "claim": found.claim,
            "bound": found.bound,
            "runs": found.runs,
            "tightness": found.tightness,
            "floor": found.floor,
            "control_bound": found.control,
            "control_caught": found.is_control_caught,
            "control_asked": found.is_control_required,
            "replay_calls": self.replay.calls,
            "replay_worst": self.replay.worst,
            "exact": self.exact,
            "verdict": self.verdict,
            "faults": list(self.faults),
            "not_attacked": list(self.not_attacked),
        }


def examine(
    name: str, mechanism: Any, budget: Budget, *, seed: int, quick: bool, rounds: int = ROUNDS
) -> Verdict:
    """Attack, replay and compute; raises ``Unsupported`` where the mechanism has no such plan.

    A shipped mechanism needs an adversary that works: to lack one is a fault. Of a plug-in it is
    told as what was not attacked.
    """
    is_own = _is_shipped(mechanism)
    try:
        adversary = mechanism.adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    except Exception as error:
        if is_own:
            raise
        told = str(error) if isinstance(error, Unsupported) else f"raised {describe_error(error)}"
        words = f"adversary, {budget.relation}: {told[:200]}"
        return replace(make_refused_verdict(name, budget, ""), faults=(), not_attacked=(words,))
    try:
        finding = statistical_attack.attack(adversary, budget, seed=seed, quick=quick)
        pair = replay(adversary.mechanism, plan, adversary.first, adversary.second, seed)
        for direction in (0, 1):
            far = replay_far_points(
                adversary.mechanism, plan, adversary.first, adversary.second, seed, direction
            )
            pair = pair.join(far)
        replayed = pair.join(search((mechanism, adversary.mechanism), budget, rounds, seed))
        claim = plan.guarantee.epsilon
        loss = exact_loss.plan_loss(plan.events, claim, budget.delta, budget.relation)
    except DpermError as error:
        # the gate or the accountant refused what the mechanism does
        return make_refused_verdict(name, budget, str(error))
    exact, weak_search = _judge_exact_loss(loss)
    faults = (*finding.faults, *replayed.faults[:3], *exact)
    weak = (*finding.weaknesses, *weak_search)
    if is_own:
        faults, weak = (*faults, *weak), ()
    told = tuple(f"adversary, {budget.relation}: {words}" for words in weak)
    return Verdict(
        name, budget, finding, replayed, None if loss is None else loss[0], faults, told
    )  # fmt: skip


def _is_shipped(mechanism: Any) -> bool:
    """Whether a mechanism, and all that stand inside of it, are the package's own."""
    return all(is_shipped(type(one)) for one in inner_mechanism.list_mechanisms(mechanism))


def _judge_exact_loss(
    loss: tuple[float, float] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an exact loss proves wrong, and what it cannot show."""
    if loss is None:
        return (), ()
    worst, least = loss
    if not worst <= 1.0 + exact_loss.WITHIN:
        return (f"the exact loss is {worst:.6g} times the claim",), ()
    if not least >= exact_loss.POWER:
        words = f"the exact loss is only {least:.3g} of the claim: the search has no power"
        return (), (words,)
    return (), ()


def make_refused_verdict(name: str, budget: Budget, reason: str) -> Verdict:
    """A verdict on what could not be attacked because of a fault."""
    nan = float("nan")
    finding = Finding(budget.epsilon, budget.delta, nan, nan, None)
    return Verdict(name, budget, finding, Replay(0, nan), None, (reason,))
