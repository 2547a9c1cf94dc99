"""Check that a channel's drawn answers keep the claimed ratio of probabilities.

``channel_loss`` reads the chances off the integers that a channel compares its random words with.
Here answers are drawn through the gate for inputs that are far apart, and counted: none may be
more than e^epsilon times as frequent for one of them as for another.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from dperm_cli.audit.error_rates import lower, upper
from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.events import Channel

LEVEL = 1e-10  # chance of a false alarm of one answer
ANSWERS = 20_000  # that are drawn for each input
_MOST_COUNTED = 3  # coordinates whose signs are counted one by one


def find_faults(event: Any, relation: str, seed: int = 0) -> list[str]:
    """What is wrong with an event's answers, in words; nothing for events without a channel."""
    if event.kind() != "local" or not event.shape:
        return []
    inputs = _inputs(event)
    answers = [_answers(event, value, relation, seed) for value in inputs]
    for one, other in itertools.combinations(range(len(inputs)), 2):
        along = inputs[one] - inputs[other]
        ratio = _largest_ratio(*_count_answers(answers[one], answers[other], along))
        if not ratio <= event.epsilon * (1.0 + 1e-9):
            return [
                f"an answer of the {event.shape} channel is at least e^{ratio:.4g} times as "
                f"frequent for one record as for another, and e^{event.epsilon:.4g} is claimed"
            ]
    return []


def _inputs(event: Channel) -> list[np.ndarray]:
    """Values at the channel's bound that are far apart: corners, opposite ones first."""
    if event.dim == 1:
        return [np.ones(1), -np.ones(1)]
    if event.shape == "l_inf":
        turned = np.where(np.arange(event.dim) % 2 == 0, 1.0, -1.0)
        return [np.ones(event.dim), -np.ones(event.dim), turned]
    first, second = np.eye(event.dim)[:2]
    return [first, -first, second]


def _answers(event: Channel, value: np.ndarray, relation: str, seed: int) -> np.ndarray:
    """Answers [ANSWERS, dim] to one input."""
    leaf = seed_sequence(seed, "audit", "channel answers", event.shape, repr(value.tolist()))
    gate = ManyTrialsGate(leaf, ANSWERS, ((event,), relation))
    stream = gate.stream(event, event.dim, bound=1.0, users=1)
    return np.asarray(stream.send(0, np.tile(value, (ANSWERS, 1))))


def _count_answers(
    one: np.ndarray, other: np.ndarray, along: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How often each answer was given to either input: its direction, or the side it is on."""
    corners = np.count_nonzero(one[0]) == 1
    if corners or one.shape[1] <= _MOST_COUNTED:
        kinds, place = np.unique(np.sign(np.concatenate([one, other])), axis=0, return_inverse=True)
        if len(kinds) <= len(one) // 100:
            place = place.ravel()
            counts = [np.bincount(part, minlength=len(kinds)) for part in np.split(place, 2)]
            return counts[0], counts[1]
    sides = [np.count_nonzero(answers @ along > 0.0) for answers in (one, other)]
    return np.array([sides[0], len(one) - sides[0]]), np.array([sides[1], len(one) - sides[1]])


def _largest_ratio(one: np.ndarray, other: np.ndarray) -> float:
    """A lower bound on the largest log ratio of chances, from two counts of answers."""
    worst = 0.0
    for first, second in ((one, other), (other, one)):
        for a, b in zip(first, second, strict=True):
            likely = lower(int(a), ANSWERS, LEVEL)
            if likely > 0.0:
                worst = max(worst, math.log(likely / upper(int(b), ANSWERS, LEVEL)))
    return worst
