"""Helpers of mechanisms whose output is a draw from a law exp(-f) on the set."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.mechanisms.adversary import make_line
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.privacy.events import Disclosure, Event, SamplerError
from dperm_cli.privacy.streams import LawStream
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.choose_sampler import SamplerPlan, is_heuristic, name_of
from dperm_cli.views.central import CentralView, TrialNumbers

_TOLERANCE = 1e-6  # of the set's radius


def design_draw(law: Event, chosen: SamplerPlan, scale: float) -> Design:
    """The design of one draw from the law of an event, with the sampler's error beside it."""
    return Design(
        (law, *sampler_events(chosen)), scale, 1, {"sampler": describe_sampler(chosen)},
        certificate=format_certificate(chosen), reason="heuristic sampler", sampler=chosen,
    )  # fmt: skip


def sampler_events(chosen: SamplerPlan) -> tuple[Event, ...]:
    """None for an exact sampler, its distance, or a disclosure where that is not known."""
    distance = chosen.certificate.dist_inf
    if is_heuristic(chosen.certificate):
        return (Disclosure(),)
    return (SamplerError("inf", distance),) if distance > 0.0 else ()


def draw(view: CentralView, plan: Plan, target: Target, stream: LawStream) -> Release:
    """Draw the trials one after the other. Returns theta [trials, p].

    PrivacyError: a draw failed or left the set. A failure is not an output of the mechanism.
    """
    sampler, certificate = plan.sampler.sampler, plan.sampler.certificate
    potential, theta = view.potential(target), np.empty((stream.trials, target.spec.p))
    for trial in range(stream.trials):
        try:
            theta[trial] = sampler.draw(potential, target, certificate, TrialNumbers(stream, trial))
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
    """Linear losses -theta on an interval; in the neighbour one of them is reversed, or removed."""
    x, y = np.ones((records, 1)), np.ones(records)
    other_x, other_y = x.copy(), y.copy()
    if relation == "add_remove":
        other_x[0] = 0.0
    else:
        other_y[0] = -1.0
    return make_line(x, y, 0.0, half_width), make_line(other_x, other_y, 0.0, half_width)


def describe_sampler(chosen: SamplerPlan) -> dict[str, Any]:
    """The certificate and the law as plain values, for the record and the ledger."""
    found, target = chosen.certificate, chosen.target
    return {
        "name": name_of(chosen.sampler),
        "theorem": found.theorem,
        "dist_inf": None if is_heuristic(found) else found.dist_inf,
        "exact": found.exact,
        "constant_time": found.constant_time,
        "steps": found.steps,
        "exponent": target.exponent,
        "kappa": target.kappa,
        "oscillation": target.oscillation,
        **{key: value for key, value in found.facts.items() if key != "oscillation"},
    }


def format_certificate(chosen: SamplerPlan) -> str:
    """The certificate in one line."""
    found = chosen.certificate
    if is_heuristic(found):
        return f"none: {name_of(chosen.sampler)} is a heuristic, nothing is proved of its law"
    law = "exact in real arithmetic" if found.exact else f"sup |log ratio| <= {found.dist_inf:.6g}"
    numbers = {"T": found.steps, "F": chosen.target.oscillation} if not found.exact else {}
    numbers |= {k: v for k, v in found.facts.items() if k != "oscillation"}
    listed = ", ".join(f"{key}={_short(value)}" for key, value in numbers.items())
    time = "" if found.constant_time else "; its running time is not private"
    return f"{name_of(chosen.sampler)}: {law} [{found.theorem}]{'; ' * bool(listed)}{listed}{time}"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
