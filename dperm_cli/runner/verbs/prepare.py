"""``dperm prepare``: fill the private bounds and words of a schema, for a price."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dperm_cli.core import checks, plain_yaml
from dperm_cli.core.data_files import locate
from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands, refuse_repeated
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.files.table import count_beyond
from dperm_cli.datasets.shared import archives, private_columns
from dperm_cli.datasets.shared.private_columns import PrivateColumns
from dperm_cli.datasets.shared.table_cells import Cells, read_cells, read_header
from dperm_cli.datasets.shared.table_columns import check_delimiter
from dperm_cli.privacy import preparation
from dperm_cli.privacy.accounting.budget_filter import Spend
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.results.records.schema import json_lines
from dperm_cli.runner.models import budget_ledger

KEYS = ("epsilon", "delta", "relation", "out", "budget", "delimiter", "format")
LIMIT = int(archives.DEFAULT_GIB * archives.GIB)


def prepare(arguments: list[str]) -> int:
    """``dperm prepare TABLE SCHEMA epsilon=0.2 [delta=1e-6] out=FILE [budget=NAME]``."""
    words = Syntax(keys=KEYS).split(arguments)
    if len(words.operands) != 2:
        raise refuse_operands("prepare", words.operands, "must be a table and its schema")
    refuse_repeated(arguments)
    settings, form = words.settings, words.choose("format", FORMATS)
    epsilon = checks.positive("epsilon", _read_number(settings.get("epsilon")))
    delta = checks.number("delta", _read_number(settings.get("delta", "0")), low=0.0, high=0.1)
    relation = words.choose("relation", RELATIONS)
    delimiter = check_delimiter("delimiter", settings.get("delimiter", ","))
    table = locate("TABLE", words.operands[0], None)
    path = locate("SCHEMA", words.operands[1], None)
    word = words.operands[1]
    given = plain_yaml.read_mapping(path, lambda said: InputError("SCHEMA", word, said))
    asked = private_columns.read_private(given, word)
    to = _find_output(settings.get("out"))
    budget = settings.get("budget")
    if budget is not None:
        budget_ledger.read_budget(budget)  # refused before the table is read
    plan = preparation.plan_preparation(
        len(asked.numbers), len(asked.words), asked.schema.unit.at_most, epsilon, delta, relation
    )
    with report_read_errors("TABLE", table):
        asked.schema.check_header(
            "TABLE", table.name, read_header("TABLE", table, delimiter, LIMIT)
        )
        counts = private_columns.count_columns(asked, _list_used(asked, table, delimiter))
    entry = ""
    if budget is not None:
        spend, what = Spend(plan.epsilon, plan.delta), f"bounds and words for {to.path}"
        entry = budget_ledger.reserve(budget, spend, relation, "preparation", what)
    noisy, passed = preparation.release_counts(
        plan, counts.bins, counts.words, plan.open_secure_gate()
    )
    filled, nothing = private_columns.fill_schema(asked, plan, noisy, passed)
    to.write(yaml.safe_dump(filled, sort_keys=False, allow_unicode=True).encode())
    told = {
        "schema": str(to.path), "epsilon": plan.epsilon, "delta": plan.delta, "relation": relation,
        "columns": ", ".join((*asked.numbers, *asked.words)), "nothing found": ", ".join(nothing),
    }  # fmt: skip
    if budget is not None:
        budget_ledger.finish(budget, entry, str(to.path))
        told |= {"budget": budget, "rest": budget_ledger.read_budget(budget).describe_rest()}
    if form == "json":
        print(json_lines([told]))
    else:
        width = max(map(len, told))
        print("\n".join(f"{key:<{width}}  {value}" for key, value in told.items()))
    print(f"dperm: next: dperm release {table} {to.path} epsilon=1", file=sys.stderr)
    return EXIT_OK


def _read_number(word: str | None) -> Any:
    value = None if word is None else number_in(word)
    return word if value is None else value


def _find_output(word: str | None) -> OutputFile:
    """The new schema's file: what was paid for is never replaced."""
    if word is None:
        raise InputError("out", None, "must name the new schema, as in out=prepared.yaml")
    to = OutputFile.of("out", word)
    if Path(word).is_file():
        raise InputError("out", word, "is there already: a preparation replaces no file")
    return to


def _list_used(
    asked: PrivateColumns, table: Path, delimiter: str
) -> Iterator[tuple[Cells, np.ndarray]]:
    """The cells of the table by column, and which records count: the first of each person."""
    unit, seen = asked.schema.unit, Counter[str]()
    for cells in read_cells("TABLE", table, delimiter, LIMIT):
        used = np.ones(len(cells[asked.schema.target.column]), dtype=bool)
        if unit.column is not None:
            used = ~count_beyond(cells[unit.column], unit.at_most, seen)
        yield cells, used
