"""The base class of local channels, and helpers that they share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import CheckedFields, Count, Range
from dperm_cli.loops import local_channels as loops
from dperm_cli.loops.local_channels import Coding
from dperm_cli.privacy.channels import sign_bit


@dataclass(frozen=True)
class Channel(CheckedFields, ABC):
    """A channel for vectors x in the unit ball of a norm of R^dim, of one gain > 0.

    Answers z have mean x. ``norm`` is the ball's (1, 2 or inf); ``code`` the norm's, and the
    kernel's, in compiled loops.
    """

    dim: Count
    gain: Annotated[float, Range(sign_bit.LEAST)]

    shape: ClassVar[str]
    norm: ClassVar[float]
    code: ClassVar[int]
    # there are finitely many answers, whose values do not depend on what goes in
    discrete: ClassVar[bool] = True
    # compiled loops can carry it out; without that, ``sample`` alone
    compiled: ClassVar[bool] = True

    @property
    def multiplier(self) -> float:
        """M: the norm of an answer, in the channel's own norm; inputs have at most 1."""
        return self.least_multiplier(self.dim) / sign_bit.mean(self.gain, self.corners(self.dim))

    @property
    def epsilon(self) -> float:
        """sup over inputs and answers of the log ratio of chances, nats: local epsilon."""
        return 2.0 * self.signs(self.dim) * self.gain

    @property
    def information(self) -> float:
        """sup over laws P of the input of I(P, Q), nats [DJW12, Eq. 3]."""
        each = sign_bit.information(self.gain, self.corners(self.dim))
        return self.signs(self.dim) * each

    @property
    def second_moment(self) -> float:
        """E |z|_2^2 of an answer: it does not depend on the input."""
        return self.signs(self.dim) * self.multiplier**2

    @property
    def expansion(self) -> float:
        """d / (2 M^2): the leading term of the information of the l_inf and l_1 channels."""
        return self.dim / (2.0 * self.multiplier**2)

    @classmethod
    def signs(cls, dim: int) -> int:
        """How many private signs an answer consists of."""
        return 1

    @classmethod
    def corners(cls, dim: int) -> int:
        """Half the number of corners that one private sign chooses from: 1 for a mere sign."""
        return 1

    @classmethod
    def gain_of_epsilon(cls, dim: int, epsilon: float) -> float:
        """The gain of a local epsilon."""
        return epsilon / (2.0 * cls.signs(dim))

    @classmethod
    def most_information(cls, dim: int) -> float:
        """The information at gain infinity."""
        return cls.signs(dim) * math.log(2.0 * cls.corners(dim))

    @classmethod
    def least_multiplier(cls, dim: int) -> float:
        """The multiplier at gain infinity."""
        return 1.0

    @classmethod
    def most_gain(cls, dim: int) -> float:
        """Where a search for a gain may stop: 64 random bits know no larger one."""
        return 46.0 + float(np.log(2.0 * dim))

    @abstractmethod
    def outputs(self) -> np.ndarray:
        """Every answer there is, [m, dim]; ValueError where they are too many or a continuum."""

    @abstractmethod
    def law(self, x: np.ndarray) -> np.ndarray:
        """The chances [k, m] of the answers to inputs [k, dim] of the unit ball."""

    @abstractmethod
    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        """sup over answers of the |log ratio| of chances for the inputs [k, dim] and [k, dim]."""

    def coding(self, bound: float = 1.0) -> Coding:
        """The channel for vectors of norm at most ``bound`` as its kernel carries it out."""
        flip = sign_bit.flip_chance(self.gain)
        gain = ((1 << 63) - flip) / (1 << 63)
        size = bound * self.least_multiplier(self.dim) / gain
        return Coding(self.code, bound, size, gain, np.uint64(flip))

    def sample(self, x: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Answers [k, dim] to inputs [k, dim], from random words [k, 2, blocks] (uint64)."""
        return loops.send(self.coding(), x, words)

    @property
    def blocks(self) -> int:
        """Pairs of random words that one answer takes."""
        return loops.blocks(self.code, self.dim)


def shorten_rows(x: np.ndarray, norm: float) -> np.ndarray:
    """Rows [k, dim] outside the unit ball of a norm brought to its surface."""
    x = np.atleast_2d(np.asarray(x, dtype=float))
    length = np.linalg.norm(x, ord=norm, axis=1, keepdims=True)
    return x / np.maximum(length, 1.0)
