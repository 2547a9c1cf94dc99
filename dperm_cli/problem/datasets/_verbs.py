"""What ``dperm data list|path|verify`` does, without its command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.problem.datasets import _cache, _rows
from dperm_cli.problem.datasets._prepare import Raw


@dataclass(frozen=True)
class Listed:
    """One line of ``dperm data list``; n and p are None where a file decides them."""

    name: str
    task: str
    n: int | None
    p: int | None
    where: str
    present: bool


@dataclass(frozen=True)
class Finding:
    """One line of ``dperm data verify``: level ``ok``, ``note`` or ``problem``."""

    level: str
    check: str
    detail: str


def listing(data_dir: Path | None = None) -> list[Listed]:
    """Every data set, with its public size and whether it can be loaded now."""
    return [_listed(name, data_dir) for name in registry.names("dataset")]


def path(name: str, data_dir: Path | None = None) -> Path | str:
    """Where a data set's file is, or ``embedded`` or ``generated``; InputError if absent."""
    kind = registry.load("dataset", name)
    if kind.where in ("embedded", "generated"):
        return kind.where
    if kind.where == "file":
        raise InputError("dataset", name, "its file is the one you give as dataset.path")
    return kind().locate(data_dir)


def verify(dataset: Any, data_dir: Path | None = None) -> list[Finding]:
    """A public check of a data set (a name, or an instance with its fields).

    It looks at the records themselves, so it is for the holder of the data: no mechanism calls it
    and no release depends on it.
    """
    if isinstance(dataset, str):
        dataset = registry.load("dataset", dataset)()
    findings: list[Finding] = []
    try:
        if hasattr(dataset, "raw"):
            raw = dataset.raw(data_dir)
            findings += _raw_findings(dataset, raw, data_dir)
        data = dataset.load(data_dir)
    except InputError as error:
        return [*findings, Finding("problem", "load", str(error))]
    return findings + _data_findings(data)


def _listed(name: str, data_dir: Path | None) -> Listed:
    kind = registry.load("dataset", name)
    size = kind().size if kind.where == "generated" else kind.size
    n, p = size or (None, None)
    task = kind.task if kind.where != "file" else "binary or regression"
    return Listed(name, task, n, p, *_place(name, kind, data_dir))


def _place(name: str, kind: Any, data_dir: Path | None) -> tuple[str, bool]:
    if kind.where == "file":
        return "dataset.path", True
    try:
        return str(path(name, data_dir)), True
    except InputError:
        return str(kind.where), False


def _raw_findings(dataset: Any, raw: Raw, data_dir: Path | None) -> list[Finding]:
    """Facts of the records as the source gives them; reading already refused nan and bad labels."""
    x: _rows.Rows = raw.x
    n, p = x.shape
    stored = f", {x.nnz} entries" if sparse.issparse(x) else ""
    held = "" if raw.x_test is None else f"; test file {raw.x_test.shape[0]} records"
    findings = [
        _source(dataset, data_dir),
        Finding("ok", "size", f"{n} records, {p} columns{stored}{held}"),
        Finding("ok", "finite", "no missing, nan or infinite entry"),
    ]
    if raw.target_bounds is not None and dataset.task == "regression":
        low, high = raw.target_bounds
        beyond = int(np.sum((raw.y < low) | (raw.y > high)))
        findings.append(_count(beyond, "targets", f"outside [{low:g}, {high:g}], clipped"))
    else:
        counts = ", ".join(f"{s:+d}: {int(np.sum(raw.y == s))}" for s in (-1, 1))
        one_class = np.unique(raw.y).size == 1
        findings.append(Finding("note" if one_class else "ok", "labels", counts))
    if raw.bounds is not None and dataset.scaling == "bounds":
        beyond = int(np.sum(_outside(raw)))
        findings.append(_count(beyond, "bounds", "entries outside their column bounds, clipped"))
    if dataset.rows != "unit" and dataset.row_bound != "auto" and dataset.scaling == "none":
        bound = float(dataset.row_bound)
        beyond = int(np.sum(_rows.row_norms(raw.x) > bound))
        findings.append(_count(beyond, "row norm", f"rows longer than {bound:g}, clipped"))
    return findings


def _source(dataset: Any, data_dir: Path | None) -> Finding:
    if dataset.where == "embedded":
        return Finding("ok", "digest", "the installed file is the one dperm knows")
    return Finding("ok", "sha256", _cache.sha256(dataset.locate(data_dir)))


def _outside(raw: Raw) -> np.ndarray:
    assert raw.bounds is not None
    low, high = np.broadcast_to(raw.bounds, (raw.x.shape[1], 2)).T
    if sparse.issparse(raw.x):
        return (raw.x.data < low[raw.x.indices]) | (raw.x.data > high[raw.x.indices])
    return (raw.x < low) | (raw.x > high)


def _data_findings(data: Any) -> list[Finding]:
    """What the loaded arrays promise, measured again."""
    norms = _rows.row_norms(data.x)
    longest = float(norms.max(initial=0.0))
    held = longest <= data.row_bound * (1 + 1e-12)
    findings = [
        Finding(
            "ok" if held else "problem",
            "row bound",
            f"longest of {data.n} training rows {longest:.6g}, bound {data.row_bound:g}",
        ),
        _count(int(np.sum(norms == 0)), "zero rows", "rows are zero"),
        Finding("ok", "preprocessing", "; ".join(data.preprocessing) or "none"),
        Finding("ok", "fingerprint", data.fingerprint),
    ]
    if data.data_dependent:
        words = "scaling is fitted to the data: no privacy guarantee covers it"
        findings.append(Finding("note", "scaling", words))
    return findings


def _count(count: int, check: str, words: str) -> Finding:
    return Finding("note" if count else "ok", check, f"{count} {words}")
