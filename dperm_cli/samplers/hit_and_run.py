"""Hit and run with a slice along every line: no guarantee."""

from __future__ import annotations

import numpy as np

from dperm_cli.core.dataclass import dataclass
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

_SHRINKS = 200


@dataclass(frozen=True)
class HitAndRun(Sampler):
    """A chain with the stationary law pi and no bound on how soon it comes near.

    One step takes a uniform direction in the set's affine hull and samples the slice
    {f <= f(x) + an exponential} along the line by shrinking an interval [Neal 2003]. For
    exploration alone: the certificate's dist_inf is inf, and the guarantee of a release is none.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), exponent=0.01)
    >>> HitAndRun(steps=50, allow_heuristic=True).plan(target, 0.1).dist_inf
    inf
    """

    steps: ChainSteps = 1000
    allow_heuristic: AllowHeuristic = False

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """``Unsupported`` unless ``allow_heuristic``; ``dist_inf`` is not reached in any sense."""
        return certificate(self.name, target, self.allow_heuristic, self.steps, {})

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """Where the chain is after its steps, [p]."""
        frame = Frame.of(target.constraint)
        x = draw_uniform(frame.body, source)
        f = float(potential.value(x))
        for _ in range(certificate.steps):
            g = source.normal(frame.dim)
            direction = frame.basis @ (g / np.linalg.norm(g))
            x, f = _along(potential, frame, x, f, direction, source)
        return x


def _along(
    potential: Potential,
    frame: Frame,
    x: np.ndarray,
    f: float,
    direction: np.ndarray,
    source: Source,
) -> tuple[np.ndarray, float]:
    """A point of the slice on the line through x, and f there."""
    level = f - float(np.log(source.uniform(1)[0]))
    high = frame.body.diameter * float(source.uniform(1)[0])
    low = high - frame.body.diameter
    # the interval of one diameter's length is placed at random about 0, which keeps pi invariant
    for _ in range(_SHRINKS):
        t = low + (high - low) * float(source.uniform(1)[0])
        y = x + t * direction
        if bool(frame.inside(y)):
            there = float(potential.value(y))
            if there <= level:
                return y, there
        low, high = (t, high) if t < 0 else (low, t)
    return x, f
