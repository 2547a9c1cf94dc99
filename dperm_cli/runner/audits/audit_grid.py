"""Audit the declared grid of configurations.

The cases of a mechanism are the rows of a covering design: a small set of rows in which every pair
of values occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.audit import declared_grid, hard_pairs
from dperm_cli.audit.case_report import Report
from dperm_cli.audit.cell_checks import examine
from dperm_cli.audit.covering_design import FULL, Design, cover
from dperm_cli.audit.opened_cell import FAILED, OK, OpenedCell
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported, describe_error
from dperm_cli.runner.audits import audit_cells
from dperm_cli.runner.compose.composer import Composer

PER_CASE, QUICK_PER_CASE = 4, 2  # kinds of neighbours of one case
MAX_CASES = 22  # cases of one mechanism
CASES_PER_JOB = 6  # cases that one worker examines in a row


@dataclass(frozen=True)
class GridCase:
    """One case of a mechanism's walk through the grid.

    It is a row of the design with its kinds of neighbours. ``planned`` holds the public facts and
    the plan with which the row was found to be possible. The case plans again for a neighbour, in
    another process, and compares.
    """

    number: int
    row: Mapping[str, Any]
    kinds: tuple[str, ...]
    planned: OpenedCell


@dataclass(frozen=True)
class GridWalk:
    """The cases of one mechanism, and the values it does not support, with the reason."""

    name: str
    stops: tuple[GridCase, ...]
    missing: tuple[tuple[str, str], ...]

    def chunks(self) -> list[Sequence[GridCase]]:
        """The cases in groups, each for one worker."""
        return [
            self.stops[at : at + CASES_PER_JOB] for at in range(0, len(self.stops), CASES_PER_JOB)
        ]

    def only(self, number: int) -> Sequence[GridCase]:
        """One case; InputError where there is none of this number."""
        if number >= len(self.stops):
            allowed = f"{self.name} has the cases 0 to {len(self.stops) - 1}"
            raise InputError("case", number, allowed)
        return self.stops[number : number + 1]


def walk(name: str, quick: bool = False) -> GridWalk:
    """The cases of a mechanism. What it does not support is found by planning.

    ``quick`` covers every value once, but not every pair of values, and has a secure form in a row
    of its own: what else a row has is seeded, which takes less time.
    """
    composer = Composer()
    planned: dict[Any, OpenedCell] = {}

    def open_row(row: Mapping[str, Any], plan: bool) -> OpenedCell:
        try:
            subject = audit_cells.of_grid(name, row, composer)
            audit_cells.check_kind(subject)
            records = hard_pairs.make("zero row", subject.shape, subject.cell.relation).first
            return audit_cells.open_records(subject, records, plan=plan)
        except (InputError, Unsupported) as error:
            return OpenedCell(FAILED, str(error))
        except Exception as error:
            return OpenedCell(FAILED, describe_error(error)[:200])

    def reason_against(row: Mapping[str, Any]) -> str | None:
        found = open_row(row, plan=True)
        planned[tuple(row.items())] = found.strip_records()
        return None if found.status == OK else found.reason

    def reason_before_plan(row: Mapping[str, Any]) -> str | None:
        found = open_row(row, plan=False)
        return None if found.status == OK else found.reason

    def reason_at_once(row: Mapping[str, Any]) -> str | None:
        try:
            audit_cells.check_kind(audit_cells.of_grid(name, row, composer))
        except Exception as reason:  # whatever it is, the full check will report it
            return str(reason) or "refused"
        return None

    factors = declared_grid.factors(name)
    first = declared_grid.FIRST.get(name, ())
    if quick and "noise" in factors and not any("noise" in settings for settings in first):
        first = (*first, {"noise": "secure"})
    strength = 1 if quick else 2
    design = cover(
        factors,
        reason_against,
        strength,
        first,
        MAX_CASES,
        reason_at_once,
        reason_before_plan,
    )
    kinds = assign_kinds(design.rows, QUICK_PER_CASE if quick else PER_CASE)
    stops = tuple(
        GridCase(number, row, kinds[number], planned[tuple(row.items())])
        for number, row in enumerate(design.rows)
    )
    return GridWalk(name, stops, _describe_missing(design))


def _describe_missing(design: Design) -> tuple[tuple[str, str], ...]:
    """What the design lacks, one line each; pairs for which there was no room only as a number."""
    full = [target for target, reason in design.missing if reason == FULL]
    found = [
        (" with ".join(f"{name}={value}" for name, value in target), reason)
        for target, reason in design.missing
        if reason != FULL
    ]
    return tuple(found + ([(f"{len(full)} pairs of values", FULL)] if full else []))


def assign_kinds(rows: Sequence[Mapping[str, Any]], count: int) -> list[tuple[str, ...]]:
    """``count`` kinds of neighbours for each row, so that each kind soon meets each value."""
    kinds = hard_pairs.KINDS
    left = {(k, f, v) for row in rows for f, v in row.items() for k in kinds}
    found = []
    for number, row in enumerate(rows):
        order = sorted(
            kinds,
            key=lambda kind: (
                -sum((kind, f, v) in left for f, v in row.items()),
                (kinds.index(kind) - count * number) % len(kinds),
            ),
        )
        # pairs where nothing hides the record come first: they are attacked as well
        alone = hard_pairs.ALONE
        if count < len(kinds) // 3:
            alone = (alone[number % 2],)
        rest = [kind for kind in order if kind not in hard_pairs.ALONE]
        chosen = (*alone, *rest[: count - len(alone)])
        left -= {(k, f, v) for f, v in row.items() for k in chosen}
        found.append(chosen)
    return found


def examine_stops(name: str, stops: Sequence[GridCase], seed: int) -> list[Report]:
    """The reports of some cases of a walk."""
    composer, found = Composer(), []
    known: set[Any] = set()
    for stop in stops:
        subject = audit_cells.of_grid(name, stop.row, composer)
        try:
            made = audit_cells.case(subject, stop.kinds, seed + stop.number, stop.planned)
            report = examine(made, seed, known)
        except Exception as error:
            text = describe_error(error)[:200]
            report = Report(name, subject.words, status=FAILED, faults=[f"raised {text}"])
        report.case = stop.number
        found.append(report)
    return found
