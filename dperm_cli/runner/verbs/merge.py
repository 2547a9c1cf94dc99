"""``dperm merge``: the records of several folders in one, as if one study had made them all."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError, StorageError, make_printable
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.ledger import release_log
from dperm_cli.results.ledger.release_log_lines import Entry, Gap
from dperm_cli.results.records import given_names
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.runner.models.machine_file import copy_cells
from dperm_cli.runner.studies import study_folder, study_report
from dperm_cli.runner.verbs import run

_NAMED = 5


def merge(arguments: list[str]) -> int:
    """``dperm merge STUDY STUDY [..] out=FOLDER [format=table|json]``."""
    words = Syntax(keys=("out", "format")).split(arguments)
    form, operands = words.choose("format", FORMATS), words.operands
    to = checks.path("out", words.settings.get("out", ""), "must name the folder to write to")
    if len(operands) < 2:
        raise refuse_operands("STUDY", operands, "must be at least two folders")
    out = Path(to)
    run.check_folder(out)
    sources = [Store(study_folder.find_folder(name)) for name in operands]
    target = Store(out)
    # the target is also a source, so that an interrupted merge can be repeated
    found = choose_records([*sources, target] if target.cells() else sources)
    with hold_lease(out):
        return _merge_records(sources, target, found, form)


def _merge_records(
    sources: Sequence[Store], target: Store, found: Mapping[str, Store], form: str
) -> int:
    """Write the chosen records and their report; the exit code."""
    for source in sources:
        # before the records, as when they were made
        release_log.append(target.out, list_log_entries(source))
    for cell, source in found.items():
        data = read_bytes(source.path(cell))
        if data is None:
            raise StorageError(f"{source.path(cell)}: has gone")
        if source is not target:
            write_atomically(target.path(cell), data)
    copy_cells(target.out, {cell: source.out for cell, source in found.items()})
    target.write_manifest(manifest([*sources, *([target] if target.read_manifest() else [])]))
    print(f"{len(found)} records of {len(sources)} studies", file=sys.stderr)
    made = study_report.make_report(target.out, trust=True, others=sources)
    return study_report.exit_code(study_report.print_report(made, target.out, form))


def list_log_entries(source: Store) -> list[Entry | Gap]:
    """Lines for all fresh releases of a folder, and for what its log lost: that stays told."""
    records = [release_log.read_entry(source, cell) for cell in source.cells()]
    lost = [*release_log.list_damage(source.out), *release_log.find_unlogged(source)]
    return [
        *release_log.read_entries(source.out),
        *(entry for entry in records if entry is not None),
        *(Gap(f"{make_printable(source.out.name)}: {words}") for words in lost),
    ]


def choose_records(sources: Sequence[Store]) -> dict[str, Store]:
    """Where each cell's record comes from; nothing is written.

    A result is taken before a failure, otherwise the first one. InputError where two results of a
    cell differ in anything but diagnostics and their noise was not fresh: fresh releases differ as
    a matter of course, and the log has a line of each. StorageError where the only record is
    damaged.
    """
    found: dict[str, Store] = {}
    damaged: dict[str, Path] = {}
    conflicts = []
    for source in sources:
        for cell in source.cells():
            status = source.status(cell)
            if status == "broken":
                damaged.setdefault(cell, source.path(cell))
            elif cell not in found or (found[cell].status(cell) == "failed" != status):
                found[cell] = source
            elif status != "failed" and _conflict(cell, source, found[cell]):
                conflicts.append(f"{found[cell].path(cell)} and {source.path(cell)}")
    if conflicts:
        more = f" (and {len(conflicts) - _NAMED} more)" if len(conflicts) > _NAMED else ""
        names = "; ".join(conflicts[:_NAMED])
        raise InputError("STUDY", f"{len(conflicts)} cells", f"differ: {names}{more}")
    lost = [path for cell, path in damaged.items() if cell not in found]
    if lost:
        raise StorageError(f"{lost[0]}: is damaged; the same `dperm run` computes it again")
    return found


def _conflict(cell: str, one: Store, other: Store) -> bool:
    """Whether two results of a cell can not both stand."""
    if one.digest(cell) == other.digest(cell):
        return False
    return None in (release_log.read_entry(one, cell), release_log.read_entry(other, cell))


def manifest(sources: Sequence[Store]) -> dict[str, Any]:
    """The first study's manifest with the cells of all, and where those come from."""
    known = [(source, source.read_manifest() or {}) for source in sources]
    first = next((found for _, found in known if found), {})
    cells = [cell for source, _ in known for cell in study_folder.list_cells(source)]
    merged = {
        **first,
        "cells": list(dict.fromkeys(cells)),
        "merged": [_origin(source, found) for source, found in known],
        **given_names.merge_names([found for _, found in known]),
    }
    together = _experiment([experiment_tables.read_about(found) for _, found in known])
    merged.pop("experiment", None)
    return merged | ({"experiment": together} if together else {})


def _origin(source: Store, found: dict[str, Any]) -> dict[str, Any]:
    names = ("study", "argv", "versions", "git", "merged")
    return {"folder": source.out.name, "cells": len(study_folder.list_cells(source)),
            **{name: found[name] for name in names if name in found}}  # fmt: skip


def _experiment(abouts: Sequence[Any]) -> dict[str, Any] | None:
    """The experiment whose parts these are, each part with the cells of all; None for several."""
    if not abouts or None in abouts:
        return None
    kept = [{k: v for k, v in about.items() if k != "parts"} for about in abouts]
    if any(other != kept[0] for other in kept):
        return None
    parts: dict[str, dict[str, Any]] = {}
    for about in abouts:
        for part in about["parts"]:
            mine = parts.setdefault(part["name"], {**part, "cells": []})
            mine["cells"] = list(dict.fromkeys([*mine["cells"], *part["cells"]]))
            mine["absent"] = None if mine["cells"] else mine["absent"]
    return {**kept[0], "parts": list(parts.values())}
