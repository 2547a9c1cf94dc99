"""The exact loss of a local channel: from the integers that its kernel compares random words with.

Every answer to every corner is listed, up to ten dimensions: sup over pairs of inputs and answers
of the log ratio of chances is reached at corners, since the chances are affine in the input.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np
from scipy import stats

from dperm_cli.core.errors import Unsupported
from dperm_cli.loops.local_channels import L_1, L_INF, Coding
from dperm_cli.privacy.channels import by_epsilon
from dperm_cli.privacy.channels.caps import CapChannel
from dperm_cli.privacy.events import Channel

MOST_DIM, DIMS = 10, (2, 5)
_WORD = 1 << 64


def share(event: Channel) -> float | None:
    """The largest log ratio of all of a user's answers over what they claim; None if unknown."""
    if not event.shape:
        return None
    channel = by_epsilon(event.shape, event.dim, event.epsilon)
    if isinstance(channel, CapChannel):
        return measure_caps(channel) / event.epsilon
    if channel.discrete and event.dim > MOST_DIM:
        return None
    _, _, law = list_law(channel.coding(), event.dim)
    ratios = np.max(law, axis=0) - np.min(law, axis=0)
    return float(np.max(ratios)) / event.epsilon


def shares(event: Channel) -> list[float] | None:
    """``share``, and that of the same channel in ``DIMS``: an attack's single user is on a line,
    where the channels are all alike. None if the event's own is unknown.
    """
    own = share(event)
    if own is None:
        return None
    found = [own]
    for dim in DIMS:
        with contextlib.suppress(Unsupported):  # too little epsilon for so many signs
            channel = by_epsilon(event.shape, dim, event.epsilon)
            found += [share(replace(event, epsilon=channel.epsilon, dim=dim)) or math.inf]
    return found


def measure_caps(channel: CapChannel) -> float:
    """The largest log ratio of densities, from the mass beyond the edge where answers are cut.

    The mass is that of a library's distribution, at the edge that answers are made with.
    """
    along, across = channel.edge
    if channel.shape == "privunit_g":
        mass = float(stats.norm.sf(along * math.sqrt(channel.dim)))
    elif channel.dim == 1:
        mass = 0.5
    else:
        mass = 0.5 * float(stats.beta.cdf(across**2, 0.5 * (channel.dim - 1.0), 0.5))
    kept, turned = _log(_WORD - channel.split.flip, _WORD, 2), _log(channel.split.flip, _WORD, 2)
    return kept - turned + math.log1p(-mass) - math.log(mass)


def list_law(coding: Coding, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(inputs [k, d], answers [m, d], log chances [k, m]) of the corners of the unit ball.

    Of the l_2 channel the two sides of one direction, whatever the dimension.
    """
    if coding.shape == L_1:
        corners = np.vstack([np.eye(dim), -np.eye(dim)])
        return corners, coding.size * corners, _of_corners(coding, dim)
    signs = dim if coding.shape == L_INF else 1
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=signs)))
    flip = int(coding.flip)
    kept, turned = _log(_WORD - flip, _WORD, 2), _log(flip, _WORD, 2)
    equal = corners[:, None, :] == corners[None, :, :]
    law = np.sum(np.where(equal, kept, turned), axis=2) - corners.shape[1] * math.log(2.0)
    return corners, coding.size * corners, law


def _of_corners(coding: Coding, dim: int) -> np.ndarray:
    """ln of the chances of the 2 d corners, given each of them."""
    same, back = int(coding.same), int(coding.last) - int(coding.same) + 1
    others = _WORD - same - back
    each = _log(others, _WORD * (dim - 1), dim) if dim > 1 else 0.0
    law = np.full((2 * dim, 2 * dim), each)
    for corner in range(2 * dim):
        law[corner, corner] = _log(same, _WORD, 2 * dim)
        law[corner, (corner + dim) % (2 * dim)] = _log(back, _WORD, 2 * dim)
    return law - math.log(2.0 * dim)


def _log(count: int, whole: int, times: int) -> float:
    """ln(times count / whole), near 0 to all its digits."""
    away = (times * count - whole) / whole
    return math.log1p(away) if abs(away) < 0.5 else math.log(times * count) - math.log(whole)
