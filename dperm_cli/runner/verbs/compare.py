"""``dperm compare``: how risk, privacy and time differ between two studies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE, InputError
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands
from dperm_cli.results.leaderboard import reference
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import comparison
from dperm_cli.runner.studies import study_folder

_TABLE = ".csv"


def compare(arguments: list[str]) -> int:
    """``dperm compare RUN_A RUN_B [format=table|json]``; exit code 1 if B's guarantee is weaker.

    ``dperm compare RUN leaderboard`` places the run among the results of the leaderboard, and
    ``dperm compare RUN FILE.csv`` among those of a table that was downloaded.
    """
    words = Syntax(keys=("format",)).split(arguments)
    form, operands = words.choose("format", FORMATS), words.operands
    if len(operands) != 2:
        raise refuse_operands("STUDY", operands, "must be two folders (the out= of two runs)")
    if operands[1] == reference.NAME:
        return _compare_with_leaderboard(operands[0], form)
    if operands[1].endswith(_TABLE) and not Path(operands[1]).is_dir():
        return _compare_with_leaderboard(operands[0], form, Path(operands[1]))
    made = compare_studies(*operands)
    found = made.found
    if form == "json":
        lines = [pair.plain() for pair in found.weaker]
        lines += [pair.plain() for pair in found.pairs if not pair.weaker]
        lines += [{"in": "a", "cell": name} for name in found.only_a]
        lines += [{"in": "b", "cell": name} for name in found.only_b]
        print(json_lines(lines))
    else:
        print(made.format())
    for path in made.damaged:
        print(f"left out, damaged: {path}", file=sys.stderr)
    if found.weaker:
        print(f"dperm: {len(found.weaker)} cells have a weaker guarantee in {operands[1]}",
              file=sys.stderr)  # fmt: skip
        return EXIT_FAILED
    return EXIT_STORAGE if made.damaged else EXIT_OK


def _compare_with_leaderboard(name: str, form: str, table: Path | None = None) -> int:
    places, damaged = place_study(name, table)
    print(json_lines(places) if form == "json" else reference.format_places(places))
    for path in damaged:
        print(f"left out, damaged: {path}", file=sys.stderr)
    return EXIT_STORAGE if damaged else EXIT_OK


def place_study(
    name: str | Path, table: Path | None = None
) -> tuple[list[reference.Place], list[Path]]:
    """Where the cells of a study stand among the results of the leaderboard.

    Args:
        name: The study's folder, or its name under ``outputs``.
        table: A table.csv of a leaderboard; None for the one that comes with dperm.

    Returns:
        A line for each cell on a problem of the leaderboard, and records that are damaged.

    Raises:
        InputError: It is no study, or none of its cells is on a problem of the leaderboard.
    """
    rows, damaged = _read_rows(name)
    kept = reference.read_reference(table)
    places = reference.place_rows(summarise(rows), kept)
    if not places:
        problems = reference.describe_problems(kept, {row["dataset"] for row in rows})
        allowed = f"has no result on a problem and the records of the leaderboard: {problems}"
        raise InputError("STUDY", str(name), allowed)
    return places, damaged


@dataclass(frozen=True)
class ComparedStudies:
    """Two studies, joined cell by cell.

    Attributes:
        names: Of their folders.
        found: What differs.
        damaged: Records that are left out.
    """

    names: tuple[str, str]
    found: comparison.Comparison
    damaged: tuple[Path, ...] = ()

    def format(self) -> str:
        """The comparison for a terminal."""
        return comparison.format_comparison(self.found, *self.names)


def compare_studies(first: str | Path, second: str | Path) -> ComparedStudies:
    """Join the cells of two studies, given by folder or by name under ``outputs``.

    Raises:
        InputError: One of them is no study.
    """
    (rows, damaged), (others, more) = _read_rows(first), _read_rows(second)
    found = comparison.compare(rows, others)
    return ComparedStudies((str(first), str(second)), found, (*damaged, *more))


def _read_rows(name: str | Path) -> tuple[Any, list[Path]]:
    """The rows of a study, and the records that are damaged."""
    store = Store(study_folder.find_folder(str(name)))
    names = study_folder.list_cells(store)
    damaged = [store.path(name) for name in names if store.status(name) == "broken"]
    return store.read_all(names), damaged
