"""``dperm ask``: queries answered one after another by one private release, as they come in."""

from __future__ import annotations

import contextlib
import csv
import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.core.errors import (
    EXIT_FAILED,
    EXIT_INPUT,
    EXIT_OK,
    InputError,
    PrivacyError,
    Unsupported,
)
from dperm_cli.core.foreign_errors import hide_words
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import CONFIG_DIR, Syntax, refuse_repeated
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting import generator_range
from dperm_cli.privacy.accounting.budget_filter import spend_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate, range_delta
from dperm_cli.results.ledger.remarks import list_remarks
from dperm_cli.runner.cells import prepared_cell, run_cell
from dperm_cli.runner.cells.outside_plan import copy_plan
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import command_line, study_plan
from dperm_cli.runner.models import budget_ledger, query_rows, save_model, session_record
from dperm_cli.runner.models.input_schema import InputSchema
from dperm_cli.runner.models.publishable import FeatureMap, Publishable
from dperm_cli.runner.verbs import run
from dperm_cli.views.kernel import KernelView

STDIN = "-"


def ask(arguments: list[str]) -> int:
    """``dperm ask KEY=VALUE.. [FILE|-]``: a line ``answer,update`` for each row of numbers."""
    with threadpool_limits(1):
        return _ask(arguments)


def _ask(arguments: list[str]) -> int:
    words = Syntax(keys=("columns", "budget"), options=CONFIG_DIR, passes_on=True).split(arguments)
    refuse_repeated(arguments)
    budget = words.settings.get("budget")
    if budget is not None:
        budget_ledger.read_budget(budget)  # refused before the records are read
    by_position = words.choose("columns", query_rows.COLUMNS) == "position"
    operands = words.operands
    for place, word in enumerate(operands):
        if word.startswith("-") and word != STDIN:
            raise command_line.SYNTAX.refuse_option(word, operands[place + 1 :])
    if len(operands) > 1:
        raise InputError("ask", " ".join(operands), "must be one file of rows, or - for the input")
    source = operands[0] if operands else STDIN
    if source != STDIN and not os.path.isfile(source):
        raise InputError("ask", source, "is not a file")
    folder = [word for option in words.options.items() for word in option]
    study = study_plan.plan_study(command_line.parse([*folder, *words.passed_on]))
    if len(study.cells) != 1:
        raise InputError("ask", f"{len(study.cells)} cells", "must be one cell: a session is one")
    try:
        prepared, session, told = start_session(study.cells[0], Path(study.out), budget)
    except Unsupported as reason:
        print(f"dperm: unsupported: {reason}", file=sys.stderr)
        return EXIT_FAILED
    columns = Columns(source, save_model.schema_of(prepared), by_position)
    with _lines(source) as lines:
        if source == STDIN:
            faults: list[InputError] = []
            rows = _rows(lines, columns, faults)
        else:
            # a file is refused as a whole, before anything is spent
            faults, rows = [], iter(list(_rows(lines, columns)))
        run.warn_of_columns([prepared])
        print(told, file=sys.stderr)
        with hide_words(prepared.plugins is not None):
            code = _answer_rows(prepared, session, rows)
        return code or (EXIT_INPUT if faults else EXIT_OK)


def start_session(
    item: Any, out: Path, budget_name: str | None = None
) -> tuple[Prepared, Any, str]:
    """The prepared cell, its session and what it spends; Unsupported where there is none.

    The session is counted in its budget and leaves its record in ``out`` before it answers.
    """
    if item.noise != "research":
        allowed = "is not for sessions, whose noise is floating-point: `dperm run ... save=FILE` "
        allowed += "keeps a model with secure noise, which answers any number of rows"
        raise InputError("noise", item.noise, allowed)
    if item.mechanism.session is None:
        allowed = "answers no queries one by one; set mechanism=kernel_release or "
        raise InputError("mechanism", item.mechanism_name, f"{allowed}kernel_interactive")
    prepared = prepared_cell.make_feature_rows(run.prepare((replace(item, trials=1),))[0])
    spec: Any = prepared.spec
    budget, kind = prepared_cell.find_budget(prepared)
    made = copy_plan(run_cell.plan_with_reserve(prepared.cell.mechanism, spec, budget))
    dim = item.mechanism.queries if isinstance(item.mechanism.queries, int) else spec.count
    _check_range(made, budget, dim)
    found = run_cell.check(made, budget, kind)
    assert prepared.kernel is not None
    # fresh noise for every session: two that ask other questions must not share any
    seeds = [np.random.SeedSequence(secrets.randbits(128))]
    gate = Gate(seeds, plan=(made.events, budget.relation))
    view = KernelView(prepared.kernel)
    with hide_words(prepared.plugins is not None):
        session = item.mechanism.session(view, run_cell.drop_reserve(copy_plan(made)), gate.fix())
    row = session_record.row(prepared, made, budget, found)
    session = session_record.RecordedSession(
        session, out, row, prepared.code, budget_name, spend_of(made.events, found)
    )
    told = Publishable.of(
        made, None, spec, save_model.schema_of(prepared),
        mechanism=item.mechanism_name, noise=item.noise, arithmetic="float64",
        population=item.population,
        features=None if spec.features is None
        else FeatureMap.of(spec.features, item.kernel.landmarks),
        plugins=row["plugins"],
    )  # fmt: skip
    warned = "".join(f"\nwarning: {remark}" for remark in list_remarks(row))
    return prepared, session, told.session_words() + warned


def _check_range(made: Plan, budget: Budget, dim: int) -> None:
    """Unsupported where the bounded range of seeded noise costs too much delta in ``dim`` draws."""
    most = generator_range.NEGLIGIBLE_DELTA_SHARE * budget.delta
    added = range_delta(made.events, budget.relation, dim)
    if added <= most:
        return
    fewer = next(
        (n for n in (dim // 10**k for k in range(1, 10))
         if n and range_delta(made.events, budget.relation, n) <= most), None,
    )  # fmt: skip
    advice = "a smaller epsilon"
    if fewer is not None:
        advice = f"mechanism.queries={fewer}, or {advice}"
    raise Unsupported(
        f"{dim} queries (mechanism.queries) at epsilon {budget.epsilon:g} draw noise whose bounded "
        f"range could cost more than delta/1000: set {advice}"
    )


def _answer_rows(prepared: Prepared, session: Any, rows: Iterator[np.ndarray]) -> int:
    rule = save_model.schema_of(prepared)
    print("answer,update")
    for row in rows:
        try:
            answer, update = session.ask(rule.apply_row_rule(row))
        except PrivacyError as error:
            print(f"dperm: {error}", file=sys.stderr)
            return EXIT_FAILED
        print(f"{float(answer[0])!r},{int(update[0])}", flush=True)
    return EXIT_OK


class Columns:
    """Where the columns of the data set are in lines of text, bound once as ``dperm predict`` does.

    Args:
        source: the file's name, or ``STDIN``.
        schema: the columns of the data set.
        by_position: whether the caller says that the columns are the data set's in its order.
    """

    def __init__(self, source: str, schema: InputSchema, by_position: bool) -> None:
        self.source, self._schema, self._by_position = source, schema, by_position
        self._named = schema.columns is not None and not by_position
        self._places: list[int] | None = None  # known from the first line that is not empty
        self._width = schema.count  # of a line

    def row(self, line: str, place: int) -> np.ndarray | None:
        """The row [1, schema.count] of a line; None where it names the columns.

        Raises:
            InputError: line number ``place`` is no row, or the columns are not those of the data.
        """
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error as error:
            raise InputError("ask", self.source, f"line {place}: {error}") from None
        if self._places is None and self._bind(cells):
            return None
        if len(cells) != self._width:
            raise self._fault(place)
        assert self._places is not None
        numbers = [number_in(cells[i].strip()) for i in self._places]
        if None in numbers:
            raise InputError("ask", self.source, f"line {place} holds what is no number")
        row = np.array([numbers], dtype=float)
        if not np.all(np.isfinite(row)):
            raise self._fault(place)
        return row

    def _bind(self, cells: list[str]) -> bool:
        """Find the columns; whether the first line names them."""
        names = query_rows.names_in(self.source, cells, self._schema if self._named else None)
        if names is None and not self._named:
            self._places = list(range(self._schema.count))
            return False
        if self._schema.columns is None and not self._by_position:
            told = "the data set has no column names: columns are taken by position"
            print(f"note: {told}", file=sys.stderr)
        width = len(cells)
        self._places = query_rows.places(self.source, names, width, self._schema, self._by_position)
        self._width = width
        return True

    @property
    def bound(self) -> bool:
        """Whether a line has said where the columns are."""
        return self._places is not None

    def _fault(self, place: int) -> InputError:
        count = self._schema.count
        what = f"{count} finite numbers"
        if self._width > count:  # the labels may stand beside them
            what = f"{self._width} columns, and {what} in those of the data set"
        return InputError("ask", self.source, f"line {place} must hold {what}")


def _rows(
    lines: Iterator[str], columns: Columns, faults: list[InputError] | None = None
) -> Iterator[np.ndarray]:
    """Rows [1, columns] as they come, without empty lines and names on the first one.

    With ``faults`` a line that is no row is told and kept there, and the next one is read: a slip
    of the keyboard must not end a session that has been paid for. Columns that cannot be bound
    end it before it has cost anything.
    """
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = columns.row(line, place)
        except InputError as fault:
            if faults is None or not columns.bound:
                raise
            faults.append(fault)
            print(f"dperm: {fault}; it was not asked", file=sys.stderr)
            continue
        if row is not None:
            yield row


@contextlib.contextmanager
def _lines(source: str) -> Iterator[Iterator[str]]:
    if source == STDIN:
        yield iter(sys.stdin.readline, "")
        return
    with open(source, encoding="utf-8-sig", errors="replace") as file:
        yield iter(file)
