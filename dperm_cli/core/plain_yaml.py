"""Read a YAML file as plain data: bounds first, and only then values.

A file is one mapping of words, numbers, lists and maps. Nothing in it is followed or run: no alias,
no tag, no file that it names.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from dperm_cli.core.system_calls import open_to_read

BYTES = 1 << 20
NODES = 10_000
DEPTH = 32
SCALAR = 65_536  # characters of one scalar

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

Refuse = Callable[[str], Exception]


def read_mapping(path: Path, refuse: Refuse, holds: str = "`key: value` lines") -> dict[str, Any]:
    """The mapping in a file.

    Args:
        path: The file.
        refuse: Makes the error to raise of words that say what is wrong.
        holds: What a file has to hold, for the words on one that holds no mapping.

    Raises:
        Exception: What ``refuse`` makes, where the file is anything but one mapping of plain
            values.
    """
    import yaml  # 30 ms, and most runs read no file of a user's

    text = _read_text(path, refuse)
    try:
        _check_bounds(text, refuse)
        data = yaml.load(text, _make_loader())
    except yaml.YAMLError as error:
        words = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise refuse(f"is not a YAML configuration ({words[:120]})") from None
    except (ValueError, RecursionError):
        raise refuse("holds a value that is no number, text or list") from None
    if not isinstance(data, dict):
        raise refuse(f"must hold {holds}")
    return data


def _read_text(path: Path, refuse: Refuse) -> str:
    # do not block on pipes, read at most the limit
    try:
        with open(open_to_read(path), "rb") as file:
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


def _check_bounds(text: str, refuse: Refuse) -> None:
    """Count nodes and depth in the stream of events: nothing is built, no alias followed."""
    import yaml

    if re.search(r"^\s*#\s*@", text, re.MULTILINE):
        raise refuse("packages (@) are not used here")
    nodes = depth = 0
    for event in yaml.parse(text, _make_loader()):
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


@cache
def _make_loader() -> Any:
    """A class that loads lists, maps and plain scalars.

    A scalar without quotes is what the same word is on the command line, so that a setting means
    one thing wherever it is written: `yes` is a text, `010` is no number.
    """
    import yaml

    base: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

    class Loader(base):
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for name, (form, first) in _SCALARS.items():
        pattern = re.compile(rf"(?:{form})\Z")
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", pattern, first)
    Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
    return Loader


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    """A map whose keys are texts, each once."""
    import yaml

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
