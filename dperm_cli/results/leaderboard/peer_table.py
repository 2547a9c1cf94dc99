"""The rows of peers in one compact file, ``peers.csv``: a line for each peer and problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dperm_cli.core.files import read_bytes
from dperm_cli.core.number_text import number_in
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.results.records.row_facts import csv_lines

FILE = "peers.csv"
ABSENT = "absent"  # the status of a peer that is not installed
TEXTS = (
    "key", "mechanism", "status", "reason", "dataset", "loss", "constraint", "relation",
    "guarantee", "metric", "versions", "version", "data_fingerprint", "origin",
)  # fmt: skip
NUMBERS = (
    "constraint_radius", "ridge", "epsilon", "delta", "n", "p", "trials",
    "excess_risk_per_record_median", "excess_risk_q05", "excess_risk_q95",
    "floor_excess_risk_per_record", "optimum_gap", "test_metric", "optimum_metric",
    "baseline_metric", "optimum_shift", "seconds", "memory",
)  # fmt: skip

LATER = {"optimum_shift": ""}  # columns that older files do not have, and what they are read as


def write_peers(rows: Iterable[Mapping[str, Any]]) -> str:
    """The file's text; numbers to six digits, which is more than the trials bear."""
    names = (*TEXTS, *NUMBERS)
    return csv_lines(names, ([_format(row.get(name)) for name in names] for row in rows))


def read_peers(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none where there is no file.

    Raises:
        InputError: It is no such table.
    """
    data = read_bytes(path)
    if data is None:
        return []
    with report_read_errors("peers", path):
        lines = list(csv.DictReader(io.StringIO(data.decode())))
        texts = [{name: line[name] or None for name in TEXTS} for line in lines]
        numbers = [{name: number_in((LATER | line)[name]) for name in NUMBERS} for line in lines]
    return [{**text, **found} for text, found in zip(texts, numbers, strict=True)]


def _format(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
