"""PROJERM: any mechanism on projected records, and its result lifted back [KJ16, Mechanism 1]."""

from __future__ import annotations

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism, projected_problem
from dperm_cli.mechanisms.shared.projected_problem import CLIP, ProjectedMechanism, ProjectedSpace
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem import random_projection
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView

_ADVERSARY_DIMENSION = 16  # dimensions of the adversary's records: |Phi| = 4


@dataclass(frozen=True)
class Projected(ProjectedMechanism):
    """v = the inner mechanism on (Phi x_i, y_i) over Phi C; theta in C of least gauge, Phi theta =
    v.

    Algorithm: [KJ16, Mechanism 1], Phi (m x d) a public random matrix of kind ``phi``, the same for
    all trials, and every projected row shortened to ``clip`` times the rows' bound. Guarantee,
    events and relations: the inner mechanism's for rows of that bound over Phi C; Phi does not
    follow the records, projecting and shortening take each record by itself, and lifting is
    post-processing, so that it holds for every Phi; trust: central. ``noise_scale`` is the inner
    mechanism's, in its unit in R^m. Shapes: theta [trials, d]. Cost: one pass over the records, m d
    numbers for Phi and n m for the projected rows, the inner mechanism in R^m, and a linear program
    a trial. Unsupported: losses that are not of the margin <x, theta>, lasso > 0, an m above d, a
    Phi too large to store, and whatever the inner mechanism does not support on Phi C.

    ``m=balanced`` minimises the two risk terms with unit constants from n, epsilon, delta and the
    Gaussian width of C; ``m=paper`` is Theorem 3.11's; at m = d nothing is projected. A ridge is
    (ridge / 2) |Phi theta|^2 in R^m. ``info`` holds the largest |Phi theta - v| and gauge.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> spec = linear_pair("replace_one", n=1000, radius=1.0)[0].spec()
    >>> Projected(m=1).plan(spec, Budget(1.0, 1e-6)).settings["m"]
    1
    """

    def choose_space(self, spec: ProblemSpec, m: int) -> ProjectedSpace:
        """The one Phi of all trials."""
        return projected_problem.build_space(self, spec, m)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Project and clip, the inner mechanism's release in R^m, and its points lifted to C."""
        made = plan.space
        part = inner_mechanism.inner_plan(plan, plan.events)
        seen = projected_problem.project_view(view, made)
        v = inner_mechanism.release_inside(self.inner, seen, part, gate).theta
        found = projected_problem.lift_points(view.spec, made, np.asarray(v))
        return Release(found.theta, projected_problem.describe_lift(found))

    def adversary(self, budget: Budget) -> Adversary:
        """A row along Phi's first right singular vector, which is twice too long when projected.

        Only the clip makes the inner mechanism's pair of it.
        """
        phi = random_projection.draw("rademacher", 1, _ADVERSARY_DIMENSION, self.phi_seed)
        row = phi.back(np.ones(1)) / (
            CLIP * _ADVERSARY_DIMENSION**0.5
        )  # of norm 1/2; Phi makes 2 of it
        return projected_problem.make_adversary(self, budget, row)
