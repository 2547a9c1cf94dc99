"""``ledger.json``: what a folder's records released, as a privacy statement. No times in it.

A pure function of records. What the numbers need from an accountant (adding events up, putting
them in words) comes in as an argument, so that this room goes on seeing records only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.ledger import statement as statement_of
from dperm_cli.results.ledger.remarks import list_remarks, summarise_remarks
from dperm_cli.results.ledger.statement import has_fresh_noise, is_session
from dperm_cli.results.records.row_facts import (
    Row,
    as_json,
    distinct,
    format_constraint,
    format_count,
    group_by,
    group_cells,
    number,
    problem_of,
)
from dperm_cli.results.records.schema import replace_nonfinite

FORM = 1
_LISTED = 5  # gaps named in a warning
RELATIONS = {
    "replace_one": "Changing any one training record into any other admissible record changes the "
    "probability of every outcome by a factor of at most e^epsilon, up to delta. The number of "
    "training records n is public.",
    "add_remove": "Adding or removing any one training record changes the probability of every "
    "outcome by a factor of at most e^epsilon, up to delta. The n of the formulas is `population`.",
}
LOCAL = (
    "Nobody but its user sees a training record. What a user's own device sends, all answers "
    "together, has any value with chances that differ by a factor of at most e^epsilon from one "
    "admissible record to any other. The number of users n is public."
)
RESEARCH = (
    "NOT FOR RELEASE: noise=research is seeded and floating-point; whoever knows the seed can take "
    "the noise off again."
)
SIMULATION = (
    "Each trial is a release of its own. Medians, quantiles and error bars over trials read all of "
    "them and the records: they are a simulation, not a release."
)
EVALUATION = (
    "Excess risks, optimum, floor and metrics in the tables are computed from the records without "
    "noise: no guarantee covers them."
)
CHOICE = (
    "Choosing one of {count} rows by its excess risk or metric reads the records without noise: no "
    "epsilon covers the choice. Publishing every candidate costs `total`; a private choice costs "
    "its own epsilon on top."
)
FOLDER = (
    "This ledger counts the records of its folder, and by releases.log what was released there "
    "with fresh noise and has no record any more. Releases about the same people elsewhere cost on "
    "top."
)
NOT_COUNTED = (
    " {} more cells hold under replace_one only, with n public: add_remove promises nothing there."
)
SAME_NOISE = (
    "These cells drew the same noise for different releases (one configuration, several versions "
    "of the code); no total holds for them: {cells}."
)
AT_LEAST = (
    "AT LEAST: lines of releases.log are damaged or missing, so that releases may be unknown here. "
    "Every total is a lower bound of what was spent: {gaps}."
)
TOTAL_AT_LEAST = "AT LEAST what follows was released and spent. "
REAL_NUMBERS = "The guarantee is a statement about real numbers; the computation is in {}."


class Accountant(Protocol):
    """What the statement needs besides records; the runner supplies it."""

    def events(self, row: Row) -> list[dict[str, Any]]:
        """The row's events with sensitivity, count and words."""
        ...

    def restore_events(self, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Of events as ``events`` wrote them, what a record says; ValueError for no events."""
        ...

    def total(self, releases: Sequence[tuple[Row, int]], relation: str) -> dict[str, Any]:
        """guarantee, epsilon, delta, accountant of all releases (row, how often) together."""
        ...

    def fault(self, row: Row) -> str | None:
        """Why the row's claim does not follow from its own events, or None."""
        ...

    def find_missing(self, row: Row) -> str | None:
        """Which plug-in from outside the row's events need that is not at hand, or None."""
        ...


@dataclass(frozen=True)
class LedgerRelease:
    """A release as it enters the ledger, ``trials`` times.

    ``row`` says what its accountant needs, ``points`` are the released points of a seeded one.
    ``entry`` is what an earlier ledger says of a release that only that ledger knows.
    """

    row: Row
    trials: int
    recorded: bool = True
    points: Sequence[Any] = ()
    entry: Mapping[str, Any] | None = None


def build_ledger(
    rows: Sequence[Row],
    accountant: Accountant,
    unrecorded: Sequence[LedgerRelease] = (),
    gaps: Sequence[str] = (),
) -> dict[str, Any]:
    """The ledger of these records, JSON-able; equal arguments give an equal statement.

    Args:
        rows: the records.
        accountant: adds events up.
        unrecorded: releases that only the log of releases or the ledger before this one knows
            (``release_log``, ``kept_ledger``): they count, and nobody can choose them.
        gaps: what is known to be missing, in words: with any, all totals are lower bounds.
    """
    cells = group_cells(rows)
    recorded = [
        LedgerRelease(group[0], len(group), points=[row["theta"] for row in group])
        for group in cells.values()
        if group[0]["status"] == "ok"
    ]
    released = [*recorded, *unrecorded]
    others = [group[0] for group in cells.values() if group[0]["status"] != "ok"]
    found = {
        "form": FORM,
        "title": "What was released about which data set, and what it costs in privacy.",
        "warnings": [*_incomplete(gaps), *_warnings(released)],
        "notes": [SIMULATION, EVALUATION, FOLDER],
        "releases": [_release(item, accountant) for item in released],
        "totals": [_at_least(total) if gaps else total for total in _totals(released, accountant)],
        "choices": _choices(recorded, accountant),
        "not_released": [
            {name: row[name] for name in ("cell", "status", "reason", "mechanism", "epsilon")}
            | _name_plugins(row)
            for row in others
        ],
    }
    return replace_nonfinite(found)


def _name_plugins(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"plugins": row["plugins"]} if row.get("plugins") else {}


def _incomplete(gaps: Sequence[str]) -> list[str]:
    if not gaps:
        return []
    more = f" (and {len(gaps) - _LISTED} more)" if len(gaps) > _LISTED else ""
    return [AT_LEAST.format(gaps="; ".join(gaps[:_LISTED]) + more)]


def _at_least(total: dict[str, Any]) -> dict[str, Any]:
    """The total of what is known, where releases may be unknown."""
    return total | {"statement": TOTAL_AT_LEAST + total["statement"], "at_least": True}


def fresh_totals(found: Mapping[str, Any]) -> list[str]:
    """Statements of the totals over several releases, some of them with noise nobody can redraw."""
    fresh = {
        entry["cell"]
        for entry in found["releases"]
        if entry.get("release") is not None or entry["noise"] == "secure"
    }
    return [
        total["statement"]
        for total in found["totals"]
        if total["releases"] > 1 and fresh.intersection(total["cells"])
    ]


def encode_ledger(found: Mapping[str, Any]) -> bytes:
    """The bytes of ``ledger.json``."""
    return json.dumps(found, indent=2, allow_nan=False).encode() + b"\n"


def record_faults(rows: Sequence[Row], accountant: Accountant) -> list[str]:
    """The records whose claims do not follow from their own events, one line each."""
    found = []
    for cell, group in group_cells(rows).items():
        wrong = [accountant.fault(row) for row in _distinct_claims(group)]
        found += [f"record {cell}: {fault}" for fault in wrong if fault]
    return found


def _release(item: LedgerRelease, accountant: Accountant) -> dict[str, Any]:
    """One cell: its data, mechanism, level asked and accounted, events, and all in words."""
    if item.entry is not None:
        return {**item.entry, "record": False, "logged": False}
    row, trials = item.row, item.trials
    named = {} if row.get("release") is None else {"release": row["release"]}
    return {
        "cell": row["cell"],
        "statement": statement_of.format_statement(statement_of.select_public(row), trials),
        "data": {
            "name": row["dataset"],
            "fingerprint": row["data_fingerprint"],
            "n": None if row["population_source"] == "declared" else row["n"],
            "row_bound": row["row_bound"],
            "target_bound": row["target_bound"],
            "preprocessing": row["preprocessing"],
            "preprocessing_covered": not row["unsafe_scaling"],
            "population": row["population"],
            "population_source": row["population_source"],
        },
        "problem": {
            "loss": row["loss"],
            "constraint": format_constraint(row),
            "ridge": row["ridge"],
            "lasso": row["lasso"],
            "lipschitz": row["lipschitz"],
            "p": row["p"],
        },
        "mechanism": row["mechanism"],
        "calibration": row["calibration"],
        "settings": as_json(row["settings"]),
        "trials": trials,
        "relation": row["relation"],
        "relation_means": _explain_relation(row),
        "asked": _describe_request(row),
        "accounted": {
            "epsilon": row["epsilon_accounted"],
            "delta": row["delta_accounted"],
            "kind": row["guarantee"],
            "accountant": row["accountant"],
            "certificate": row["certificate"],
            **_describe_local(row),
            **({"remarks": list_remarks(row)} if list_remarks(row) else {}),
        },
        "events": accountant.events(row),
        "noise": row["noise"],
        "arithmetic": row["arithmetic"],
        "seed": row["seed"],
        "version": row["version"],
        "not_covered": _list_uncovered(row),
        **_name_plugins(row),
        **named,
        **({} if item.recorded else {"record": False}),
    }


def _explain_relation(row: Row) -> Any:
    return LOCAL if _is_local(row) else RELATIONS.get(row["relation"], row["relation"])


def _is_local(row: Row) -> bool:
    return row["guarantee"] == "local"


def _describe_request(row: Row) -> dict[str, Any]:
    """The level asked for: of local privacy by information, that instead of epsilon."""
    information = row.get("information")
    level = {"epsilon": row["epsilon"]} if information is None else {"information": information}
    return {**level, "delta": row["delta"], "kind": row["privacy"]}


def _describe_local(row: Row) -> dict[str, Any]:
    """What only local guarantees say."""
    names = ("information", "channel", "channel_multiplier")
    found = {n: row.get("information_accounted" if n == "information" else n) for n in names}
    return found if _is_local(row) else {}


def _list_uncovered(row: Row) -> list[str]:
    found = []
    if row["guarantee"] == "none":
        found.append("Nothing is covered: the mechanism gives no guarantee.")
    if row["unsafe_scaling"]:
        found.append(f"Preprocessing was learnt from the data: {row['preprocessing']}.")
    if row["population_source"] == "from the data":
        found.append("The number of records was taken from the data and is disclosed.")
    # on a grid values, noise and guarantee are about the same integers
    if row["arithmetic"] == "float64":
        found.append(REAL_NUMBERS.format(row["arithmetic"]))
    return found


def _warnings(cells: Sequence[LedgerRelease]) -> list[str]:
    rows = [cell.row for cell in cells]
    found = [RESEARCH] if any(row["noise"] != "secure" for row in rows) else []
    if any(row["unsafe_scaling"] for row in rows):
        found.append("Some preprocessing was learnt from the data; no guarantee covers it.")
    if any(row["population_source"] == "from the data" for row in rows):
        found.append("Some releases disclose the number of records.")
    if any(row["guarantee"] == "none" for row in rows):
        found.append("Some releases are NOT private.")
    found += [f"A weak guarantee: {words}." for words in summarise_remarks(rows)]
    return found + [SAME_NOISE.format(cells=", ".join(names)) for names in _same_noise(cells)]


def _same_noise(cells: Sequence[LedgerRelease]) -> list[list[str]]:
    """Groups of cells whose seeded noise is the same although their releases differ.

    Noise is keyed by the configuration without the number of trials and by the data; trial 3 of
    10 and trial 3 of 100 are one release, unless the code changed in between.
    """
    seeded = [cell for cell in cells if not has_fresh_noise(cell.row)]
    found = []
    for group in group_by(seeded, _noise_key).values():
        shared = min(cell.trials for cell in group)
        released = {tuple(tuple(p or ()) for p in cell.points[:shared]) for cell in group}
        if len(released) > 1:
            found.append([cell.row["cell"] for cell in group])
    return found


def _noise_key(cell: LedgerRelease) -> tuple[str, str]:
    configuration = as_json(cell.row["overrides"])
    if isinstance(configuration, dict):
        configuration = {key: value for key, value in configuration.items() if key != "trials"}
    return json.dumps(configuration, sort_keys=True), str(cell.row["data_fingerprint"])


def _totals(cells: Sequence[LedgerRelease], accountant: Accountant) -> list[dict[str, Any]]:
    """What everything costs together, by data set and relation.

    A name with several fingerprints may stand for several versions of the same people's records:
    for those there is one more total, over all of them.
    """
    found = []
    for name, versions in group_by(cells, lambda cell: str(cell.row["dataset"])).items():
        prints = group_by(versions, lambda cell: cell.row["data_fingerprint"])
        wholes = [versions] if len(prints) > 1 else []
        for group in [*prints.values(), *wholes]:
            for relation, same in group_by(group, lambda cell: cell.row["relation"]).items():
                # to replace a record is to remove one and add one; n is public only there
                counted = group if relation == "replace_one" else same
                found.append(_total(name, relation, counted, accountant, len(group)))
    return found


def _total(
    name: str,
    relation: str,
    cells: Sequence[LedgerRelease],
    accountant: Accountant,
    among: int,
) -> dict[str, Any]:
    once = accountant.total([(cell.row, 1) for cell in cells], relation)
    every = accountant.total([(cell.row, cell.trials) for cell in cells], relation)
    trials = sum(cell.trials for cell in cells)
    prints = distinct([cell.row for cell in cells], "data_fingerprint")
    return {
        "statement": f"{'All' if len(cells) == among else 'These'} {trials} releases about {name} "
        f"({format_count(len(cells), 'cell')}) together"
        f" are {_level(every)} under {relation}; one trial of each cell is {_level(once)}."
        + (NOT_COUNTED.format(among - len(cells)) if len(cells) < among else "")
        + (f" {len(prints)} versions of {name}, if of the same people." if len(prints) > 1 else ""),
        "data": name,
        "fingerprints": prints,
        "relation": relation,
        "cells": [cell.row["cell"] for cell in cells],
        "releases": trials,
        "all_trials": every,
        "one_trial_of_each_cell": once,
    }


def _choices(cells: Sequence[LedgerRelease], accountant: Accountant) -> list[dict[str, Any]]:
    """Sweeps: several rows of one problem, among which a reader may want to choose."""
    points = [cell for cell in cells if not is_session(cell.row)]
    groups = group_by(points, lambda cell: (problem_of(cell.row), cell.row["relation"]))
    return [
        {
            "data": group[0].row["dataset"],
            "cells": [cell.row["cell"] for cell in group],
            "total": accountant.total([(cell.row, 1) for cell in group], group[0].row["relation"]),
            "statement": CHOICE.format(count=len(group)),
        }
        for group in groups.values()
        if len(group) > 1
    ]


def _level(total: Mapping[str, Any]) -> str:
    if total["kind"] == "none":
        return "NOT private"
    if total["epsilon"] == math.inf:
        return "without a promise: their deltas add up to 1 or more"
    return f"({number(total['epsilon'], 5)}, {number(total['delta'], 3)})-private"


def _distinct_claims(rows: Sequence[Row]) -> list[Row]:
    """One row per different claim of a cell; trials should all make the same one."""
    names = ("status", "epsilon", "delta", "relation", "guarantee", "epsilon_accounted")
    names = (*names, "delta_accounted", "events", "certificate")
    claims = {tuple(row[name] for name in names): row for row in rows}
    return [row for row in claims.values() if row["status"] == "ok"]
