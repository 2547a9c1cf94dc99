"""The texts beside a released model: its card and its ledger entry.

Both are functions of a ``Publishable`` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.attack_risk import AttackRisk, find_attack_risk
from dperm_cli.results.records.row_facts import number
from dperm_cli.runner.models.publishable import PUBLIC, Publishable

MODEL, CARD, LEDGER = "model.npz", "card.md", "ledger.json"
RELATION_WORDS = {
    "replace_one": "one {unit} is replaced by any other; the number of records is public",
    "add_remove": "one {unit} is added or left out; the number of records stays private",
}


def write_ledger(found: Publishable) -> bytes:
    """The events of a release and what follows from them, as JSON."""
    whole, record = found.person_guarantee, found.guarantee
    entry: dict[str, Any] = {
        "version": found.version,
        "mechanism": found.mechanism,
        "noise": found.noise,
        "arithmetic": found.arithmetic,
        "relation": found.relation,
        "unit": describe_unit(found),
        "records_per_person": found.records_per_person,
        "guarantee": whole.kind,
        "epsilon": whole.epsilon,
        "delta": whole.delta,
        "epsilon_of_one_record": record.epsilon,
        "delta_of_one_record": record.delta,
        "accountant": record.source,
        "population": found.facts.population,
        "population_source": found.facts.population_source,
        "events": [ledger_totals.to_dict(event) for event in found.events],
    }
    return (json.dumps(entry, indent=2, allow_nan=False) + "\n").encode()


def describe_unit(found: Publishable) -> str:
    """Whom the guarantee protects."""
    table = found.schema.table
    if table is None or table.unit.column is None:
        return "record"
    return f"{table.unit.column} with at most {table.unit.at_most} records"


def find_risk(found: Publishable) -> AttackRisk:
    """What an attacker who sees the release can do at most, as far as one record is concerned."""
    return find_attack_risk(found.events, found.guarantee)


def write_card(found: Publishable) -> bytes:
    """The model card: what the model is for, what it was made of, and what is promised."""
    return ("\n".join(_lines_of_card(found)) + "\n").encode()


def _lines_of_card(found: Publishable) -> Iterator[str]:
    facts, schema, promise = found.facts, found.schema, found.person_guarantee
    predicted = "the column" if schema.target is None else f"`{schema.target}`"
    yield f"# A differentially private model of {predicted}"
    yield ""
    yield f"- Task: {schema.task}" + (f", classes {_classes(found)}" if schema.labels else "")
    if schema.target_bounds is not None:
        low, high = schema.target_of_bounds()
        yield f"- Predictions are numbers in [{number(low, 6)}, {number(high, 6)}]" + (
            ", made from a linear model of the logarithm" if schema.takes_logarithm else ""
        )
    yield f"- Loss: {facts.loss}; set: {facts.constraint}" + (
        "" if facts.constraint_size is None else f" of radius {number(facts.constraint_size, 6)}"
    )
    declared = facts.population_source != PUBLIC
    yield f"- Records: {facts.population}" + (" (a declared number)" if declared else "")
    yield f"- Numbers in the model: {found.coordinates}"
    yield ""
    yield "## Privacy"
    yield ""
    yield f"- {promise.kind} differential privacy: epsilon {number(promise.epsilon, 6)}" + (
        f", delta {number(promise.delta, 3)}" if promise.delta else ""
    )
    unit = describe_unit(found)
    yield f"- Neighbours: {RELATION_WORDS[found.relation].format(unit=unit)}"
    yield f"- Mechanism: {found.mechanism} (docs/proofs/{found.mechanism}.md of dperm)"
    yield f"- Noise: {found.noise}, on {found.arithmetic}"
    risk = find_risk(found)
    yield (
        "- Whoever tells from the model whether one record was in it gains at most "
        f"{number(risk.advantage, 3)} over guessing; with 1 % false alarms at most "
        f"{number(100 * risk.true_positive_rates[0.01], 3)} % of the true cases are found"
    )
    yield "- Not protected: what the model says about people in general, and the facts below"
    yield ""
    yield "## Public facts that it was made with"
    yield ""
    if schema.table is None:
        yield f"- {schema.count} columns of numbers"
    else:
        for name, kind in schema.table.columns:
            told = "; ".join(f"{key}: {_write(value)}" for key, value in kind.plain().items())
            yield f"- `{name}`: {told}"
        if schema.table.prepared is not None:
            yield f"- Not public, but bounds and words {schema.table.prepared.describe()}"
    yield f"- Rows: {schema.rows}, {schema.norm}-norm at most {number(schema.row_bound, 6)}"
    yield ""
    yield "## Use"
    yield ""
    yield f"    dperm predict {MODEL} rows.csv"
    yield ""
    yield f"Made by dperm {found.version}. Each further release of the same people's records"
    yield "spends privacy of its own."


def _classes(found: Publishable) -> str:
    return ", ".join(name for name, _ in found.schema.labels or ())


def _write(value: Any) -> str:
    if isinstance(value, list):
        shown = [str(item) for item in value[:12]]
        return ", ".join(shown) + (f", ... ({len(value)})" if len(value) > 12 else "")
    return str(value)
