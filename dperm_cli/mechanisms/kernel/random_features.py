"""A linear mechanism on a shift-invariant kernel's random features [RBHT12; CMS11, Sec. 5]."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.mechanisms.shared.inner_mechanism import ChangedProblem
from dperm_cli.mechanisms.shared.secure_plan import secure_inner_plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class RandomFeatures(ChangedProblem):
    """The inner mechanism on psi(x) = (cos <w_k, x>, sin <w_k, x>) / sqrt(size), w_k public.

    Construction: [RBHT12] and [CMS11, Alg. 3], with output perturbation and objective
    perturbation inside; the frequencies are drawn from the spectral law of the kernel with a public
    seed (``kernel.size``, ``kernel.seed``), so that they tell nothing of the records. Guarantee,
    events, ``noise_scale`` and cost are the inner mechanism's, for rows of norm 1 at most; trust:
    central. Shapes: theta [trials, 2 size]. Unsupported: whatever the inner mechanism does not
    support. A kernel that is no function of x - z is bad input (``kernel``).

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> RandomFeatures().plan(spec, Budget(1.0, 0.0)).settings["inner"]["name"]
    'objective_perturbation'
    """

    features: ClassVar[str] = "fourier"  # the finite map that the rows it sees come from
    secure_as_inner: ClassVar[bool] = True

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The inner mechanism's plan for the mapped rows."""
        found = self.inner.plan(spec, budget)
        settings = {"features": spec.p, "inner": inner_mechanism.describe_inner(self.inner, found)}
        return inner_mechanism.wrap_plan(found, settings)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """The inner mechanism's secure form, on rows that were mapped one by one."""
        return secure_inner_plan(self.inner, plan, spec, loss)

    def change_facts(self, spec: ProblemSpec, budget: Budget) -> ProblemSpec:
        """They are those of the mapped rows already."""
        return spec

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """The inner mechanism's release: the rows of the view are mapped already."""
        found = inner_mechanism.inner_plan(plan, plan.events)
        return inner_mechanism.release_inside(self.inner, view, found, gate, added_risk=0.0)
