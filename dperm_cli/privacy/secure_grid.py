"""Put events on a grid: how rounding changes the sensitivity, and the scale that covers it.

A value is rounded to multiples of a public power of two, the noise is the continuous one rounded
to the same grid, and they are added as integers. Rounding the sum of a rounded value and continuous
noise gives the same, so the continuous mechanism's accounting holds with the rounded value's
sensitivity (docs/proofs/_secure_noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.events import Event, NoiseEvent

# Bits of a noise scale below its leading one that the grid keeps, where the sums allow it.
FINE_BITS = 30
# A value is at most 2^50 grid steps long: exact in float64 and, with its noise, in 64 bits.
VALUE_BITS = 50
# More than this share of extra noise is refused rather than added.
_MOST_EXTRA = 1e-3
_LEAST_BITS, _MOST_BITS = 9, 44
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Grid:
    """The multiples of 2^exponent."""

    exponent: int

    @property
    def step(self) -> float:
        return math.ldexp(1.0, self.exponent)

    def __str__(self) -> str:
        return f"grid 2^{self.exponent}"


def list_noise_events(events: Sequence[Event]) -> list[NoiseEvent]:
    """The events, all of whose noise can lie on a grid; ``Unsupported`` for others."""
    for event in events:
        event.grid_diagonal(1)
    found = [event for event in events if isinstance(event, NoiseEvent)]
    if not found:
        raise Unsupported(
            "no event: only Gaussian, Laplace and Gamma-norm noise have a secure form"
        )
    return found


def grid_for(events: Sequence[NoiseEvent], reach: float) -> Grid:
    """The grid of a plan from public facts: its events, and ``reach`` >= the norm of any value."""
    smallest = min(event.scale for event in events)
    fine = math.frexp(smallest)[1] - 1 - FINE_BITS
    coarse = math.frexp(reach)[1] - VALUE_BITS if reach > 0 else fine
    return Grid(min(max(fine, coarse, -1000), 900))


def put_on_grid(
    event: NoiseEvent, dim: int, grid: Grid, relation: str, error: float | None = None
) -> NoiseEvent:
    """The event of the same release on the grid: its own norm, and a scale that hides as much.

    A record's contribution of ``dim`` coordinates that was shortened to ``record_norm`` and rounded
    has a norm of at most record_norm (1 + (dim + 16) 2^-52) + half a cell's diagonal; where the
    released value is rounded instead, two values are moved apart by at most one diagonal. A whole
    diagonal per record covers both. A ``gap`` is given up where it need not survive rounding.

    Args:
        event: Whose value and noise are to lie on the grid.
        dim: The number of parameters.
        grid: Of the values and the noise.
        relation: The neighbouring relation.
        error: Of a record's gradient as it is computed, at most, in the norm of the event; None
            where no bound is known. With one, the gap of a sum of gradients grows by twice the
            error and the diagonal.

    Raises:
        Unsupported: The grid is too coarse or too fine for the event's noise.
    """
    diagonal = event.grid_diagonal(dim) * grid.step
    slack = 1.0 + 2.0 * (dim + 16.0) * _UNIT
    gap = None
    if event.gap is not None and event.gap_survives_rounding:
        gap = event.gap * slack + diagonal
    elif event.gap is not None and error is not None and event.gradients(1) is not None:
        gap = event.gap + 2.0 * error + diagonal
    sizes = {"gap": gap} if "gap" in event.sizes else {}
    bare = event if gap is not None else event.change_fields(**sizes)
    rounded = event.change_fields(record_norm=event.record_norm * slack + diagonal, **sizes)
    before, after = event.sensitivity(relation), rounded.sensitivity(relation)
    whole = bare.sensitivity(relation)
    if not after <= (1.0 + _MOST_EXTRA) * whole:
        raise Unsupported(
            f"{grid} is too coarse for a sum to which a record adds at most "
            f"{event.record_norm:.3g}; use noise=research"
        )
    scale = event.scale * (after / before) * (1.0 + 4.0 * _UNIT)
    require_bits(scale, grid)
    return rounded.change_fields(scale=scale)


def require_bits(scale: float, grid: Grid) -> None:
    """``Unsupported`` for noise that is too small or too large for its grid."""
    bits = math.log2(scale / grid.step)
    if not _LEAST_BITS < bits < _MOST_BITS:
        size, amount = ("large", "more") if bits > _LEAST_BITS else ("small", "less")
        words = f"too {size} for {grid}; use noise=research or {amount} epsilon"
        raise Unsupported(f"noise of scale {scale:.3g} is {words}")
