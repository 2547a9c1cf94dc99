"""Imitate another machine's rounding, to find results that wrongly depend on last bits.

When the rows of the records are multiplied by a matrix, the last bits of a row's result may depend
on its position: libraries process rows in blocks, and treat the last rows differently. So removing
one record may change the last bits of other rows. Here this is imitated on every machine: each
entry of every second row is changed in its last bit.
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
    """Rows [n, m] in which each entry of every second row is the next float towards zero."""
    if sparse.issparse(rows):
        found = rows.tocsr().copy()
        odd = np.repeat(np.arange(found.shape[0]) % 2 == 1, np.diff(found.indptr))
        found.data[odd] = np.nextafter(found.data[odd], 0.0)
        return found
    found = np.array(rows, dtype=float)
    found[1::2] = np.nextafter(found[1::2], 0.0)
    return found


def shift_problem(problem: Any) -> Any:
    """The problem with the last bits of every second row changed."""
    return replace(problem, data=problem.data.with_rows(shift_last_bits(problem.data.x)))


@contextmanager
def shift_maps() -> Iterator[None]:
    """While the block runs, ``CentralView.map_rows`` changes the last bits of every second row."""
    original = CentralView.map_rows

    def shift_after_map(
        self: CentralView, rows: Any, row_bound: float, constraint: Any
    ) -> CentralView:
        return original(self, lambda x: shift_last_bits(rows(x)), row_bound, constraint)

    with patch.object(CentralView, "map_rows", shift_after_map):
        yield
