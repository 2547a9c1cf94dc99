"""The exponential mechanism in its secure form: a choice from a finite net by whole scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.errors import Unsupported
from dperm_cli.losses.shared.score_units import find_units
from dperm_cli.mechanisms.base import Plan, Release
from dperm_cli.mechanisms.shared import list_choice, nearest_secure
from dperm_cli.mechanisms.shared.nearest_secure import PURE
from dperm_cli.privacy.gate import Gate
from dperm_cli.samplers.base import Certificate, Target
from dperm_cli.samplers.net import MOST_DIMENSIONS, Net
from dperm_cli.samplers.shared.choose_sampler import SamplerPlan, name_of
from dperm_cli.views.central import CentralView

MOST_POINTS = 1 << 20
MOST_WORK = 1 << 29  # points times records, where the net is chosen here
_FEWEST = 1 << 10


def choose_net(mechanism: Any, target: Target) -> Net:
    """The net that an exponential mechanism chooses from.

    With ``sampler=auto`` it is as fine as f needs (``Net.covering``) or as fine as ``MOST_POINTS``
    and ``MOST_WORK`` allow.

    Raises:
        Unsupported: The sampler draws from a continuum, or there are more than 3 dimensions.
    """
    if not isinstance(mechanism.sampler, Net) and mechanism.sampler.candidates is None:
        raise Unsupported(_refuse_continuum(name_of(mechanism.sampler), target))
    if target.dimension > MOST_DIMENSIONS:
        raise Unsupported(_refuse_continuum("a law on a continuum", target))
    asked = mechanism.sampler if isinstance(mechanism.sampler, Net) else Net()
    most = max(_FEWEST, min(MOST_POINTS, MOST_WORK // target.spec.n))
    return asked.within(target, min(most, asked.most_points))


def describe_net(sampler: Net, target: Target) -> SamplerPlan:
    """The net as the sampler of a plan, with a certificate that names the rule."""
    found = sampler.plan(target, 0.0)
    words = "permute-and-flip on a net, by whole scores"
    return SamplerPlan(sampler, target, Certificate("net", words, 0.0, facts=found.facts))


def choose_point(view: CentralView, plan: Plan, gate: Gate) -> Release:
    """One point of the net for every trial."""
    law = gate.stream(plan.events[0], view.spec.p)
    points = plan.sampler.sampler.list_points(plan.sampler.target)
    units = find_units(view.spec)
    scores = list_choice.count_objective(view, points, units)
    return Release(np.array(points[list_choice.choose(law, scores[None], units.size, 0)]))


def _refuse_continuum(what: str, target: Target) -> str:
    spec = target.spec
    head = (
        f"{what} has no secure form: its proof is about real numbers, and says nothing of a chain "
        "in floating point"
    )
    if target.dimension <= MOST_DIMENSIONS:
        net = Net().within(target, MOST_POINTS)
        facts = net.plan(target, 0.0).facts
        return (
            f"{head}; use sampler=net, a choice from {facts['points_at_most']} points, "
            f"which costs at most {facts['discretisation_risk'] / spec.n:.3g} of risk per record"
        )
    return f"{head}; {nearest_secure.name_mechanisms(PURE)}"
