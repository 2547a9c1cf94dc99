"""What ``dperm account shuffled=true`` adds to a row: the epsilon of answers in a random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting import shuffling
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Event


def check_level(value: float, delta: float | None) -> None:
    """Refuse an epsilon of shuffled answers, or a delta, for which nothing can be searched.

    Raises:
        InputError: the key and its limits.
    """
    if value > shuffling.MOST_LOCAL:
        raise InputError("epsilon_shuffled", value, f"must be at most {shuffling.MOST_LOCAL:g}")
    check_delta(delta)


def check_delta(delta: float | None) -> None:
    """Refuse a delta of 0: shuffled answers have no pure guarantee below the local one.

    Raises:
        InputError: the key and its limits.
    """
    if delta is not None and delta < shuffling.LEAST_DELTA:
        least = f"must be at least {shuffling.LEAST_DELTA:g} for shuffled answers"
        raise InputError("delta", delta, least)


def find_budget(mechanism: Any, epsilon: float, delta: float, n: int) -> float:
    """The largest local epsilon of an answer with which shuffled answers keep to the budget.

    Raises:
        Unsupported: the mechanism sees records, so that there are no answers to shuffle.
    """
    if mechanism.trust != "local":
        raise Unsupported("epsilon_shuffled is for answers of users, and it reads records")
    return shuffling.find_local_epsilon(epsilon, delta, n)


def describe_shuffled(
    events: Sequence[Event], guarantee: Guarantee, n: int, delta: float, asked: float | None
) -> dict[str, Any]:
    """``epsilon_shuffled`` and ``delta_shuffled``, and ``shuffled``: for whom, or why not.

    ``asked`` is the epsilon that the local one was searched for, if it was: it is shown where it
    holds, as a search rounds up in the ninth digit.
    """
    reason = _find_obstacle(events, guarantee)
    if reason is not None:
        return {"epsilon_shuffled": None, "delta_shuffled": None, "shuffled": f"no: {reason}"}
    local = guarantee.epsilon
    holds = asked is not None and shuffling.delta_of(local, n, asked) <= delta
    return {
        "epsilon_shuffled": asked if holds else shuffling.amplify(local, n, delta),
        "delta_shuffled": delta,
        "shuffled": f"yes: replace_one, {n} users in random order",
    }


def _find_obstacle(events: Sequence[Event], guarantee: Guarantee) -> str | None:
    """Why the theorem says nothing of these events, or None."""
    if any(event.kind() != "local" for event in events):
        return "it reads records; there are no answers of users"
    answers = sum(event.draws for event in events)
    if answers != 1:
        return f"a user answers {answers} times; the theorem is for one answer"
    if not 0.0 < guarantee.epsilon <= shuffling.MOST_LOCAL:
        return f"a local epsilon above {shuffling.MOST_LOCAL:g}"
    return None
