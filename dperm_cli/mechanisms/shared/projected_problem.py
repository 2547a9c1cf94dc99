"""Helpers of PROJERM and STDERM: choose m and Phi, project, and lift the result back [KJ16]."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Check, Choices, Help, Positive, Seed
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Plan
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.mechanisms.shared.inner_mechanism import ChangedProblem
from dperm_cli.mechanisms.shared.secure_plan import secure_inner_plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem import projection_dimension, random_projection
from dperm_cli.problem.given_projection import GivenProjection
from dperm_cli.problem.problem import Loss, Problem, ProblemSpec, make_spec
from dperm_cli.problem.random_projection import Identity, Projection
from dperm_cli.sets import make_ball
from dperm_cli.sets.shared import image_set
from dperm_cli.solvers import lift
from dperm_cli.views.central import CentralView

CLIP = 2.0  # times the rows' bound: |Phi x| <= 2 |x| with high probability [KJ16, Lemma 3.3]
_WORDS = ("balanced", "paper")


def check_dimension(key: str, value: Any) -> int | str:
    """The dimension projected to: a number, or the word for a rule that finds one."""
    if isinstance(value, str):
        return checks.choice(key, value, _WORDS)
    return checks.integer(key, value, low=1)


@dataclass(frozen=True)
class ProjectedSpace:
    """Phi, the set Phi C and the bound that projected rows are shortened to: public facts."""

    phi: Projection
    constraint: Any
    row_bound: float


@dataclass(frozen=True)
class ProjectedMechanism(ChangedProblem):
    """An inner mechanism on projected records: its keys, plan and events in R^m.

    A subclass says which Phi a plan is made with (``choose_space``), and releases.
    """

    m: Annotated[
        int | str, Check(check_dimension), Help("the dimension projected to; at p nothing is")
    ] = "balanced"
    phi: Annotated[
        str, Choices(*random_projection.KINDS), Help("law of the public matrix; fast is not stored")
    ] = "gaussian"
    phi_seed: Annotated[Seed, Help("of the public matrix, which depends on no data")] = 0
    clip: Annotated[Positive, Help("projected rows are shortened to this times the bound")] = CLIP

    requires: ClassVar[tuple[str, ...]] = ("margin",)
    secure_as_inner: ClassVar[bool] = True

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """The inner mechanism's secure form in R^m, on rows that are mapped one by one."""
        if not plan.space.phi.maps_alone:
            raise Unsupported(
                f"mechanism.phi={self.phi} maps rows together, which has no secure form: use "
                "mechanism.phi=gaussian"
            )
        return secure_inner_plan(self.inner, plan, project_facts(spec, plan.space), loss)

    @abstractmethod
    def choose_space(self, spec: ProblemSpec, m: int) -> ProjectedSpace:
        """Phi, Phi C and the bound on rows that the inner mechanism is planned for."""

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """The losses and sets that can be told from projected rows."""
        check_problem(spec)

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """m, Phi and the inner mechanism's plan in R^m, from public facts alone."""
        made = self.choose_space(spec, choose_m(self.m, spec, budget))
        found = self.inner.plan(project_facts(spec, made), budget)
        named = describe_settings(
            self, spec, made, inner_mechanism.describe_inner(self.inner, found)
        )
        return inner_mechanism.wrap_plan(found, named, made)

    def change_facts(self, spec: ProblemSpec, budget: Budget) -> ProblemSpec:
        """Those in R^m; Unsupported where m follows from the budget."""
        if isinstance(self.m, str):
            raise Unsupported(f"m={self.m} follows from epsilon: give mechanism.m a number")
        check_problem(spec)
        return project_facts(spec, self.choose_space(spec, choose_m(self.m, spec, budget)))


def check_problem(spec: ProblemSpec) -> None:
    """Unsupported where a record is not seen through <x, theta> alone, or with an l1 norm."""
    if not isinstance(spec.form, Glm):
        raise Unsupported(
            f"{spec.loss} is not a loss of the margin <x, theta>, and only those can be told from "
            "projected rows; use logistic, hinge, squared or absolute"
        )
    if spec.lasso > 0:
        raise Unsupported(
            "lasso |theta|_1 is no function of Phi theta: set lasso=0 and constraint=l1_ball"
        )
    reason = lift.reason_against(spec.constraint)
    if reason is not None:
        raise Unsupported(reason)


def relative_width(spec: ProblemSpec) -> float:
    """w(C) / |C|_2, from the set's closed form or by simulation with fixed draws."""
    radius = spec.constraint.radius
    if not radius > 0:
        return 0.0
    body: Any = spec.constraint
    return float(body.width()[0]) / radius


def choose_m(m: Any, spec: ProblemSpec, budget: Budget) -> int:
    """m as asked for, within 1 .. d; Unsupported for the paper's where it exceeds d."""
    d, facts = spec.p, (spec.n, budget.epsilon, budget.delta)
    if spec.phi is not None:
        rows = len(spec.phi)  # the records came projected, whatever word is asked for
        if not isinstance(m, str) and m != rows:
            raise Unsupported(f"the records came projected to {rows} dimensions, not {m}")
        return rows
    if m == "balanced":
        wanted = projection_dimension.balanced_dimension(*facts, relative_width(spec))
        return max(round(min(wanted, d)), 1)  # m is infinite for an unlimited budget
    if m == "paper":
        wanted = projection_dimension.paper_dimension(*facts, relative_width(spec))
        if wanted > d:
            raise Unsupported(
                f"the m of Theorem 3.11 is {wanted:.0f} even with all its constants taken as 1, "
                f"and there are d = {d} dimensions: take mechanism.m=balanced, or a number"
            )
        return int(max(round(wanted), 1))
    if m > d:
        raise Unsupported(f"mechanism.m={m} is more than the d = {d} dimensions there are")
    return int(m)


def build_space(mechanism: Any, spec: ProblemSpec, m: int, *path: object) -> ProjectedSpace:
    """Phi and what follows from it; ``path`` tells matrices of the same sizes apart."""
    if spec.phi is not None:
        return _build_given_space(spec, np.asarray(spec.phi), *path)
    reason = image_set.reason_against(spec.constraint, mechanism.phi, m)
    if reason is not None:
        raise Unsupported(reason)
    phi = random_projection.draw(mechanism.phi, m, spec.p, mechanism.phi_seed, *path)
    longest = spec.row_bound * _longest(phi, mechanism.clip)
    return ProjectedSpace(phi, image_set.image(spec.constraint, phi), longest)


def _build_given_space(spec: ProblemSpec, rows: np.ndarray, *path: object) -> ProjectedSpace:
    """The compressed setting: the matrix of the records, whose bound was declared for x~ itself."""
    if path:
        raise Unsupported("the records came projected by one Phi: use mechanism=projected")
    reason = image_set.reason_against(spec.constraint, "gaussian", len(rows))
    if reason is not None:
        raise Unsupported(reason)
    phi = GivenProjection(rows)
    assert spec.phi_row_bound is not None
    return ProjectedSpace(phi, image_set.image(spec.constraint, phi), spec.phi_row_bound)


def _longest(phi: Projection, clip: float) -> float:
    """The least of ``clip`` and the norm of Phi, where that is worth computing."""
    if isinstance(phi, Identity):
        return min(clip, 1.0)
    if (phi.d / phi.m) ** 0.5 >= 1.1 * clip:  # about |Phi|_F / sqrt(m), which the norm exceeds
        return clip
    if random_projection.exceeds(phi, clip):
        return clip
    return min(clip, random_projection.norm(phi))


def project_facts(spec: ProblemSpec, made: ProjectedSpace) -> ProblemSpec:
    """The public facts of the problem in R^m."""
    assert spec.form is not None
    constraint, row_bound = made.constraint, made.row_bound
    bounds = replace(spec.bounds, row=row_bound, radius=constraint.radius, columns=constraint.p)
    return make_spec(spec.n, spec.form, constraint, spec.regulariser, spec.task, bounds)


def describe_settings(
    mechanism: Any, spec: ProblemSpec, made: ProjectedSpace, inner: dict[str, Any]
) -> dict[str, Any]:
    """What a reader may want to know, JSON-able; all of it public."""
    m, d = made.phi.m, made.phi.d
    own = "identity" if isinstance(made.phi, Identity) else mechanism.phi
    found = {
        "m": m,
        "d": d,
        "phi": "given" if isinstance(made.phi, GivenProjection) else own,
        "phi_seed": mechanism.phi_seed,
        "relative_width": relative_width(spec),
        "row_bound": made.row_bound,
        "projected_radius": float(made.constraint.radius),
        "matrix_bytes": 8 * made.phi.entries,
        "rows_bytes": 8 * spec.n * m,
        "inner": inner,
    }
    if m == d:
        found["note"] = "m = d: nothing is projected"
    return found


def project_view(view: CentralView, made: ProjectedSpace) -> CentralView:
    """The records with their rows projected and clipped, over Phi C."""
    if view.maps_alone:
        return view.map_each_row(made.phi.apply_alone, made.row_bound, made.constraint)
    return view.map_rows(made.phi.apply, made.row_bound, made.constraint)


def lift_points(spec: ProblemSpec, made: ProjectedSpace, v: np.ndarray) -> lift.Lifted:
    """Points of C whose images are v [trials, m]: post-processing."""
    return lift.lift(spec.constraint, made.phi, made.constraint, v)


def describe_lift(found: lift.Lifted) -> dict[str, Any]:
    """By-products of lifting: the largest residual and the largest gauge."""
    return {"residual": float(np.max(found.residual)), "gauge": float(np.max(found.gauge))}


def make_adversary(mechanism: Any, budget: Budget, row: np.ndarray) -> Adversary:
    """The inner mechanism's pair on a line, put into R^d along ``row`` [d].

    With m = 1 and signs for entries |Phi| = sqrt(d), whatever the draw. ``row`` stands for the
    inner pair's 1 and must arrive in R^1 as 1, clipped. Where the inner mechanism brings another
    pair, that one is used, and nothing is projected. A point theta of the line that Phi spans has
    the statistic that the inner mechanism's has at Phi theta.
    """
    found = mechanism.inner.adversary(budget)
    pair = (found.first, found.second)
    if not all(_on_a_line(problem) for problem in pair):
        return replace(found, mechanism=replace(mechanism, inner=found.mechanism, m=pair[0].p))
    chosen = replace(mechanism, inner=found.mechanism, m=1, phi="rademacher", clip=CLIP)
    first, second = (_embed_problem(problem, row) for problem in pair)
    up = random_projection.draw("rademacher", 1, len(row), mechanism.phi_seed)
    return replace(
        found,
        mechanism=chosen,
        first=first,
        second=second,
        statistic=lambda theta: found.statistic(up.apply(theta)),
    )


def _on_a_line(problem: Problem) -> bool:
    data = problem.data
    rows = np.abs(np.asarray(data.x).ravel()) if isinstance(data.x, np.ndarray) else np.ones(1) / 2
    plain = bool(np.all((rows == 0.0) | (rows == 1.0)))
    return data.p == 1 and plain and isinstance(problem.loss, Glm) and problem.lasso == 0


def _embed_problem(problem: Problem, row: np.ndarray) -> Problem:
    """The same problem with rows x row [n, d], over the ball whose image has the same radius."""
    data, d = problem.data, len(row)
    x = np.asarray(data.x) * row
    bound = float(np.linalg.norm(row))
    ball = make_ball(problem.constraint.radius / d**0.5, d)
    data = data.with_rows(x, row_bound=bound, minimiser=None)
    return replace(problem, data=data, constraint=ball)
