"""Intervals of claims: bootstrap over trials, weighted slopes, and the power of a verdict.

The rules are in docs/experiments.md. A bootstrap draws trials with replacement, the same ones on
both sides of a comparison, and takes the largest of a family inside each draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dperm_cli.core.brent import find_root
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.results.charts.curve_points import STATISTIC_LEVELS, Point

DRAWS = 1000
CONFIDENCE = 0.95
BEND_CONFIDENCE = 0.99
LEAST_ERROR = 0.01  # of the logarithm of a statistic: below it other errors are larger
NEEDED_POWER = 0.8
POWER_DRAWS = 200
Interval = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """A least-squares line through (ln x, ln y): its slope and half the 95 % interval's width."""

    slope: float
    half: float
    count: int

    @property
    def text(self) -> str:
        return f"{self.slope:.3f} +- {self.half:.3f}"


@dataclass(frozen=True)
class WeightedFit(Fit):
    """A line weighted by 1 / (s^2 + spread), s the errors of ln y.

    ``spread`` is the variance beyond the errors (0 where they explain the residuals), ``bend`` the
    quadratic term of a parabola and ``bend_half`` half its 99 % interval (None below 4 points),
    ``local`` the slopes from each place to the next.
    """

    spread: float = 0.0
    local: tuple[float, ...] = ()
    bend: float | None = None
    bend_half: float | None = None
    error: float = 0.0

    def doubt(self, band: Interval) -> float:
        """The two-sided chance of a slope as far off the band as this one, if it lay at its end."""
        from scipy.special import ndtr, stdtr

        off = max(band[0] - self.slope, self.slope - band[1]) / self.error
        return 2.0 * float(ndtr(-off) if self.spread == 0.0 else stdtr(self.count - 2, -off))

    @property
    def is_curved(self) -> bool:
        """Whether the 99 % interval of the quadratic term excludes 0."""
        return self.bend is not None and abs(self.bend) > (self.bend_half or 0.0)

    def describe(self) -> str:
        """The slope, its places, the slopes between them and the quadratic term."""
        between = " ".join(f"{slope:.2f}" for slope in self.local)
        words = f"slope {self.text} on {self.count} points, local {between}"
        if self.bend is None:
            return words
        return f"{words}, quadratic {self.bend:.3f} +- {self.bend_half or 0.0:.3f}"


def log_log(xs: Sequence[float], ys: Sequence[float]) -> Fit | None:
    """Least squares on logarithms with a 95 % interval by Student's t, or None below 3 points."""
    from scipy.special import stdtrit

    if len(xs) < 3 or len(set(xs)) < 3:
        return None
    u, v = [math.log(x) for x in xs], [math.log(y) for y in ys]
    count, mean_u, mean_v = len(u), math.fsum(u) / len(u), math.fsum(v) / len(v)
    spread = math.fsum((a - mean_u) ** 2 for a in u)
    slope = math.fsum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / spread
    off = math.fsum((b - mean_v - slope * (a - mean_u)) ** 2 for a, b in zip(u, v, strict=True))
    error = math.sqrt(off / (count - 2) / spread)
    return Fit(slope, float(stdtrit(count - 2, (1 + CONFIDENCE) / 2)) * error, count)


def fit(found: Sequence[Point]) -> Fit | None:
    """The unweighted slope of a curve without its saturated points, for pages and rankings."""
    kept = choose_fitted(found)
    return log_log([float(p.x or 0) for p in kept], [p.value for p in kept])


def choose_fitted(found: Sequence[Point]) -> list[Point]:
    """The points that a slope is fitted on: resolved, neither saturated nor a rounding of 0."""
    return [
        p
        for p in found
        if p.is_resolved and not p.is_near_floor and p.value > p.resolution and p.x and p.x > 0
    ]


def fit_points(found: Sequence[Point]) -> WeightedFit | None:
    """The weighted slope of a curve without its saturated points, as claims are judged on it."""
    kept = choose_fitted(found)
    errors = [log_error(point) for point in kept]
    return fit_weighted([float(p.x or 0) for p in kept], [p.value for p in kept], errors)


def log_error(point: Point) -> float:
    """The bootstrap's standard deviation of ln statistic, at least LEAST_ERROR."""
    drawn = draw_statistics(point)
    kept = drawn[(drawn > 0.0) & np.isfinite(drawn)]
    spread = float(np.std(np.log(kept), ddof=1)) if len(kept) > 1 else 0.0
    return max(spread, LEAST_ERROR)


def fit_weighted(
    xs: Sequence[float], ys: Sequence[float], errors: Sequence[float]
) -> WeightedFit | None:
    """A weighted line through (ln x, ln y).

    Args:
        xs: places, above 0.
        ys: statistics there, above 0.
        errors: standard deviations of ln y.

    Returns:
        The fit; its half-width is 1.96 standard errors where the errors explain the residuals
        (Q at most m - 2), else Student's t with m - 2 degrees of freedom times the standard error
        at the spread that makes Q = m - 2. None below 3 places.
    """
    from scipy.special import ndtri, stdtrit

    if len(set(xs)) < 3:
        return None
    order = np.argsort(xs, kind="stable")
    u, v = np.log(np.asarray(xs, dtype=float)[order]), np.log(np.asarray(ys, dtype=float)[order])
    s = np.asarray(errors, dtype=float)[order]
    spread = find_spread(u, v, s)
    weights = 1.0 / (s * s + spread)
    (slope,), (error,) = _solve(u, v, weights, 1)
    free = len(u) - 2
    level = (1 + CONFIDENCE) / 2
    quantile = float(ndtri(level)) if spread == 0.0 else float(stdtrit(free, level))
    steps = np.diff(u)
    local = tuple(float(x) for x in (np.diff(v)[steps > 0] / steps[steps > 0]))
    bend = bend_half = None
    if len(set(xs)) > 3:
        # around the parabola, since a curve is what spreads the places around the line
        rest = find_spread(u, v, s, degree=2)
        (_, bend), (_, bend_error) = _solve(u, v, 1.0 / (s * s + rest), 2)
        level = (1 + BEND_CONFIDENCE) / 2
        wide = float(ndtri(level)) if rest == 0.0 else float(stdtrit(len(u) - 3, level))
        bend_half = wide * bend_error
    half = quantile * error
    return WeightedFit(slope, half, len(u), spread, local, bend, bend_half, error)


def find_spread(u: np.ndarray, v: np.ndarray, s: np.ndarray, degree: int = 1) -> float:
    """The variance beyond ``s`` at which the residuals' chi-square is m - 1 - degree, at least 0.

    Args:
        u: places, shape [m].
        v: values there, shape [m].
        s: their standard deviations, shape [m].
        degree: 1 for residuals from a line, 2 from a parabola.
    """
    free = len(u) - 1 - degree

    def excess(spread: float) -> float:
        weights = 1.0 / (s * s + spread)
        columns = np.vander(u, degree + 1) * np.sqrt(weights)[:, None]
        aim = v * np.sqrt(weights)
        found, *_ = np.linalg.lstsq(columns, aim, rcond=None)
        return float(np.sum((aim - columns @ found) ** 2)) - free

    if free < 1 or excess(0.0) <= 0.0:
        return 0.0
    high = float(np.var(v)) + float(np.max(s)) ** 2
    while excess(high) > 0.0:
        high *= 2.0
    return find_root(excess, 0.0, high, xtol=1e-12)


def _solve(
    u: np.ndarray, v: np.ndarray, weights: np.ndarray, degree: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coefficients without the constant of a weighted polynomial, and their standard errors."""
    centred = u - np.average(u, weights=weights)
    columns = np.vander(centred, degree + 1, increasing=True)
    information = columns.T @ (weights[:, None] * columns)
    covariance = np.linalg.inv(information)
    found = covariance @ (columns.T @ (weights * v))
    errors = np.sqrt(np.diag(covariance))
    return tuple(map(float, found[1:])), tuple(map(float, errors[1:]))


@memoise(32 * MIB)
def _picks(count: int) -> np.ndarray:
    """Which of ``count`` trials each draw takes: the same for everything with as many trials."""
    return np.random.default_rng([DRAWS, count]).integers(count, size=(DRAWS, count))


def draw_statistics(point: Point) -> np.ndarray:
    """The point's statistic in DRAWS bootstrap draws of its trials.

    Returns:
        Shape [DRAWS]; the smallest over the best of the largest over the worst, as ``value`` is.
    """
    worst, best = (np.min, np.max) if point.is_gain else (np.max, np.min)
    families = [
        worst([_draw(values, point.statistic) for values in members], axis=0)
        for members in point.families
    ]
    return best(families, axis=0) if families else np.full(DRAWS, point.value)


def _draw(values: Sequence[float], statistic: str) -> np.ndarray:
    given = np.asarray(values, dtype=float)
    if np.all(given == given[0]):
        return np.full(DRAWS, given[0])
    drawn = given[_picks(len(given))]
    with np.errstate(invalid="ignore"):
        if statistic == "mean":
            return np.mean(drawn, axis=1)
        ranked = np.sort(drawn, axis=1)
        place = STATISTIC_LEVELS[statistic] * (len(given) - 1)
        low = math.floor(place)
        high = min(low + 1, len(given) - 1)
        step = (place - low) * (ranked[:, high] - ranked[:, low])
        return np.where(ranked[:, low] == ranked[:, high], ranked[:, low], ranked[:, low] + step)


def interval(drawn: np.ndarray) -> Interval:
    """The 95 % interval of bootstrap draws by their quantiles; infinite ones keep their place."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], method="nearest")
    return float(low), float(high)


def decide(found: Interval, band: Interval) -> bool | None:
    """True where the whole interval lies in the band, False where they are disjoint, else None."""
    if band[0] <= found[0] and found[1] <= band[1]:
        return True
    return False if found[1] < band[0] or found[0] > band[1] else None


def find_doubt(drawn: np.ndarray, band: Interval) -> float:
    """Twice the share of draws that do not lie on the far side of the band."""
    return 2.0 * min(float(np.mean(drawn >= band[0])), float(np.mean(drawn <= band[1])))


def slope_power(found: Sequence[Point], expect: float, tolerance: float) -> float:
    """The chance to refute a slope that lies off what is expected by twice the tolerance.

    Args:
        found: the points that are fitted; their errors are simulated, their values are not used.
        expect: the slope that is claimed.
        tolerance: half the width of the band.

    Returns:
        The share of POWER_DRAWS simulated curves whose interval is disjoint from the band.
    """
    xs, errors = [float(p.x or 0) for p in found], [log_error(p) for p in found]
    if len(set(xs)) < 3:
        return 0.0
    normal = np.random.default_rng(0).standard_normal((POWER_DRAWS, len(xs)))
    lines = (expect + 2.0 * tolerance) * np.log(xs) + np.asarray(errors) * normal
    high, refuted = expect + tolerance, 0
    for line in lines:
        made = fit_weighted(xs, list(np.exp(line - line.mean())), errors)
        refuted += made is not None and made.slope - made.half > high
    return refuted / POWER_DRAWS


def ratio_power(drawn: np.ndarray, gap: float) -> float:
    """The chance to refute a ratio whose logarithm lies ``gap`` beyond the end of the band.

    Args:
        drawn: bootstrap draws of the ratio, whose errors are taken as those of a normal law.
        gap: from the band's end to twice the band, in logarithms.
    """
    from scipy.special import ndtr, ndtri

    if np.all(drawn == drawn[0]):
        return 1.0
    if not np.all(np.isfinite(drawn)):
        return 0.0
    if np.all(drawn > 0.0):
        error = float(np.std(np.log(drawn), ddof=1))
    else:
        error, gap = float(np.std(drawn, ddof=1)), math.expm1(gap)
    return float(ndtr(gap / error - ndtri((1 + CONFIDENCE) / 2)))
