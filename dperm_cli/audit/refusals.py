"""Whether what must be refused is refused: a claim above its budget, and noise not accounted for.

These checks are the last line before a release. Where one is gone, nothing leaks as long as all
else is right, so that no attack on a release can tell: it is given something wrong on purpose.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit._rates import scaled
from dperm_cli.audit.case import Opened
from dperm_cli.audit.noise_laws import drawer
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.rng import seed_sequence
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.noise import Gate


def faults(one: Opened) -> list[str]:
    """What passes though it is wrong, in words."""
    return [*_ledger(one), *_gate(one), *_steps(one)]


def _ledger(one: Opened) -> list[str]:
    """A plan is refused under a smaller budget, and under another relation."""
    if one.recheck is None:
        return []
    budget, claim = one.budget, one.guarantee
    other = next(relation for relation in RELATIONS if relation != budget.relation)
    wrong = {
        "a claim above its epsilon": replace(budget, epsilon=0.5 * claim.epsilon),
        "a claim under another relation": replace(budget, relation=other),
        "a claim against epsilon = nan": replace(budget, epsilon=float("nan")),
    }
    if claim.delta > 0.0:
        wrong["a claim above its delta"] = replace(budget, delta=0.5 * claim.delta)
        wrong["an approximate claim for a pure one"] = replace(budget, delta=0.0)
    return [f"{words} is not refused" for words, b in wrong.items() if not _refused(one.recheck, b)]


def _gate(one: Opened) -> list[str]:
    """A release whose noise is not that of the plan it is checked against is refused."""
    if one.secure or one.view is None:
        return []
    seeds = [seed_sequence(0, "audit", "refusals")]
    relation = one.guarantee.relation
    events = one.planned[0].events
    changed = list(events)
    for place, event in enumerate(events):
        with contextlib.suppress(ValueError, Unsupported):
            changed[place] = scaled(event, 2.0)
    if changed == list(events):
        return []
    found = []
    for words, allowed in (("noise of another scale", changed), ("noise of no event", [])):
        gate = Gate(seeds, plan=(tuple(allowed), relation))
        if not _refused(one.mechanism.release, one.view(), one.plan, gate):
            found.append(f"{words} passes the gate")
    return found


def _steps(one: Opened) -> list[str]:
    """No step of a stream is drawn twice, and none beyond those that were accounted for."""
    relation = one.guarantee.relation
    for event in one.plan.events:
        gate = Gate([seed_sequence(0, "audit", "refusals")], plan=((event,), relation))
        draw = None
        with contextlib.suppress(PrivacyError, Unsupported, TypeError, AttributeError):
            draw = drawer(gate, event, 1, relation)
        if draw is None:
            continue
        value = np.zeros((1, 1))
        draw(value, 0)
        found = []
        if not _refused(draw, value, 0):
            found.append("the noise of one step is drawn twice")
        if not _refused(draw, value, int(event.count)):
            found.append("noise is drawn for a step that was not accounted for")
        return found
    return []


def _refused(call: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a call ends with a refusal."""
    try:
        call(*arguments)
    except (PrivacyError, Unsupported):
        return True
    except Exception:
        return False
    return False
