"""Privacy-loss laws of one subsampled Gaussian (or bounded) step, as tilted quadrature nodes.

A dominating pair (P, Q) on the line is a reference normal law, a mixture weight (``rate``) and a
distance (``shift``), in units of the noise. ``form`` says which pair:

``fixed``    the symmetrised profile of ((1-q) N(0,1) + q N(s,1), N(0,1)): fixed-size batches under
             replace_one, s = sensitivity / scale. The loss is l(x) with density P for x > s/2,
             its mirror image -l(x) with density Q, and 0 with the mass that is left.
``poisson``  ((1-q) N(0,1) + q N(a,1), (1-q) N(0,1) + q N(-a,1)): Poisson batches under replace_one,
             a = record_norm / scale. Its own mirror image.
``remove``   ((1-q) N(0,1) + q N(a,1), N(0,1)): Poisson batches under add_remove, and
``add``      the same pair exchanged.

With q = 1, ``fixed`` is the plain Gaussian mechanism with mu = s. Proofs: docs/proofs, accounting
page. Everything here is one-dimensional and vectorised over x.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.bounded_laws import BoundedStep

_MOST_PANELS = 2_000_000
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class SampledStep:
    """The loss law of one release; ``count`` independent copies are composed."""

    rate: float
    shift: float
    form: str
    count: int = 1

    @property
    def is_symmetric(self) -> bool:
        """Whether the law is symmetric under exchange of P and Q."""
        return self.form in ("fixed", "poisson")

    @property
    def start(self) -> float:
        """The x where the loss is zero. For mirrored forms, only larger x are used."""
        return self.shift / 2.0 if self.form == "fixed" else 0.0

    @property
    def entropy(self) -> float:
        """An upper bound on a relative entropy of the pair, in one of its two directions.

        Mirrored forms: the mean loss itself, a sum of positive terms. One-sided forms: the
        chi-square divergence q^2 (e^{a^2} - 1) of the mixture from its reference, because the sum
        that makes the mean loses all digits when q and a are tiny.
        """
        if self.is_symmetric:
            return tilt_step(self, 0.0).mean
        return self.rate**2 * math.expm1(min(self.shift**2, 700.0))

    @property
    def distance(self) -> float:
        """The total variation distance of the pair."""
        reach = self.shift if self.form == "poisson" else self.shift / 2.0
        return self.rate * math.erf(reach / math.sqrt(2.0))

    def loss(self, x: np.ndarray) -> np.ndarray:
        """log dP/dQ at x [k] (for ``add``, of the exchanged pair: its negative is the loss)."""
        if self.form != "poisson":
            return _log_mix(self.rate, self.shift * x - self.shift**2 / 2.0)
        q, a = self.rate, self.shift
        small = np.abs(a * x) < 30.0
        ax = np.where(small, a * x, 0.0)
        below = 1.0 + q * np.expm1(-ax - a * a / 2.0)
        near = np.log1p(2.0 * q * math.exp(-a * a / 2.0) * np.sinh(ax) / below)
        far = _log_mix(q, a * x - a * a / 2.0) - _log_mix(q, -a * x - a * a / 2.0)
        return np.where(small, near, far)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """The derivative of ``loss`` at x [k]; positive."""
        rise = self.shift * _posterior(self.rate, self.shift * x - self.shift**2 / 2.0)
        if self.form != "poisson":
            return rise
        return rise + self.shift * _posterior(self.rate, -self.shift * x - self.shift**2 / 2.0)

    def log_reference(self, x: np.ndarray) -> np.ndarray:
        """Log density of Q (for ``add``, of N(0, 1)) at x [k]."""
        normal = -x * x / 2.0 - _LOG_2PI / 2.0
        if self.form != "poisson":
            return normal
        return normal + _log_mix(self.rate, -self.shift * x - self.shift**2 / 2.0)

    def inverse(self, loss: np.ndarray) -> np.ndarray:
        """The x at which ``loss`` takes the given values [k], which are above its infimum."""
        q, s = self.rate, self.shift
        if self.form != "poisson":
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                level = np.where(
                    loss < 500.0,
                    np.log1p(np.expm1(np.minimum(loss, 500.0)) / q),
                    loss - math.log(q),
                )
            return level / s + s / 2.0
        # q c sinh(a x - l/2) = (1 - q) sinh(l/2), c = exp(-a^2/2); in logs where c underflows.
        log_c = math.log1p(-q) - math.log(q) + s * s / 2.0
        half = loss / 2.0
        with np.errstate(over="ignore", divide="ignore"):
            log_arg = log_c + half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0)
            angle = np.where(
                log_arg > 30.0, log_arg + math.log(2.0), np.arcsinh(np.exp(np.minimum(log_arg, 30)))
            )
        return (half + angle) / s

    def log_weight(self, x: np.ndarray, tilt: float) -> np.ndarray:
        """Log density, against dx, of P tilted by exp(tilt * loss) at x [k]."""
        if self.form == "add":
            return self.log_reference(x) - tilt * self.loss(x)
        return self.log_reference(x) + (1.0 + tilt) * self.loss(x)


@dataclass(frozen=True)
class TiltedLaw:
    """One step's law under the tilt exp(tilt * L), as nodes normalised by M = E exp(tilt * L).

    ``log_m`` is log M. For every real t,
    E[e^{(tilt + i t) L}] / M = 1 - 2 sum even sin^2(t l / 2) + i sum odd sin(t l).
    ``densities`` are minorants of the tilted density of the loss at the nodes, for the tail bound:
    of one branch, or twice the lesser of two mirrored branches (valid on both at once).
    Atoms stand behind the other nodes in ``loss``, ``even`` and ``odd``; they have no density.
    """

    log_m: float
    x: np.ndarray
    loss: np.ndarray
    even: np.ndarray
    odd: np.ndarray
    densities: tuple[np.ndarray, ...]

    @property
    def mean(self) -> float:
        return float(self.odd @ self.loss)

    @property
    def variance(self) -> float:
        return max(float(self.even @ (self.loss * self.loss)) - self.mean**2, 0.0)


Law = SampledStep | BoundedStep


def tilt_step(step: Law, tilt: float, frequency: float = 0.0, digits: float = 60.0) -> TiltedLaw:
    """Gauss-Legendre nodes resolving oscillations up to ``frequency``.

    Parts of the line whose tilted mass is below exp(-digits) / count of the whole are left out.
    """
    edges = panels(step, tilt, frequency, digits)
    x, width = quadrature_nodes(edges)
    if isinstance(step, BoundedStep):
        return _tilt_bounded_step(step, tilt, x, width)
    loss, reference = step.loss(x), step.log_reference(x)
    if step.is_symmetric:
        return _tilt_symmetric_step(step, tilt, x, width, loss, reference)
    return _tilt_one_sided_step(step, tilt, x, width, loss, reference)


def panels(step: Law, tilt: float, frequency: float, digits: float) -> np.ndarray:
    """Panels [k, 2] of the x-line outside which the tilted mass is negligible."""
    if isinstance(step, BoundedStep):
        low, parts = step.panel(tilt, frequency, digits)
        return _split_panels(np.array([[low, step.reach]]), np.array([parts]))
    floor = -digits - math.log(step.count)
    low, high = _reach(step, tilt, floor)
    # Within a panel the log weights bend by less than 4 from the chord.
    width = min(0.5, 5.6 / math.sqrt(1.0 + (1.0 + tilt) * step.shift**2 / 4.0))
    number = max(math.ceil((high - low) / width), 8)
    if number > _MOST_PANELS:
        raise Unsupported("the noise is out of the accountant's numerical range")
    edges = np.linspace(low, high, number + 1)
    loss, plain = step.loss(edges), step.log_reference(edges)
    weight = step.log_weight(edges, tilt)
    floor += max(0.0, float(weight.max())) - 4.0
    heavy = np.maximum(weight[:-1], weight[1:]) > floor
    plain = np.maximum(plain, plain + loss)
    keep = heavy | (np.maximum(plain[:-1], plain[1:]) > floor)
    rise = np.diff(loss)[keep] * np.where(heavy[keep], max(frequency / 14, (1 + tilt) / 10), 0.0)
    # log(1 - q + q e^y) is singular at distance pi / shift from the real line
    turns = np.maximum(rise, (high - low) / number * step.shift / 3.0)
    return _split_panels(np.stack([edges[:-1], edges[1:]], axis=1)[keep], turns)


def _split_panels(pairs: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Split panels so that no part sees more than about two periods of the oscillation."""
    if float(turns.sum()) > _MOST_PANELS:
        raise Unsupported("the noise is out of the accountant's numerical range")
    parts = np.maximum(np.ceil(turns), 1.0).astype(np.int64)
    if int(parts.max()) == 1:
        return pairs
    first = np.repeat(pairs[:, 0], parts)
    size = np.repeat((pairs[:, 1] - pairs[:, 0]) / parts, parts)
    index = np.arange(len(first)) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.stack([first + index * size, first + (index + 1) * size], axis=1)


def _reach(step: SampledStep, tilt: float, floor: float) -> tuple[float, float]:
    """An interval beyond which the log weights fall below ``floor`` and keep falling."""
    radius = math.sqrt(-2.0 * floor) + 1.0
    if step.is_symmetric:
        return step.start, max((1.0 + tilt) * step.shift, step.start) + radius
    if step.form == "remove":
        return -radius, (1.0 + tilt) * step.shift + radius
    return -_peak(step, tilt) - radius, step.shift + radius


def _peak(step: SampledStep, tilt: float) -> float:
    """An X at or just beyond the peak -X of the log-concave weight exp(-tilt l(x) - x^2/2)."""
    low, high = 0.0, tilt * step.shift
    for _ in range(60):
        middle = (low + high) / 2.0
        rising = tilt * float(step.slope(np.array([-middle]))[0]) > middle
        low, high = (middle, high) if rising else (low, middle)
        if high - low < 0.1:
            break
    return high


def _tilt_symmetric_step(step, tilt, x, width, loss, reference) -> TiltedLaw:
    up = reference + (1.0 + tilt) * loss
    down = reference - tilt * loss
    with np.errstate(over="ignore"):
        # E e^{tilt L} - 1 = 4 int Q e^{l/2} sinh((tilt+1) l/2) sinh(tilt l/2) dx, free of
        # cancellation; where it would overflow it is far above 1 and the plain sum serves.
        growth = -np.expm1(-(1.0 + tilt) * loss) * -np.expm1(-tilt * loss)
        top = max(0.0, float(up.max()))
        excess = float(width @ (np.exp(up - top) * growth))
    log_m = math.log1p(excess) if top == 0.0 else _log_sum(top, excess)
    plus, minus = np.exp(up - log_m) * width, np.exp(down - log_m) * width
    # P e^{tilt l} - Q e^{-tilt l}, without cancellation at small losses
    odd = plus * -np.expm1(-(1.0 + 2.0 * tilt) * loss)
    per_loss = 1.0 / (width * step.slope(x))
    densities = (plus * per_loss, 2.0 * minus * per_loss)
    return TiltedLaw(log_m, x, loss, plus + minus, odd, densities)


def with_atom(
    step: Law, x: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and log Q-densities; a bounded law's atom is a node of weight 1 at the end."""
    reference = step.log_reference(x)
    if not isinstance(step, BoundedStep):
        return x, width, reference
    return (
        np.append(x, step.reach),
        np.append(width, 1.0),
        np.append(reference, step.atom),
    )


def _tilt_bounded_step(
    step: BoundedStep, tilt: float, x: np.ndarray, width: np.ndarray
) -> TiltedLaw:
    nodes, weights, reference = with_atom(step, x, width)
    law = _tilt_symmetric_step(step, tilt, nodes, weights, nodes, reference)
    densities = tuple(density[:-1] for density in law.densities) if step.share < 1.0 else ()
    return replace(law, x=x, densities=densities)


def _tilt_one_sided_step(step, tilt, x, width, loss, reference) -> TiltedLaw:
    power = 1.0 + tilt if step.form == "remove" else -tilt
    up = reference + power * loss
    top = max(0.0, float(up.max()))
    if top == 0.0:
        # E_Q[e^{wl}] - 1 with the exact zero w E_Q[e^l - 1] taken off before integrating
        second = _remainder(reference, power * loss) - power * _remainder(reference, loss)
        log_m = math.log1p(float(width @ second))
    else:
        log_m = top + math.log(float(width @ np.exp(up - top)))
    weight = np.exp(up - log_m) * width
    signed = loss if step.form == "remove" else -loss
    density = weight / (width * step.slope(x))
    return TiltedLaw(log_m, x, signed, weight, weight, (density,))


def _log_sum(top: float, excess: float) -> float:
    """log(1 + e^top * excess)."""
    return float(np.logaddexp(0.0, top + math.log(excess))) if excess > 0.0 else 0.0


def _remainder(log_weight: np.ndarray, u: np.ndarray) -> np.ndarray:
    """e^log_weight (e^u - 1 - u), where neither log_weight nor its sum with u is large."""
    small = np.abs(u) < 0.5
    v = np.where(small, u, 0.0)
    series = np.zeros_like(v)
    for k in range(16, 2, -1):
        series = (series + 1.0) * v / k
    near = np.exp(log_weight) * ((series + 1.0) * v * v / 2.0)
    far = np.exp(log_weight + u) - np.exp(log_weight) * (1.0 + u)
    return np.where(small, near, far)


def quadrature_nodes(edges: np.ndarray, order: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on every panel, flattened."""
    nodes, weights = _rule(order)
    half = (edges[:, 1] - edges[:, 0]) / 2.0
    x = edges[:, :1] + half[:, None] * (nodes + 1.0)
    return x.ravel(), (half[:, None] * weights).ravel()


@cache
def _rule(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(order)


def _log_mix(q: float, y: np.ndarray) -> np.ndarray:
    """log(1 - q + q e^y)."""
    near = np.log1p(q * np.expm1(np.minimum(y, 30.0)))
    if q == 1.0:
        return y
    far = math.log(q) + y + np.log1p((1.0 - q) / q * np.exp(-np.maximum(y, 0.0)))
    return np.where(y < 30.0, near, far)


def _posterior(q: float, y: np.ndarray) -> np.ndarray:
    """q e^y / (1 - q + q e^y)."""
    if q == 1.0:
        return np.ones_like(y)
    return 1.0 / (1.0 + (1.0 - q) / q * np.exp(np.clip(-y, -600.0, 600.0)))
