"""Metropolis-adjusted Langevin algorithm (MALA), for exploration: it gives no guarantee."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Positive
from dperm_cli.samplers.base import (
    AllowHeuristic,
    Certificate,
    ChainSteps,
    Potential,
    Sampler,
    Source,
    Target,
)
from dperm_cli.samplers.shared.heuristic import certificate
from dperm_cli.samplers.shared.tangent_boxes import Frame
from dperm_cli.samplers.shared.uniform import draw_uniform


@dataclass(frozen=True)
class Mala(Sampler):
    """A chain with the stationary law pi, without an explicit bound on how fast it converges.

    y = x - h grad f(x) + sqrt(2 h) N(0, I) within the set's affine hull, accepted with the
    Metropolis-Hastings probability, never outside the set. h null: 1 / (curvature p^{1/3}) from
    public facts. It is for exploration only: the certificate's dist_inf is inf, and a release has
    no guarantee.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), exponent=0.01)
    >>> found = Mala(allow_heuristic=True).plan(target, 0.1)
    >>> found.dist_inf, round(found.facts["h"], 3)
    (inf, 0.794)
    """

    steps: ChainSteps = 2000
    step_size: Annotated[
        Positive | None, Help("null = from the largest curvature that public facts allow")
    ] = None
    allow_heuristic: AllowHeuristic = False

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """``Unsupported`` unless ``allow_heuristic``; ``dist_inf`` is not kept."""
        h = self.step_size if self.step_size is not None else default_step(target)
        return certificate(self.name, target, self.allow_heuristic, self.steps, {"h": h})

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """Where the chain is after its steps, [p]."""
        frame, h = Frame.of(target.constraint), float(certificate.facts["h"])
        x = draw_uniform(frame.body, source)
        f, g = potential.both(x)
        g = frame.basis.T @ g
        for _ in range(certificate.steps):
            move = math.sqrt(2.0 * h) * source.normal(frame.dim) - h * g
            coin = float(np.log(source.uniform(1)[0]))
            y = x + frame.basis @ move
            if not bool(frame.inside(y)):
                continue
            there, slope = potential.both(y)
            slope = frame.basis.T @ slope
            forth, back = float(np.sum((move + h * g) ** 2)), float(np.sum((h * slope - move) ** 2))
            if coin <= f - there + (forth - back) / (4.0 * h):
                x, f, g = y, there, slope
        return x


def default_step(target: Target) -> float:
    """1 / (c p^{1/3}), at most the squared diameter over p.

    c is the largest curvature of f, or for kinks its squared slope.
    """
    spec = target.spec
    curvature = target.ridge
    if spec.smoothness is not None:
        curvature += target.exponent * spec.n * spec.smoothness
    else:
        curvature += target.lipschitz**2
    dim = max(target.dimension, 1)
    most = target.constraint.diameter**2 / dim
    return min(most, dim ** (-1.0 / 3.0) / curvature) if curvature > 0 else most
