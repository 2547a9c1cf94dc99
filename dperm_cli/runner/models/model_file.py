"""Write model files, and read model files of unknown origin.

A model file is a .npz archive of uncompressed members: ``facts``, a JSON text, and arrays of
float64. Equal contents give equal bytes: members are in a fixed order, without times or machine
names. Reading never unpickles. No array is allocated before its bytes are known to be in the file,
and unknown keys are refused.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core import npy_files, plugin_words, registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.plugin_words import PluginUse
from dperm_cli.core.read_errors import first_words
from dperm_cli.datasets.shared import table_schema
from dperm_cli.kernels.base import Kernel
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.runner.models.input_schema import NORMS, ROWS, SCALINGS, TASKS, InputSchema
from dperm_cli.runner.models.publishable import (
    FILE,
    HELD_OUT,
    MOST_EVENTS,
    FeatureMap,
    Publishable,
    ReleaseFacts,
    list_fields,
    own_keys_of,
)

FORMAT, EARLIER = "dperm-model-3", "dperm-model-1"
WITHOUT_TABLE = "dperm-model-2"  # files before tables had schemas
ARRAYS = {
    "none": (),
    "explicit": (),
    "fourier": ("frequencies",),
    "landmarks": ("basis", "points"),
}
NO_KERNEL = ("precomputed",)  # kernels that cannot be saved: the matrix is a file of its own
_MOST_FACTS = 1 << 26  # bytes
_STAMP = (1980, 1, 1, 0, 0, 0)
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")


def bytes_of(found: Publishable) -> bytes:
    """The model file of a release."""
    text = json.dumps({"format": FORMAT, **found.plain()}, allow_nan=False)
    arrays = {"facts": np.frombuffer(text.encode(), dtype=np.uint8), **found.arrays()}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _STAMP)
            entry.create_system, entry.external_attr = 3, 0o600 << 16
            content, kind = io.BytesIO(), "u1" if name == "facts" else "<f8"
            np.save(content, np.ascontiguousarray(array, dtype=kind), allow_pickle=False)
            archive.writestr(entry, content.getvalue())
    return sink.getvalue()


_PLACES = ("model.npz", "release/model.npz")  # of a model in a folder that `dperm release` wrote


def read(word: str) -> Publishable:
    """The release in a file.

    Raises:
        InputError: the file is anything else; the message is one line.
    """
    try:
        path = Path(word)
        if path.is_dir():
            found = [path / name for name in _PLACES if (path / name).is_file()]
            allowed = (
                f"is a folder, not a file: its model is {found[0]}" if found else "is not a file"
            )
            raise InputError("MODEL", word, allowed)
        if not path.is_file():
            raise InputError("MODEL", word, "is not a file")
        members = _members(path)
        facts = _parse_facts(members.pop("facts"))
        if facts.get("format") == EARLIER:
            allowed = "was saved by an earlier dperm, whose files may hold the number of records: "
            allowed += "save it again with `dperm run ... save=FILE.npz`"
            raise InputError("MODEL", word, allowed)
        return _publishable(facts, members)
    except Exception as error:  # whatever a malformed file causes
        if isinstance(error, InputError) and error.key == "MODEL":
            raise
        known = {KeyError: "a part is missing", RecursionError: "its facts are nested too deeply"}
        reason = known.get(type(error)) or str(error) or type(error).__name__
        allowed = f"is not a predictor ({first_words(reason, 160)}); "
        allowed += (
            "they are made with `dperm run ... save=FILE.npz` or `dperm release TABLE SCHEMA`"
        )
        raise InputError("MODEL", word, allowed) from error


def _members(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the archive, each checked against the size of its file."""
    known = {"facts", "theta", *(name for names in ARRAYS.values() for name in names)}
    whole = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        for name, entry in zip(names, entries, strict=True):
            if name not in known or names.count(name) > 1:
                raise ValueError("it holds other arrays than a predictor")
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise ValueError("an array in it is compressed, which dperm never does")
        # stored members cannot be larger than the file, unless they overlap
        if sum(entry.file_size for entry in entries) > whole:
            raise ValueError("its arrays are larger than the file")
        if "facts" not in names or "theta" not in names:
            raise ValueError("it lacks facts or theta")
        return {
            name: _array(archive, entry, "u1" if name == "facts" else "<f8")
            for name, entry in zip(names, entries, strict=True)
        }


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kind: str) -> np.ndarray:
    """One array of float64 (or bytes), made of exactly the bytes that are there."""
    if kind == "u1" and entry.file_size > _MOST_FACTS:
        raise ValueError("its facts are too long")
    content = archive.read(entry)
    stream = io.BytesIO(content)
    header = npy_files.read_header(stream)
    if header.version != (1, 0):
        raise ValueError("an array in it is of another version")
    if header.dtype != np.dtype(kind) or header.fortran or len(header.shape) not in (1, 2):
        raise ValueError("an array in it is not of float64 in C order")
    found = npy_files.read_body(stream, header, len(content))
    if not np.all(np.isfinite(found)):
        raise ValueError("it holds a number that is nan or infinite")
    return found


def _parse_facts(content: np.ndarray) -> dict[str, Any]:
    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice in its facts")
        return dict(pairs)

    def refuse_constant(word: str) -> None:
        raise ValueError(f"{word} stands in its facts")

    text = content.tobytes().decode()
    found = json.loads(text, object_pairs_hook=refuse_repeated, parse_constant=refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("its facts are no mapping")
    return found


def _publishable(facts: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Publishable:
    optional = {"plugins"} - set(facts)
    _exact("", facts, {"format", *list_fields(Publishable)} - {"theta"} - optional)
    plugins = None if optional else _plugins(facts["plugins"])
    uses = plugin_words.read_uses(plugins)
    if facts["format"] not in (FORMAT, WITHOUT_TABLE):
        raise ValueError("its format is another one")
    told = facts["schema"]
    if facts["format"] == WITHOUT_TABLE and isinstance(told, dict) and "table" not in told:
        told = {**told, "table": None}
    schema = _schema(told)
    features = _features(facts["features"], arrays, schema.width)
    if arrays["theta"].ndim != 1:
        raise ValueError("theta is not one row of numbers")
    events = facts["events"]
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise ValueError("events must be a list of events")
    if len(events) > MOST_EVENTS:
        raise ValueError(f"it holds more than {MOST_EVENTS} events")
    version = _text("version", facts["version"])
    if not _VERSION.fullmatch(version):
        raise ValueError("version is none")
    return Publishable(
        mechanism=_one_of("mechanism", facts["mechanism"], _names("mechanism", uses)),
        events=tuple(ledger_totals.rebuild_event(event) for event in events),
        relation=_text("relation", facts["relation"]),
        delta=_number("delta", facts["delta"], 0.0, 1.0),
        steps=_whole("steps", facts["steps"], low=0),
        noise=_text("noise", facts["noise"]),
        arithmetic=_text("arithmetic", facts["arithmetic"]),
        facts=_facts(facts["facts"], uses),
        schema=schema,
        features=features,
        theta=arrays["theta"],
        version=version,
        plugins=plugins,
    )


def _plugins(given: Any) -> str:
    """The words on plug-ins from outside, as they are written; ValueError for any others."""
    if not isinstance(given, str) or len(given) > 10_000:
        raise ValueError("plugins must be a text")
    uses = plugin_words.read_uses(given)
    if not uses or plugin_words.format_uses(uses) != given:
        raise ValueError("plugins is no list of plug-ins")
    missing = plugin_words.list_missing(given, ("event", "kernel"))
    if missing:
        raise ValueError(missing)
    return given


def _names(room: str, uses: Iterable[PluginUse]) -> tuple[str, ...]:
    """The names that a fact may have: those known here, and those of the file's own plug-ins."""
    return (*registry.names(room), *(use.name for use in uses if use.kind == room))


def _facts(given: Any, uses: Iterable[PluginUse]) -> ReleaseFacts:
    _exact("facts", given, list_fields(ReleaseFacts))
    size = given["constraint_size"]
    return ReleaseFacts(
        loss=_one_of("facts.loss", given["loss"], _names("loss", uses)),
        constraint=_one_of("facts.constraint", given["constraint"], _names("constraint", uses)),
        constraint_size=None if size is None else _number("facts.constraint_size", size, 0.0),
        ridge=_number("facts.ridge", given["ridge"], 0.0),
        lasso=_number("facts.lasso", given["lasso"], 0.0),
        row_bound=_number("facts.row_bound", given["row_bound"], 0.0),
        population=_whole("facts.population", given["population"]),
        population_source=_text("facts.population_source", given["population_source"]),
    )


def _schema(given: Any) -> InputSchema:
    _exact("schema", given, list_fields(InputSchema))
    count = _whole("schema.count", given["count"])
    columns, labels = given["columns"], given["labels"]
    if columns is not None:
        columns = tuple(_text("schema.columns", name) for name in _list("schema.columns", columns))
        if len(columns) != count or len(set(columns)) != count:
            raise ValueError(f"schema.columns must hold {count} distinct names")
    task = _one_of("schema.task", given["task"], TASKS)
    if labels is not None:
        labels = _labels(labels, task)
    if task == "multiclass" and not labels:
        raise ValueError("schema.labels must name the classes")
    table = None if given["table"] is None else table_schema.parse_schema(given["table"])
    if table is not None and (table.names != columns or table.task != task):
        raise ValueError("schema.table is another table's")
    scaling = _one_of("schema.scaling", given["scaling"], SCALINGS)
    bounds = given["bounds"]
    if (bounds is None) != (scaling == "none"):
        raise ValueError("schema.bounds must stand beside scaling=bounds")
    target, interval = given["target"], given["target_bounds"]
    return InputSchema(
        dataset=_text("schema.dataset", given["dataset"]),
        task=task,
        count=count,
        columns=columns,
        target=None if target is None else _text("schema.target", target),
        bounds=None if bounds is None else _bounds(bounds, count),
        labels=labels,
        target_bounds=None if interval is None else _interval("schema.target_bounds", interval),
        scaling=scaling,
        centred=_truth("schema.centred", given["centred"]),
        intercept=_truth("schema.intercept", given["intercept"]),
        rows=_one_of("schema.rows", given["rows"], ROWS),
        norm=_one_of("schema.norm", given["norm"], NORMS),
        row_bound=_number("schema.row_bound", given["row_bound"], 0.0),
        table=table,
    )


def _labels(given: Any, task: str) -> tuple[tuple[str, float], ...]:
    """(label in the file, its number); of several classes the numbers are 0, 1, 2, ..."""
    pairs = [_list("schema.labels", pair, 2) for pair in _list("schema.labels", given)]
    known = range(len(pairs)) if task == "multiclass" else (-1, 1)
    found = tuple(
        (_text("schema.labels", name), float(_one_of("schema.labels", number, known)))
        for name, number in pairs
    )
    numbers = {number for _, number in found}
    if task == "multiclass" and numbers != set(range(max(len(numbers), 3))):
        raise ValueError("schema.labels must number three or more classes from 0")
    return found


def _bounds(given: Any, count: int) -> tuple:
    pairs = _list("schema.bounds", given)
    if not pairs or not all(isinstance(pair, list) for pair in pairs):
        return _interval("schema.bounds", pairs)
    if len(pairs) != count:
        raise ValueError(f"schema.bounds must hold {count} pairs")
    return tuple(_interval("schema.bounds", pair) for pair in pairs)


def _interval(key: str, given: Any) -> tuple[float, float]:
    low, high = (_number(key, end) for end in _list(key, given, 2))
    if not low < high or not math.isfinite(high - low):
        raise ValueError(f"{key} must be [low, high] with low < high")
    return low, high


def _features(given: Any, arrays: dict[str, np.ndarray], width: int) -> FeatureMap | None:
    kind = "none"
    if given is not None:
        _exact("features", given, ["kind", "kernel", "source"])
        kind = _one_of("features.kind", given["kind"], [name for name in ARRAYS if name != "none"])
    held = {name: array for name, array in arrays.items() if name != "theta"}
    _exact("arrays", held, ARRAYS[kind])
    if given is None:
        return None
    if any(array.ndim != 2 for array in held.values()):
        raise ValueError("an array of its features is no matrix")
    wide = held.get("points", held.get("frequencies"))
    if wide is not None and wide.shape[1] != width:
        raise ValueError(f"its features are of {wide.shape[1]} columns, its rows have {width}")
    if kind == "landmarks" and len(held["basis"]) != len(held["points"]):
        raise ValueError("its basis is not that of its landmarks")
    kernel = _kernel(given["kernel"])
    kernel.check_columns(width)
    if kind == "fourier" and not kernel.is_shift_invariant:
        raise ValueError(f"kernel {kernel.name} has no frequencies")
    return FeatureMap(kind, kernel, held, _one_of("source", given["source"], (HELD_OUT, FILE)))


def _kernel(given: Any) -> Kernel:
    from dperm_cli.runner.compose import plugin_objects

    if not isinstance(given, dict):
        raise ValueError("features.kernel is no mapping")
    known = [name for name in registry.names("kernel") if name not in NO_KERNEL]
    name = _one_of("features.kernel", given.get("name"), known)
    _exact("features.kernel", given, ["name", *own_keys_of(registry.load("kernel", name))])
    return plugin_objects.build("kernel", dict(given))


def _exact(where: str, given: Any, names: Iterable[str]) -> None:
    """ValueError unless these are the keys of a mapping, all of them and no others."""
    wanted = set(names)
    if not isinstance(given, Mapping):
        raise ValueError(f"{where or 'facts'} is no mapping")
    place = f"{where}." if where else ""
    for name in sorted(set(given) - wanted):
        raise ValueError(f"unknown key {place}{name[:40]}")
    for name in sorted(wanted - set(given)):
        raise ValueError(f"{place}{name} is missing")


def _text(key: str, given: Any) -> str:
    if not isinstance(given, str) or not given or len(given) > 1000 or not given.isprintable():
        raise ValueError(f"{key} must be a printable text")
    return given


def _one_of(key: str, given: Any, known: Iterable[Any]) -> Any:
    if isinstance(given, bool) or not isinstance(given, (str, int, float)) or given not in known:
        raise ValueError(f"{key} has a value that is not known")
    return given


def _number(key: str, given: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ValueError(f"{key} must be a number")
    found = float(given)
    if not (math.isfinite(found) and low <= found <= high):
        raise ValueError(f"{key} must be a finite number in range")
    return found


def _whole(key: str, given: Any, low: int = 1) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not low <= given < 2**63:
        raise ValueError(f"{key} must be a whole number, {low} or more")
    return given


def _truth(key: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError(f"{key} must be true or false")
    return given


def _list(key: str, given: Any, length: int | None = None) -> list:
    if not isinstance(given, list) or (length is not None and len(given) != length):
        raise ValueError(f"{key} must be a list" + ("" if length is None else f" of {length}"))
    return given
