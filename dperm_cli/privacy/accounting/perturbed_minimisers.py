"""Perturbed objectives and the Gaussian releases beside them, accounted for together.

A minimiser of a perturbed objective comes with a second release that pays for its solver. Where one
of them and Gaussian releases are all there is, their joint bound
(``objective_perturbation.joint_delta``) holds at every epsilon. Elsewhere each pair becomes one
step of (epsilon, delta), at the delta that its first event names. Both follow from composition in
any grouping: a step whose profile is at most h, beside releases of privacy loss Y, has
delta(epsilon) <= E h(epsilon - Y).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.objective_perturbation import joint_delta, joint_epsilon
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.events import Approx, Event, Gaussian, PerturbedObjective

NAME = "perturbed objective and Gaussian, jointly"


@dataclass(frozen=True)
class JointBound:
    """One perturbed objective with Gaussian noise and releases that are ``mu``-GDP in all.

    ``failure`` is the chance of what black boxes without epsilon let through.
    """

    first: PerturbedObjective
    mu: float
    failure: float
    relation: str

    def delta(self, epsilon: float) -> float:
        """The certified delta at epsilon >= 0."""
        e = epsilon - self.first.jacobian
        core = joint_delta(e, self.first.ratio(self.relation), self.mu, self.relation)
        return self.failure + (1.0 - self.failure) * core

    def epsilon(self, delta: float) -> float:
        """The certified epsilon at delta, inf where there is none."""
        left = (delta - self.failure) / (1.0 - self.failure) if self.failure < 1.0 else 0.0
        ratio = self.first.ratio(self.relation)
        if not left > 0.0:
            return math.inf
        return self.first.jacobian + joint_epsilon(left, ratio, self.mu, self.relation)


def find_joint_bound(events: Sequence[Event], relation: str) -> JointBound | None:
    """The joint bound of events that are one perturbed objective and Gaussian releases at most."""
    checks.choice("privacy.relation", relation, RELATIONS)
    first: PerturbedObjective | None = None
    mu2, failing = 0.0, 0.0
    for event in (event.as_one_sum(relation) for event in events):
        if _first(event):
            if first is not None or event.count != 1:
                return None
            first = event
        elif isinstance(event, Gaussian):
            mu2 += event.loss(relation).mu2
        elif isinstance(event, Approx) and event.epsilon == 0.0:
            failing += event.loss(relation).log_failure
        else:
            return None
    if first is None:
        return None
    return JointBound(first, math.sqrt(mu2), -math.expm1(failing) * (1.0 + 1e-15), relation)


def groupings(events: Sequence[Event], relation: str) -> list[Sequence[Event]]:
    """The ways in which the events may be composed: each alone, or after ``fold_pairs``.

    Either bound holds; which one is smaller depends on the budget.
    """
    pairs = fold_pairs(events, relation)
    return [pairs] if list(pairs) == list(events) else [pairs, events]


def fold_pairs(events: Sequence[Event], relation: str) -> list[Event]:
    """Replace each perturbed objective and the noise that covers its solver by one black box.

    That noise is a Gaussian event right behind, with the same count and a smaller share of the
    loss. All other events stay.
    """
    out: list[Event] = []
    for event in events:
        before = out[-1] if out else None
        if before is not None and is_pair(before, event, relation):
            assert isinstance(before, PerturbedObjective)
            assert isinstance(event, Gaussian)
            epsilon = before.epsilon(relation, event.ratio(relation))
            out[-1] = Approx(epsilon, before.delta, before.count, relation)
        else:
            out.append(event)
    return out


def _first(event: Event) -> TypeGuard[PerturbedObjective]:
    return isinstance(event, PerturbedObjective) and event.noise == "gaussian"


def is_pair(first: Event, event: Event, relation: str) -> bool:
    """Whether an event is the noise that covers the solver of a perturbed objective before it."""
    if not _first(first) or type(event) is not Gaussian or event.count != first.count:
        return False
    return event.ratio(relation) <= first.ratio(relation)
