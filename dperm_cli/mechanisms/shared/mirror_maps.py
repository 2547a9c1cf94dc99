"""Mirror maps: the distance from the start, the update step, and the constants of the theorem.

A step from theta against a gradient h is argmin over C of a <h, x> + B(x, theta), B the Bregman
divergence of a function that is 1-strongly convex in the map's norm. ``MapConstants`` holds the
four numbers of docs/proofs/mirror_descent.md, Theorem 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm_cli.bounds import ttz14
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.shared import vertex_choice
from dperm_cli.mechanisms.shared.vertex_choice import Vertices
from dperm_cli.problem.problem import ProblemSpec

# what step_size=auto expects of an objective, as shares of its worst curvature and slope
BEND, SLOPE = 0.02, 0.1


@dataclass(frozen=True)
class MapConstants:
    """``distance`` >= B(u, start) for u in C; ``second`` >= the second moment that a step of any
    convex loss pays for, ``noise`` the share of it that is the noise's own; ``curvature`` of the
    sum in the map's norm, or None."""

    distance: float
    second: float
    noise: float
    curvature: float | None

    def step(self, steps: int) -> tuple[float, float, bool]:
        """(bound, step size, whether curvature was used), the smaller bound of the two."""
        any_loss = math.sqrt(2.0 * self.distance * self.second / steps)
        plain = (any_loss, math.sqrt(2.0 * self.distance / (self.second * steps)), False)
        if self.curvature is None:
            return plain
        best = math.sqrt(self.distance / (self.noise * steps))
        size = min(best, 0.5 / self.curvature) if self.curvature > 0.0 else best
        smooth = (self.distance / (size * steps) + size * self.noise, size, True)
        return min(plain, smooth)

    def long_step(self, steps: int) -> float:
        """The size that would be best with ``BEND`` of the curvature and ``SLOPE`` of the slope."""
        if self.curvature is None:
            second = self.noise + SLOPE**2 * max(self.second - self.noise, 0.0)
            return math.sqrt(2.0 * self.distance / (second * steps))
        best = math.sqrt(self.distance / (self.noise * steps))
        return min(best, 0.5 / (BEND * self.curvature)) if self.curvature > 0.0 else best


class EntropyMap:
    """Relative entropy of weights on the vertices.

    States are in the map's own coordinates, [trials, k]: log weights up to a constant.
    """

    def __init__(self, vertices: Vertices) -> None:
        self._vertices = vertices

    def facts(self, spec: ProblemSpec, scale: float) -> MapConstants:
        """The constants of the theorem, at noise of this scale."""
        across, far = spec.constraint.diameter, vertex_choice.centre_distance(spec.constraint)
        noise = (far * scale) ** 2
        steep = (spec.n * spec.lipschitz_total * across) ** 2 / 4.0
        bend = _curvature(spec, across**2 / 4.0)
        return MapConstants(math.log(self._vertices.count), steep + noise, noise, bend)

    def public(self, spec: ProblemSpec) -> dict[str, Any]:
        """What a plan says of the map."""
        reach = vertex_choice.centre_distance(spec.constraint)
        return {"map": "entropy", "vertices": self._vertices.count, "reach": reach}

    def start(self) -> np.ndarray:
        """The state at the centre, [k]."""
        return np.zeros(self._vertices.count)

    def point(self, state: np.ndarray) -> np.ndarray:
        """theta, [..., p]."""
        weights = np.exp(state - np.max(state, axis=-1, keepdims=True))
        return self._vertices.mix(weights / np.sum(weights, axis=-1, keepdims=True))

    def move(self, state: np.ndarray, gradient: np.ndarray, size: float) -> np.ndarray:
        """The state after a step against gradients [..., p]."""
        return state - size * self._vertices.scores(gradient)


class PowerMap:
    """|x|_q^2 / (2 (q - 1)) on the ball {|x|_q <= r}, 1 < q <= 2; states are the points."""

    def __init__(self, size: float, p: int, power: float) -> None:
        self._size, self._p, self._q = size, p, power
        self._dual = power / (power - 1.0)

    def facts(self, spec: ProblemSpec, scale: float) -> MapConstants:
        noise = scale**2 * ttz14.power_moment(self._p, self._dual)
        steep = spec.n * spec.lipschitz_total
        second = min((steep + math.sqrt(noise)) ** 2, steep**2 + (self._dual - 1.0) * noise)
        distance = self._size**2 / (2.0 * (self._q - 1.0))
        return MapConstants(distance, second, noise, _curvature(spec, 1.0))

    def public(self, spec: ProblemSpec) -> dict[str, Any]:
        return {"map": "power", "power": self._q, "size": self._size}

    def start(self) -> np.ndarray:
        return np.zeros(self._p)

    def point(self, state: np.ndarray) -> np.ndarray:
        return state

    def move(self, state: np.ndarray, gradient: np.ndarray, size: float) -> np.ndarray:
        image = _slope(state, self._q) / (self._q - 1.0) - size * gradient
        moved = (self._q - 1.0) * _slope(image, self._dual)
        norm = np.linalg.norm(moved, ord=self._q, axis=-1, keepdims=True)
        return moved * np.minimum(1.0, self._size / np.maximum(norm, 1e-300))


MirrorMap = EntropyMap | PowerMap


def choose_map(constraint: Any) -> MirrorMap:
    """The map that suits the set; Unsupported where there is none but the Euclidean one."""
    vertices = vertex_choice.list_vertices(constraint)
    if vertices is not None and constraint.p > 1:
        return EntropyMap(vertices)
    body, power = constraint.inner_body, constraint.norm_power
    if body.is_ball:
        return PowerMap(body.radius, body.p, 2.0)
    if power is not None and 1.0 < power < 2.0:
        return PowerMap(constraint.size, constraint.p, power)
    raise Unsupported(
        "mirror_descent has a map for sets with a short list of vertices and for lp balls up to "
        "the Euclidean one; elsewhere a step is a projected one: use mechanism=noisy_gd"
    )


def _curvature(spec: ProblemSpec, factor: float) -> float | None:
    """``factor`` times n (beta + ridge), where nothing has a kink."""
    if spec.smoothness is None or not spec.regulariser.smooth:
        return None
    return spec.n * (spec.smoothness + spec.ridge) * factor


def _slope(x: np.ndarray, power: float) -> np.ndarray:
    """The gradient of |x|_power^2 / 2, [..., p]; 0 at 0."""
    if power == 2.0:
        return x
    largest = np.maximum(np.max(np.abs(x), axis=-1, keepdims=True), 1e-300)
    share = np.abs(x) / largest
    norm = np.sum(share**power, axis=-1, keepdims=True) ** (1.0 / power)
    return largest * np.sign(x) * share ** (power - 1.0) * np.maximum(norm, 1.0) ** (2.0 - power)
