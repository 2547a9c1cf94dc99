"""Exact draws of N(mean, variance I) restricted to a convex set.

Where the set is {phi <= r}, the Gaussian is tilted: z is proposed with density proportional to
exp(-|z - mean|^2 / (2 variance) - k phi(z)) and accepted, if it lies in the set, with probability
exp(-k (r - phi(z))). Any k >= 0 gives the same law; the one with E phi(z) = r puts the proposals
where the set ends, so k need not be found to more than a fraction of phi's standard deviation. phi
is |z|^2 for balls, a quadratic form for ellipsoids and |z|_1 for the L1 ball. A box and a segment
need no rejection, and the simplex gives one coordinate by the others; several balls are tilted for
together (``ball_intersections``). Any other set takes the half-space behind the projection of the
mean and rejects what is outside it (``narrow``): that is quick only while sqrt(variance) is small
against the set and its corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri_exp

from dperm_cli.samplers.base import Source
from dperm_cli.samplers.shared.ball_intersections import NarrowNearBall, NearBall, WithinBalls
from dperm_cli.samplers.shared.first_accepted import BLOCK, MOST, draw_first_accepted, endless
from dperm_cli.samplers.shared.membership import make_membership_test

_FEASIBLE = 1e-9
_INSIDE = 1e-12
# Where a normal restricted to z > 0 is nearly exponential.
_FAR = -300.0


class TruncatedSampler(Protocol):
    """Draws from N(mean [p], variance I) on the set it was made for; [p].

    ``narrow`` says that the number of proposals is bounded for small variances alone; ``cost`` is
    about what a draw takes, in seconds.
    """

    narrow: ClassVar[bool] = False
    cost: ClassVar[float] = 5e-05

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray: ...


def choose_truncated_sampler(constraint: Any) -> TruncatedSampler:
    """The sampler that suits the set."""
    body = constraint.inner_body
    hull = body.axis_hull
    if body.directions().shape[1] <= 1:
        return Segment(body)
    if body.half_side is not None:
        return InCube(np.asarray(body.support(np.eye(body.p))))
    if body.is_ball:
        return InBall(body.radius)
    if hull is not None:
        return InCross(hull.radius) if hull.signed else InSimplex(hull.radius)
    if body.cutting_ball is not None:
        return SetWithinBall(choose_truncated_sampler(body.inner), body)
    if body.ball_about is not None:
        found = body.balls()
        if found is not None:
            return WithinBalls(found)
        inner = choose_truncated_sampler(body.inner)
        return NarrowNearBall(inner, body) if inner.narrow else NearBall(inner, body)
    root = body.root()
    return HalfSpace(body) if root is None else InEllipsoid(root)


class Segment(TruncatedSampler):
    """A set of one dimension or none: origin + t direction for low <= t <= high."""

    def __init__(self, body: Any) -> None:
        self.origin, basis = body.centre(), body.directions()
        self.direction = basis[:, 0] if basis.shape[1] else np.zeros(body.p)
        start = float(self.origin @ self.direction)
        self.high = float(body.support(self.direction)) - start
        self.low = -float(body.support(-self.direction)) - start

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        middle = float((mean - self.origin) @ self.direction)
        scale, u = math.sqrt(variance), source.uniform(1)
        t = float(on_interval(middle, scale, self.low, self.high, u)[0])
        return self.origin + min(max(t, self.low), self.high) * self.direction


class InCube(TruncatedSampler):
    """Independent coordinates on [-a_j, a_j]."""

    def __init__(self, half_widths: np.ndarray) -> None:
        self.half_widths = half_widths

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        u = source.uniform(len(mean))
        z = on_interval(mean, math.sqrt(variance), -self.half_widths, self.half_widths, u)
        return np.clip(z, -self.half_widths, self.half_widths)


class InBall(TruncatedSampler):
    """{z : |z|_2 <= R}; the tilt has a closed form."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        p, square = len(mean), self.radius**2
        # the variance s of the tilted law with p s + |mean|^2 (s / variance)^2 = R^2
        pull = float(mean @ mean) / variance**2
        s = min(variance, 2.0 * square / (p + math.sqrt(p * p + 4.0 * pull * square)))
        tilt, scale = 0.5 * (1.0 / s - 1.0 / variance), math.sqrt(s)
        centre = mean * (s / variance)

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = source.normal(count, p)
            z *= scale
            z += centre
            return z, np.einsum("ij,ij->i", z, z)

        return _draw_accepted(propose, tilt, square, source)


class InEllipsoid(TruncatedSampler):
    """{A phi : |phi| <= 1} in coordinates along its axes, where it is sum (u_j / a_j)^2 <= 1."""

    cost: ClassVar[float] = 0.0003

    def __init__(self, root: np.ndarray) -> None:
        directions, axes, _ = np.linalg.svd(root, full_matrices=False)
        kept = axes > 1e-13 * np.max(axes)
        self.inverse, self.directions = axes[kept] ** -2.0, directions[:, kept]

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        middle, inverse = self.directions.T @ mean, self.inverse

        def tilt_axes(k: float) -> tuple[np.ndarray, np.ndarray]:
            s = 1.0 / (1.0 / variance + 2.0 * k * inverse)
            return s, middle * (s / variance)

        def moments(k: float) -> tuple[float, float]:
            s, centre = tilt_axes(k)
            spread = inverse * inverse * s * (2.0 * s + 4.0 * centre * centre)
            return float(inverse @ (s + centre * centre)) - 1.0, float(np.sum(spread))

        tilt = _tilt(moments)
        s, centre = tilt_axes(tilt)
        scale = np.sqrt(s)

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = centre + scale * source.normal(count, len(middle))
            return z, (z * z) @ inverse

        return self.directions @ _draw_accepted(propose, tilt, 1.0, source)


class InCross(TruncatedSampler):
    """{z : |z|_1 <= r}: each coordinate is a Gaussian times exp(-k |z|), of two pieces."""

    cost: ClassVar[float] = 0.0005

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        pieces = TwoSidedNormal(np.abs(mean), math.sqrt(variance))

        def moments(k: float) -> tuple[float, float]:
            first, second = pieces.at(k).moments()
            return float(np.sum(first)) - self.radius, float(np.sum(second - first * first))

        tilt = _tilt(moments)
        pieces.at(tilt)

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = pieces.draw(count, source)
            return z, np.sum(np.abs(z), axis=1)

        return np.where(mean < 0, -1.0, 1.0) * _draw_accepted(propose, tilt, self.radius, source)


class TwoSidedNormal:
    """exp(-(z - size)^2 / (2 scale^2) - k |z|) for size [p] >= 0: a truncated normal on each side.

    On z > 0 it is N(size - k scale^2, scale^2), on z < 0 the mirror image of -size.
    """

    def __init__(self, size: np.ndarray, scale: float) -> None:
        self.size, self.scale = size, scale
        self.signed = np.stack([size, -size]) / scale

    def at(self, k: float) -> TwoSidedNormal:
        """The same at this k."""
        self.t = self.signed - k * self.scale
        self.level = log_ndtr(self.t)
        odds = self.level[1] - self.level[0] + 2.0 * k * self.size
        self.share = 1.0 / (1.0 + np.exp(np.minimum(odds, 700.0)))  # of z > 0
        return self

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """E |z| and E z^2 of each coordinate."""
        mean, square = positive_moments(self.t)
        first = self.share * mean[0] + (1.0 - self.share) * mean[1]
        second = self.share * square[0] + (1.0 - self.share) * square[1]
        return self.scale * first, self.scale**2 * second

    def draw(self, count: int, source: Source) -> np.ndarray:
        """[count, p]."""
        plus = source.uniform(count, len(self.size)) <= self.share
        t = np.where(plus, self.t[0], self.t[1])
        level = np.where(plus, self.level[0], self.level[1])
        z = self.scale * draw_positive(t, level, source.uniform(count, len(self.size)))
        return np.where(plus, z, -z)


class InSimplex(TruncatedSampler):
    """{z >= 0, sum z = r}: all coordinates but the largest of the mean, the rest is its own.

    With s the sum of the others, the last coordinate adds g(s) = -(total - s)^2 / (2 variance) to
    their log-density. g is concave: at s <= r it lies below the line of slope k through (at, g(at))
    where at = min(r, total - k variance), and the line tilts each of the others.
    """

    cost: ClassVar[float] = 0.0004

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        scale, r = math.sqrt(variance), self.radius
        last = int(np.argmax(mean))
        others, total = np.delete(mean, last), r - float(mean[last])

        def touch(k: float) -> float:
            return min(r, total - k * variance)

        def moments(fall: float) -> tuple[float, float]:
            k = steepest - fall
            t = (others + k * variance) / scale
            first, second = positive_moments(t)
            spread = variance * float(np.sum(second - first * first))
            return scale * float(np.sum(first)) - touch(k), spread

        # the slope is (total - r) / variance and less where the sum reaches r, more where it
        # does not: there the tangent point moves too
        steepest = (total - r) / variance
        excess, spread = moments(0.0)
        if excess < -0.25 * math.sqrt(spread):
            k = _crossing(lambda k: moments(steepest - k), steepest, variance)
        else:
            k = steepest - _tilt(moments)
        t, at = (others + k * variance) / scale, touch(k)
        level = log_ndtr(t)

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = scale * draw_positive(t, level, source.uniform(count, len(others)))
            return z, np.sum(z, axis=1)

        def log_accept(s: np.ndarray) -> np.ndarray:
            bent = 0.5 * ((total - at) ** 2 - (total - s) ** 2) / variance - k * (s - at)
            return np.where(s <= r, bent, -math.inf)

        found = draw_first_accepted(propose, log_accept, source)
        return np.insert(found, last, max(r - float(np.sum(found)), 0.0))


class SetWithinBall(TruncatedSampler):
    """A set within a ball: the one that the mean is further from proposes, the other rejects."""

    narrow: ClassVar[bool] = True
    cost: ClassVar[float] = 0.001

    def __init__(self, inner: TruncatedSampler, body: Any) -> None:
        self.inner, self.body, self.ball = inner, body, InBall(body.cutting_ball)
        self.flat = body.directions().shape[1] < body.p

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        over_ball = float(np.linalg.norm(mean)) - self.body.cutting_ball
        over_set = float(np.linalg.norm(mean - self.body.inner.project(mean)))
        outer = self.inner if self.flat or over_set >= over_ball else self.ball
        for _ in range(MOST // BLOCK):
            z = outer(mean, variance, source)
            if self.body.contains(z, _INSIDE):
                return z
        raise endless()


class HalfSpace(TruncatedSampler):
    """Any set with a projection: N(mean, variance) on a half-space that holds it, then rejection.

    Works in coordinates of the affine hull.
    """

    narrow: ClassVar[bool] = True
    cost: ClassVar[float] = 0.005

    def __init__(self, body: Any) -> None:
        self.body, self.basis, self.origin = body, body.directions(), body.centre()
        self.inside = make_membership_test(body)

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        scale = math.sqrt(variance)
        middle = self.basis.T @ (mean - self.origin)
        flat = self.origin + self.basis @ middle
        outward = self.basis.T @ (flat - self.body.project(flat))
        distance = float(np.linalg.norm(outward))
        beyond = distance > _FEASIBLE * self.body.radius

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = scale * source.normal(count, len(middle))
            if beyond:
                unit = outward / distance
                depth = scale * invert_normal(-math.inf, -distance / scale, source.uniform(count))
                z += np.outer(depth - z @ unit, unit)
            points = self.origin + (middle + z) @ self.basis.T
            return points, self.inside(points)

        return draw_first_accepted(propose, lambda holds: np.where(holds, 0.0, -math.inf), source)


def invert_normal(low: Any, high: Any, u: np.ndarray) -> np.ndarray:
    """The standard normal restricted to [low, high] at level u in (0, 1], by inversion.

    Works in the lower tail, where the logarithm of the distribution function keeps its digits.
    """
    low, high = np.broadcast_to(low, u.shape), np.broadcast_to(high, u.shape)
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    top, bottom = log_ndtr(b), log_ndtr(a)
    # log of (bottom mass + u (top mass - bottom mass))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = top + np.log(u + (1.0 - u) * np.exp(bottom - top))
    z = np.clip(ndtri_exp(level), a, b)
    return np.where(flip, -z, z)


def on_interval(mean: Any, scale: Any, low: Any, high: Any, u: np.ndarray) -> np.ndarray:
    """N(mean, scale^2) restricted to [low, high] at level u in (0, 1].

    Where the mean is far out it is measured from the nearer end: a quantile of the normal itself
    would keep no digits of the little that it is inside.
    """
    below, above = (low - mean) / scale, (high - mean) / scale
    t = mean + scale * invert_normal(below, above, u)
    out = np.maximum(below, -above)
    if np.max(out, initial=-math.inf) <= -_FAR:
        return t
    away = np.maximum(out, -_FAR)
    depth = invert_steep(away / scale, scale**-2.0, high - low, u)
    return np.where(out > -_FAR, np.where(below > 0.0, low + depth, high - depth), t)


def invert_steep(slope: Any, curvature: Any, width: Any, u: Any) -> Any:
    """x in [0, width] at level u of the density exp(-slope x - curvature x^2 / 2), for slope^2 of
    ``_FAR``^2 curvature or more: the tail beyond x is that times slope / (slope + curvature x)."""
    end = -slope * width - 0.5 * curvature * width * width - np.log1p(curvature * width / slope)
    fall = -np.log1p((1.0 - u) * np.expm1(end))
    first = 2.0 * fall / (slope + np.sqrt(slope * slope + 2.0 * curvature * fall))
    fall = np.maximum(fall - np.log1p(curvature * first / slope), 0.0)
    x = 2.0 * fall / (slope + np.sqrt(slope * slope + 2.0 * curvature * fall))
    return np.minimum(x, width)


def draw_positive(t: np.ndarray, level: np.ndarray, u: np.ndarray) -> np.ndarray:
    """N(t, 1) given that it is positive, at level u of its upper tail; ``level`` = log_ndtr(t).

    Far below 0 the tail beyond z is exp(-|t| z - z^2 / 2) |t| / (|t| + z), up to t^-4.
    """
    log_u = np.log(u)
    z = np.maximum(t - ndtri_exp(level + log_u), 0.0)
    if np.min(t) > _FAR:
        return z
    far = np.maximum(-t, -_FAR)
    first = -2.0 * log_u / (far + np.sqrt(far * far - 2.0 * log_u))
    fall = np.maximum(-log_u - np.log1p(first / far), 0.0)
    return np.where(t <= _FAR, 2.0 * fall / (far + np.sqrt(far * far + 2.0 * fall)), z)


def positive_moments(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E z and E z^2 of N(t, 1) given that it is positive; by their series far below 0."""
    mean = np.maximum(t + math.sqrt(2.0 / math.pi) / erfcx(-t / math.sqrt(2.0)), 0.0)
    square = 1.0 + t * mean
    if np.min(t) <= _FAR:
        s = 1.0 / np.minimum(t, _FAR) ** 2
        mean = np.where(t <= _FAR, np.sqrt(s) * (1.0 - 2.0 * s), mean)
        square = np.where(t <= _FAR, 2.0 * s * (1.0 - 5.0 * s), square)
    return mean, np.maximum(square, mean * mean)


def _draw_accepted(
    propose: Callable[[int], tuple[np.ndarray, np.ndarray]],
    tilt: float,
    most: float,
    source: Source,
) -> np.ndarray:
    """The first proposal with phi <= most that survives exp(-tilt (most - phi))."""

    def log_accept(phi: np.ndarray) -> np.ndarray:
        return np.where(phi <= most, tilt * (phi - most), -math.inf)

    return draw_first_accepted(propose, log_accept, source)


def _tilt(moments: Callable[[float], tuple[float, float]]) -> float:
    """A k >= 0 near the root of a falling function; 0 where it starts below.

    ``moments(k)`` is (E phi - r, Var phi) under the tilt k, the second minus the derivative of the
    first. A quarter of a standard deviation is near enough.
    """
    k, low, high = 0.0, 0.0, math.inf
    for _ in range(60):
        excess, variance = moments(k)
        if abs(excess) <= 0.25 * math.sqrt(variance) or (k == 0.0 and excess <= 0.0):
            break
        low, high = (k, high) if excess > 0.0 else (low, k)
        k += excess / variance if variance > 0.0 else math.inf
        if not low < k < high:
            k = 0.5 * (low + high) if high < math.inf else 2.0 * low
    return k


def _crossing(
    moments: Callable[[float], tuple[float, float]], start: float, variance: float
) -> float:
    """A k >= start near the root of a rising function of slope Var s + variance."""
    k = start
    for _ in range(60):
        excess, spread = moments(k)
        if abs(excess) <= 0.25 * math.sqrt(min(spread, variance)):
            break
        k = max(start, k - excess / (spread + variance))
    return k
