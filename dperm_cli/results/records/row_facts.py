"""What the rows of a study share, where they differ, and how numbers are formatted."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from dperm_cli.core import catalogue

Row = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

# Configuration keys that have a column of their own, or that do not change any number.
_SHOWN = frozenset(
    (
        *("dataset", "dataset.name", "loss", "loss.name", "mechanism", "mechanism.name"),
        *("constraint", "constraint.name", "constraint.radius", "ridge", "lasso", "n", "p"),
        *("privacy", "privacy.name", "privacy.relation", "relation", "epsilon", "delta"),
        "information",
        *("calibration", "trials", "format", "out", "force", "debug", "unsafe_scaling"),
    )
)
_PROBLEM = ("dataset", "data_fingerprint", "loss", "constraint", "constraint_radius")
_PROBLEM = (*_PROBLEM, "ridge", "lasso")
_SIZES = ("n", "p")
_MAX_DEPTH = 64  # levels of a configuration in a record
_OWNERS = ("dataset", "loss", "constraint")
_OF_CURVE = ("mechanism", "sampler")
_MOST_TEXTS = 20_000  # configurations that are kept as what their text says
_CONFIGURATIONS: dict[str, Mapping[str, str]] = {}


def number(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits; integers below 10^7 in full; null is a dash."""
    if value is None:
        return "-"
    if isinstance(value, int) and abs(value) < 10**7:
        return str(value)
    text = f"{value:.{digits}g}"
    if 1e-3 <= abs(value) < 1e5:
        return f"{float(text):.12g}"
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if sign else text


def format_value(value: Any, digits: int = 4) -> str:
    """Text as it is, and anything else as ``number`` writes it."""
    return value if isinstance(value, str) else number(value, digits)


def format_count(count: int, word: str) -> str:
    """``1 cell``, ``3 cells``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """The values a column takes, each once, in the order of the rows; null counts as one."""
    return list(dict.fromkeys(row.get(name) for row in rows))


def group_by(rows: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Rows by key, keys in the order they first appear."""
    groups: dict[Key, list[Item]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def problem_of(row: Row) -> tuple[Any, ...]:
    """Equal for rows about one problem: a reader may choose among these."""
    return tuple(row.get(name) for name in _PROBLEM)


def group_cells(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each cell, cells in the order they first appear."""
    return group_by(rows, lambda row: row["cell"])


def format_constraint(row: Row) -> str:
    """The set with its radius: ``l2_ball radius 10``."""
    name, radius = row.get("constraint"), row.get("constraint_radius")
    return f"{name}" if radius is None else f"{name} radius {number(radius)}"


def name_of(row: Row) -> str:
    """How tables and figures name a row: ``localization(noisy_gd)``, ``exponential/net``.

    The mechanism, the one inside it, and the sampler where one was chosen.
    """
    flat = _configuration(row)
    name, depth = str(row["mechanism"]), "mechanism"
    inner = []
    while found := flat.get(f"{depth}.inner.name", flat.get(f"{depth}.inner")):
        inner.append(found)
        depth += ".inner"
    name = "(".join((name, *inner)) + ")" * len(inner)
    sampler = flat.get("sampler.name", flat.get("sampler", "auto"))
    return name if sampler == "auto" else f"{name}/{sampler}"


def kernel_of(row: Row) -> str | None:
    """The name of the row's kernel, or None where it has none."""
    return _configuration(row).get("kernel.name")


def title_of(rows: Sequence[Row]) -> str:
    """The problem that rows share: data set, loss, kernel and set, with a radius if it is one."""
    first, kernels = rows[0], {kernel_of(row) for row in rows}
    kernel = f"kernel {kernel_of(first)}, " if len(kernels) == 1 and None not in kernels else ""
    same = len(distinct(rows, "constraint_radius")) == 1
    where = format_constraint(first) if same else first["constraint"]
    return f"{first['dataset']}, {first['loss']}, {kernel}{where}"


def is_curve_key(key: str) -> bool:
    """Whether a key belongs to a mechanism (or what it runs), and never to the problem."""
    return key.partition(".")[0] in _OF_CURVE


def find_variants(rows: Sequence[Row]) -> list[dict[str, str]]:
    """For each row, the configuration values that set it apart and have no column.

    A key such as ``mechanism.average`` is compared among the rows of one name (``name_of``)
    only, and any key among the rows that have it only, so that mechanisms with different fields
    are not told apart by fields the other lacks. Rows of one name of which some lack the key
    have its default.
    """
    configurations = [_configuration(row) for row in rows]
    names = [name_of(row) for row in rows]
    found: list[dict[str, str]] = [{} for _ in rows]
    for key in dict.fromkeys(key for flat in configurations for key in flat):
        if _in_name(key):
            continue
        having = {names[i] for i, flat in enumerate(configurations) if key in flat}
        for peers in _peers(rows, names, key):
            members = [i for i in peers if names[i] in having]
            values = {i: configurations[i].get(key, "default") for i in members}
            # a record made before there was such a key says what the key's default says
            meant = {configurations[i].get(key) or _find_default(rows[i], key) for i in members}
            if len(set(values.values())) > 1 and len(meant) > 1:
                for i in members:
                    found[i][key] = values[i]
    return found


def find_telling_variants(rows: Sequence[Row]) -> list[dict[str, str]]:
    """``find_variants`` without keys that say in every row what n or p says, as ``dataset.n``."""
    found = find_variants(rows)
    idle = {key for tags in found for key in tags if _repeats_size(key, found, rows)}
    return [{key: text for key, text in tags.items() if key not in idle} for tags in found]


def _repeats_size(key: str, found: Sequence[Mapping[str, str]], rows: Sequence[Row]) -> bool:
    name = key.rpartition(".")[2]
    pairs = zip(found, rows, strict=True)
    return name in _SIZES and all(
        tags[key] == _spell(row.get(name)) for tags, row in pairs if key in tags
    )


def find_partial_keys(rows: Sequence[Row]) -> frozenset[str]:
    """The keys that some mechanisms of a data set have and others lack."""
    mechanisms: dict[Any, set[str]] = {}
    having: dict[tuple[str, Any], set[str]] = {}
    for row in rows:
        name = name_of(row)
        mechanisms.setdefault(row["dataset"], set()).add(name)
        for key in _configuration(row):
            having.setdefault((key, row["dataset"]), set()).add(name)
    return frozenset(key for (key, data), names in having.items() if names != mechanisms[data])


def _in_name(key: str) -> bool:
    """Whether a key's value is part of ``name_of``."""
    path = key.removesuffix(".name").split(".")
    return path == ["sampler"] or (path[0] == "mechanism" and set(path[1:]) == {"inner"})


def _peers(rows: Sequence[Row], names: Sequence[str], key: str) -> list[list[int]]:
    """The rows among which a key is compared, as indices."""
    owner = key.partition(".")[0]
    if is_curve_key(key):
        of: Sequence[Any] = names
    else:
        of = [row.get(owner) if "." in key and owner in _OWNERS else None for row in rows]
    return list(group_by(range(len(rows)), lambda i: of[i]).values())


def as_json(value: Any) -> Any:
    """What a column of JSON text holds; anything else as it is.

    A record may come from a stranger: text that is no JSON, or nested beyond any configuration,
    stays text.
    """
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    is_flat = value.count("{") + value.count("[") <= _MAX_DEPTH  # deeper than that it cannot be
    return found if is_flat or _depth(found) <= _MAX_DEPTH else value


def read_map(value: Any) -> dict[str, Any]:
    """The mapping that a column of JSON text holds; empty for anything else."""
    found = as_json(value)
    return found if isinstance(found, dict) else {}


def _depth(tree: Any) -> int:
    """Nesting depth of mappings and lists, without recursion: a forged file could be very deep."""
    depth, level = 0, [tree]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        parts = (item.values() if isinstance(item, dict) else item for item in level)
        level = [part for found in parts for part in found]
    return depth


def _configuration(row: Row) -> Mapping[str, str]:
    """The row's ``overrides`` as flat ``key -> text``, without the keys shown elsewhere.

    It is made once for each text: the rows of a cell share it, and are asked many times.
    """
    text = row.get("overrides")
    if not isinstance(text, str):
        return _spell_all(read_map(text))
    found = _CONFIGURATIONS.get(text)
    if found is None:
        if len(_CONFIGURATIONS) >= _MOST_TEXTS:
            _CONFIGURATIONS.clear()
        # nobody may change what is shared
        found = _CONFIGURATIONS[text] = MappingProxyType(_spell_all(read_map(text)))
    return found


def _spell_all(tree: Mapping[str, Any]) -> dict[str, str]:
    return {key: _spell(value) for key, value in flatten(tree).items() if key not in _SHOWN}


def _spell(value: Any) -> str:
    """A value of a configuration as text; 1.0 and 1 are spelled alike."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _find_default(row: Row, key: str) -> str:
    """The shipped default of a key that the row's configuration lacks."""
    group, dot, name = key.partition(".")
    if not dot:
        return _spell(as_json(catalogue.list_defaults().get(key, "default")))
    plugin = flatten(read_map(row.get("overrides"))).get(f"{group}.name")
    known = catalogue.list_defaults(group, plugin) if group in catalogue.GROUPS and plugin else {}
    return _spell(as_json(known.get(name, "default")))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        inner = isinstance(value, dict)
        flat |= flatten(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat


def csv_lines(names: Iterable[Any], rows: Iterable[Iterable[Any]], with_names: bool = True) -> str:
    """A csv file: a line of names, unless it stands there already, then the rows."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    if with_names:
        writer.writerow(names)
    writer.writerows(rows)
    return sink.getvalue()
