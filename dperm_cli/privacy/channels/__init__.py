"""Channels of local privacy: what a user's own device sends in place of a vector [DJW12].

Each takes vectors of a unit ball (l_inf, l_1 or l_2) to answers whose mean is the vector, and is
known by its dimension and the ``gain`` of one private sign (``sign_bit``). Proofs:
docs/proofs/_channels.md. Of the two later channels of the l_2 ball, privunit and
privunit_g: docs/proofs/_cap_channels.md.
"""

from __future__ import annotations

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.base import Channel
from dperm_cli.privacy.channels.caps import PrivUnit, PrivUnitG
from dperm_cli.privacy.channels.l_1 import L1
from dperm_cli.privacy.channels.l_2 import L2
from dperm_cli.privacy.channels.l_inf import LInf

_CLASSES: dict[str, type[Channel]] = {
    "l_inf": LInf, "l_1": L1, "l_2": L2, "privunit": PrivUnit, "privunit_g": PrivUnitG,
}  # fmt: skip
SHAPES = tuple(_CLASSES)


def by_epsilon(shape: str, dim: int, epsilon: float) -> Channel:
    """The channel of this local epsilon: never more, as computed."""
    cls = _class(shape, dim)
    epsilon = checks.positive("epsilon", epsilon)
    gain = cls.gain_of_epsilon(dim, epsilon)
    if not gain >= sign_bit.LEAST:
        raise sign_bit.too_little()
    while not cls(dim, gain).epsilon <= epsilon:
        gain *= 1.0 - 2.0**-53
    return cls(dim, gain)


def by_multiplier(shape: str, dim: int, multiplier: float) -> Channel:
    """The channel whose answers are ``multiplier`` > 1 times as long as what goes in, in its norm.

    Rounded to the private side: the multiplier of what is returned is never below. The least
    multiplier of an l_2 channel is above 1 in more than one dimension.
    """
    cls, least = _class(shape, dim), least_multiplier(shape, dim)
    multiplier = checks.number("multiplier", multiplier, low=least, low_open=True)
    found = sign_bit.find_gain(
        lambda gain: -cls(dim, gain).multiplier, -multiplier, cls.most_gain(dim)
    )
    return cls(dim, found)


def least_multiplier(shape: str, dim: int) -> float:
    """The multiplier of a channel that hides nothing: every other one has a larger one."""
    return _class(shape, dim).least_multiplier(dim)


def by_information(shape: str, dim: int, information: float) -> Channel:
    """The channel that tells at most ``information`` nats about a vector, whatever its law.

    ``Unsupported`` where that is no limit: an answer never tells more (``most_information``).
    """
    cls = _class(shape, dim)
    information = checks.positive("information", information)
    most = most_information(shape, dim)
    # beyond, the epsilon that keeps to it has no use for rounding errors
    if not information < most:
        raise Unsupported(
            f"information {information:g} is no limit: an answer of the {shape} channel in {dim} "
            f"dimensions never tells {most:.6g} nats or more; ask for less, or for an epsilon"
        )
    limit = cls.most_gain(dim)
    return cls(dim, sign_bit.find_gain(lambda g: cls(dim, g).information, information, limit))


def most_information(shape: str, dim: int) -> float:
    """What an answer tells without any privacy: the supremum over gains, nats."""
    return _class(shape, dim).most_information(dim)


def _class(shape: str, dim: int) -> type[Channel]:
    checks.choice("channel", shape, SHAPES)
    checks.integer("dim", dim, low=1)
    return _CLASSES[shape]
