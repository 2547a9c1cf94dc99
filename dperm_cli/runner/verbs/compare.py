"""``dperm compare``: how risk, privacy and time differ between two studies."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.records.store import Store
from dperm_cli.results.tables import comparison
from dperm_cli.runner.studies import study_folder


def compare(arguments: list[str]) -> int:
    """``dperm compare RUN_A RUN_B [format=table|json]``; exit code 1 if B's guarantee is weaker."""
    words = Syntax(keys=("format",)).split(arguments)
    form, operands = words.choose("format", FORMATS), words.operands
    if len(operands) != 2:
        raise refuse_operands("STUDY", operands, "must be two folders (the out= of two runs)")
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
    rows, damaged = [], []
    for name in (first, second):
        store = Store(study_folder.find_folder(str(name)))
        names = study_folder.list_cells(store)
        damaged += [store.path(name) for name in names if store.status(name) == "broken"]
        rows.append(store.read_all(names))
    found = comparison.compare(*rows)
    return ComparedStudies((str(first), str(second)), found, tuple(damaged))
