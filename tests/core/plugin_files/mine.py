"""A mechanism, a loss and a set, as a researcher writes them in a file of their own."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dperm_cli import ConvexSet, Gaussian, MarginLoss, Mechanism, Range, Release

__version__ = "1.2"
Positive = Annotated[float, Range(above=0)]


@dataclass(frozen=True)
class OneStep(Mechanism):
    """Project(centre - step_size (sum of gradients + noise))."""

    step_size: Positive = 0.1

    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view, plan, gate):
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(view.spec.constraint.project(start - self.step_size * total))


@dataclass(frozen=True)
class Quantile(MarginLoss):
    """The pinball loss."""

    tau: Annotated[float, Range(above=0, below=1)] = 0.5
    name, tasks, smoothness = "quantile", ("regression",), None

    def value(self, z, y):
        return np.maximum(self.tau * (y - z), (1 - self.tau) * (z - y))

    def slope(self, z, y):
        return np.where(z > y, 1 - self.tau, np.where(z < y, -self.tau, 0.0))

    def slope_bound(self, margin, target):
        return max(self.tau, 1 - self.tau)

    def span(self, margin, target):
        return self.slope_bound(margin, target) * min(2 * margin, margin + target)

    def conjugate(self, a, y):
        return np.where((a >= -self.tau) & (a <= 1 - self.tau), a * y, np.inf)

    def pieces(self, y):
        return np.ones_like(y), -y, 1 - self.tau, self.tau


@dataclass(frozen=True)
class NonnegativeBall(ConvexSet):
    """theta >= 0 with |theta|_2 <= radius."""

    radius: Positive
    p: int
    name, symmetric, size = "nonnegative_ball", False, property(lambda self: self.radius)
    diameter = property(lambda self: self.radius * (math.sqrt(2) if self.p > 1 else 1.0))
    inner_radius = property(lambda self: self.radius / (math.sqrt(self.p) + 1))

    def centre(self):
        return np.full(self.p, self.inner_radius)

    def gauge(self, t):
        return np.where(np.min(t, axis=-1) < 0, np.inf, np.linalg.norm(t, axis=-1) / self.radius)

    def project(self, t):
        return self._to(np.maximum(t, 0), self.radius)

    def lmo(self, g):
        return self._to(np.maximum(-g, 0), 1e-300)

    def _to(self, v, least):
        return v * self.radius / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), least)
