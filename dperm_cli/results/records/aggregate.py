"""Join cells that repeat one another with another seed, fold or draw of data: median and band."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.results.records.references import find_unbeaten_baseline
from dperm_cli.results.records.row_facts import Row, distinct, flatten, group_by, read_map
from dperm_cli.results.records.summary import BAND, is_saturated, quantile

NONE = "none"
# the last word of a key whose values only repeat a cell
_LAST_WORDS = ("seed", "split_seed", "fold")
_ALWAYS = ("seed", "dataset.seed", "dataset.split_seed")
# Columns that tell cells apart where their configuration does not.
_COLUMNS = (
    "dataset", "loss", "constraint", "constraint_radius", "ridge", "lasso", "n", "p", "mechanism",
    "calibration", "privacy", "relation", "guarantee", "epsilon", "delta", "information",
)  # fmt: skip
_BANDS = {
    "excess_risk_median": ("excess_risk_q05", "excess_risk_q95"),
    "train_metric": ("train_metric_q05", "train_metric_q95"),
    "test_metric": ("test_metric_q05", "test_metric_q95"),
}
_LARGEST = ("optimum_gap", "epsilon_accounted", "delta_accounted", "information_accounted")


def configuration_of(row: Row) -> dict[str, Any]:
    """The configuration of a row as flat keys, with the seed of its noise."""
    seed = {} if row.get("seed") is None else {"seed": row["seed"]}
    return seed | flatten(read_map(row.get("overrides")))


def is_repetition(key: str) -> bool:
    """Whether the values of a key only repeat a cell: a seed, a fold or a draw of data."""
    return key.rpartition(".")[2] in _LAST_WORDS


def find_repetitions(rows: Iterable[Row]) -> list[str]:
    """The keys of repetitions that have several values in these rows.

    >>> rows = [{"seed": 0, "overrides": '{"dataset": {"fold": 1}}'}, {"seed": 1}]
    >>> find_repetitions(rows)
    ['seed']
    """
    values: dict[str, set[Any]] = {}
    for row in rows:
        for key, value in configuration_of(row).items():
            if is_repetition(key) and isinstance(value, (int, float, str)):
                values.setdefault(key, set()).add(value)
    return [key for key, found in values.items() if len(found) > 1]


def split_words(key: str, given: Any) -> list[Any]:
    """The words of a text with commas between them, or of a list; none for None.

    Args:
        key: What the user gave them as.
        given: A text, several words, or None.

    Raises:
        InputError: It is something else.
    """
    if isinstance(given, str):
        return given.split(",")
    if given is not None and not isinstance(given, Iterable):
        raise InputError(key, given, "must be words, or a list of them")
    return list(given or ())


def choose_repetitions(
    asked: str | Sequence[str] | None, rows: Sequence[Row], taken: Iterable[str] = ()
) -> list[str]:
    """The keys to join cells over.

    Args:
        asked: Keys, one text or several; ``seed`` stands for all repetitions, ``none`` for no key.
            None joins over all repetitions but those in ``taken``.
        rows: The summary rows.
        taken: Keys that are shown: an axis, a colour, a panel.

    Raises:
        InputError: A key is no repetition.
    """
    found = [key for key in find_repetitions(rows) if key not in set(taken)]
    if asked is None:
        return found
    words = split_words("aggregate", asked)
    known = list(dict.fromkeys([*_ALWAYS, *find_repetitions(rows), NONE]))
    for word in words:
        if word not in known:
            raise InputError("aggregate", word, f"must be {', '.join(known)}", known)
    if words == [NONE]:
        return []
    return found if "seed" in words else [key for key in words if key in found]


def aggregate_rows(rows: Sequence[Row], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Join the rows that differ in ``keys`` alone.

    Risk and metrics become the median over the joined rows, and their quantiles the 5 and 95 %
    quantiles over them: what a new seed, fold or draw changes. Other numbers become the median, or
    the largest where they limit something; what differs otherwise is null. ``trials`` is the sum of
    trials, and ``repetitions`` the number of rows joined. Rows that did not run are kept once.

    Args:
        rows: Summary rows.
        keys: The keys to join over, as ``choose_repetitions`` gives them.

    Returns:
        The joined rows, in the order in which each first appears.
    """
    if not keys:
        return [{**row, "repetitions": 1} for row in rows]
    groups = group_by(rows, lambda row: _identity(row, keys))
    return [_join(group, keys) for group in groups.values()]


def _identity(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    # the data tell their own draw: what a configuration says of them counts, less the keys
    kept = {key: value for key, value in configuration_of(row).items() if key not in keys}
    columns = tuple(row.get(name) for name in _COLUMNS)
    return row["status"], json.dumps(kept, sort_keys=True, default=str), columns


def _join(rows: Sequence[Row], keys: Sequence[str]) -> dict[str, Any]:
    first = rows[0]
    names = dict.fromkeys(name for row in rows for name in row)
    joined = {name: _join_values(name, [row.get(name) for row in rows]) for name in names}
    joined |= {"cell": first["cell"], "repetitions": len(rows), "overrides": _drop(first, keys)}
    joined |= {key: None for key in keys if key in joined}
    joined["trials"] = sum(row["trials"] or 0 for row in rows)
    if len(rows) > 1:
        for name, (low, high) in _BANDS.items():
            values = [row[name] for row in rows if row.get(name) is not None]
            joined |= {low: quantile(values, BAND[0]), high: quantile(values, BAND[1])}
    if first["status"] == "ok":
        joined["saturated"] = is_saturated(
            joined["excess_risk_median"], joined["floor_excess_risk"]
        )
        joined["no_better_than"] = find_unbeaten_baseline(joined)
    return joined


def _join_values(name: str, values: Sequence[Any]) -> Any:
    if len({_mark(value) for value in values}) == 1:
        return values[0]
    known = [value for value in values if value is not None]
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known):
        return None
    return max(known) if name in _LARGEST else quantile(known, 0.5)


def _mark(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, type(None))) else json.dumps(value)


def _drop(row: Row, keys: Sequence[str]) -> str | None:
    """The configuration of a row without some keys, as JSON text."""
    tree = read_map(row.get("overrides"))
    for key in keys:
        _drop_key(tree, key.split("."))
    return json.dumps(tree) if row.get("overrides") else row.get("overrides")


def _drop_key(tree: Mapping[str, Any], path: Sequence[str]) -> None:
    for name in path[:-1]:
        tree = tree.get(name) or {}
    if isinstance(tree, dict):
        tree.pop(path[-1], None)


def count_repetitions(rows: Iterable[Row]) -> list[int]:
    """How many rows were joined, each number once, ascending."""
    return sorted({count for count in distinct(rows, "repetitions") if count})
