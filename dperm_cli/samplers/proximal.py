"""The proximal sampler: an alternating Gibbs chain with an explicit bound on its distance from pi.

One step draws y = x + sqrt(h) N(0, I), then x from exp(-f(x) - |x - y|^2 / (2 h)) on the set. The
second draw is exact, by rejection. f is bounded below by a parabola that touches it at x0: the
tangent, plus the strong convexity of the regulariser. With it in place of f, the law is a Gaussian
restricted to the set. A draw z of that is accepted with probability exp(parabola(z) - f(z)). Any x0
and any h give the right law; they change only the number of proposals. The chain starts uniformly
on the set, or at its centre.

On balls, with records in memory, the whole chain is one compiled loop (``compiled_chain``).

After T steps sup |log(law / pi)| <= eps_t, for T as in ``count_needed_steps``
[docs/proofs/_proximal.md].
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Allowed, Auto, Help, Positive
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.samplers.base import Certificate, MostSeconds, Potential, Sampler, Source, Target
from dperm_cli.samplers.shared import compiled_chain
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.samplers.shared.truncated_gaussian import TruncatedSampler, choose_truncated_sampler
from dperm_cli.samplers.shared.uniform import make_uniform_draw

# Proposals between two touching points, and touching points in one step before giving up.
_TRIES, _MOST_TURNS = 6, 200_000
# Share of the magnitude of f by which rounding may raise the parabola.
_ROUNDING = 1e-11
# Step sizes are D^2 times powers of two up to 2^4.
_LARGEST, _HALVINGS = 4, 70
# Seconds per step, per record and evaluation, and per entry of the rows and evaluation.
_STEP_COST, _RECORD_COST, _ENTRY_COST = 1.0e-4, 3e-8, 1e-9
# The weight, when h is chosen, of data sets with all their kinks in one place.
_HARD = 0.001


@dataclass(frozen=True)
class Proximal(Sampler):
    """The proximal sampler of this module.

    Attributes:
        step_size: h, or ``auto``.
        most_seconds: a plan whose estimated time is longer is refused.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), exponent=0.01)
    >>> Proximal().plan(target, 1.0).steps < Proximal().plan(target, 0.01).steps
    True
    """

    step_size: Annotated[
        Positive | Auto, Allowed("must be a finite number > 0"), Help("auto = from public bounds")
    ] = "auto"
    most_seconds: MostSeconds = 120.0

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """Length of the chain for this distance, from public facts alone."""
        if target.dimension == 0:
            raise Unsupported("the set is a point")
        start = "uniform" if _has_uniform(target.constraint) else "centre"
        automatic = self.step_size == "auto"
        h = default_step(target, start, dist_inf) if automatic else float(self.step_size)
        steps = count_needed_steps(target, h, dist_inf, start)
        seconds = steps * step_seconds(target, h)
        if seconds > self.most_seconds:
            raise Unsupported(
                f"{steps:.3g} steps of the proximal sampler, about {seconds:.2g} s a draw, are "
                f"needed for n={target.spec.n}, p={target.spec.p} and F={target.oscillation:.4g}: "
                f"sampler.most_seconds={self.most_seconds:g} allows less"
            )
        return Certificate(
            sampler="proximal",
            theorem="proximal Thm 1",
            dist_inf=dist_inf,
            steps=steps,
            constant_time=False,
            facts={
                "h": h,
                "alpha": poincare(target),
                "oscillation": target.oscillation,
                "dimension": target.dimension,
                "diameter": target.constraint.diameter,
                "start": start,
                "seconds": seconds,
                "mode": "worst_case",
            },
        )

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One draw [p]."""
        body, h = target.constraint, certificate.facts["h"]
        uniform = certificate.facts["start"] == "uniform"
        x = make_uniform_draw(body)(source) if uniform else _fixed_point(body)
        if isinstance(potential, Records) and compiled_chain.covers(target):
            return compiled_chain.run(potential, target, h, certificate.steps, x, source)
        step = ConditionalDraw(potential, body, h, target.strong_convexity)
        slope = potential.gradient(x)
        for _ in range(certificate.steps):
            y = x + math.sqrt(h) * source.normal(len(x))
            x, slope = step(y, slope, source)
        return x


class ConditionalDraw:
    """An exact draw of x from exp(-f(x) - |x - y|^2 / (2 h)) on the set.

    ``bend`` is m >= 0 such that f - (m / 2) |x|^2 is convex.
    """

    def __init__(self, potential: Potential, body: Any, h: float, bend: float) -> None:
        self.potential, self.body, self.h, self.bend = potential, body, h, bend
        self.restricted: TruncatedSampler = choose_truncated_sampler(body)
        self.allowance = _ROUNDING * (1.0 + potential.magnitude)
        self.tries = 0

    def __call__(
        self, y: np.ndarray, guess: np.ndarray, source: Source
    ) -> tuple[np.ndarray, np.ndarray]:
        """(x, the slope of f at the point where the parabola touches).

        ``guess`` is a slope of an earlier draw. It chooses that point, and cannot change the law.
        """
        x0 = self.body.project(y - self.h * guess)
        for turn in range(_MOST_TURNS):
            floor, slope = self.potential.both(x0)
            z = self._tries(y, x0, floor, slope, source)
            if z is not None:
                return z, slope
            # a step of generalised Frank-Wolfe towards the mode: better proposals, the same law
            towards = self.body.project(y - self.h * slope)
            x0 = x0 + 2.0 / (turn + 3.0) * (towards - x0)
        raise ArithmeticError("no proposal was kept: not a private outcome")

    def _tries(
        self, y: np.ndarray, x0: np.ndarray, floor: float, slope: np.ndarray, source: Source
    ) -> np.ndarray | None:
        """A proposal that is accepted, or None if none of a few is."""
        h, bend = self.h, self.bend
        variance = h / (1.0 + h * bend)
        mean = (y + h * (bend * x0 - slope)) / (1.0 + h * bend)
        for _ in range(_TRIES):
            z = self.restricted(mean, variance, source)
            move = z - x0
            below = floor + float(slope @ move) + 0.5 * bend * float(move @ move)
            drop = below - float(self.potential.value(z))
            self.tries += 1
            if drop > self.allowance:
                raise ArithmeticError("a tangent above a convex function: not a private outcome")
            if math.log(float(source.uniform(1)[0])) <= drop:
                return z
        return None


def poincare(target: Target) -> float:
    """alpha > 0 with Var(g) <= E|grad g|^2 / alpha under pi.

    pi^2 / D^2 for a log-concave density on a convex set of diameter D [Payne and Weinberger 1960;
    Ferone, Nitsch and Trombetti 2012], or the strong convexity where that is more [Brascamp and
    Lieb 1976].
    """
    return max((math.pi / target.constraint.diameter) ** 2, target.strong_convexity)


def log_density_bound(target: Target, h: float) -> float:
    """B with p_1(x, z) <= e^B pi(z): F + d log(1/s) + s D^2 / h at s = min(1, d h / D^2)."""
    dim, square = target.dimension, target.constraint.diameter**2
    shrink = min(1.0, dim * h / square)
    return target.oscillation - dim * math.log(shrink) + shrink * square / h


def count_needed_steps(target: Target, h: float, dist_inf: float, start: str = "uniform") -> int:
    """T = 1 + ceil((F/2 + B/2 - log(1 - e^-eps_t)) / log(1 + alpha h)) from a uniform start.

    From a fixed point the first step takes the place of the start: B for F, and one step more.
    """
    b = log_density_bound(target, h)
    begin, extra = (target.oscillation, 1) if start == "uniform" else (b, 2)
    need = 0.5 * begin + 0.5 * b - math.log(-math.expm1(-dist_inf))
    return extra + math.ceil(need / math.log1p(poincare(target) * h))


def default_step(target: Target, start: str, dist_inf: float) -> float:
    """The h of least estimated time among D^2 times powers of two, from public facts."""
    square = target.constraint.diameter**2
    grid = [square * 2.0 ** (_LARGEST - k) for k in range(_HALVINGS)]
    return min(
        grid, key=lambda h: count_needed_steps(target, h, dist_inf, start) * step_seconds(target, h)
    )


def step_seconds(target: Target, h: float) -> float:
    """The estimated time of one step on one thread, by a formula and not by a clock."""
    miss, _ = estimate_tangent_gaps(target, h)
    spec, tries = target.spec, expected_tries(target, h)
    if compiled_chain.covers(target):
        return compiled_chain.estimate_seconds(target, tries, miss)
    evaluation = spec.n * (_RECORD_COST + _ENTRY_COST * spec.bounds.columns)
    restricted = choose_truncated_sampler(target.constraint)
    return _STEP_COST + 2.0 * evaluation + tries * (evaluation + restricted.cost)


def expected_tries(target: Target, h: float) -> float:
    """Proposals a step: mostly those of a usual data set, and ``_HARD`` of those of a hard one.

    1 / E[exp(-miss)] is at most exp(E miss) [Jensen].
    """
    usual, hard = (math.exp(min(miss, 50.0)) for miss in estimate_tangent_gaps(target, h))
    return (1.0 - _HARD) * usual + _HARD * hard


def estimate_tangent_gaps(target: Target, h: float) -> tuple[float, float]:
    """About E[f - parabola] at a proposal: for a usual data set, and the most for any.

    A proposal's coordinates have variance at most v = min(h, those of a uniform point). A smooth
    loss then misses by v tr(f'') / 2 at most, by half of that as a rule. A record whose slope jumps
    by J misses by J sqrt(v / (2 pi)) if its kink is where the tangent touches. Records whose kinks
    have a density k there miss by J k v / 2: k is what rows of the largest norm in random
    directions have at a random point of the set, or what targets have that are spread over half
    their range, if that is less. On sets that are drawn from by rejection (``narrow``) corners and
    facets cost more the larger sqrt(h) is against the inner radius and 1 / L. All of this sets the
    running time alone.
    """
    spec, dim, body = target.spec, target.dimension, target.constraint
    radius = body.outer_radius if body.ball_about is None else 0.5 * body.diameter
    spread = min(h, radius**2 / (dim + 2.0))
    pull, row = target.exponent * spec.n, spec.bounds.row
    if spec.smoothness is not None:
        trace = spec.smoothness * (1.0 if isinstance(spec.form, Glm) else min(2.0, dim))
        usual, hard = 0.25 * spread * pull * trace, 0.5 * spread * pull * trace
    elif spec.form is not None and spec.form.distance_power == 2.0:
        usual, hard = pull * dim * spread / row, pull * math.sqrt(dim * spread)
    else:
        jump, width = _jump(spec.form), row * radius / math.sqrt(dim + 2.0)
        width, count = max(width, 0.5 * spec.target_bound), 1.0
        if not isinstance(spec.form, Glm):
            width, count, row = row / math.sqrt(dim), float(dim), 1.0
        usual = 0.25 * pull * count * jump * row * row * spread / width
        hard = 0.4 * pull * count * jump * row * math.sqrt(spread)
        usual = min(usual, hard)
    more = 0.4 * math.sqrt(spread) * target.lasso * dim
    if choose_truncated_sampler(body).narrow:
        more += 0.5 * math.sqrt(h) * (dim / body.inner_radius + target.lipschitz)
    return usual + more, hard + more


def _jump(form: Any) -> float:
    """By how much the slope of the loss jumps at its kink: 2 at most for a slope of up to 1."""
    if form is None or form.pieces is None:
        return 2.0
    _, _, up, down = form.pieces(np.zeros(1))
    return up + down


def _fixed_point(body: Any) -> np.ndarray:
    """A point of the set that chains start at."""
    return body.centre() if body.ball_about is None else body.ball_about[0]


def _has_uniform(body: Any) -> bool:
    if body.ball_about is not None:  # the draw is made on another set than the plan
        return False
    try:
        make_uniform_draw(body)
    except Unsupported:
        return False
    return True
