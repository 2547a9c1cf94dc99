"""Describe one release in sentences: for the ledger, a session or a predictor to be shared.

They are a function of the public facts below and of nothing else of a record, so that no word
follows from how many records there are where that is private, from a risk or from a fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import plugin_words
from dperm_cli.results.records.row_facts import Row, format_constraint, number, read_map

SESSION = "session"  # among a record's settings: queries were answered, and no point released
INFORMATION = (
    "The guarantee is the local epsilon. What was asked for is a bound of {asked} nats on the "
    "mutual information between a record and its user's answers: an average over answers, under "
    "which a single one may tell far more. It is not differential privacy; it is kept as well."
)
# Columns of a record that a statement may speak of; ``select_public`` adds what follows from
# others.
PUBLIC = (
    "p", "loss", "constraint", "constraint_radius", "dataset", "mechanism", "relation", "guarantee",
    "epsilon", "delta", "epsilon_accounted", "delta_accounted", "information",
    "information_accounted", "population_source", "plugins",
)  # fmt: skip
_POINTS = re.compile(r"(?:^|; )kernel [a-z0-9_]+: (landmarks|exact)\b")


def select_public(row: Row) -> dict[str, Any]:
    """What of a record a statement may speak of.

    ``population`` is the n to be told: the declared number, or that of the records where it is
    public or was disclosed (``population_source``).
    """
    declared = row["population_source"] == "declared"
    return {name: row.get(name) for name in PUBLIC} | {
        "session": is_session(row),
        "population": row["population"] if declared else row["n"],
        "published_inputs": _published_inputs(row),
    }


def is_session(row: Row) -> bool:
    """Whether a record is of a session (``dperm ask``) and not of a study's cell."""
    return read_map(row.get("settings")).get(SESSION) is True


def has_fresh_noise(row: Row) -> bool:
    """Whether nobody can draw the noise again of what a record or a ledger's entry is about."""
    return row.get("noise") == "secure" or is_session(row)


def describe_public_inputs(count: int | None = None) -> str:
    """That held-out inputs stand in a release as they are."""
    what = "inputs of held-out records" if count is None else f"{count} inputs of held-out records"
    return (
        f"Published inputs: {what} are its landmarks and count as public; no guarantee covers the "
        "people they are of."
    )


def format_statement(facts: Mapping[str, Any], trials: int) -> str:
    """The release in sentences.

    Args:
        facts: as ``select_public`` makes them; ``epsilon`` and ``delta`` asked may be left out.
        trials: how often it was made.
    """
    whole = "The session" if facts["session"] else "Each release"
    times = "once" if trials == 1 else f"{trials} times (independent trials)"
    level = f"epsilon {number(facts['epsilon_accounted'], 6)}"
    if facts["delta_accounted"]:
        level += f" and delta {number(facts['delta_accounted'], 3)}"
    asked = ""
    if "epsilon" in facts:
        asked = f" (asked: epsilon {number(facts['epsilon'])}, delta {number(facts['delta'], 3)})"
    if facts["guarantee"] == "local":
        return _with_inputs(facts, f"{_fit(facts, times)} {_local_words(facts)}")
    kind = {"none": "is NOT private"}.get(facts["guarantee"], f"is private with {level}")
    found = f"{_fit(facts, times)} {whole} {kind} under {facts['relation']}{asked}."
    return _with_inputs(facts, found)


def _with_inputs(facts: Mapping[str, Any], found: str) -> str:
    outside = describe_plugins(facts.get("plugins"))
    inputs = facts["published_inputs"]
    return " ".join(filter(None, (found, inputs, outside)))


def describe_plugins(text: str | None) -> str | None:
    """Which plug-ins from outside the package a release hangs on, as a sentence."""
    found = plugin_words.summarise_uses(plugin_words.read_uses(text))
    return None if found is None else f"Plug-ins from outside dperm: {found}."


def _count_of(facts: Mapping[str, Any]) -> str:
    """The number of records, unless the release keeps it to itself."""
    if facts["population_source"] == "declared":
        return f"training records (at most {facts['population']}, a declared number)"
    return f"{facts['population']} training records"


def _fit(facts: Mapping[str, Any], times: str) -> str:
    if facts["session"]:
        return (
            f"Queries about the fit of {facts['loss']} to the {_count_of(facts)} of "
            f"{facts['dataset']} were answered in one session of {facts['mechanism']}."
        )
    return (
        f"A point of {facts['p']} numbers, the fit of {facts['loss']} over "
        f"{format_constraint(facts)} to the {_count_of(facts)} of {facts['dataset']}, was released "
        f"{times} by "
        f"{facts['mechanism']}."
    )


def _local_words(facts: Mapping[str, Any]) -> str:
    """What the answers of one user promise, and which of it is the guarantee."""
    nats = facts.get("information_accounted")
    told = "" if nats is None else f", and tell at most {number(nats, 6)} nats about the record"
    found = (
        "Each release is made of what users' own devices answered: all answers of a user are "
        f"locally private with epsilon {number(facts['epsilon_accounted'], 6)}{told}"
    )
    asked = facts.get("information")
    if asked is None and "epsilon" not in facts:
        return f"{found}."
    if asked is None:
        return f"{found} (asked: epsilon {number(facts['epsilon'])})."
    return f"{found}. {INFORMATION.format(asked=number(asked))}"


def _published_inputs(row: Row) -> str | None:
    """Held-out inputs that a record's point or answers are made of, in words.

    A kernel's landmarks and queries are those of the configuration, or else held-out inputs.
    """
    kind = _POINTS.search(row.get("preprocessing") or "")
    if kind is None or (is_session(row) and kind.group(1) == "exact"):
        return None  # a session of the kernel itself answers at the rows that it is asked
    name = "landmarks" if kind.group(1) == "landmarks" else "queries"
    given = read_map(read_map(row.get("overrides")).get("kernel")).get(name, "auto")
    from_file = isinstance(given, str) and given != "auto"
    return None if from_file else describe_public_inputs()
