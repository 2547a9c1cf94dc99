# ruff: noqa: F401 - the names that other rooms take from here
"""Privacy events: what a mechanism does to the data, stated in accountable terms.

An event is the one contract between a mechanism, the accountant, the gate, the audit and the
ledger. It carries the norm (or the oscillation) of one record's contribution, so that its
sensitivity under each relation follows from it. A sequence of events is an adaptive composition:
each may depend on what the earlier ones released. Epsilons are in nats, scales in the unit of what
is released.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from dperm_cli.core import plugin_sources
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.budget import weakest_kind
from dperm_cli.privacy.events.base import RELATIONS, Event, NoiseEvent, PrivacyLoss
from dperm_cli.privacy.events.black_boxes import (
    Approx,
    Channel,
    Disclosure,
    Pure,
    SamplerError,
    replaced_level,
)
from dperm_cli.privacy.events.choices import CHOICE_RULES, ListChoice
from dperm_cli.privacy.events.laws import Exponential, RegularizedExponential, SparseAnswers
from dperm_cli.privacy.events.moments import GaussianMoments, WishartDifference
from dperm_cli.privacy.events.negative_binomial_selection import NegativeBinomialSelection
from dperm_cli.privacy.events.perturbed import PerturbedObjective
from dperm_cli.privacy.events.poisson_selection import PoissonSelection
from dperm_cli.privacy.events.sums import (
    BATCH_NOISES,
    PARTITIONS,
    SAMPLINGS,
    DisjointBatches,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    Laplace,
    SampledGaussian,
)


def kind(events: Sequence[Event]) -> str:
    """The weakest kind of guarantee that events can give: pure, approx, local or none.

    ``Unsupported`` where channels stand beside other events: who is trusted differs.
    """
    kinds = {event.kind() for event in events}
    if "local" in kinds and "none" not in kinds and len(kinds) > 1:
        raise Unsupported("local channels compose with local channels only")
    return weakest_kind(kinds)


def classes() -> dict[str, type[Event]]:
    """Every kind of event by its name, as records spell it, with those from outside."""
    return {**plugin_sources.classes("event"), **list_shipped()}


@cache
def list_shipped() -> Mapping[str, type[Event]]:
    """The package's own kinds of events by name."""
    found: dict[str, type[Event]] = {}
    waiting: list[type[Event]] = [Event]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            waiting.append(cls)
            home = sys.modules.get(cls.__module__) if cls.__module__.startswith(__name__) else None
            # a class from outside may say that it stands here; a base class has no phrase
            if "phrase" in vars(cls) and getattr(home, cls.__name__, None) is cls:
                found[cls.__name__] = cls
    return MappingProxyType(found)


plugin_sources.reserve_names("event", list_shipped)
