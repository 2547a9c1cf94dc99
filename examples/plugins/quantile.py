"""The quantile loss (pinball loss) as a plug-in of dperm: its minimiser is a tau-quantile of y.

    dperm check quantile.py
    dperm run --plugin quantile.py dataset=diabetes loss=quantile loss.tau=0.9 mechanism=noisy_gd

It is piecewise linear in the margin z = <x, theta>: the slope is -tau below the target and 1 - tau
above it. So it has a kink and no smoothness, and mechanisms that need a smooth loss refuse it
(mechanism=huberized rounds kinks of shipped losses alone).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dperm_cli import Help, MarginLoss, Range

__version__ = "1.0"


@dataclass(frozen=True)
class Quantile(MarginLoss):
    """tau (y - z) where z < y, (1 - tau) (z - y) above."""

    tau: Annotated[float, Range(above=0, below=1), Help("which quantile")] = 0.5

    tasks = ("regression",)
    smoothness = None

    def value(self, z, y):
        """The loss of margins [..., n] and targets [n]."""
        return np.maximum(self.tau * (y - z), (1.0 - self.tau) * (z - y))

    def slope(self, z, y):
        """Its derivative in z; at the kink, 0 lies between the two sides."""
        return np.where(z > y, 1.0 - self.tau, np.where(z < y, -self.tau, 0.0))

    def slope_bound(self, margin, target):
        """The larger of the two slopes."""
        return max(self.tau, 1.0 - self.tau)

    def span(self, margin, target):
        """Over |z| <= margin it falls by at most tau, or rises by at most 1 - tau, times 2 margin;
        and from its least value, 0, it goes up to where z is margin + target off."""
        return self.slope_bound(margin, target) * min(2.0 * margin, margin + target)

    def pieces(self, y):
        """(sign, offset, up, down): (1 - tau) max(r, 0) + tau max(-r, 0) at r = z - y. Conjugate,
        certificates and cone programs follow from it."""
        return np.ones_like(y), -y, 1.0 - self.tau, self.tau
