"""What loops are told in numbers: codes and named tuples, in a file that does without numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CONSTANT, INV_SQRT, INV = 0, 1, 2  # step rules of ``sgd``
L_INF, L_1, L_2 = 0, 1, 2  # norms of ``local_channels``


class Coding(NamedTuple):
    """A channel's integers (chances times 2^64) and sizes.

    ``flip``: least chance of a turned sign (L_INF, L_2), gain = 1 - 2 flip. ``same``, ``last``: a
    word below ``same`` keeps the corner, one up to ``last`` turns it round (L_1). ``size``: the
    modulus of an answer. ``bound``: on the norm of what goes in.
    """

    shape: int
    bound: float
    size: float
    gain: float
    flip: np.uint64
    same: np.uint64 = np.uint64(0)
    last: np.uint64 = np.uint64(0)


class Device(NamedTuple):
    """A loss, and the norm (that of the channel) to which a device shortens its row, or inf."""

    loss_code: int
    loss_width: float
    row_norm: float


class Learner(NamedTuple):
    """The numbers of a descent; ``set_code`` and ``size`` as in ``projections`` (POWER: the l_1
    ball where ``within_l1``, else the ball of ``power``)."""

    map: int
    set_code: int
    size: float
    eta_kind: int
    eta0: float
    ridge: float
    lasso: float
    power: float
    within_l1: bool
