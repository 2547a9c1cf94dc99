"""Read an experiment: ``conf/experiment/<id>.yaml`` and ``experiments/<id>/claims.yaml``, typed.

Files are read with the reader for untrusted YAML, the shipped ones too. The form is described in
docs/experiments.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.claims import claims
from dperm_cli.results.claims.claims import SIZES, Claim, read_words
from dperm_cli.runner.compose import user_yaml
from dperm_cli.runner.compose.study_plan import MOST_CELLS

KEYS = ("name", "paper", "text", "verb", "base", "trials", "parts", "table", "plot", "claims",
        "peers")  # fmt: skip
PART_KEYS = ("text", "needs", "sizes", "base", "trials", "axes")
PANEL_KEYS = (
    "part", "title", "x", "y", "statistic", "where", "curve", "worst", "best", "pool", "lines",
    "slope", "scale", "paper",
)  # fmt: skip
SCALES = ("log", "linear")
LINES = (
    "floor", "bound_upper", "bound_lower", "order_upper", "order_lower",
    "population_bound_upper", "population_bound_lower",
)  # fmt: skip
VERBS = ("run", "account", "channel", "geometry", "gap", "last_iterate")

Settings = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Cells of one kind: what they share, and the axes whose product they are.

    An axis is a list of override sets; an axis of plain values is one of sets with a single key.
    """

    name: str
    text: str
    needs: tuple[str, ...]
    base: Settings
    axes: tuple[tuple[Settings, ...], ...]
    elsewhere: str | None = None  # why it is not run at this size

    def cells(self) -> Iterator[Settings]:
        """The settings of every cell, the last axis fastest."""
        for combination in itertools.product(*self.axes):
            settings = dict(self.base)
            for chosen in combination:
                settings.update(chosen)
            yield settings

    def find_reason(self) -> str | None:
        """Why this version cannot run the part, or does not at this size; or None."""
        missing = [name for name in self.needs if name not in registry.names("mechanism")]
        return (
            f"needs {', '.join(missing)}, which this version lacks" if missing else self.elsewhere
        )


@dataclass(frozen=True)
class Experiment:
    """One experiment at one size; ``table`` and ``plot`` are checked, and shown by ``results``."""

    name: str
    paper: str
    text: str
    verb: str
    size: str
    parts: tuple[Part, ...]
    table: tuple[str, ...]
    plot: tuple[dict[str, Any], ...]
    claims: tuple[Claim, ...]
    peers: tuple[str, ...] = ()  # methods of others that are given the same problems


def load(name: str, size: str, config_dir: str | None = None) -> Experiment:
    """The experiment of this name at this size; InputError for anything that is not one."""
    known = catalogue.choices("experiment")
    own = user_yaml.UserFolder.from_path(config_dir) if config_dir is not None else None
    names = [*known, *(own.names("experiment") if own else ())]
    if name not in names:
        allowed = f"must be one of {', '.join(names)}" if names else "there is no experiment"
        raise InputError("experiment", name, allowed, names)
    if own is not None and name in own.names("experiment"):
        if name in known:
            raise InputError("experiment", name, "is a shipped name; give the file another one")
        return parse(own.load("experiment", name), size)
    root = Path(find_shipped("conf")).resolve()
    data = user_yaml.read("experiment", name, root / "experiment" / f"{name}.yaml", root)
    data["claims"] = _shipped_claims(name)
    return parse(data, size)


def _shipped_claims(name: str) -> Any:
    root = Path(find_shipped("experiments")).resolve()
    data = user_yaml.read("claims", name, root / name / "claims.yaml", root)
    return _map("claims", data, ("name", "claims")).get("claims", [])


def parse(data: Mapping[str, Any], size: str) -> Experiment:
    """Check a file's content key by key, and take what holds at this size."""
    checks.choice("size", size, SIZES)
    _map("experiment", data, KEYS)
    verb = checks.choice("experiment.verb", data.get("verb", "run"), VERBS)
    entries = _map("experiment.parts", data.get("parts"))
    if not entries:
        raise InputError("experiment.parts", entries, "needs at least one part")
    parts = tuple(_part(name, entry, data, size) for name, entry in entries.items())
    count = sum(math.prod(map(len, part.axes)) for part in parts)
    if count > MOST_CELLS:
        raise InputError("experiment.parts", f"{count} cells", f"must be at most {MOST_CELLS}")
    found = Experiment(
        name=_word("experiment.name", data.get("name")),
        paper=_word("experiment.paper", data.get("paper", "")),
        text=_word("experiment.text", data.get("text", "")),
        verb=verb,
        size=size,
        parts=parts,
        table=_read_columns(data.get("table", [])),
        plot=tuple(_panel(entry, place) for place, entry in
                   enumerate(_list("experiment.plot", data.get("plot", [])))),
        claims=claims.parse(data.get("claims", [])),
        peers=read_words("experiment.peers", data.get("peers", [])),
    )  # fmt: skip
    _check_parts(found)
    return found


def _read_columns(value: Any) -> tuple[str, ...]:
    """The columns of the table beside that of the part, which it always has."""
    names = read_words("experiment.table", value)
    if "part" in names or len(set(names)) < len(names):
        raise InputError("experiment.table", ", ".join(names), "must name each column once; "
                         "that of the part is there unasked")  # fmt: skip
    return names


def _part(name: str, entry: Any, data: Mapping[str, Any], size: str) -> Part:
    key = f"experiment.parts.{name}"
    given = _map(key, entry, PART_KEYS)
    base = _select_sizes(_map("experiment.base", data.get("base", {})), size)
    base |= _select_sizes(_map(f"{key}.base", given.get("base", {})), size)
    trials = _at_size(given.get("trials", data.get("trials")), size)
    if trials is not None:
        base["trials"] = trials
    axes = _select_sizes(_map(f"{key}.axes", given.get("axes", {})), size)
    sizes = read_words(f"{key}.sizes", given.get("sizes", list(SIZES)))
    for word in sizes:
        checks.choice(f"{key}.sizes", word, SIZES)
    return Part(
        name=name,
        text=_word(f"{key}.text", given.get("text", "")),
        needs=read_words(f"{key}.needs", given.get("needs", [])),
        base=base,
        axes=tuple(_axis(f"{key}.axes.{word}", word, axes[word]) for word in axes),
        elsewhere=None if size in sizes else f"runs at size={sizes[0]}",
    )


def _axis(key: str, word: str, values: Any) -> tuple[Settings, ...]:
    """An axis as override sets. In a set, a list of values stands for one set of each."""
    if not isinstance(values, list) or not values:
        raise InputError(key, values, "must be a list of values, or of maps of settings")
    if not any(isinstance(value, dict) for value in values):
        return tuple({word: value} for value in values)
    sets: list[Settings] = []
    for value in values:
        chosen = _map(key, value)
        listed = [item if isinstance(item, list) else [item] for item in chosen.values()]
        for combination in itertools.product(*listed):
            sets.append(dict(zip(chosen, combination, strict=True)))
    return tuple(sets)


def _panel(entry: Any, place: int) -> dict[str, Any]:
    key = f"experiment.plot.{place}"
    given = dict(_map(key, entry, PANEL_KEYS))
    for word in ("part", "curve", "worst", "best", "pool", "lines"):
        given[word] = list(read_words(f"{key}.{word}", given.get(word, [])))
    for line in given["lines"]:
        checks.choice(f"{key}.lines", line, LINES)
    for word, default in (("title", ""), ("y", "excess_risk"), ("statistic", "median")):
        given[word] = _word(f"{key}.{word}", given.get(word, default))
    checks.choice(f"{key}.statistic", given["statistic"], claims.STATISTICS)
    given["x"] = _word(f"{key}.x", given.get("x"))
    given["where"] = _map(f"{key}.where", given.get("where", {}))
    given["slope"] = checks.boolean(f"{key}.slope", given.get("slope", False))
    given["scale"] = checks.choice(f"{key}.scale", given.get("scale", "log"), SCALES)
    if "paper" in given:
        given["paper"] = checks.number(f"{key}.paper", given["paper"])
    return given


def _check_parts(found: Experiment) -> None:
    """Whatever speaks of a part names one that is there."""
    names = [part.name for part in found.parts]
    for panel in found.plot:
        for name in panel["part"]:
            checks.choice("experiment.plot.part", name, names)
    for claim in found.claims:
        for name in claim.part:
            checks.choice(f"claims.{claim.id}.part", name, names)


def _at_size(value: Any, size: str) -> Any:
    """The value, or where it is a map of the two sizes, that of this size."""
    if isinstance(value, dict) and set(value) == set(SIZES):
        return value[size]
    return value


def _select_sizes(values: Mapping[str, Any], size: str) -> Settings:
    return {key: _at_size(value, size) for key, value in values.items()}


def _map(key: str, value: Any, known: Sequence[str] = ()) -> dict[str, Any]:
    """A map with words for keys; of those that are ``known`` where these are given."""
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value):
        raise InputError(key, value, "must be a map")
    if known:
        checks.known_keys(value, known, f"{key}.")
    return value


def _list(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(key, value, "must be a list")
    return value


def _word(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(key, value, "must be text")
    return value
