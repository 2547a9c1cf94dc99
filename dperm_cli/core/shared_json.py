"""JSON of mappings that share values: a value that several of them have is written once.

The cells of a study share the configurations of their data set, loss, set and mechanism. Those of a
hundred thousand cells would otherwise be written a hundred thousand times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


class SharedJson:
    """Writes mappings with words for keys as ``write`` would, sorted by their keys.

    Args:
        write: The JSON text of a value, with sorted keys and no spaces.

    >>> shared = {"b": [1, 2], "a": None}
    >>> made = SharedJson(lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")))
    >>> made.write({"y": shared, "x": 1}), made.write({"y": shared})
    ('{"x":1,"y":{"a":null,"b":[1,2]}}', '{"y":{"a":null,"b":[1,2]}}')
    """

    def __init__(self, write: Callable[[Any], str]) -> None:
        self._write = write
        # the last value of each key beside its text: its id is no other's while it lives
        self._last: dict[str, tuple[Any, str]] = {}

    def write(self, value: Any) -> str:
        """The text of a value: of its parts, where it is a mapping with words for keys."""
        if not (isinstance(value, Mapping) and all(type(key) is str for key in value)):
            return self._write(value)
        return "{" + ",".join([self._write_part(key, value[key]) for key in sorted(value)]) + "}"

    def _write_part(self, key: str, value: Any) -> str:
        last = self._last.get(key)
        if last is None or last[0] is not value:
            last = self._last[key] = value, f"{json.dumps(key)}:{self._write(value)}"
        return last[1]
