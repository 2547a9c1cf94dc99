"""A user's own YAML files, read as data: bounds first, then words, and only then values.

Hydra never sees these files. It would follow their ``defaults`` lists, their package headers and
search paths and run their callbacks; here a file is one mapping of ``name`` and parameters.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError

BYTES = 1 << 20
NODES = 10_000
DEPTH = 32
BITS = 1024  # of a whole number: what float64 holds
SCALAR = 65_536  # characters of one scalar
# Keys that name columns, whose values are compared with a header and looked up nowhere else: any
# text of a header is one. The last is the first as ``dperm data verify`` has it.
COLUMN_KEYS = ("dataset.target", "dataset.columns", "dataset.drop", "target")
NAME = re.compile(r"[a-z0-9_]+")

_BASE: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class _Loader(_BASE):
    """Lists, maps and plain scalars.

    A scalar without quotes is what the same word is on the command line, so that a setting means
    one thing wherever it is written: `yes` is a text, `010` is no number.
    """


_INTEGER = r"[-+]?(?:0|[1-9](?:_?[0-9])*)"
_POINT = r"(?:(?:0|[1-9](?:_?[0-9])*)\.(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)"
_FLOAT = (
    rf"[-+]?(?:{_POINT}|(?:{_POINT}|0|[1-9](?:_?[0-9])*)[eE][-+]?[0-9](?:_?[0-9])*"
    r"|\.?(?:[iI][nN][fF]|[nN][aA][nN]))"
)
_SCALARS = {
    "null": (r"[nN][uU][lL][lL]|~|", ["n", "N", "~", ""]),
    "bool": (r"[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]", list("tTfF")),
    "int": (_INTEGER, list("-+0123456789")),
    "float": (_FLOAT, list("-+0123456789.iInN")),
}
_Loader.yaml_implicit_resolvers = {}
for _name, (_form, _first) in _SCALARS.items():
    _pattern = re.compile(rf"(?:{_form})\Z")
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, _first)


@dataclass(frozen=True)
class UserFolder:
    """The folder given as ``--config-dir``: ``<group>/<name>.yaml`` and nothing else of it."""

    root: Path

    @classmethod
    def from_path(cls, name: str) -> UserFolder:
        """InputError unless the folder exists."""
        if not name or "\0" in name or not os.path.isdir(name):
            raise InputError("--config-dir", name, "must be an existing folder")
        return cls(Path(name).resolve())

    def names(self, group: str) -> list[str]:
        """What the folder offers for a group; files of any other name are not looked at."""
        try:
            found = os.listdir(self.root / group)
        except OSError:
            return []
        stems = (file[:-5] for file in found if file.endswith(".yaml"))
        return sorted(stem for stem in stems if NAME.fullmatch(stem))

    def load(self, group: str, name: str) -> dict[str, Any]:
        """The parameters of a choice; InputError for anything that is more than data."""
        return read(group, name, self.root / group / f"{name}.yaml", self.root)


def read(key: str, name: str, path: Path, root: Path) -> dict[str, Any]:
    """One file as a dict of plain values; ``key`` and ``name`` are what the user typed."""

    def refuse(words: str) -> InputError:
        return InputError(key, name, f"{path.name}: {words}")

    data = _load(_text(path, root, refuse), refuse)
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise refuse("must hold `name:` and parameters")
    for word in data:
        if str(word).split(".")[0] in ("hydra", "defaults", "<<"):
            raise InputError(f"{key}.{word}", name, "is not read: a file holds name and parameters")
    refuse_programs(data, f"{key}.")
    return data


def read_lines(key: str, word: str) -> dict[str, Any]:
    """A file of lines ``KEY: VALUE`` that the user named, as a dict of plain values.

    Args:
        key: What the file is the value of, for errors.
        word: Its name as it was typed.

    Raises:
        InputError: It cannot be read, or is no such file.
    """
    path = Path(checks.path(key, word))

    def refuse(words: str) -> InputError:
        return InputError(key, word, words)

    data = _load(_text(path, Path(os.path.realpath(path)).parent, refuse), refuse)
    if not isinstance(data, dict):
        raise refuse("must hold lines of the form `KEY: VALUE`")
    return data


def _load(text: str, refuse: Callable[[str], InputError]) -> Any:
    """What is written in a text, whose size is checked first."""
    try:
        _check_bounds(text, refuse)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        words = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise refuse(f"is not a YAML configuration ({words[:120]})") from None
    except (ValueError, RecursionError):
        raise refuse("holds a value that is no number, text or list") from None


def refuse_programs(node: Any, path: str) -> None:
    """A configuration is data: nothing in it may be looked up elsewhere or run."""
    if isinstance(node, dict):
        for key, value in node.items():
            if str(key).startswith("_"):
                raise InputError(f"{path}{key}", value, "keys beginning with _ are not allowed")
            refuse_programs(key, path)
            refuse_programs(value, f"{path}{key}.")
    elif isinstance(node, list):
        for item in node:
            refuse_programs(item, path)
    elif isinstance(node, str):
        refuse_text(path.rstrip("."), node)
    elif isinstance(node, int) and node.bit_length() > BITS:
        words = "must be a number that can be computed with"
        raise InputError(path.rstrip("."), f"<{node.bit_length()} bits>", words)


def refuse_text(key: str, text: str) -> None:
    """InputError for an interpolation, a NUL, or what is not text."""
    if "${" in text and key not in COLUMN_KEYS:
        raise InputError(key, text, "interpolations are not allowed")
    try:
        clean = b"\0" not in text.encode()
    except UnicodeEncodeError:
        clean = False
    if not clean:
        raise InputError(key, text.encode("ascii", "backslashreplace").decode(), "must be text")


def _text(path: Path, root: Path, refuse) -> str:
    # do not block on pipes, do not follow links out of the folder, read at most the limit
    if not Path(os.path.realpath(path)).is_relative_to(root):
        raise refuse("leads out of the folder given as --config-dir")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise refuse("is not a regular file")
            data = file.read(BYTES + 1)
    except OSError as error:
        raise refuse(f"cannot be read ({error.strerror})") from None
    if len(data) > BYTES:
        raise refuse(f"is larger than {BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse("is not UTF-8 text") from None


def _check_bounds(text: str, refuse) -> None:
    """Count nodes and depth in the stream of events: nothing is built, no alias followed."""
    if re.search(r"^\s*#\s*@", text, re.MULTILINE):
        raise refuse("packages (@) are not used here")
    nodes = depth = 0
    for event in yaml.parse(text, _Loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.NodeEvent) and event.anchor:  # an alias is one too
            raise refuse(f"line {line}: anchors and aliases are not allowed")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag:
            raise refuse(f"line {line}: tags (!) are not allowed")
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if nodes > NODES:
            raise refuse(f"holds more than {NODES} values")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise refuse(f"line {line}: is nested deeper than {DEPTH}")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > SCALAR:
            raise refuse(f"line {line}: a value is longer than {SCALAR} characters")


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    """A map whose keys are texts, each once."""
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key must be one word")
        key = str(loader.construct_object(key_node))  # as in a map on the command line
        if key in found:
            words = f"the key {key} is there twice"
            raise yaml.constructor.ConstructorError(None, None, words, key_node.start_mark)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
