"""The proximal chain compiled: on balls, for losses that have a compiled twin, records in memory.

Which laws it covers follows from public facts, and so does what it is estimated to cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.samplers.base import Source, Target
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.samplers.shared.potential_checks import remember

MOST_ENTRIES = 1 << 25  # of the rows, dense
_FIRST, _LARGEST = 1 << 10, 1 << 16  # random numbers taken at a time
# Seconds: of a step, of a coordinate of a proposal, of an entry of the rows and of a record.
_STEP, _COORDINATE, _ENTRY, _RECORD = 3e-6, 1.5e-8, 1.5e-10, 2.5e-9
_TRANSCENDENTAL, _DISTANCE = 1.2e-8, 2e-9  # of a record and of an entry
_PROPOSALS = 6.0  # of the Gaussian for one that losses are looked at for, about, for each ball


def find_loss_code(target: Target) -> int | None:
    """The compiled loss, None where there is none."""
    form = target.spec.form
    if form is None:
        return None
    return form.code if isinstance(form, Glm) else form.location_code


def covers(target: Target) -> bool:
    """Whether the compiled chain draws from this law."""
    spec = target.spec
    small = spec.n * spec.bounds.columns <= MOST_ENTRIES
    return small and find_loss_code(target) is not None and target.constraint.balls() is not None


def estimate_seconds(target: Target, tries: float, miss: float) -> float:
    """Estimate the seconds of one step on one thread by a formula; nothing is timed.

    ``tries`` evaluations, of which all but the last are cut short where the gap is ``miss``.
    """
    spec = target.spec
    entries = float(spec.n * spec.bounds.columns)
    form: Any = spec.form
    entry = _ENTRY + (0.0 if form.location_code is None else _DISTANCE)
    record = _RECORD + (_TRANSCENDENTAL if form.transcendental else 0.0)
    look = entry * entries + record * spec.n
    gauss = _PROPOSALS * len(target.constraint.balls().radii) * spec.p * _COORDINATE
    short = min(1.0, 1.0 / max(miss, 1e-9))
    cut = (tries - 1.0) * (look * short + gauss + 2.0 / 6.0 * look)
    return _STEP + 3.0 * look + gauss + cut


def run(
    potential: Records, target: Target, h: float, steps: int, start: np.ndarray, source: Source
) -> np.ndarray:
    """The chain's point [p] after ``steps`` steps from ``start``."""
    from dperm_cli.loops import proximal_chain as loop

    found, number = target.constraint.balls(), find_loss_code(target)
    assert found is not None
    assert number is not None
    records = remember("chain", potential, target, lambda: pack_records(potential.data))
    law = loop.Law(
        number, float(potential.loss.width), target.exponent, target.ridge,
        target.lasso, np.ascontiguousarray(found.centres), found.radii,
    )  # fmt: skip
    chain, block, left = loop.Chain(start), _FIRST, np.empty(0)
    while chain.done < steps:
        uniforms = np.concatenate([left, source.uniform(block)])
        used = loop.advance(records, law, h, chain, steps, uniforms)
        if used < 0 or not np.all(np.isfinite(chain.x)):
            raise ArithmeticError("no proposal was kept: not a private outcome")
        left, block = uniforms[used:], min(2 * block, _LARGEST)
        block = max(block, 2 * target.spec.p)
    return chain.x


def pack_records(data: Any) -> Any:
    from dperm_cli.loops import proximal_chain as loop

    x = data.x.toarray() if sparse.issparse(data.x) else np.asarray(data.x, dtype=float)
    labels = data.y if data.task != "location" else np.zeros(data.n)
    return loop.pack_records(x, np.asarray(labels, dtype=float))
