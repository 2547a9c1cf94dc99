"""A nonsmooth loss rounded off at its kink, for mechanisms that need smoothness [BST14, App. A]."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Help, Positive
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism, predicted_risk
from dperm_cli.mechanisms.shared.inner_mechanism import ChangedProblem
from dperm_cli.mechanisms.shared.secure_plan import secure_inner_plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec, make_spec, without_curvature
from dperm_cli.views.central import CentralView

# Widths that width=auto compares, in the unit of margins, and what one of them adds to a record's
# excess: ROUNDING h^ROUNDING_POWER, fitted to hinge cells (docs/proofs/huberized.md)
WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ROUNDING, ROUNDING_POWER = 0.004, 2.5


@dataclass(frozen=True)
class Huberized(ChangedProblem):
    """The inner mechanism on the loss rounded off over [-h, h] around its kink.

    Construction: [BST14, App. A], h = ``width``. The rounded loss is 1 / (2 h) |x|^2-smooth, has
    the same Lipschitz constant and lies at most h / 4 above each record's own, so that the sum
    moves by n h / 4 at most; excess risk is measured with the original loss. Guarantee, events,
    ``noise_scale``, shapes and cost are the inner mechanism's for the rounded loss, which the
    records enter instead of the original one; trust: central. A smooth loss stays as it is.
    ``width=auto`` takes the width of the least predicted risk, from public facts.
    Unsupported: losses with kinks that have no rounded form here (absolute, the medians), and
    whatever the inner mechanism does not support.

    >>> from dperm_cli.losses.hinge import Hinge
    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> problem = replace(linear_pair("replace_one", n=1000, radius=1.0)[0], loss=Hinge())
    >>> Huberized(width=0.2).plan(problem.spec(), Budget(1.0, 0.0)).settings["loss"]
    'huberized_hinge'
    """

    width: Annotated[
        Positive | Auto, Help("half-width h of the rounding of a kink; auto = least predicted risk")
    ] = 0.1

    secure_as_inner: ClassVar[bool] = True

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The inner mechanism's plan for the rounded loss."""
        if self.width == "auto":
            return self._at_best_width(spec, budget).design(spec, budget)
        loss = self.round_loss(spec)
        found = self.inner.plan(self.change_facts(spec, budget), budget)
        settings = {
            "loss": spec.loss if loss is None else loss.name,
            "width": None if loss is None else self.width,
            "inner": inner_mechanism.describe_inner(self.inner, found),
        }
        if loss is None:
            settings["note"] = f"nothing to round: {spec.loss} has no kinks"
        return inner_mechanism.wrap_plan(found, settings)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """The inner mechanism's release, its view showing the rounded loss."""
        width = plan.settings["width"]
        loss = None if width is None else replace(self, width=width).round_loss(view.spec)
        seen = view if loss is None else view.replace_set(loss=loss)
        found = inner_mechanism.inner_plan(plan, plan.events)
        # the rounded loss of a record is at most width / 4 above its own [BST14, App. A]
        added = 0.0 if width is None else view.spec.n * width / 4.0
        return inner_mechanism.release_inside(self.inner, seen, found, gate, added_risk=added)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """The inner mechanism's secure form, for the rounded loss."""
        width = plan.settings["width"]
        chosen = self if width is None else replace(self, width=width)
        facts = chosen._round_facts(spec)
        rounded = chosen.round_loss(spec) or loss
        return secure_inner_plan(self.inner, plan, facts, rounded)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """The inner mechanism's on the rounded loss, and about what rounding adds."""
        width = plan.settings["width"]
        if width is None:
            raise Unsupported(f"nothing to round: {spec.loss} has no kinks")
        if self.inner.predict_risk is None:
            raise Unsupported("the risk of its inner mechanism is not predicted")
        assert plan.inner is not None
        unit = predicted_risk.margin_unit(spec)
        added = ROUNDING * (width / unit) ** ROUNDING_POWER * predicted_risk.loss_unit(spec)
        return self.inner.predict_risk(spec, plan.inner) + added

    def round_loss(self, spec: ProblemSpec) -> Loss | None:
        """The loss with its kink rounded off, None for a smooth one."""
        if spec.form is not None and spec.form.round_kink is not None:
            if self.width == "auto":
                raise Unsupported("width=auto is chosen for a budget: give epsilon, or the width")
            return spec.form.round_kink(self.width)
        if spec.smoothness is None:
            known = ", ".join(registry.list_offering("loss", "round_kink"))
            reason = f"{spec.loss} has kinks and no rounded form here; losses that have: {known}"
            raise Unsupported(without_curvature(spec, reason))
        return None

    def change_facts(self, spec: ProblemSpec, budget: Budget) -> ProblemSpec:
        """The public facts of the problem with the rounded loss."""
        return self._round_facts(spec)

    def _round_facts(self, spec: ProblemSpec) -> ProblemSpec:
        loss = self.round_loss(spec)
        if loss is None:
            return spec
        found = make_spec(spec.n, loss, spec.constraint, spec.regulariser, spec.task, spec.bounds)
        # what else is declared of the rows is as true: the release sees it, and the gate compares
        return replace(
            found, entry_bound=spec.entry_bound, phi=spec.phi, phi_row_bound=spec.phi_row_bound
        )

    def _at_best_width(self, spec: ProblemSpec, budget: Budget) -> Huberized:
        """The same at the width of the least predicted risk."""
        if self.inner.predict_risk is None:
            name = inner_mechanism.name_of(self.inner)
            raise Unsupported(f"width=auto needs a prediction, and {name} has none: set the width")
        unit = predicted_risk.margin_unit(spec)
        every = [replace(self, width=width * unit) for width in WIDTHS]
        if spec.smoothness is not None:
            return every[0]  # nothing to round
        return min(every, key=lambda one: one.predict_risk(spec, one.plan(spec, budget)))
