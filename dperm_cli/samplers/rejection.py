"""Exact rejection from a quadratic function below f: a Gaussian restricted to a ball or a box."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Help, Range
from dperm_cli.samplers.base import Certificate, Potential, Sampler, Source, Target
from dperm_cli.samplers.shared.gaussian_envelope import OnBall, OnBox, WithinBox
from dperm_cli.samplers.shared.potential_checks import check_envelope, evaluate_in_blocks, remember
from dperm_cli.samplers.shared.quadratic_minorant import (
    Minorant,
    find_minorant,
    has_minorant,
    least_ratio,
    log_uniform_acceptance,
)
from dperm_cli.samplers.shared.uniform import draw_uniform

MOST_PARAMETERS = 1000
MOST_FIXED = 20_000_000
_MOST_TRIES = 20_000_000
SLACK = 0.02  # of f at the point where the minorant touches, over the least f
_BLOCK = 4096


@dataclass(frozen=True)
class Rejection(Sampler):
    """pi itself, for the logistic and the squared loss on Euclidean balls and boxes.

    At the minimiser every record has a parabola below its loss at all margins of the set; their sum
    is a quadratic q <= f. A point is drawn from exp(-q) on the set and kept with probability
    exp(q - f) [docs/proofs/_samplers.md, Thm 1 and Lemma 2]. q and the number of tries follow from
    the records: the running time is not private.

    With ``fixed_tries`` = N (or ``auto``, the least N that will do) exactly N points of a proposal
    without inner rejection are looked at, and a uniform one stands in where none is kept. The time
    is then free of the records, and dist_inf is that of Thm 3, from a lower bound on the
    acceptance that holds for every data set.

    >>> from dataclasses import replace
    >>> from dperm_cli.losses.logistic import Logistic
    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> problem = replace(linear_pair("replace_one", n=10, radius=1.0)[0], loss=Logistic())
    >>> round(Rejection().plan(Target(problem.spec(), 0.5), 0.0).facts["acceptance"], 3)
    0.869
    """

    fixed_tries: Annotated[
        int | Auto | None, Range(1, MOST_FIXED), Help("null = until one is kept")
    ] = None

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """Exact with dist_inf = 0; with ``fixed_tries`` what Thm 3 gives, at most ``dist_inf``."""
        _check(target)
        if self.fixed_tries is not None:
            return self._fixed_plan(target, dist_inf)
        facts = {"acceptance": math.exp(log_acceptance(target)), "curvature_ratio": _ratio(target)}
        return Certificate(self.name, "quadratic minorant: exact rejection", 0.0, facts=facts)

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One draw [p]."""
        key = (self, target)
        below_f: Minorant = remember(
            "minorant", potential, key, lambda: find_minorant(potential, target, SLACK)
        )
        if self.fixed_tries is not None:
            return _draw_with_fixed_tries(potential, target, below_f, certificate.steps, source)
        proposal = remember(self.name, potential, key, lambda: make_proposal(target, below_f))
        for _ in range(_MOST_TRIES):
            theta = proposal.draw(source)
            gap = float(potential.value(theta)) - float(proposal.quadratic(theta))
            check_envelope(potential, gap)
            if math.log(float(source.uniform(1)[0])) <= -gap:
                return theta
        raise ArithmeticError("no proposal was kept: not a private outcome")

    def _fixed_plan(self, target: Target, dist_inf: float) -> Certificate:
        least = count_needed_tries(target, dist_inf)
        tries = least if self.fixed_tries == "auto" else int(self.fixed_tries or 0)
        if least is None or tries is None or tries < least or least > MOST_FIXED:
            count = "too many" if least is None else f"{least:.3g}"
            raise Unsupported(
                f"rejection with fixed_tries={self.fixed_tries}: {count} tries are needed for "
                f"dist_inf={dist_inf:.3g} at F={target.oscillation:.4g} in {target.dimension} "
                "dimensions; use sampler.fixed_tries=null or sampler=proximal"
            )
        return Certificate(
            self.name,
            "fixed number of tries",
            fixed_distance(target, tries),
            steps=tries,
            constant_time=True,
            facts={"acceptance": math.exp(log_fixed_acceptance(target)), "tries": tries},
        )


@dataclass(frozen=True)
class Proposal:
    """A restricted Gaussian and the quadratic whose exponential it is."""

    draw: Any
    quadratic: Any


def log_acceptance(target: Target) -> float:
    """log of a lower bound, for every data set, on the mean acceptance of a restricted Gaussian.

    (least over largest curvature)^(d/2) where the proposal has the minorant's own Hessian, which
    is so on balls and in one dimension, and f has no l1 norm; otherwise from F alone
    [docs/proofs/_samplers.md, Lemma 4].
    """
    found = log_uniform_acceptance(target.oscillation, target.dimension)
    if target.lasso == 0 and (target.dimension == 1 or _body(target).is_ball):
        found = max(found, 0.5 * target.dimension * _log_ratio(target))
    return found - SLACK


def log_fixed_acceptance(target: Target) -> float:
    """The same for the proposals of ``fixed_tries``: uniform ones on balls of two dimensions up."""
    found = log_uniform_acceptance(target.oscillation, target.dimension)
    if target.dimension == 1 and target.lasso == 0:
        found = max(found, 0.5 * _log_ratio(target))
    return found - SLACK


def count_needed_tries(target: Target, dist_inf: float) -> int | None:
    """The least N with ``fixed_distance`` <= dist_inf; None where 2^63 will not do."""
    if not dist_inf > 0:
        return None
    f, accept = target.oscillation, math.exp(log_fixed_acceptance(target))
    log_miss = min(math.log(-math.expm1(-dist_inf)), math.log(math.expm1(dist_inf)) - f)
    needed = log_miss / math.log1p(-accept) if accept > 1e-18 else math.inf
    return None if needed > 2.0**63 else max(1, math.ceil(needed * (1.0 + 1e-12)))


def fixed_distance(target: Target, tries: int) -> float:
    """max(-log(1 - q), log(1 + q e^F)) with q = (1 - acceptance)^tries."""
    log_miss = tries * math.log1p(-math.exp(log_fixed_acceptance(target)))
    above = float(np.logaddexp(0.0, log_miss + target.oscillation))
    return max(-math.log(-math.expm1(log_miss)), above)


def _check(target: Target) -> None:
    spec, body = target.spec, _body(target)
    if not has_minorant(spec):
        raise Unsupported(
            f"rejection has a quadratic minorant for the logistic and the squared loss, not for "
            f"{spec.loss}; use sampler=proximal, or tangent_cells in up to 3 dimensions"
        )
    if target.dimension != spec.p or not _has_known_shape(body):
        raise Unsupported("rejection draws on l2_ball and box; use sampler=proximal on other sets")
    if spec.p > MOST_PARAMETERS:
        raise Unsupported(
            f"rejection holds a matrix of p^2 numbers, up to p={MOST_PARAMETERS}; "
            "use sampler=proximal"
        )


def _ratio(target: Target) -> float:
    """Of the minorant's Hessian to the largest one of f, the regulariser left out."""
    return least_ratio(target.spec)


def _log_ratio(target: Target) -> float:
    """Its logarithm; on a set so wide that the curvature there is no number above 0, -inf."""
    ratio = _ratio(target)
    return math.log(ratio) if ratio > 0.0 else -math.inf


def _body(target: Target) -> Any:
    return target.constraint.inner_body


def _has_known_shape(body: Any) -> bool:
    return body.is_ball or body.half_side is not None or (body.p == 1 and body.symmetric)


def _half(body: Any) -> float:
    """a of the box [-a, a]^p."""
    return float(body.support(np.eye(body.p)[0]))


def make_proposal(target: Target, q: Minorant) -> Proposal:
    body = _body(target)
    if body.p > 1 and body.is_ball:
        return Proposal(OnBall(q.hessian, q.hessian @ q.at - q.slope, body.radius), q)
    half = _half(body)
    diagonal = on_box(q, half)
    try:
        whole = WithinBox(q.at, q.slope, q.hessian, half)
    except np.linalg.LinAlgError:
        return diagonal
    share = whole.log_share()
    if share > whole.log_whole() + share - diagonal.draw.log_mass():
        return Proposal(whole, q)
    return diagonal


def on_box(q: Minorant, half: float) -> Proposal:
    """With the largest multiple of the Hessian's diagonal that stays below the Hessian."""
    diagonal = np.diag(q.hessian)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    share = float(np.linalg.eigvalsh(q.hessian / np.outer(scale, scale))[0]) * (1.0 - 1e-9)
    if len(q.at) == 1:
        share = 1.0
    box = OnBox(q.at, q.slope, max(share, 0.0) * diagonal, half)
    hessian = np.diag(box.curvature)
    return Proposal(box, Minorant(q.at, q.value, q.slope, hessian, q.slack))


def _draw_with_fixed_tries(
    potential: Potential, target: Target, q: Minorant, tries: int, source: Source
) -> np.ndarray:
    """The first of exactly ``tries`` proposals that is kept, a uniform point where none is."""
    if not q.slack <= SLACK / 2:
        raise ArithmeticError("the minimiser was not found: not a private outcome")
    body, p = _body(target), target.spec.p
    chosen, found = draw_uniform(body, source), False
    flat = p > 1 and body.is_ball
    box = None if flat else on_box(q, _half(body))
    for start in range(0, tries, _BLOCK):
        count = min(_BLOCK, tries - start)
        if box is None:
            g = source.normal(count, p)
            radius = body.radius * source.uniform(count, 1) ** (1.0 / p)
            theta = radius * g / np.linalg.norm(g, axis=1, keepdims=True)
            floor = np.full(count, q.value - q.slack)
        else:
            theta = box.draw.many(source.uniform(count, p))
            floor = box.quadratic(theta)
        gap = evaluate_in_blocks(potential, theta, target.spec.n) - floor
        check_envelope(potential, gap)
        keep = np.log(source.uniform(count)) <= -gap
        if not found and np.any(keep):
            chosen, found = theta[int(np.argmax(keep))], True
    return chosen
