"""What a release of a plug-in from outside may not do unseen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.errors import DpermError
from dperm_cli.core.plugin_classes import is_shipped
from dperm_cli.mechanisms.base import Mechanism, Release
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.sets.base import ConvexSet

_NEAR = 1e-6  # of the radius: what a projection may be off


@contextmanager
def lock_records(*every: Data) -> Iterator[None]:
    """Refuse writes to the records while the block runs: the next cell has the same arrays."""
    parts: list[Any] = []
    for one in every:
        held: tuple[Any, ...] = one.x, one.y, one.names, one.x_test, one.y_test
        for rows in held:
            parts += [rows.data, rows.indices, rows.indptr] if sparse.issparse(rows) else [rows]
    arrays = [part for part in parts if isinstance(part, np.ndarray) and part.flags.writeable]
    # one array may stand in several places, and is unlocked once
    opened = list({id(array): array for array in arrays}.values())
    try:
        for array in opened:
            array.flags.writeable = False
        yield
    finally:
        # a view can be unlocked only after what it is a view of
        for array in sorted(opened, key=lambda array: array.base is not None):
            array.flags.writeable = True


@contextmanager
def close_view(view: Any, closed: bool) -> Iterator[None]:
    """Empty a view after the block where ``closed``: what was kept of it shows no record later."""
    try:
        yield
    finally:
        if closed:
            vars(view).clear()


def read_points(
    mechanism: Mechanism, released: Any, trials: int, constraint: ConvexSet | None
) -> np.ndarray:
    """The released points, [trials, p], as an array of its own.

    That is where the mechanism, or one inside of it, is from outside; else they are as they came.

    Raises:
        DpermError: They are of another form, or outside the set. No value is shown.
    """
    outside = _find_outside(mechanism)
    if outside is None:
        return np.asarray(released.theta)
    name = type(outside).__name__
    if not isinstance(released, Release):
        raise DpermError(f"{name} returned something else than a Release")
    theta = np.asarray(released.theta)
    if theta.dtype.kind not in "fiu":
        raise DpermError(f"{name} released points that are no real numbers")
    if theta.ndim != 2 or len(theta) != trials:
        shape = "an array of another shape"  # which one may follow from the records
        raise DpermError(f"{name} released {shape} than one point for each of {trials} trials")
    theta = theta.astype(np.float64)
    if constraint is not None and not np.all(np.isfinite(theta)):
        allowed = "released a point that is not finite: look for 0/0, inf - inf or an overflow"
        raise DpermError(f"{name} {allowed} before it, since a projection does not mend it")
    if constraint is not None and not np.all(constraint.contains(theta, _NEAR)):
        allowed = "released a point outside the set"
        raise DpermError(f"{name} {allowed}: project it by view.spec.constraint.project")
    return theta


def check_drawn(mechanism: Mechanism, gate: Gate) -> None:
    """DpermError where a mechanism from outside has released without noise for any event."""
    outside = _find_outside(mechanism)
    if gate.is_untouched and outside is not None:
        allowed = "released without asking the gate for any event of its plan: no noise was drawn"
        raise DpermError(f"{type(outside).__name__} {allowed}")


def _find_outside(mechanism: Mechanism) -> Mechanism | None:
    """The mechanism from outside, or one that a shipped one may run; None where all are shipped:
    what a combinator releases is what the one inside of it has made."""
    every = inner_mechanism.list_mechanisms(mechanism)
    return next((one for one in every if not is_shipped(type(one))), None)
