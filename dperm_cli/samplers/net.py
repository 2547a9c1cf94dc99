"""The exponential mechanism on a finite net of the set, drawn exactly."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Count, Help, Positive, Range
from dperm_cli.samplers.base import Certificate, Potential, Sampler, Source, Target
from dperm_cli.samplers.shared.potential_checks import evaluate_in_blocks, remember
from dperm_cli.samplers.shared.tangent_boxes import Frame

MOST_DIMENSIONS = 3
MOST_POINTS = 1 << 20
MOST_WORK = 1 << 33  # most evaluations: points times records
_ROWS = 1 << 16
_TARGET_CHANGE = 0.25  # change of f between a point of the set and the nearest one of the net


@dataclass(frozen=True)
class Net(Sampler):
    """A point of a finite net of the set, with probability proportional to exp(-f(theta)).

    [BST14, Sec. 1.1] names this as the simple way to the pure rate. The net depends on the set
    alone: it consists of centres of boxes that cover the set, projected to the set. Every point of
    the set is within the Euclidean distance ``covering`` of a point of the net (it is reported in
    the certificate's facts). This costs at most n L covering in risk, L being the Lipschitz
    constant of one record's loss with its regulariser.

    The exponential mechanism has the same privacy on a subset, and the law on the net is drawn
    exactly, so no error is added. This law is not pi, nor near pi in Dist_inf.

    ``covering`` null: such that f changes by at most a quarter over that distance.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), exponent=0.01)
    >>> Net(covering=0.1).plan(target, 0.0).facts["points_at_most"]
    225
    """

    covering: Annotated[
        Positive | None, Help("distance of any point to the net; null = f changes by 1/4")
    ] = None
    most_points: Annotated[Count, Range(1, 1 << 26), Help("larger nets are refused")] = MOST_POINTS

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """dist_inf = 0: the law on the net has the exponential mechanism's own guarantee."""
        dim = target.dimension
        if dim == 0:
            raise Unsupported("the set is a point: there is nothing to draw")
        if dim > MOST_DIMENSIONS:
            raise Unsupported(
                f"a net of a set of {dim} dimensions is out of reach ({MOST_DIMENSIONS} at most); "
                "use sampler=proximal"
            )
        counts, covering = self._counts(target)
        size = math.prod(counts)
        if size > self.most_points or size * target.spec.n > MOST_WORK:
            raise Unsupported(
                f"a net with covering distance {covering:.3g} has {size:.3g} points, each with "
                f"{target.spec.n} records to look at; use sampler=tangent_cells, which needs no "
                "net, or a larger sampler.covering"
            )
        spec = target.spec
        facts = {
            "points_at_most": size,
            "covering": covering,
            "discretisation_risk": spec.n * spec.lipschitz_total * covering,
        }
        return Certificate(self.name, "exponential mechanism on a net", 0.0, facts=facts)

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One point [p] of the net."""

        def make() -> tuple[np.ndarray, np.ndarray]:
            points = self.list_points(target)
            f = evaluate_in_blocks(potential, points, target.spec.n)
            return points, np.cumsum(np.exp(np.min(f) - f))

        points, cumulated = remember(self.name, potential, (self, target), make)
        level = float(source.uniform(1)[0]) * cumulated[-1]
        return points[int(np.searchsorted(cumulated, level))]

    def list_points(self, target: Target) -> np.ndarray:
        """The points [m, p] of the net: they follow from public facts."""
        return net(Frame.of(target.constraint), self._counts(target)[0])

    def within(self, target: Target, most: int) -> Net:
        """This net, or the finest one of at most ``most`` points where it has more of them.

        A ``covering`` that was asked for stays.
        """
        counts, covering = self._counts(target)
        grows = 1.0
        while self.covering is None and math.prod(counts) > most:
            grows *= max(1.01, (math.prod(counts) / most) ** (0.5 / len(counts)))
            coarser = Net(grows * covering, self.most_points)
            counts = coarser._counts(target)[0]
        return self if grows == 1.0 else Net(grows * covering, self.most_points)

    def _counts(self, target: Target) -> tuple[list[int], float]:
        """Boxes along each axis, and the distance that half a diagonal of a box is."""
        low, high = Frame.of(target.constraint).extent()
        wanted = self.covering
        if wanted is None:
            wanted = _TARGET_CHANGE / max(target.lipschitz, 1e-300)
        side = 2.0 * wanted / math.sqrt(len(low))
        counts = [max(1, math.ceil(w / side * (1.0 - 1e-12))) for w in high - low]
        return counts, 0.5 * float(np.linalg.norm((high - low) / counts))


def net(frame: Frame, counts: list[int]) -> np.ndarray:
    """The points [m, p]: centres of the boxes that meet the set, moved to its nearest point.

    A point of the set lies in a box, within half a diagonal of its centre, and the projection
    brings the centre no farther from it.
    """
    low, high = frame.extent()
    side = (high - low) / counts
    reach = 0.5 * float(np.linalg.norm(side)) * (1.0 + 1e-9) + 1e-9 * frame.body.radius
    kept, size = [], math.prod(counts)
    for start in range(0, size, _ROWS):
        number = np.arange(start, min(start + _ROWS, size))
        index = np.stack(np.unravel_index(number, counts), axis=1)
        kept.append(_find_meeting_points(frame, low + side * (index + 0.5), reach))
    return np.concatenate(kept)


def _find_meeting_points(frame: Frame, centres: np.ndarray, reach: float) -> np.ndarray:
    middle = frame.points(centres)
    near = frame.body.project(middle)
    return near[np.linalg.norm(middle - near, axis=1) <= reach]
