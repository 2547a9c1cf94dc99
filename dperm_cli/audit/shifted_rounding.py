"""Imitate another machine's rounding, to find results that wrongly depend on last bits.

The last bits of a product of the records with a matrix follow from where a row stands among the
others: libraries cut rows into blocks and finish the last ones otherwise. One record less may so
move the last bits of others. Here every other row is moved by its last bit, on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

from dperm_cli.views.central import CentralView


def shift_last_bits(rows: Any) -> Any:
    """Rows [n, m] with each entry of every other row moved towards zero by its last bit."""
    if sparse.issparse(rows):
        found = rows.tocsr().copy()
        odd = np.repeat(np.arange(found.shape[0]) % 2 == 1, np.diff(found.indptr))
        found.data[odd] = np.nextafter(found.data[odd], 0.0)
        return found
    found = np.array(rows, dtype=float)
    found[1::2] = np.nextafter(found[1::2], 0.0)
    return found


def shift_problem(problem: Any) -> Any:
    """A problem whose rows were made by a map, with its last bits by place."""
    return replace(problem, data=problem.data.with_rows(shift_last_bits(problem.data.x)))


@contextmanager
def shift_maps() -> Iterator[None]:
    """In the block, what a view's map makes of the rows has its last bits by place."""
    original = CentralView.map_rows

    def shift_after_map(
        self: CentralView, rows: Any, row_bound: float, constraint: Any
    ) -> CentralView:
        return original(self, lambda x: shift_last_bits(rows(x)), row_bound, constraint)

    with patch.object(CentralView, "map_rows", shift_after_map):
        yield
