"""A linear mechanism on random Fourier features of a kernel that shifts [RBHT12; CMS11, Sec. 5]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class RandomFeatures(Mechanism):
    """The inner mechanism on psi(x) = (cos <w_k, x>, sin <w_k, x>) / sqrt(size), w_k public.

    Construction: [RBHT12] and [CMS11, Alg. 3], with output perturbation and objective
    perturbation inside; the frequencies are drawn from the spectral law of the kernel with a public
    seed (``kernel.size``, ``kernel.seed``), so that they tell nothing of the records. Guarantee,
    events, ``noise_scale`` and cost are the inner mechanism's, for rows of norm 1 at most; trust:
    central. Shapes: theta [trials, 2 size]. Unsupported: whatever the inner mechanism does not
    support. A kernel that is no function of x - z is bad input (``kernel``).
    """

    inner: inner_mechanism.Inner = "objective_perturbation"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    features: ClassVar[str] = "fourier"  # the finite map that the rows it sees come from

    def __post_init__(self) -> None:
        super().__post_init__()
        inner_mechanism.build_inner(self)

    @property
    def is_unprotected(self) -> bool:
        """Whether the user asked the inner mechanism for a release without a guarantee."""
        return self.inner.is_unprotected

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The inner mechanism's plan for the mapped rows."""
        found = self.inner.plan(spec, budget)
        settings = {"features": spec.p, "inner": inner_mechanism.describe_inner(self.inner, found)}
        return inner_mechanism.wrap_plan(found, settings)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """The inner mechanism's."""
        return self.inner.events(spec, scale, budget)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """The inner mechanism's release: the rows of the view are mapped already."""
        return self.inner.release(
            view, inner_mechanism.inner_plan(plan, plan.events, plan.noise_scale), gate
        )

    def adversary(self, budget: Budget) -> Adversary:
        """The inner mechanism's own: the map is applied before anything is released."""
        found = self.inner.adversary(budget)
        return replace(found, mechanism=replace(self, inner=found.mechanism))
