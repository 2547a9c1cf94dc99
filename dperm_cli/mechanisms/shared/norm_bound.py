"""Private estimate of C, the bound on |w*|. [JT13, Sec. 5] mentions it without an algorithm.

What is released is sqrt(|w|^2 + eta^2) with Laplace noise, eta a public constant: as close to a
Lipschitz function of w as |w| itself, and without its root at 0, where rounding would grow.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.kernels.shared.kernel_problem import Fit
from dperm_cli.mechanisms.shared.kernel_queries import StabilityBounds, make_laplace
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.events import Laplace
from dperm_cli.privacy.gate import Gate

# Chance that the estimate is below |w*|, at most. It concerns the error alone.
FAILURE = 1e-3


def event(moves: StabilityBounds, epsilon: float) -> Laplace:
    """One release of the norm, epsilon-DP by itself."""
    return make_laplace(calibrate.pure_scale(epsilon, moves.weight), moves.weight)


def estimate(
    found: Fit, moves: StabilityBounds, release: Laplace, most: float, gate: Gate
) -> np.ndarray:
    """C for each trial, [trials]: at least |w*| with probability 1 - FAILURE, if that is <= most.

    A function of the noisy norm and of public facts.
    """
    noise = gate.stream(release, 1)
    value = math.hypot(found.norm, moves.weight)
    noisy = noise.add(np.full((gate.trials, 1), value), 0)[:, 0]
    return raise_to_bound(noisy, moves, release.scale, most)


def raise_to_bound(
    noisy: np.ndarray, moves: StabilityBounds, scale: float, most: float
) -> np.ndarray:
    """The noisy norm and what noise and the distance to w* may have taken from it, up to ``most``.

    P(Laplace(b) < -b ln(1 / (2 beta))) = beta. At least the norm's own sensitivity, which noise of
    that size cannot tell from 0.
    """
    room = scale * math.log(0.5 / FAILURE) + moves.distance
    return np.clip(noisy + room, min(moves.weight, most), most)
