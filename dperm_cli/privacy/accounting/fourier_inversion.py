"""delta(epsilon) of a long composition by one contour integral [Gil-Pelaez; Alghamdi et al. 2023].

With z = lambda + i t and S the total loss under P,
delta(epsilon) = (1/2 pi) int M(z) e^{-z epsilon} / (z (z+1)) dt, taken by the trapezoid rule with
spacing 2 pi / B over |t| <= t_J. What the rule does to the number, term by term:

aliases      it returns delta(epsilon) + sum_{k != 0} e^{lambda k B} delta(epsilon + k B): all terms
             positive, so never too small; B makes them < 1e-11 of delta.
truncation   |M(lambda + it)| <= M(lambda) e^{-E(t)} with E increasing (``_tail_end``), so the part
             beyond t_J is at most M(lambda) e^{-lambda epsilon} e^{-E(t_J)} / (pi t_J). Added.
quadrature   M is a 16-point Gauss-Legendre sum on panels narrow against the density, the
             oscillation and the nearest singularity, left-out mass e^-45 of the whole; and
rounding     sums of terms of known size; both bounded by a share of 1e-10 + 1e-14 (sqrt(count) +
             min(count, 20 000)) of the sum of |terms|. Added.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.saddle_point import Composition, Saddle
from dperm_cli.privacy.accounting.subsampled_laws import TiltedLaw, tilt_step

Complex = npt.NDArray[np.complex128]

_TAIL_EXPONENT = 36.0
_DIGITS = 45.0
# Repetitions up to which absolute errors of 5e-15 in one step's transform do no harm.
MOST_BLOCKED = 20_000
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Contour:
    """M on the contour; ``log_delta`` is an upper bound at any epsilon, sharp near the saddle's."""

    saddle: Saddle
    z: Complex
    log_ratio: Complex
    spacing: float
    log_tail: float
    slack: float

    def log_delta(self, epsilon: float) -> float:
        t = self.z.imag
        terms = np.exp(self.log_ratio - 1j * t * epsilon) / (self.z * (self.z + 1.0))
        terms[1:] *= 2.0
        total = float(terms.real.sum()) + self.slack * float(np.abs(terms).sum())
        total = self.spacing / (2.0 * math.pi) * total + math.exp(self.log_tail)
        return self.saddle.log_m - self.saddle.tilt * epsilon + math.log(total)


def contour(composition: Composition, saddle: Saddle, most_work: float) -> Contour | None:
    """The contour through a saddle; None where it would cost more than ``most_work`` terms."""
    if not saddle.period < math.inf:
        return None
    laws = [tilt_step(step, saddle.tilt, digits=_DIGITS) for step in composition.steps]
    counts = [step.count for step in composition.steps]
    end = _tail_end(laws, counts, composition.mu2)
    spacing = 2.0 * math.pi / saddle.period
    if not end < spacing * most_work:
        return None
    points = math.ceil(end / spacing) + 1
    widest = max((float(np.abs(law.loss).max()) for law in laws), default=0.0)
    nodes = sum(len(law.x) for law in laws) + 1.2 * end * widest * len(laws)
    if not points * nodes <= most_work:
        return None
    t = spacing * np.arange(points)
    log_ratio = composition.mu2 / 2.0 * (-t * t + 1j * t * (2.0 * saddle.tilt + 1.0))
    for step in composition.steps:
        law = tilt_step(step, saddle.tilt, frequency=float(t[-1]), digits=_DIGITS)
        log_ratio = log_ratio + step.count * _log_ratio(law, step.count, spacing, points)
    log_tail = -_TAIL_EXPONENT - math.log(math.pi * end)
    uses = sum(counts)
    slack = 1e-10 + 1e-14 * (math.sqrt(uses) + min(uses, MOST_BLOCKED))
    z = np.asarray(saddle.tilt + 1j * t, dtype=np.complex128)
    return Contour(saddle, z, log_ratio, spacing, log_tail, slack)


def _log_ratio(law: TiltedLaw, count: int, spacing: float, points: int) -> Complex:
    """log M(tilt + i t) / M(tilt) of one step at t = 0, spacing, ..., shape [points]."""
    excess = sum_in_blocks if count <= MOST_BLOCKED else sum_directly
    return _log1p(excess(law, spacing, points))


def sum_directly(law: TiltedLaw, spacing: float, points: int) -> Complex:
    """E e^{i t L} - 1 without cancellation: what a power of 1e10 needs."""
    out = np.empty(points, dtype=complex)
    rows = max(1, _CHUNK // len(law.loss))
    for start in range(0, points, rows):
        t = spacing * np.arange(start, min(start + rows, points))
        angle = np.outer(t, law.loss / 2.0)
        sine, cosine = np.sin(angle), np.cos(angle)
        out[start : start + rows] = -2.0 * (sine * sine) @ law.even + 2j * (
            (sine * cosine) @ law.odd
        )
    return out


def sum_in_blocks(law: TiltedLaw, spacing: float, points: int) -> Complex:
    """The same to 5e-15 absolute, as matrix products by the addition theorems."""
    size = math.ceil(math.sqrt(points))
    real, imaginary = np.zeros((size, size)), np.zeros((size, size))
    for start in range(0, len(law.loss), 4096):
        part = slice(start, start + 4096)
        even, odd = law.even[part], law.odd[part]
        fine = _turns(spacing * law.loss[part], size)
        coarse = _turns(spacing * size * law.loss[part], size)
        right = np.concatenate([fine.real, fine.imag], axis=1).T
        real += np.concatenate([coarse.real * even, -coarse.imag * even], axis=1) @ right
        imaginary += np.concatenate([coarse.imag * odd, coarse.real * odd], axis=1) @ right
    flat = real.ravel() - real[0, 0] + 1j * imaginary.ravel()
    return flat[:points]


def _turns(angle: np.ndarray, size: int) -> Complex:
    """e^{i k angle} for k below size, shape [size, len(angle)], by doubling."""
    out = np.ones((size, len(angle)), dtype=complex)
    done = 1
    while done < size:
        more = min(done, size - done)
        np.multiply(out[:more], np.exp(1j * (done * angle)), out=out[done : done + more])
        done += more
    return out


def _log1p(w: Complex) -> Complex:
    """log(1 + w) for complex w without loss at small w."""
    square = 2.0 * w.real + w.real**2 + w.imag**2
    with np.errstate(divide="ignore"):
        modulus = np.where(square > -0.5, 0.5 * np.log1p(square), np.log(np.abs(1.0 + w)))
    return modulus + 1j * np.arctan2(w.imag, 1.0 + w.real)


def _tail_end(laws: list[TiltedLaw], counts: list[int], mu2: float) -> float:
    """A frequency beyond which |M(lambda + it)| / M(lambda) <= exp(-_TAIL_EXPONENT).

    The Gaussian part decays as exp(-mu2 t^2 / 2). A step whose tilted law has a component of mass
    c uniform on an interval of losses of width w (or on it and its mirror image) has
    |phi(t)| <= 1 - c + c psi(t w / 2), psi(y) = max(e^{-y^2/6}, 1/pi) >= |sin(y) / y|.
    """
    ends = [math.sqrt(2.0 * _TAIL_EXPONENT / mu2) if mu2 > 0.0 else math.inf]
    for law, count in zip(laws, counts, strict=True):
        ends += [_uniform_end(law, density, count) for density in law.densities]
    return min(ends)


def _uniform_end(law: TiltedLaw, density: np.ndarray, count: int) -> float:
    """The least frequency that the uniform component of some interval of losses proves.

    Intervals run between picked nodes. Their density is taken as 0.9 of the least at their nodes,
    which lie so close that the log density bends by under 0.05 in between.
    """
    order = np.argsort(law.x)
    density, loss = density[order], law.loss[order]
    picks = np.arange(0, len(order), max(1, len(order) // 160))
    # least density between neighbouring picks, both included
    least = np.minimum(np.minimum.reduceat(density, picks)[:-1], density[picks[1:]])
    best = math.inf
    for i in range(len(least)):
        width = np.abs(loss[picks[i + 1 :]] - loss[picks[i]])
        mass = 0.9 * np.minimum.accumulate(least[i:]) * width
        good = count * mass * (1.0 - 1.0 / math.pi) > _TAIL_EXPONENT
        if good.any():
            share = _TAIL_EXPONENT / (count * mass[good])
            y = np.sqrt(-6.0 * np.log1p(-share))
            best = min(best, float(np.min(2.0 * y / width[good])))
    return best
