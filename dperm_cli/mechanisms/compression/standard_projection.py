"""STDERM: PROJERM with a Phi of its own in every trial [KJ16, Mechanism 2]."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism, projected_problem
from dperm_cli.mechanisms.shared.projected_problem import ProjectedMechanism, ProjectedSpace
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.sets.shared.image_set import Held
from dperm_cli.views.central import CentralView

PILOTS = 4  # draws of Phi that say how large Phi C may be


@dataclass(frozen=True)
class StandardProjection(ProjectedMechanism):
    """Draw Phi, then PROJERM on (Phi x_i, y_i): each trial has its own matrix.

    Algorithm: [KJ16, Mechanism 2]. What it returns, and the set it comes from, are PROJERM's
    (``projected``), where Phi is given and one for all trials; here drawing it is a step of the
    mechanism, and the spread over trials counts it. The plan is made for a radius and a diameter of
    Phi C that 4 pilot matrices stay within, and a trial takes the first of its own matrices that
    stays within them too: all are drawn from public facts (``phi_seed``, kind, m, d, the trial's
    number), so that which one is taken says nothing of the records. Guarantee, events, relations,
    ``noise_scale``, shapes and trust as in ``projected``, with rows bounded by ``clip`` times the
    rows' bound. Cost: a projection of all records, and the inner mechanism, a trial. Unsupported:
    as ``projected``, and inner mechanisms that sample a law, whose samplers are planned for one
    set.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> spec = linear_pair("replace_one", n=1000, radius=1.0)[0].spec()
    >>> StandardProjection(m=1).plan(spec, Budget(1.0, 1e-6)).settings["note"]
    'm = d: nothing is projected'
    """

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """m, the sizes that every trial's Phi C stays within, and the inner mechanism's plan."""
        found = super().design(spec, budget)
        laws = any(event.draws_from_law for event in found.events)
        if laws and found.space.phi.m < spec.p:
            raise Unsupported(
                f"{inner_mechanism.name_of(self.inner)} samples a law, and its sampler is "
                "planned for one set while every trial has a Phi C of its own: "
                "use mechanism=projected"
            )
        return found

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Trial by trial: draw Phi, project and clip, release in R^m, lift."""
        spec, held = view.spec, plan.space
        part = inner_mechanism.inner_plan(plan, plan.events)
        if held.phi.m == spec.p:
            seen = projected_problem.project_view(view, held)
            v = inner_mechanism.release_inside(self.inner, seen, part, gate).theta
            return Release(np.asarray(v), {"residual": 0.0})
        theta, residual = np.empty((gate.trials, spec.p)), 0.0
        for trial, one in enumerate(gate.each(part.events)):
            made = self._of_trial(spec, held, trial)
            seen = projected_problem.project_view(view, made)
            v = inner_mechanism.release_inside(self.inner, seen, part, one).theta
            found = projected_problem.lift_points(spec, made, np.asarray(v))
            theta[trial], residual = found.theta[0], max(residual, float(found.residual[0]))
        return Release(theta, {"residual": residual})

    def adversary(self, budget: Budget) -> Adversary:
        """The inner mechanism's own, with nothing projected.

        That projecting and shortening keep the sensitivities is what ``projected`` is attacked for;
        that every trial has its own matrix changes nothing for any of them.
        """
        found = self.inner.adversary(budget)
        return replace(found, mechanism=replace(self, inner=found.mechanism, m=found.first.p))

    def choose_space(self, spec: ProblemSpec, m: int) -> ProjectedSpace:
        """The first pilot's, on a set whose sizes are the largest of all pilots'."""
        first = projected_problem.build_space(self, spec, m, "pilot", 0)
        if m == spec.p:
            return first
        sizes = [(first.constraint.radius, first.constraint.diameter)]
        for pilot in range(1, PILOTS):
            body = projected_problem.build_space(self, spec, m, "pilot", pilot).constraint
            sizes.append((body.radius, body.diameter))
        radius, diameter = np.max(sizes, axis=0)
        held: Any = Held(first.constraint, float(radius), float(diameter))
        return ProjectedSpace(first.phi, held, spec.row_bound * self.clip)

    def _of_trial(self, spec: ProblemSpec, held: ProjectedSpace, trial: int) -> ProjectedSpace:
        """The trial's first matrix whose image is within the sizes of the plan."""
        most = held.constraint
        for attempt in count():
            made = projected_problem.build_space(self, spec, held.phi.m, "trial", trial, attempt)
            body = made.constraint
            if body.radius <= most.radius and body.diameter <= most.diameter:
                return replace(
                    made,
                    constraint=Held(body, most.radius, most.diameter),
                    row_bound=held.row_bound,
                )
        raise AssertionError
