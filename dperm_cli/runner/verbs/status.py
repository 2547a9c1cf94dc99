"""``dperm status``: how far a study is, while it runs or after it was killed. Changes nothing."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import EXIT_OK
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.results.records import given_names
from dperm_cli.results.records.cell_claims import Claims
from dperm_cli.results.records.schema import canonical_json
from dperm_cli.results.records.store import Store, list_old
from dperm_cli.runner.studies import study_folder
from dperm_cli.runner.sweep.progress import duration

_LISTED = 50


def status(arguments: list[str]) -> int:
    """``dperm status STUDY [format=table|json]``."""
    words = Syntax(keys=("format", "out")).split(arguments)
    form = words.choose("format", FORMATS)
    found = collect_facts(study_folder.find_folder(study_folder.name_one(words)))
    print(canonical_json(found) if form == "json" else format_status(found))
    return EXIT_OK


def collect_facts(out: Path) -> dict[str, Any]:
    """Counts, last activity and failures of the study in a folder, JSON-able."""
    store = Store(out)
    names = study_folder.list_cells(store)
    states = {cell: store.status(cell) for cell in names}
    found = Counter(states.values())
    running = set(Claims(out).list_running()) & set(names)
    counts = {
        "cells": len(names),
        "done": found["ok"] + found["planned"],
        "unsupported": found["unsupported"],
        "failed": found["failed"],
        "damaged": found["broken"],
        "remaining": found["absent"] + found["broken"],
        "running": len(running),
        "old_names": len(list_old(dict.fromkeys([*names, *store.cells()]))),
    }
    last = last_activity(store, names)
    manifest = store.read_manifest() or {}
    return {
        "study": manifest.get("study"),
        "out": str(out),
        **counts,
        "last_activity": None if last is None else round(last, 3),
        "seconds_since": None if last is None else round(max(0.0, time.time() - last), 1),
        "failures": [_failure(store, c) for c in names if states[c] == "failed"],
        "damaged_files": [str(store.path(c)) for c in names if states[c] == "broken"],
    }


def format_status(found: dict[str, Any]) -> str:
    """The same for people."""
    head = f"{found['study'] or found['out']}: {found['cells']} cells, "
    head += ", ".join(
        f"{found[name]} {name}" for name in ("done", "failed", "unsupported", "remaining")
    )
    lines = [head]
    if found["running"]:
        lines.append(f"{found['running']} cells run now")
    if found["old_names"]:
        lines.append(f"{found['old_names']} of all records here have names of the old form: "
                     "`dperm run` does not look them up")  # fmt: skip
    if found["seconds_since"] is not None:
        lines.append(f"last record written {duration(found['seconds_since'])} ago")
    for failure in found["failures"][:_LISTED]:
        lines.append(f"failed: {failure['cell']}: {failure['what']}: {failure['reason']}")
    if len(found["failures"]) > _LISTED:
        lines.append(f"and {len(found['failures']) - _LISTED} more: format=json lists all")
    lines += [f"damaged: {path}" for path in found["damaged_files"]]
    if found["remaining"] or found["failed"]:
        lines.append("the same `dperm run` computes what is missing and tries again what failed")
    return "\n".join(lines)


def last_activity(store: Store, names: list[str]) -> float | None:
    """When the newest record was written, in seconds since the epoch."""
    times = []
    for cell in names:
        with contextlib.suppress(OSError):
            times.append(store.path(cell).stat().st_mtime)
    return max(times, default=None)


def _failure(store: Store, cell: str) -> dict[str, Any]:
    row = (store.read(cell) or [{}])[0]
    (row,) = given_names.name_rows([{"cell": cell, **row}], store.read_manifest() or {})
    return {"cell": cell, "what": describe_record(row), "reason": row.get("reason")}


def describe_record(row: Mapping[str, Any]) -> str:
    """A record's cell in a few words."""
    epsilon = row.get("epsilon")
    level = "" if epsilon is None else f" epsilon={epsilon:g}"
    where = f" on {row['dataset']}" if row.get("dataset") else ""
    return f"{row.get('mechanism')}{level} {row.get('calibration') or ''}".rstrip() + where
