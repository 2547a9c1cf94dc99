"""Exact rejection from an adaptive cover by boxes with tangents, in up to three dimensions."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Count, Help, Range
from dperm_cli.samplers.base import Certificate, Potential, Sampler, Source, Target
from dperm_cli.samplers.shared.potential_checks import check_envelope, remember
from dperm_cli.samplers.shared.tangent_boxes import Cells, Frame, cover, quantile

MOST_DIMENSIONS = 3
_BLOCK = 8
_MOST_BLOCKS = 1_000_000


@dataclass(frozen=True)
class TangentCells(Sampler):
    """pi itself, for any convex loss and any set with a projection, of dimension 3 at most.

    The set is covered by boxes; on each, f >= its tangent at the box's centre. A point is proposed
    from the density exp(-tangent) of the cover, dropped outside the set, and kept with probability
    exp(tangent - f): whatever the cover, what is kept has the law pi [docs/proofs/_samplers.md,
    Thm 1]. Boxes are split until ``acceptance`` of the work is expected to be of use, or there are
    ``most_cells``. Both the cover and the number of tries follow from the records: the running
    time is not private.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), exponent=0.01)
    >>> TangentCells().plan(target, 0.1).dist_inf
    0.0
    """

    acceptance: Annotated[float, Range(0, 0.99), Help("share of useful work (speed alone)")] = 0.6
    most_cells: Annotated[Count, Range(1, 1_000_000), Help("where refining stops")] = 6000

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """Exact: ``dist_inf`` is 0, whatever was allowed."""
        dim = target.dimension
        if dim == 0:
            raise Unsupported("the set is a point: there is nothing to draw")
        if dim > MOST_DIMENSIONS:
            raise Unsupported(
                f"tangent_cells covers the set by boxes, in {MOST_DIMENSIONS} dimensions at most; "
                f"the set has {dim}: use sampler=proximal"
            )
        return Certificate(self.name, "tangent cells: exact rejection", 0.0)

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One draw [p]."""
        frame = Frame.of(target.constraint)

        def make() -> tuple[Cells, np.ndarray]:
            cells = cover(potential, frame, target.spec.n, self.acceptance, self.most_cells)
            return cells, np.cumsum(cells.mass)

        cells, cumulated = remember(self.name, potential, (self, target.constraint), make)
        for _ in range(_MOST_BLOCKS):
            u = source.uniform(_BLOCK, frame.dim + 2)
            i = np.searchsorted(cumulated, u[:, 0] * cumulated[-1])
            t = quantile(cells.slope[i], cells.half[i], u[:, 2:])
            theta = frame.points(cells.centre[i] + t)
            for j in np.flatnonzero(frame.inside(theta)):
                tangent = cells.base[i[j]] + float(cells.slope[i[j]] @ t[j])
                gap = float(potential.value(theta[j])) - tangent
                check_envelope(potential, gap)
                if np.log(u[j, 1]) <= -gap:
                    return theta[j]
        raise ArithmeticError("no proposal was kept: not a private outcome")
