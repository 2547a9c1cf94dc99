"""The outputs of a run that may depend on the records without noise, each with its reason.

Two runs on neighbouring data sets that draw the same noise must agree in everything but this: a
column, a progress label or a line of stderr that is not listed here counts as leaving the run, so
that a new one is private until somebody puts it here with a reason (docs/threats.md).
"""

from __future__ import annotations

import re

_FACT = "a fact about the records, computed without noise"
_NAME = "a hash of the records"
_TIME = "how long something took"

# Columns of a record.
COLUMNS = {
    "cell": "derived from the fingerprint",
    "data_fingerprint": _NAME,
    "n": "under add_remove the number of records; `population` is what is public",
    "optimum": _FACT,
    "optimum_gap": _FACT,
    "floor_risk": _FACT,
    "floor_excess_risk": _FACT,
    "excess_risk": _FACT,
    "excess_risk_per_record": _FACT,
    "records_exposed": _FACT,
    "max_error": _FACT,
    "rms_error": _FACT,
    "train_metric": _FACT,
    "test_metric": _FACT,
    "baseline_metric": _FACT,
    "optimum_metric": _FACT,
    "floor_metric": _FACT,
    "seconds": _TIME,
    "seconds_optimum": _TIME,
}
# Files that draw columns of that list; their names may be missing with nothing to draw.
_FIGURES = ("figure.pdf", "figure.svg", "figure.png", "figure.caption.md")
FIGURES = {name: "draws excess risks" for name in _FIGURES}
# Beginnings of progress labels.
PROGRESS = {"optimum, iteration": "the run's own search for the optimum"}
# Lines of stderr.
STDERR = {
    re.compile(r"  \[\d+ s\]$"): _TIME,
    re.compile(r"^warning: .* is no better than the (majority|mean) "): _FACT,
}


def public_progress(reports: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Progress without the holder's, each report once in a row: how often one comes is time."""
    found: list[tuple[str, float, float]] = []
    for report in reports:
        if not report[0].startswith(tuple(PROGRESS)) and report not in found[-1:]:
            found.append(report)
    return found


def public_lines(stderr: str) -> str:
    """Lines of stderr without the holder's."""
    lines = stderr.splitlines(keepends=True)
    return "".join(
        line for line in lines if not any(mark.search(line.rstrip("\n")) for mark in STDERR)
    )
