"""Private Frank-Wolfe [TTZ15]: each step moves towards a vertex that is chosen privately."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from dperm_cli.bounds import ttz14
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Help
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release, Steps, find_scale
from dperm_cli.mechanisms.shared import list_choice, vertex_choice
from dperm_cli.mechanisms.shared.sampled_release import interval_pair
from dperm_cli.mechanisms.shared.vertex_choice import Vertices
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Exponential, Gaussian, ListChoice
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import VALUE_BITS, Grid
from dperm_cli.problem.problem import Loss, ProblemSpec, without_curvature
from dperm_cli.views.central import CentralView

_STEP_COUNTS = sorted({round(1.12**k) for k in range(58)})  # up to 639 steps
_NEAR = 1.02  # fewer steps are worth this much of the bound
# what steps=auto expects of an objective, as shares of its worst curvature and slope; and its
# fewest steps: a mixture of fewer vertices can be far worse than the centre
BEND, SLOPE, FEWEST = 0.005, 0.05, 5
FORESEEN = 0.2  # of that: its vertices were better than expected wherever it was measured
# Room for the rounding of epsilon / T, T times.
_ROUNDING = 1e-14
_NO_VERTICES = (
    "the set has no short list of vertices to choose from: use l1_ball, simplex or a polytope, "
    "or mechanism.oracle=noise with delta > 0"
)
STEEPNESS = 2.0  # log odds of the adversary's choice
# Of one record's gradient that a grid keeps, and of a sum of scores, at most.
_SLOPE_BITS, _SUM_BITS = 20, 60
RARE_LOG_ODDS = 5.0  # log odds up to which the rarer vertex is seen often enough for a bound


@dataclass(frozen=True)
class FrankWolfe(Mechanism):
    """theta <- theta + 2 / (t + 2) (v - theta), t = 0, 1, .., with v a vertex chosen privately.

    Algorithm: [TTZ15, Alg. 2]. ``oracle=choice``: v has a law proportional to exp(-c <v, g>) on the
    listed vertices, g the gradient of the sum; ``noise``: v minimises <v, g + N(0, scale^2 I)>.
    Guarantee: pure at delta = 0 (T choices of epsilon / T each), else (epsilon, delta) by the
    accountant's composition, of bounded-range steps or of Gaussian ones; trust: central. One
    record moves the scores' range by at most G D under replace_one, L D under add_remove: G bounds
    the difference of two records' gradients, L one gradient, D the distance of two vertices.
    ``noise_scale`` is 1 / c in the unit of the summed loss, or the noise's in the unit of its
    gradient. Shapes: theta [trials, p]. Cost: T full gradients. Unsupported: losses with kinks and
    a lasso (the rate needs curvature); ``choice``, and delta = 0, on sets without listed vertices.

    ``steps=theory`` minimises the risk bound of docs/proofs/frank_wolfe.md over public facts, and
    ``oracle=auto`` takes the oracle of the smaller bound. ``steps=auto`` minimises the same formula
    with smaller shares of the worst curvature and slope, which suits data that are not the worst.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> FrankWolfe().plan(spec, Budget(1.0, 1e-6)).settings["oracle"]
    'noise'
    """

    oracle: Annotated[str, Choices("auto", "choice", "noise"), Help("auto = the smaller bound")] = (
        "auto"
    )
    steps: Annotated[Steps | Literal["theory"], Help("theory = least risk bound")] = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid] | None:
        """Choices of vertices by whole scores; None for noisy gradients, whose noise is rounded."""
        vertices = vertex_choice.list_vertices(spec.constraint)
        if plan.settings["oracle"] != "choice" or vertices is None:
            return None
        grid = _find_grid(spec, vertices)
        event, relation = plan.events[0], plan.guarantee.relation
        assert isinstance(event, Exponential)
        rule = list_choice.choose_rule(plan)
        moves = _round_moves(spec, vertices, grid)
        found = list_choice.round_slopes(event, *moves, rule, relation)
        settings = {**plan.settings, "rule": rule}
        scale = 1.0 / found.exponent
        return replace(plan, events=(found,), noise_scale=scale, settings=settings), grid

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Oracle, steps and exponent or noise, from public facts alone."""
        curvature = _curvature(spec)
        vertices = vertex_choice.list_vertices(spec.constraint)
        bend, slope = (BEND, SLOPE) if self.steps == "auto" else (1.0, 1.0)
        far = slope * spec.n * spec.lipschitz_total * spec.constraint.diameter
        found = []
        for oracle in self._oracles(vertices, budget):
            for steps in self._list_step_counts():
                error = min(far, expected_error(spec, budget, oracle, steps, vertices))
                found.append((2.0 * bend * curvature / (steps + 2.0) + error, steps, oracle))
        least = min(found)[0]
        steps, oracle = min(each[1:] for each in found if each[0] <= _NEAR * least)
        scale = _scale(spec, budget, oracle, steps)
        settings = {
            "oracle": oracle,
            "vertices": vertices.count if vertices else None,
            "reach": vertex_choice.centre_distance(spec.constraint),
        }
        if bound_entries(spec) is not None:
            settings |= {"rows_bounded_in": "linf", "curvature": curvature}
        return Design((_event(spec, oracle, scale, steps),), scale, steps, settings)

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[Exponential | Gaussian]:
        """T choices at exponent 1 / scale, or T gradients with noise of this scale."""
        if isinstance(self.steps, str):
            raise Unsupported(
                f"steps={self.steps} is chosen for a budget: give epsilon, or the steps"
            )
        _curvature(spec)
        listed = vertex_choice.list_vertices(spec.constraint) is not None
        choice = self.oracle == "choice" or (self.oracle == "auto" and listed)
        if choice and not listed:
            raise Unsupported(_NO_VERTICES)
        return (_event(spec, "choice" if choice else "noise", scale, int(self.steps)),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Run the steps, all trials at once."""
        spec, penalty = view.spec, view.spec.penalty
        oracle = _make_choice_oracle if plan.settings["oracle"] == "choice" else _make_noise_oracle
        vertex = oracle(view, plan, gate)
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        for step in range(plan.steps):
            # the regulariser depends on no record: neither noise nor sensitivity is for it
            towards = vertex(view.gradient_sum(theta), penalty.subgradient(theta), step)
            theta = theta + 2.0 / (step + 2.0) * (towards - theta)
            progress.report("frank_wolfe", step + 1, plan.steps)
        return Release(theta)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """What ``steps=auto`` expects, where a bound on entries tells more than one on rows.

        Without one, perturbing the minimiser is better nearly everywhere (docs/proofs/auto.md).
        """
        if bound_entries(spec) is None:
            raise Unsupported("is foreseen only on an L1 ball or simplex with rows bounded in linf")
        oracle, steps = plan.settings["oracle"], plan.steps
        vertices = vertex_choice.list_vertices(spec.constraint)
        error = expected_error(spec, _budget_of(plan), oracle, steps, vertices)
        return FORESEEN * (2.0 * BEND * _curvature(spec) / (steps + 2.0) + error) / spec.n

    def adversary(self, budget: Budget) -> Adversary:
        """One choice between the ends of an interval, of linear losses alike but one.

        With k of them the log odds of the better end are k epsilon / 2 (replace_one), with one
        turned round epsilon less: the rarer end shows nearly all of epsilon, as long as it shows
        at all.
        """
        share = 2.0 if budget.relation == "replace_one" else 1.0
        records = math.ceil(share * max(1.0, STEEPNESS / budget.epsilon))
        first, second = interval_pair(budget.relation, records, 0.5)
        floor = 0.6 if budget.epsilon <= RARE_LOG_ODDS else None
        return Adversary(first, second, replace(self, oracle="choice", steps=1), floor=floor)

    def _list_step_counts(self) -> tuple[int, ...]:
        if isinstance(self.steps, str):
            return tuple(k for k in _STEP_COUNTS if k >= FEWEST or self.steps == "theory")
        return (int(self.steps),)

    def _oracles(self, vertices: Vertices | None, budget: Budget) -> tuple[str, ...]:
        if self.oracle == "noise" and budget.delta == 0.0:
            raise Unsupported("Gaussian noise needs delta > 0; use mechanism.oracle=choice")
        if vertices is None and (self.oracle == "choice" or budget.delta == 0.0):
            raise Unsupported(_NO_VERTICES)
        if self.oracle != "auto":
            return (self.oracle,)
        if budget.delta == 0.0:
            return ("choice",)
        return ("noise",) if vertices is None else ("choice", "noise")


def expected_error(
    spec: ProblemSpec, budget: Budget, oracle: str, steps: int, vertices: Vertices | None
) -> float:
    """About the bound on E <v, g> - min over the set of <., g> of one step among ``steps``.

    With the exponent or the noise of the central limit; what is spent is calibrated afterwards.
    """
    sensitivity = _event(spec, "noise", 1.0, 1).sensitivity(budget.relation)
    mu = calibrate.mu(budget.epsilon, budget.delta) if budget.delta > 0.0 else 0.0
    if oracle == "noise":
        scale = sensitivity * math.sqrt(steps) / mu
        reach = vertex_choice.centre_distance(spec.constraint)
        return ttz14.noise_error(spec.p, vertices.count if vertices else math.inf, scale, reach)
    assert vertices is not None
    each = max(budget.epsilon / steps, 2.0 * mu / math.sqrt(steps))
    moves = sensitivity * spec.constraint.diameter
    if bound_entries(spec) is not None:
        moves = _event(spec, "choice", 1.0, 1).sensitivity(budget.relation)
    return math.log(vertices.count) * moves / each


def _budget_of(plan: Plan) -> Budget:
    """What a plan spends."""
    level = plan.guarantee
    return Budget(level.epsilon, level.delta, level.relation)


def _event(spec: ProblemSpec, oracle: str, scale: float, steps: int) -> Exponential | Gaussian:
    if oracle == "noise":
        return Gaussian(scale, spec.lipschitz, steps, gap=spec.gradient_gap)
    across = spec.constraint.diameter
    one, two = spec.lipschitz * across, spec.gradient_gap * across
    entries = bound_entries(spec)
    if entries is not None:
        one, two = min(one, entries.slope), min(two, 2.0 * entries.slope)
    return Exponential(1.0 / scale, one, steps, gap=two)


def _find_grid(spec: ProblemSpec, vertices: Vertices) -> Grid:
    """The grid of records' gradients whose products with vertices are exact in integers.

    Raises:
        Unsupported: The loss has no compiled slope, or sums would not be exact.
    """
    if spec.form is None or spec.form.code is None:
        raise Unsupported(f"{spec.loss} has no exact sum of gradients; use noise=research")
    largest = 1.001 * spec.n * spec.lipschitz
    public = spec.n * spec.regulariser.lipschitz(spec.constraint.radius, spec.p)
    fine = math.frexp(spec.lipschitz)[1] - 1 - _SLOPE_BITS
    # one bit is kept for the sum with the regulariser's part
    coarse = math.frexp((largest + public) * vertices.longest)[1] - _SUM_BITS
    exponent = max(fine, coarse, math.frexp(largest + public)[1] - VALUE_BITS)
    if exponent > fine + _SLOPE_BITS // 2:
        raise Unsupported(
            f"sums of {spec.n} gradients are not exact on a grid that is fine enough for choices "
            "of vertices; use mechanism.oracle=noise or noise=research"
        )
    return Grid(exponent)


def _round_moves(spec: ProblemSpec, vertices: Vertices, grid: Grid) -> tuple[float, float]:
    """How far one record's rounded gradient can move the difference of two vertices' scores, and
    how far the difference of two records' can (docs/proofs/_secure_selections.md)."""
    across, spread = vertices.spread(spec.constraint.diameter)
    slack = 1.0 + (spec.p + 16.0) * 2.0**-52
    one, entries = spec.lipschitz * across, bound_entries(spec)
    if entries is not None:
        one = min(one, entries.slope * spread / (2.0 * spec.constraint.inner_body.size))
    assert spec.form is not None
    assert spec.smoothness is not None
    margin = spec.row_bound * spec.constraint.radius + spec.target_bound + spec.form.width
    bend = spec.smoothness * margin / spec.row_bound if spec.row_bound > 0.0 else 0.0
    error = (spec.p + 32.0) * 2.0**-52 * (spec.lipschitz + bend)
    two, rounding = (spec.gradient_gap + 2.0 * error) * across, grid.step * spread
    return one * slack + 0.5 * rounding, two + rounding


class EntryBounds(NamedTuple):
    """What follows from |x|_inf <= b on a set of radius r in the L1 norm.

    ``slope`` bounds <v - v', gradient of one record>, ``bend`` the curvature along v - v'.
    """

    slope: float
    bend: float


def bound_entries(spec: ProblemSpec) -> EntryBounds | None:
    """2 r sup |l'| b and (2 r b)^2 sup l'', where a bound on entries is declared, else None.

    |v - v'|_1 <= 2 r for points of the L1 ball and of the simplex, and margins are at most r b.
    """
    body = spec.constraint.inner_body
    known = body.axis_hull is not None and isinstance(spec.form, Glm)
    if spec.entry_bound is None or not known:
        return None
    bounds, form = replace(spec.bounds, row=spec.entry_bound, radius=body.size), spec.form
    assert form is not None
    across, curved = 2.0 * body.size, form.curvature_bound(bounds)
    return EntryBounds(across * form.lipschitz(bounds), across**2 * (curved or 0.0))


def _scale(spec: ProblemSpec, budget: Budget, oracle: str, steps: int) -> float:
    """The least that keeps within the budget."""
    if budget.delta > 0.0:
        return find_scale(lambda scale: (_event(spec, oracle, scale, steps),), budget)
    moves = _event(spec, oracle, 1.0, steps).sensitivity(budget.relation)
    return moves * steps / budget.epsilon * (1.0 + _ROUNDING)


def _make_choice_oracle(view: CentralView, plan: Plan, gate: Gate):
    """Vertices by the exponential mechanism on their scores."""
    # from the problem's own facts, which the gate compares with the plan's
    event = _event(view.spec, "choice", plan.noise_scale, plan.steps)
    whole = isinstance(plan.events[0], ListChoice)
    law = gate.stream(plan.events[0] if whole else event, view.spec.p)
    vertices = vertex_choice.list_vertices(view.spec.constraint)
    assert vertices is not None
    step_size = _find_grid(view.spec, vertices).step if whole else 1.0

    def vertex(gradient: np.ndarray, public: np.ndarray, step: int) -> np.ndarray:
        if whole:
            scores, unit = vertices.whole_scores(gradient, public, step_size)
            return vertices.take(list_choice.choose(law, scores, unit, step))
        chosen = list_choice.choose(law, vertices.scores(gradient + public), 1.0, step)
        return law.release(vertices.take(chosen), step)

    return vertex


def _make_noise_oracle(view: CentralView, plan: Plan, gate: Gate):
    """Minimisers of <., noisy gradient> over the set."""
    spec = view.spec
    noise = gate.stream(plan.events[0], spec.p)

    def vertex(gradient: np.ndarray, public: np.ndarray, step: int) -> np.ndarray:
        return spec.constraint.lmo(noise.add(gradient, step) + public)

    return vertex


def _curvature(spec: ProblemSpec) -> float:
    """n (beta + ridge) D^2, what a step of length 1 can cost; Unsupported where there is none."""
    if spec.smoothness is None:
        reason = (
            f"frank_wolfe needs a Lipschitz gradient, and loss {spec.loss} has none: near a kink "
            "its steps need not descend; use mechanism=huberized with mechanism.inner=frank_wolfe"
        )
        raise Unsupported(without_curvature(spec, reason))
    if not spec.regulariser.smooth:
        raise Unsupported("frank_wolfe needs an objective without kinks: lasso must be 0")
    entries, square = bound_entries(spec), spec.constraint.diameter**2
    if entries is None:
        return spec.n * (spec.smoothness + spec.ridge) * square
    return spec.n * (min(spec.smoothness * square, entries.bend) + spec.ridge * square)
