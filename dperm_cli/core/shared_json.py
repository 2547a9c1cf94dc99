"""JSON of mappings that share values: a value that several of them have is written once.

The cells of a study share the configurations of their data set, loss, set and mechanism. Those of a
hundred thousand cells would otherwise be written a hundred thousand times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_Last = tuple[list[str], list[Any], list[str]]  # keys as they are written, values, and their texts
_NEVER = object()


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
        self._last: dict[tuple[Any, ...], _Last | None] = {}  # by the keys, in their order

    def write(self, value: Any) -> str:
        """The text of a value: of its parts, where it is a mapping with words for keys."""
        last = self._find_last(value) if isinstance(value, Mapping) else None
        if last is None:
            return self._write(value)
        order, parts, texts = last
        for place, key in enumerate(order):
            part = value[key]
            if part is not parts[place]:  # parts are kept: an id is no other's while it lives
                parts[place], texts[place] = part, f"{json.dumps(key)}:{self._write(part)}"
        return "{" + ",".join(texts) + "}"

    def _find_last(self, value: Mapping[Any, Any]) -> _Last | None:
        """What was written last of a mapping with these keys; None where one is no word."""
        keys = tuple(value)
        if keys not in self._last:
            new = [_NEVER] * len(keys), [""] * len(keys)
            is_plain = all(type(key) is str for key in keys)
            self._last[keys] = (sorted(keys), *new) if is_plain else None
        return self._last[keys]
