"""Two channels of the Euclidean ball that answer from a cap around the vector.

The sphere (or a Gaussian law) is cut into a cap around the vector, of mass q, and the rest. The
answer comes from the cap with chance P = 1 / (1 + e^-a) and from the rest otherwise. With q = 1 /
(1 + e^(epsilon - a)) a density ratio is at most e^epsilon, for every ``a`` from 0 to epsilon. The
``a`` with the smallest squared error is taken. Proof: docs/proofs/_cap_channels.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy.special import betaincinv, gammaln, ndtri

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.core.unit_rows import find_unit_rows
from dperm_cli.loops import local_channels as loops
from dperm_cli.loops.local_channels import Coding
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.base import Channel, shorten_rows

_WORD, _HALF = 1 << 64, 1 << 63
_STRAIGHT = 1e-14  # of a cosine: rounding


@dataclass(frozen=True)
class Split:
    """How epsilon is divided between the choice of the cap and the size of the cap.

    ``side``: the part spent on telling the cap from the rest. ``size``: what is left; it makes
    the cap small. The chance of the rest is ``flip`` times 2^-64, rounded up.

    >>> Split(1.0, 0.0).mass
    0.5
    """

    side: float
    size: float

    @cached_property
    def flip(self) -> int:
        """The chance, times 2^64, that the answer comes from outside the cap."""
        return sign_bit.flip_chance(self.side / 2.0)

    @property
    def mass(self) -> float:
        """q: the mass of the cap under the law that depends on no input."""
        return 1.0 / (1.0 + math.exp(self.size))

    @property
    def excess(self) -> float:
        """P - q, to all its digits."""
        return (_HALF - self.flip) / _WORD + 0.5 * math.tanh(self.size / 2.0)

    @property
    def tilt(self) -> float:
        """P / q - (1 - P) / (1 - q): density in the cap minus density outside."""
        return self.excess / (self.mass * (1.0 - self.mass))

    @property
    def tilt_slope(self) -> float:
        """The derivative of ln ``tilt`` where a little of ``size`` goes over to ``side``."""
        return 1.0 / (1.0 + math.exp(self.side)) - 1.0 / (1.0 + math.exp(-self.size))

    @property
    def densities(self) -> tuple[float, float]:
        """The densities in the cap and outside, relative to the law that depends on no input."""
        return 1.0 + self.excess / self.mass, (self.flip / _WORD) / (1.0 - self.mass)


@dataclass(frozen=True)
class CapChannel(Channel):
    """What both channels share: the split, the answer, and the exact ratio of densities.

    Epsilon is 2 ``gain``, as of the l_2 channel. A vector x with |x|_2 < 1 is first rounded to one
    of the unit vectors x / |x| and -x / |x|, at random and with mean x.
    """

    norm: ClassVar[float] = 2
    code: ClassVar[int] = loops.L_2  # of the norm
    discrete: ClassVar[bool] = False
    compiled: ClassVar[bool] = False

    @property
    def split(self) -> Split:
        """The division of epsilon with the smallest squared error."""
        return _best_split(type(self), self.dim, self.gain)

    @property
    def multiplier(self) -> float:
        """The root mean square length of an answer; inputs have at most length 1."""
        return math.sqrt(self.second_moment)

    @property
    def second_moment(self) -> float:
        """E |z|_2^2 of an answer: it does not depend on the input."""
        return self.find_second_moment(self.dim, self.split)

    @property
    def information(self) -> float:
        """The divergence of the answer to a unit vector from the law that depends on no input."""
        split = self.split
        near, far = split.excess / split.mass, -split.excess / (1.0 - split.mass)
        outside = math.log1p(far) if far > -0.5 else math.log(split.densities[1])
        rest = split.flip / _WORD
        return max(0.0, (1.0 - rest) * math.log1p(near) + rest * outside)

    @classmethod
    def most_information(cls, dim: int) -> float:
        """No limit: without privacy an answer is the vector itself."""
        return math.inf

    @classmethod
    @abstractmethod
    def find_mean(cls, dim: int, split: Split) -> float:
        """m: the mean component, along a unit vector, of an answer before it is divided by m."""

    @classmethod
    @abstractmethod
    def find_second_moment(cls, dim: int, split: Split) -> float:
        """E |z|_2^2 with this division of epsilon."""

    @classmethod
    @abstractmethod
    def find_slope(cls, dim: int, split: Split) -> float:
        """The derivative of -ln E |z|_2^2 where a little of ``size`` goes over to ``side``."""

    @abstractmethod
    def place(self, tail: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The component [k] above which mass ``tail`` [k] lies; ``other`` is 1 - ``tail``.

        Returns:
            The component along the vector, and the length of the rest on a sphere (0 of PrivUnitG).
        """

    @abstractmethod
    def join(
        self, along: np.ndarray, across: np.ndarray, unit: np.ndarray, normals: np.ndarray
    ) -> np.ndarray:
        """The answers [k, dim], not yet divided by m.

        Args:
            along, across: what ``place`` returned.
            unit: unit vectors [k, dim].
            normals: independent normal numbers [k, dim].
        """

    @property
    def edge(self) -> tuple[float, float]:
        """Where the cap ends: what ``place`` returns for its mass."""
        mass = np.array([self.split.mass])
        along, across = self.place(mass, 1.0 - mass)
        return float(along[0]), float(across[0])

    def outputs(self) -> NoReturn:
        """There is no list of answers.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"the answers of the {self.shape} channel are a continuum")

    def law(self, x: np.ndarray) -> NoReturn:
        """There are no chances of single answers; ``density`` has the law.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"the answers of the {self.shape} channel are a continuum")

    def coding(self, bound: float = 1.0) -> Coding:
        """There is no compiled kernel.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"the {self.shape} channel has no compiled kernel: use its sample()")

    @property
    def blocks(self) -> int:
        """Pairs of random words that one answer takes: two, and one for two coordinates."""
        return 2 + (self.dim + 1) // 2

    def density(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The density [k] of answers z [k, dim] to x [k, dim], relative to a law without input."""
        x = shorten_rows(x, 2)
        length = np.linalg.norm(x, axis=1)
        split = self.split
        along = np.sum(z * _unit_rows(x), axis=1) * self.find_mean(self.dim, split)
        edge = self.edge[0]
        inside, outside = split.densities
        near = np.where(along > edge, inside, outside)
        far = np.where(along < -edge, inside, outside)
        return 0.5 * (1.0 + length) * near + 0.5 * (1.0 - length) * far

    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        """At least sup over answers of the |log ratio| of densities; exact on one line."""
        x, other = shorten_rows(x, 2), shorten_rows(other, 2)
        own, others = self._log_densities(x), self._log_densities(other)
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(other, axis=1)
        product = np.sum(x * other, axis=1)
        same = np.max(np.abs(own - others), axis=0)
        across = np.max(np.abs(own - others[[1, 0, 2]]), axis=0)
        most = np.maximum(
            own.max(axis=0) - others.min(axis=0), others.max(axis=0) - own.min(axis=0)
        )
        straight = product >= lengths * (1.0 - _STRAIGHT)
        opposite = product <= -lengths * (1.0 - _STRAIGHT)
        return np.where(straight, same, np.where(opposite, across, most))

    def sample(self, x: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Answers [k, dim] to inputs [k, dim], from random words [k, 2, blocks] (uint64).

        Raises:
            ValueError: the words have another shape or type.
        """
        x = np.array(x, dtype=float, ndmin=2)
        if words.shape != (len(x), 2, self.blocks) or words.dtype != np.uint64:
            need = (len(x), 2, self.blocks)
            raise ValueError(f"words of shape {words.shape} where {need} are needed")
        x[~np.isfinite(x).all(axis=1)] = 0.0  # a strange vector tells nothing
        x = shorten_rows(x, 2)
        length = np.linalg.norm(x, axis=1)
        turned = _uniform(words[:, 0, 0]) > 0.5 * (1.0 + length)
        unit = np.where(turned, -1.0, 1.0)[:, None] * _unit_rows(x)
        split = self.split
        inside = words[:, 1, 0] >= np.uint64(split.flip)
        share, mass = _uniform(words[:, 0, 1]), split.mass
        tail = np.where(inside, mass * share, mass + (1.0 - mass) * share)
        other = np.where(inside, 1.0 - mass * share, (1.0 - mass) * (1.0 - share))
        normals = loops.normal_rows(words[:, :, 2:], self.dim)
        answers = self.join(*self.place(tail, other), unit, normals)
        return answers / self.find_mean(self.dim, split)

    def _log_densities(self, x: np.ndarray) -> np.ndarray:
        """ln of the densities in the cap of x, in the opposite cap and between them, [3, k]."""
        length = np.minimum(np.linalg.norm(x, axis=1), 1.0)
        inside, outside = self.split.densities
        near = outside + 0.5 * (1.0 + length) * (inside - outside)
        far = outside + 0.5 * (1.0 - length) * (inside - outside)
        between = np.full_like(near, outside)
        if self.split.size == 0.0:  # two half spheres: nothing lies between
            between = near
        return np.log(np.stack([near, far, between]))


@dataclass(frozen=True)
class PrivUnit(CapChannel):
    """A uniform direction in a cap around x or outside it, for |x|_2 <= 1 [BDFKR18].

    An answer has length 1 / m, where m = A (P / q - (1 - P) / (1 - q)) and A = c (1 - t^2)^((d - 1)
    / 2) / (d - 1), the mean of u_1 over the cap u_1 > t. With all of epsilon spent on the side of a
    half sphere it is the l_2 channel, so it is never worse.

    >>> PrivUnit(dim=10, gain=2.0).epsilon
    4.0
    """

    shape: ClassVar[str] = "privunit"

    @classmethod
    def find_mean(cls, dim: int, split: Split) -> float:
        if dim == 1:
            return 0.5 * split.tilt
        falls = _one_minus_square(dim, np.array([split.mass]))[0]
        log = gammaln(dim / 2.0) - gammaln((dim - 1.0) / 2.0) - 0.5 * math.log(math.pi)
        log += 0.5 * (dim - 1.0) * math.log(falls) - math.log(dim - 1.0)
        return math.exp(log) * split.tilt

    @classmethod
    def find_second_moment(cls, dim: int, split: Split) -> float:
        return cls.find_mean(dim, split) ** -2

    @classmethod
    def find_slope(cls, dim: int, split: Split) -> float:
        mass = split.mass
        edge = math.sqrt(betaincinv(0.5, 0.5 * (dim - 1.0), 1.0 - 2.0 * mass))
        mean = cls.find_mean(dim, split) / split.tilt
        return 2.0 * (mass * (1.0 - mass) * edge / mean + split.tilt_slope)

    def place(self, tail: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.dim == 1:
            return np.where(tail < 0.5, 1.0, -1.0), np.zeros_like(tail)
        least = np.minimum(tail, other)
        half = 0.5 * (self.dim - 1.0)
        # from the side on which no digits are lost
        near = betaincinv(0.5, half, np.clip(1.0 - 2.0 * least, 0.0, 1.0))
        far = _one_minus_square(self.dim, least)
        along = np.sqrt(np.where(least > 0.25, near, 1.0 - far))
        across = np.sqrt(np.where(least > 0.25, 1.0 - near, far))
        return np.where(tail < other, along, -along), across

    def join(
        self, along: np.ndarray, across: np.ndarray, unit: np.ndarray, normals: np.ndarray
    ) -> np.ndarray:
        if self.dim == 1:
            return along[:, None] * unit
        rest = normals - np.sum(normals * unit, axis=1, keepdims=True) * unit
        rest /= np.linalg.norm(rest, axis=1, keepdims=True)
        return along[:, None] * unit + across[:, None] * rest

    @property
    def edge(self) -> tuple[float, float]:
        """On a line 0: the two points are the two halves."""
        return (0.0, 1.0) if self.dim == 1 else super().edge


@dataclass(frozen=True)
class PrivUnitG(CapChannel):
    """A normal vector N(0, I / d), its component along x above a threshold or not [AFT22].

    Answers have a length that varies by about 1 / sqrt(2 d) of itself. The law of the component is
    the same in every dimension. With z the threshold and f its density, m = f / sqrt(d) (P / q - (1
    - P) / (1 - q)).

    >>> PrivUnitG(dim=10, gain=2.0).epsilon
    4.0
    """

    shape: ClassVar[str] = "privunit_g"

    @classmethod
    def find_mean(cls, dim: int, split: Split) -> float:
        return _normal_density(-float(ndtri(split.mass))) * split.tilt / math.sqrt(dim)

    @classmethod
    def find_second_moment(cls, dim: int, split: Split) -> float:
        edge = -float(ndtri(split.mass))
        square = dim + edge * _normal_density(edge) * split.tilt
        return square / dim / cls.find_mean(dim, split) ** 2

    @classmethod
    def find_slope(cls, dim: int, split: Split) -> float:
        mass, edge = split.mass, -float(ndtri(split.mass))
        density, grows = _normal_density(edge), mass * (1.0 - mass)
        mean_slope = grows * edge / density + split.tilt_slope
        square = dim + edge * density * split.tilt
        moved = grows * (edge * edge - 1.0) + edge * density * split.tilt_slope
        return 2.0 * mean_slope - split.tilt * moved / square

    def place(self, tail: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        least = np.minimum(tail, other)
        along = np.where(tail < other, -1.0, 1.0) * ndtri(least) / math.sqrt(self.dim)
        return along, np.zeros_like(tail)

    def join(
        self, along: np.ndarray, across: np.ndarray, unit: np.ndarray, normals: np.ndarray
    ) -> np.ndarray:
        scaled = normals / math.sqrt(self.dim)
        return scaled + (along - np.sum(scaled * unit, axis=1))[:, None] * unit


@memoise(MIB)
def _best_split(cls: type[CapChannel], dim: int, gain: float) -> Split:
    """The split of epsilon = 2 ``gain`` with the smallest second moment."""
    from scipy.optimize import brentq

    whole = Split(2.0 * gain, 0.0)
    if dim == 1 and cls is PrivUnit:  # two points have no cap but a half
        return whole

    def slope(side: float) -> float:
        return cls.find_slope(dim, Split(side, 2.0 * gain - side))

    if not slope(0.0) > 0.0 > slope(2.0 * gain):  # so little epsilon that rounding hides the signs
        return whole
    root: Any = brentq(slope, 0.0, 2.0 * gain, xtol=1e-15 * gain)
    return Split(float(root), 2.0 * gain - float(root))


def _one_minus_square(dim: int, mass: np.ndarray) -> np.ndarray:
    """1 - t^2 where the cap u_1 > t of the sphere has this mass [k], at most 1/2."""
    return betaincinv(0.5 * (dim - 1.0), 0.5, 2.0 * mass)


def _normal_density(at: float) -> float:
    return math.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)


def _uniform(words: np.ndarray) -> np.ndarray:
    """Numbers in (0, 1) from words of 64 bits."""
    return ((words >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def _unit_rows(x: np.ndarray) -> np.ndarray:
    """x [k, d] over its length; the first unit vector where x is 0."""
    found = find_unit_rows(x)
    found[~found.any(axis=1), 0] = 1.0
    return found
