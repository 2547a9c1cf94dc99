"""Records that were projected before they came here [KJ16, Sec. 1, compressed learning]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared.generated_rows import INSIDE, guard_memory
from dperm_cli.problem.data import Data
from dperm_cli.sets.shared import public_arrays

_KEY = "dataset.phi"
_LEAST = 1e-10  # of the singular values, over the largest


def matrix(name: object) -> np.ndarray:
    """The array ``phi`` [m, d] of an .npz archive, or the one of a .csv file; of full row rank."""
    found = public_arrays.from_file(_KEY, name, "phi")
    if "phi" not in found:
        held = ", ".join(found) or "none"
        raise InputError(_KEY, name, f"must hold an array phi; it holds {held}")
    phi = np.asarray(public_arrays.matrix(_KEY, found["phi"]), dtype=float)
    values = np.linalg.svd(phi, compute_uv=False)
    if phi.shape[0] > phi.shape[1] or values[-1] <= _LEAST * values[0]:
        allowed = "must be m x d of full row rank, m <= d"
        raise InputError(_KEY, f"<{phi.shape[0]} x {phi.shape[1]}>", allowed)
    return phi


def backwards(data: Data, phi: np.ndarray) -> Data:
    """The problem in R^d of records x~ [n, m]: rows Phi^T x~ [n, d], with Phi and the rows' bound.

    <Phi^T x~, theta> = <x~, Phi theta>, so that every loss is that of the projected problem. Their
    norm is at most the bound on x~ times the norm of Phi.
    """
    m, d = phi.shape
    if data.p != m:
        words = f"must have one row for each of the {data.p} columns of the records"
        raise InputError(_KEY, f"<{m} x {d}>", words)
    longest = float(np.linalg.norm(phi, 2))
    with guard_memory(data.n, d):
        x = _by_rows(data.x, phi) * INSIDE
        test = None if data.x_test is None else _by_rows(data.x_test, phi) * INSIDE
    digest = hash_parts(np.ascontiguousarray(phi + 0.0), data.fingerprint)
    return data.with_rows(
        x, x_test=test, row_bound=data.row_bound * longest, entry_bound=None,
        phi=phi, phi_row_bound=data.row_bound, fingerprint=digest,
        preprocessing=(*data.preprocessing, f"taken as projected by a given Phi, {m} x {d}"),
    )  # fmt: skip


def _by_rows(x: Any, phi: np.ndarray) -> np.ndarray:
    """x @ phi, one row at a time: to the last bit, no row follows from which others there are.

    A product of matrices treats rows at the end of a block differently.
    """
    if not isinstance(x, np.ndarray):
        return np.ascontiguousarray(x @ phi)  # sparse rows are multiplied one by one
    out, row = np.empty((len(x), phi.shape[1])), np.empty(phi.shape[0])
    for i in range(len(x)):
        row[:] = x[i]
        out[i] = row @ phi
    return out
