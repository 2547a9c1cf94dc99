"""``dataset.invalid=zero``: a record that cannot be used becomes the zero record.

The rule looks at one record at a time, so that neighbouring files give neighbouring data sets, and
whether a file can be loaded follows from no record. How many records it changes is neither printed
nor stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.number_text import number_in
from dperm_cli.datasets.shared.label_names import Pairs
from dperm_cli.datasets.shared.row_rules import Rows

INVALID = ("refuse", "zero")
_BOOLEANS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}


def zero_target(task: str, labels: Pairs) -> float:
    """The label or target of the zero record: the label +1 where it is declared, class 0, or 0."""
    if task == "binary":
        return max(number for _, number in labels)
    return 0.0


def describe_rule(task: str, target: float) -> str:
    """The rule as a step of the preprocessing."""
    kind = {"binary": "label", "multiclass": "class", "regression": "target"}.get(task)
    style = "+g" if task == "binary" else "g"
    also = "" if kind is None else f" and {kind} {target:{style}}"
    words = "a record with a missing, non-finite or unreadable cell is the zero record"
    return f"{words} (features 0{also})"


def count_zero_rows(x: Rows) -> int:
    """How many rows [n, p] are zero, as those of records that cannot be used are."""
    if sparse.issparse(x):
        return int(np.sum(np.diff((x != 0).indptr) == 0))
    return len(x) - int(np.count_nonzero(x.any(axis=1)))


def zero_invalid(x: Rows, y: np.ndarray, target: float) -> tuple[Rows, np.ndarray]:
    """The records with the zero record in the place of each that is invalid.

    Args:
        x: rows [n, p], dense (changed in place) or CSR; an entry that is not finite is invalid.
        y: labels or targets [n], nan where there is none that can be used.
        target: that of the zero record.
    """
    bad = ~np.isfinite(y)
    if sparse.issparse(x):
        owner = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        bad[owner[~np.isfinite(x.data)]] = True
        x = sparse.csr_array((np.where(bad[owner], 0.0, x.data), x.indices, x.indptr), x.shape)
        x.eliminate_zeros()
    else:
        bad |= ~np.isfinite(x).all(axis=1)
        x[bad] = 0.0
    return x, np.where(bad, target, y)


def read_cell(text: str) -> float:
    """The number in a cell of a table, true and false as 1 and 0; nan where there is none."""
    number = number_in(text)
    return _BOOLEANS.get(text.strip(), math.nan) if number is None else number


def read_numbers(cells: np.ndarray) -> np.ndarray:
    """Targets [n] as numbers, nan for a cell that holds none."""
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    return np.array([read_cell(_as_text(cell)) for cell in cells.tolist()], dtype=np.float64)


def _as_text(cell: Any) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
