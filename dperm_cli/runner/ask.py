"""``dperm ask``: queries answered one after another by one private release, as they come in."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli import __version__
from dperm_cli.core.errors import (
    EXIT_FAILED,
    EXIT_INPUT,
    EXIT_OK,
    InputError,
    PrivacyError,
    Unsupported,
)
from dperm_cli.core.numbers import number_in
from dperm_cli.mechanisms._kernel_view import KernelView
from dperm_cli.privacy import _range
from dperm_cli.privacy.noise import Gate, range_delta
from dperm_cli.results.remarks import remarks
from dperm_cli.runner import app, cell, model, plan, sessions
from dperm_cli.runner.overrides import parse
from dperm_cli.runner.publishable import Publishable

STDIN = "-"


def ask(arguments: list[str]) -> int:
    """``dperm ask KEY=VALUE.. [FILE|-]``: a line ``answer,update`` for each row of numbers."""
    with threadpool_limits(1):
        return _ask(arguments)


def _ask(arguments: list[str]) -> int:
    operands = [word for word in arguments if "=" not in word]
    if len(operands) > 1:
        raise InputError("ask", " ".join(operands), "must be one file of rows, or - for the input")
    source = operands[0] if operands else STDIN
    if source != STDIN and not os.path.isfile(source):
        raise InputError("ask", source, "is not a file")
    study = plan.plan(parse([word for word in arguments if "=" in word]))
    if len(study.cells) != 1:
        raise InputError("ask", f"{len(study.cells)} cells", "must be one cell: a session is one")
    try:
        prepared, session, words = opened(study.cells[0], Path(study.out))
    except Unsupported as reason:
        print(f"dperm: unsupported: {reason}", file=sys.stderr)
        return EXIT_FAILED
    columns = _columns(prepared)
    with _lines(source) as lines:
        if source == STDIN:
            faults: list[InputError] = []
            rows = _rows(source, lines, columns, faults)
        else:
            # a file is refused as a whole, before anything is spent
            faults, rows = [], iter(list(_rows(source, lines, columns)))
        print(words, file=sys.stderr)
        code = _answered(prepared, session, rows)
        return code or (EXIT_INPUT if faults else EXIT_OK)


def opened(item: Any, out: Path) -> tuple[cell.Prepared, Any, str]:
    """The prepared cell, its session and what it spends; Unsupported where there is none.

    The session leaves its record in ``out`` before it answers.
    """
    if not hasattr(item.mechanism, "session"):
        raise InputError(
            "mechanism", item.mechanism_name, "answers no queries one by one",
            ("kernel_interactive", "kernel_release"),
        )  # fmt: skip
    if item.noise != "research":
        raise InputError("noise", item.noise, "is not for sessions, whose noise is floating-point")
    prepared = cell.opened(app.prepare((replace(item, trials=1),))[0])
    spec: Any = prepared.spec
    budget, kind = cell._budget(prepared)
    made = cell.planned(prepared.cell.mechanism, spec, budget)
    dim = item.mechanism.queries if isinstance(item.mechanism.queries, int) else spec.count
    if range_delta(made.events, budget.relation, dim) > _range.LET_PASS * budget.delta:
        raise Unsupported("so many queries at so large an epsilon: ask for fewer or take less")
    found, source = cell.check(made, budget, kind)
    assert prepared.kernel is not None
    # fresh noise for every session: two that ask other questions must not share any
    seeds = [np.random.SeedSequence(secrets.randbits(128))]
    gate = Gate(seeds, plan=(made.events, budget.relation))
    session = item.mechanism.session(KernelView(prepared.kernel), cell.without_reserve(made), gate)
    row = sessions.row(prepared, made, budget, found, source)
    session = sessions.Recorded(session, out, row)
    told = Publishable.of(
        made, None, spec, model.schema_of(prepared), __version__, mechanism=item.mechanism_name,
        noise=item.noise, arithmetic="float64", population=item.population,
        features=None if spec.features is None
        else model.map_of(spec.features, item.kernel.landmarks),
    )  # fmt: skip
    warned = "".join(f"\nwarning: {remark}" for remark in remarks(row))
    return prepared, session, told.session_words() + warned


def _answered(prepared: cell.Prepared, session: Any, rows: Iterator[np.ndarray]) -> int:
    rule = model.schema_of(prepared)
    print("answer,update")
    for row in rows:
        try:
            answer, update = session.ask(rule.ruled(row))
        except PrivacyError as error:
            print(f"dperm: {error}", file=sys.stderr)
            return EXIT_FAILED
        print(f"{float(answer[0])!r},{int(update[0])}", flush=True)
    return EXIT_OK


def _columns(prepared: cell.Prepared) -> int:
    """Of a raw row."""
    return prepared.data.p - bool(getattr(prepared.cell.dataset, "intercept", None))


def _rows(
    source: str, lines: Iterator[str], columns: int, faults: list[InputError] | None = None
) -> Iterator[np.ndarray]:
    """Rows [1, columns] as they come, without empty lines and names on the first one.

    With ``faults`` a line that is no row is told and kept there, and the next one is read: a slip
    of the keyboard must not end a session that has been paid for.
    """
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(source, line, place, columns)
        except InputError as fault:
            if faults is None:
                raise
            faults.append(fault)
            print(f"dperm: {fault}; it was not asked", file=sys.stderr)
            continue
        if row is not None:
            yield row


def _row(source: str, line: str, place: int, columns: int) -> np.ndarray | None:
    """A row [1, columns]; None for names on the first line."""
    found = [number_in(word.strip()) for word in line.split(",")]
    numbers = [number for number in found if number is not None]
    if len(numbers) < len(found):
        if place == 1:
            return None
        raise InputError("ask", source, f"line {place} holds what is no number")
    if len(numbers) != columns or not all(map(math.isfinite, numbers)):
        raise InputError("ask", source, f"line {place} must hold {columns} finite numbers")
    return np.array([numbers])


@contextlib.contextmanager
def _lines(source: str) -> Iterator[Iterator[str]]:
    if source == STDIN:
        yield iter(sys.stdin.readline, "")
        return
    with open(source, encoding="utf-8", errors="replace") as file:
        yield iter(file)
