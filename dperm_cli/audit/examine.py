"""One line of the audit: a mechanism under one budget, by every check there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dperm_cli.audit import exact, statistical
from dperm_cli.audit.neighbours import search
from dperm_cli.audit.replay import Replay, replay
from dperm_cli.audit.statistical import Finding
from dperm_cli.core.errors import DpermError, Unsupported
from dperm_cli.privacy.budget import Budget

ROUNDS = 200  # random neighbours of a mechanism


@dataclass(frozen=True)
class Verdict:
    """What the checks of one mechanism under one relation found.

    ``exact`` is the exact loss of the noise over what its events claim, or None where no density is
    known; ``faults`` says what is wrong, in words.
    """

    name: str
    budget: Budget
    finding: Finding
    replay: Replay
    exact: float | None
    faults: tuple[str, ...]

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
            "tightness": found.tightness,
            "floor": found.floor,
            "control_bound": found.control,
            "control_caught": found.caught,
            "control_asked": found.control_asked,
            "replay_calls": self.replay.calls,
            "replay_worst": self.replay.worst,
            "exact": self.exact,
            "verdict": "violation" if self.faults else "ok",
            "faults": list(self.faults),
        }


def examine(
    name: str, mechanism: Any, budget: Budget, *, seed: int, quick: bool, rounds: int = ROUNDS
) -> Verdict:
    """Attack, replay and compute; raises ``Unsupported`` where the mechanism has no such plan."""
    adversary = mechanism.adversary(budget)
    plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    try:
        finding = statistical.attack(adversary, budget, seed=seed, quick=quick)
        pair = replay(adversary.mechanism, plan, adversary.first, adversary.second, seed)
        replayed = _joined(pair, search((mechanism, adversary.mechanism), budget, rounds, seed))
        loss = _exact(plan.events, plan.guarantee.epsilon, budget)
    except DpermError as error:
        # the gate or the accountant refused what the mechanism does
        return _refused(name, budget, str(error))
    return Verdict(
        name, budget, finding, replayed, loss,
        (*finding.faults, *replayed.faults[:3], *_exact_faults(loss)),
    )  # fmt: skip


def _joined(pair: Replay, others: Replay) -> Replay:
    return Replay(
        pair.calls + others.calls, max(pair.worst, others.worst), (*pair.faults, *others.faults)
    )


def _exact(events: Any, claim: float, budget: Budget) -> float | None:
    """The worst event's exact loss over its claim; a plan of several only has to cover each."""
    found = []
    for event in events:
        try:
            found.append(exact.noise_loss(event, claim, budget.delta, budget.relation))
        except Unsupported:
            continue
    return max(found) if found else None


def _exact_faults(loss: float | None) -> tuple[str, ...]:
    if loss is None:
        return ()
    if not loss <= 1.0 + exact.WITHIN:
        return (f"the exact loss is {loss:.6g} times the claim",)
    if not loss >= exact.POWER:
        return (f"the exact loss is only {loss:.3g} of the claim: the search has no power",)
    return ()


def _refused(name: str, budget: Budget, reason: str) -> Verdict:
    nan = float("nan")
    finding = Finding(budget.epsilon, budget.delta, nan, nan, None)
    return Verdict(name, budget, finding, Replay(0, nan, ()), None, (reason,))
