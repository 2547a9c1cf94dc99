"""The actions behind ``dperm data list|path|fetch|verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts, hash_file
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import download, published_file, row_rules
from dperm_cli.datasets.shared.row_pipeline import Raw


@dataclass(frozen=True)
class DatasetLine:
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


def list_datasets(data_dir: Path | None = None) -> list[DatasetLine]:
    """Every data set, with its public size and whether it can be loaded now."""
    return [_describe_dataset(name, data_dir) for name in registry.names("dataset")]


def path(name: str, data_dir: Path | None = None) -> Path | str:
    """Where a data set's file is, or ``embedded`` or ``generated``; InputError if absent."""
    kind = registry.load("dataset", name)
    if kind.where in ("embedded", "generated"):
        return kind.where
    if kind.where == "file":
        raise InputError("dataset", name, "its file is the one you give as dataset.path")
    return kind().locate(data_dir)


def fetch(name: str, data_dir: Path | None = None) -> list[Path]:
    """Download the files of a registered data set that are not here; their paths.

    Each is parsed and checked against what is published before the verb succeeds; a file that
    fails the check is removed. InputError when the network is forbidden or fails.
    """
    kind = registry.load("dataset", name)
    if kind.where != "registered":
        raise InputError("dataset", name, "is not a set that is downloaded; see `dperm data list`")
    dataset = kind()
    paths = []
    for source in kind.sources():
        places = published_file.folders(data_dir)
        found = next((f for place in places if (f := source.find(place))), None)
        paths.append(found if found is not None else _fetch_one(dataset, source, data_dir))
    return paths


def _fetch_one(dataset: Any, source: published_file.Source, data_dir: Path | None) -> Path:
    folder = published_file.downloads()
    if source.address is None or published_file.offline() or folder is None:
        raise InputError(
            "dataset", dataset.name, published_file.explain_missing_file(dataset, data_dir)
        )
    # A mirror may have recompressed the file: what counts is the digest of its records.
    known = source.sha256 if source.address == source.url else ()
    path = download.download(
        dataset.name, source.address, folder / source.download_name,
        sha256=known, limit=source.archive_limit,
    )  # fmt: skip
    try:
        dataset.check(path, source)
    except InputError:
        path.unlink(missing_ok=True)
        raise
    return path


def verify(dataset: Any, data_dir: Path | None = None) -> list[Finding]:
    """The records of a data set (a name, or an instance with its fields) against what is declared.

    It looks at the records themselves, so it is for the holder of the data: no mechanism calls it
    and no release depends on it.
    """
    if isinstance(dataset, str):
        dataset = registry.load("dataset", dataset)()
    findings: list[Finding] = []
    try:
        if dataset.raw is not None:
            raw = dataset.raw(data_dir)
            findings += _raw_findings(dataset, raw, data_dir)
        data = dataset.load(data_dir)
    except InputError as error:
        return [*findings, Finding("problem", "load", str(error))]
    return findings + _data_findings(data)


def _describe_dataset(name: str, data_dir: Path | None) -> DatasetLine:
    kind = registry.load("dataset", name)
    if kind.where == "file":
        return DatasetLine(name, "as dataset.task says", None, None, "dataset.path", True)
    n, p = kind().size
    return DatasetLine(name, kind().task, n, p, *_place(name, kind, data_dir))


def _place(name: str, kind: Any, data_dir: Path | None) -> tuple[str, bool]:
    try:
        return str(path(name, data_dir)), True
    except InputError:
        return "dperm data fetch" if kind.train.url else "DPERM_DATA_DIR", False


_FINITE = {
    "refuse": "no missing, nan or infinite entry",
    "zero": "no missing, nan or infinite entry, once records with one are zero records",
}


def _raw_findings(dataset: Any, raw: Raw, data_dir: Path | None) -> list[Finding]:
    """Facts of the records as the source gives them; reading already refused nan and bad labels."""
    x: row_rules.Rows = raw.x
    n, p = x.shape
    stored = f", {x.nnz} entries" if sparse.issparse(x) else ""
    held = "" if raw.x_test is None else f"; test file {raw.x_test.shape[0]} records"
    findings = [
        _source(dataset, data_dir),
        Finding("ok", "size", f"{n} records, {p} columns{stored}{held}"),
        Finding("ok", "finite", _FINITE[dataset.invalid]),
    ]
    if dataset.task != "location":
        findings.append(_target_finding(dataset, raw))
    if raw.bounds is not None and dataset.scaling == "bounds":
        beyond = int(np.sum(_outside(raw)))
        findings.append(_count(beyond, "bounds", "entries outside their column bounds, clipped"))
    if dataset.rows != "unit" and dataset.row_bound != "auto" and dataset.scaling == "none":
        bound = float(dataset.row_bound)
        beyond = int(np.sum(row_rules.row_norms(raw.x) > bound))
        findings.append(_count(beyond, "row norm", f"rows longer than {bound:g}, clipped"))
    return findings


def _target_finding(dataset: Any, raw: Raw) -> Finding:
    if raw.target_bounds is not None and dataset.task == "regression":
        low, high = raw.target_bounds
        beyond = int(np.sum((raw.y < low) | (raw.y > high)))
        return _count(beyond, "targets", f"outside [{low:g}, {high:g}], clipped")
    labels = (-1, 1) if raw.classes == 2 else range(raw.classes)
    style = "+d" if raw.classes == 2 else "d"
    counts = ", ".join(f"{k:{style}}: {int(np.sum(raw.y == k))}" for k in labels)
    return Finding("note" if np.unique(raw.y).size == 1 else "ok", "labels", counts)


def _source(dataset: Any, data_dir: Path | None) -> Finding:
    if dataset.where == "embedded":
        return Finding("ok", "digest", "the installed file is the one dperm knows")
    if dataset.where == "registered" and dataset.train.digest is not None:
        words = f"the records are the published ones ({dataset.train.digest})"
        return Finding("ok", "digest", words)
    path = dataset.locate(data_dir)
    if path.is_dir():
        files = dataset.list_files(data_dir)
        words = f"{len(files)} files, together {hash_facts([hash_file(file) for file in files])}"
        return Finding("ok", "sha256", words)
    return Finding("ok", "sha256", hash_file(path))


def _outside(raw: Raw) -> np.ndarray:
    assert raw.bounds is not None
    low, high = np.broadcast_to(raw.bounds, (raw.x.shape[1], 2)).T
    if sparse.issparse(raw.x):
        return (raw.x.data < low[raw.x.indices]) | (raw.x.data > high[raw.x.indices])
    return (raw.x < low) | (raw.x > high)


def _data_findings(data: Any) -> list[Finding]:
    """What the loaded arrays promise, measured again."""
    norms = row_rules.row_norms(data.x)
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
