"""A released predictor in a file: what its guarantee covers, and public facts. No training row.

The file is a plain .npz: theta, the public points or frequencies its features are made of, and a
JSON text with the kernel, the rule that raw rows go through, and the guarantee.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.problem.data import Data
from dperm_cli.problem.datasets import _columns, _rows
from dperm_cli.problem.kernels._features import Explicit, Features, Fourier, Landmarks
from dperm_cli.runner import schema

FORMAT = "dperm-model-1"
_CLAIM = (
    "mechanism", "guarantee", "relation", "epsilon_accounted", "delta_accounted", "accountant",
    "certificate", "arithmetic", "noise", "n", "version",
)  # fmt: skip
_RULE = ("scaling", "bounds", "centred", "intercept", "rows", "norm")
_DAMAGED = (OSError, KeyError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Model:
    """theta [p] and how to get from raw rows [m, columns] to its features."""

    theta: np.ndarray
    facts: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    @property
    def columns(self) -> int:
        """Of raw rows."""
        return int(self.facts["columns"])

    def values(self, raw: np.ndarray) -> np.ndarray:
        """f(x) of each raw row, [m]."""
        return self._coordinates(ruled(self.facts["rule"], raw)) @ self.theta

    def _coordinates(self, rows: np.ndarray) -> np.ndarray:
        config, kind = self.facts["kernel"], self.facts["map"]
        if kind == "none":
            return rows
        kernel = schema.build("kernel", config)
        bound = float(self.facts["kernel_bound"])
        if kind == "explicit":
            return Explicit(kernel, rows.shape[1], bound).apply(rows)
        if kind == "fourier":
            frequencies = self.arrays["frequencies"]
            made = Fourier(kernel, rows.shape[1], len(frequencies), bound, {"w": frequencies})
            return made.apply(rows)
        points, basis = self.arrays["points"], self.arrays["basis"]
        return _Stored(kernel, points, bound, basis).apply(rows)


@dataclass(frozen=True, eq=False)
class _Stored(Features):
    """Landmarks with the basis as it was: eigenvectors differ between linear algebra libraries."""

    kernel: Any
    points: np.ndarray
    bound: float
    basis: np.ndarray

    @property
    def dim(self) -> int:
        return self.basis.shape[1]

    def raw(self, rows: Any) -> np.ndarray:
        return self.kernel.gram(rows, self.points) @ self.basis


def check_path(word: Any) -> Path | None:
    """Where to save, or None; InputError for what is no file name ending in .npz."""
    if word is None or word == "none":
        return None
    if not isinstance(word, str) or not word.endswith(".npz") or "\0" in word:
        raise InputError("save", word, "must be a file name ending in .npz, or none")
    if os.path.isdir(word):
        raise InputError("save", word, "is a folder")
    return Path(word)


def check_cell(cell: schema.Cell) -> None:
    """InputError where nothing of the cell may be given away."""
    if cell.mechanism.unprotected:
        raise InputError("save", cell.mechanism_name, "gives no guarantee: it is not saved")
    if cell.dataset.task not in ("binary", "regression"):
        raise InputError("save", cell.dataset.task, "saves models of labels -1, +1 and of targets")
    if cell.kernel is not None and cell.kernel.name == "precomputed":
        allowed = "cannot be saved: its matrix says more than the guarantee covers"
        raise InputError("save", "kernel=precomputed", allowed)
    if getattr(cell.dataset, "unsafe_scaling", False):
        allowed = "cannot be saved: the scaling was fitted to the records"
        raise InputError("save", "dataset.unsafe_scaling", allowed)


def save(path: Path, cell: schema.Cell, data: Data, basis: Features | None, row: Mapping) -> None:
    """Write the predictor of one record row, atomically."""
    rule, arrays = rule_of(cell.dataset, data), {"theta": np.asarray(row["theta"], dtype=float)}
    kind = "none" if basis is None else type(basis).__name__.lower()
    if isinstance(basis, Landmarks):
        points = basis.points.toarray() if hasattr(basis.points, "toarray") else basis.points
        arrays |= {"points": np.asarray(points), "basis": basis.weights}
    elif isinstance(basis, Fourier):
        arrays["frequencies"] = basis.frequencies
    facts = {
        "format": FORMAT, "map": kind, "rule": rule, "task": data.task, "loss": cell.loss.name,
        "columns": data.p - bool(rule["intercept"]),
        "kernel": cell.config.get("kernel"),
        "kernel_bound": None if basis is None else basis.bound,
        "target_bounds": _targets(cell.dataset, data),
        "claim": {name: row.get(name) for name in _CLAIM},
    }  # fmt: skip
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    _write(path, arrays)


def load(word: str) -> Model:
    """The predictor in a file; InputError for anything else."""
    if not os.path.isfile(word):
        raise InputError("MODEL", word, "is not a file")
    try:
        with open(word, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(arrays.pop("facts").tobytes().decode())
        if facts["format"] != FORMAT:
            raise ValueError("another format")
        theta = np.asarray(arrays.pop("theta"), dtype=float)
    except _DAMAGED:
        allowed = "is not a predictor: they are made with `dperm run ... save=FILE.npz`"
        raise InputError("MODEL", word, allowed) from None
    return Model(theta, facts, arrays)


def rule_of(dataset: Any, data: Data) -> dict[str, Any]:
    """What raw rows go through, JSON-able: public constants alone."""
    rule = {name: getattr(dataset, name, None) for name in _RULE}
    rule["norm"] = 2.0 if rule["norm"] is None else float(rule["norm"])
    rule["rows"] = rule["rows"] or "clip"
    rule["scaling"] = rule["scaling"] or "none"
    rule["intercept"] = bool(rule["intercept"])
    rule["bounds"] = _bounds(dataset, data) if rule["scaling"] == "bounds" else None
    # bound_rows holds the L-norm that the rule names
    widest = np.sqrt(data.p) if rule["norm"] == np.inf else 1.0
    return rule | {"row_bound": data.row_bound / widest}


def ruled(rule: Mapping[str, Any], raw: np.ndarray) -> np.ndarray:
    """Raw rows [m, columns] as the training rows were made."""
    rows = np.asarray(raw, dtype=float)
    if rule["scaling"] == "bounds":
        rows = _columns.by_bounds(rows, np.asarray(rule["bounds"], dtype=float), rule["centred"])
    if rule["intercept"]:
        rows = _rows.with_constant(rows)
    return _rows.bound_rows(rows, rule["rows"], float(rule["row_bound"]), float(rule["norm"]))


def _bounds(dataset: Any, data: Data) -> list:
    """The public bounds of the columns, [p, 2] or [2]."""
    found = getattr(dataset, "bounds", None)
    if callable(found):
        found = found()
    if found is None:
        found = dataset.raw(None).bounds
    return np.asarray(found, dtype=float).tolist()


def _targets(dataset: Any, data: Data) -> list[float] | None:
    """Public [low, high] that targets were mapped from."""
    if data.task != "regression":
        return None
    found = getattr(dataset, "target_bounds", None)
    return None if found is None else [float(end) for end in found]


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".model-", suffix=".npz", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **dict(arrays))  # pyright: ignore[reportArgumentType]
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror})") from error
