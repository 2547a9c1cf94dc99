"""Check that wrong plans are refused: claims above the budget, and noise not accounted for.

These refusals are the last checks before a release. If one is missing, correct plans still
release correctly, so no attack on outputs notices it. Therefore wrong plans are submitted here on
purpose, and each one that is accepted is a fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit import solver_errors
from dperm_cli.audit.error_rates import scale_noise
from dperm_cli.audit.noise_laws import make_noise_adder
from dperm_cli.audit.opened_cell import OpenedCell
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.gate import Gate


def find_faults(one: OpenedCell) -> list[str]:
    """The wrong plans and calls that are accepted, as sentences; empty if all are refused."""
    return [
        *_check_budgets(one),
        *_check_gate(one),
        *_check_steps(one),
        *_check_answers(one),
        *_check_certificates(one),
    ]


def _check_budgets(one: OpenedCell) -> list[str]:
    """A plan must be refused under a smaller budget, and under another relation."""
    budget, claim = one.budget, one.guarantee
    other = next(relation for relation in RELATIONS if relation != budget.relation)
    wrong = {
        "a claim under another relation": replace(budget, relation=other),
        "a claim against epsilon = nan": replace(budget, epsilon=float("nan")),
    }
    if claim.epsilon > 0.0:
        wrong["a claim above its epsilon"] = replace(budget, epsilon=0.5 * claim.epsilon)
    if claim.delta > 0.0:
        wrong["a claim above its delta"] = replace(budget, delta=0.5 * claim.delta)
        wrong["an approximate claim for a pure one"] = replace(budget, delta=0.0)
    if claim.information is not None:
        told = 0.5 * claim.information
        wrong["a claim that tells more than was asked"] = replace(budget, information=told)
    return [
        f"{words} is not refused" for words, b in wrong.items() if not _is_refused(one.recheck, b)
    ]


def _check_gate(one: OpenedCell) -> list[str]:
    """A release must be refused whose noise is not that of the plan given to the gate."""
    if one.secure:
        return []
    events = one.planned[0].events
    changed = list(events)
    for place, event in enumerate(events):
        with contextlib.suppress(ValueError, Unsupported):
            changed[place] = scale_noise(event, 2.0)
    if changed == list(events):
        return []
    found = []
    for words, allowed in (("noise of another scale", changed), ("noise of no event", [])):
        if not _is_refused(one.mechanism.release, one.view(), one.plan, _open_gate(one, *allowed)):
            found.append(f"{words} passes the gate")
    return found


def _check_steps(one: OpenedCell) -> list[str]:
    """The gate must not draw a step twice, nor a step beyond those that were accounted for."""
    for event in one.plan.events:
        if not event.noise_law:
            continue
        draw = make_noise_adder(_open_gate(one, event), event, 1)
        value = np.zeros((1, 1))
        draw(value, 0)
        found = []
        if not _is_refused(draw, value, 0):
            found.append("the noise of one step is drawn twice")
        if not _is_refused(draw, value, event.draws):
            found.append("noise is drawn for a step that was not accounted for")
        return found
    return []


def _check_answers(one: OpenedCell) -> list[str]:
    """No user's device may answer more often than was accounted for."""
    for event in one.plan.events:
        if event.kind() != "local" or not event.shape:
            continue
        stream = _open_gate(one, event).stream(event, event.dim, bound=1.0, users=2)
        value = np.zeros((1, event.dim))
        for _ in range(event.messages):
            stream.send(0, value)
        if not _is_refused(stream.send, 0, value):
            return ["a user answers once more than was accounted for"]
    return []


def _check_certificates(one: OpenedCell) -> list[str]:
    """A minimiser without a proved error must not be released."""
    if one.secure:
        return []
    with solver_errors.no_certificates() as calls:
        refused = _is_refused(one.release, 1, 0)
    return [] if refused or not calls.count else ["a minimiser is released without a certificate"]


def _open_gate(one: OpenedCell, *events: Any) -> Gate:
    """A gate of one trial whose plan consists of these events."""
    seeds = [seed_sequence(0, "audit", "refusals")]
    return Gate(seeds, plan=(events, one.guarantee.relation))


def _is_refused(action: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the call raises ``PrivacyError`` or ``Unsupported``."""
    try:
        action(*arguments)
    except (PrivacyError, Unsupported):
        return True
    except Exception:
        return False
    return False
