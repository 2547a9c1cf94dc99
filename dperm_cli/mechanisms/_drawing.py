"""What mechanisms share whose output is a draw from a law exp(-f) on the set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm_cli.core import progress, registry
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.mechanisms._protocol import Plan, Release
from dperm_cli.mechanisms._views import CentralView, Numbers
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Disclosure, Event, SamplerError
from dperm_cli.privacy.noise import LawStream
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers._choice import Chosen, heuristic, name_of
from dperm_cli.samplers._target import Target

_TOLERANCE = 1e-6  # of the set's radius


@dataclass(frozen=True)
class Drawing(Plan):
    """A plan with the sampler that carries it out and what that sampler proved.

    ``chosen.target`` is the law that was planned for.
    """

    chosen: Any = None


def drawing(
    law: Event, chosen: Chosen, kind: str, delta: float, relation: str, scale: float
) -> Drawing:
    """The plan of one draw from the law of an event, with the sampler's error beside it."""
    events = (law, *sampler_events(chosen))
    certificate, settings = words(chosen), {"sampler": facts(chosen)}
    if heuristic(chosen.certificate):
        guarantee = Guarantee(
            "none", math.inf, 1.0, relation, "heuristic sampler", certificate=certificate
        )
    else:
        accounted = account(events, delta=delta, relation=relation)
        guarantee = Guarantee(
            kind, accounted.epsilon, delta, relation, accounted.accountant, certificate=certificate
        )
    return Drawing(events, guarantee, scale, 1, settings, chosen)


def sampler_events(chosen: Chosen) -> tuple[Event, ...]:
    """None for an exact sampler, its distance, or a disclosure where that is not known."""
    distance = chosen.certificate.dist_inf
    if heuristic(chosen.certificate):
        return (Disclosure(),)
    return (SamplerError("inf", distance),) if distance > 0.0 else ()


def draw(view: CentralView, plan: Plan, target: Target, stream: LawStream) -> Release:
    """One draw a trial, one after the other, [trials, p].

    A draw that fails, or leaves the set, is a PrivacyError: it is no outcome of the mechanism.
    """
    assert isinstance(plan, Drawing)
    sampler, certificate = plan.chosen.sampler, plan.chosen.certificate
    potential, theta = view.potential(target), np.empty((stream.trials, target.spec.p))
    for trial in range(stream.trials):
        try:
            theta[trial] = sampler.draw(potential, target, certificate, Numbers(stream, trial))
        except (ArithmeticError, np.linalg.LinAlgError, Unsupported) as error:
            raise _no_outcome(certificate.sampler, str(error)) from error
        if not bool(target.constraint.contains(theta[trial], _TOLERANCE)):
            raise _no_outcome(certificate.sampler, "its point is not in the set")
        progress.report(certificate.sampler, trial + 1, stream.trials)
    return Release(stream.release(theta, 0))


def _no_outcome(sampler: str, reason: str) -> PrivacyError:
    reason = reason.removesuffix(": not a private outcome")
    return PrivacyError(
        f"{sampler} failed: {reason}; nothing is released, and that this happened is not a "
        "private outcome"
    )


def interval_pair(relation: str, records: int, half_width: float) -> tuple[Problem, Problem]:
    """Linear losses -theta on an interval, against one of them turned round, or gone."""
    x, y = np.ones((records, 1)), np.ones(records)
    other_x, other_y = x.copy(), y.copy()
    if relation == "add_remove":
        other_x[0] = 0.0
    else:
        other_y[0] = -1.0
    return _on_interval(x, y, half_width), _on_interval(other_x, other_y, half_width)


def _on_interval(x: np.ndarray, y: np.ndarray, half_width: float) -> Problem:
    name = "adversarial pair"
    data = Data.of_records(name, "binary", x, y, row_bound=1.0, target_bound=1.0, fingerprint=name)
    ball = registry.load("constraint", "l2_ball")(half_width, 1)
    return Problem(data, registry.load("loss", "linear")(), ball)


def facts(chosen: Chosen) -> dict[str, Any]:
    """The certificate and the law as plain values, for the record and the ledger."""
    found, target = chosen.certificate, chosen.target
    return {
        "name": name_of(chosen.sampler),
        "theorem": found.theorem,
        "dist_inf": None if heuristic(found) else found.dist_inf,
        "exact": found.exact,
        "constant_time": found.constant_time,
        "steps": found.steps,
        "exponent": target.exponent,
        "kappa": target.kappa,
        "oscillation": target.oscillation,
        **{key: value for key, value in found.facts.items() if key != "oscillation"},
    }


def words(chosen: Chosen) -> str:
    """The certificate in one line."""
    found = chosen.certificate
    if heuristic(found):
        return f"none: {name_of(chosen.sampler)} is a heuristic, nothing is proved of its law"
    law = "exact in real arithmetic" if found.exact else f"sup |log ratio| <= {found.dist_inf:.6g}"
    numbers = {"T": found.steps, "F": chosen.target.oscillation} if not found.exact else {}
    numbers |= {k: v for k, v in found.facts.items() if k != "oscillation"}
    listed = ", ".join(f"{key}={_short(value)}" for key, value in numbers.items())
    time = "" if found.constant_time else "; its running time is not private"
    return f"{name_of(chosen.sampler)}: {law} [{found.theorem}]{'; ' * bool(listed)}{listed}{time}"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
