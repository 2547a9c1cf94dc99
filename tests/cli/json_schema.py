"""The part of JSON schema that the schemas of ``conf/`` need: what is wrong with a value.

A keyword that is not known here is an error, so that no rule is passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SILENT = {
    "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default",
    "examples", "markdownDescription", "then", "else",
}  # fmt: skip
TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and value == int(value),
}
LIMITS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}


def find_errors(value: Any, schema: Any, root: Any = None, place: str = "") -> list[str]:
    """What a schema objects to.

    Args:
        value: What a YAML or JSON parser made of a text.
        schema: The schema, or a part of it.
        root: The whole schema, in which references are looked up.
        place: Where the value stands, for the words.

    Returns:
        A line an objection; none for a valid value.

    Raises:
        KeyError: The schema has a keyword that this module does not know.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        return [] if schema else [f"{place}: nothing is allowed here"]
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword in LIMITS:
            bad = _is_number(value) and not LIMITS[keyword](value, rule)
            found += [f"{place}: {value!r} is beyond {keyword} {rule}"] if bad else []
        elif keyword not in SILENT:
            found += RULES[keyword](value, schema, root, place)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_type(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    right = any(TYPES[name](value) for name in names)
    return [] if right else [f"{place}: {value!r} is not of type {' or '.join(names)}"]


def _check_enum(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    allowed = schema["enum"] if "enum" in schema else [schema["const"]]
    same = (
        one for one in allowed if one == value and isinstance(one, bool) == isinstance(value, bool)
    )
    return [] if any(True for _ in same) else [f"{place}: {value!r} is none of {allowed}"]


def _check_reference(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    target = root
    for part in schema["$ref"].removeprefix("#").strip("/").split("/"):
        target = target[part] if part else target
    return find_errors(value, target, root, place)


def _check_all(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    return [error for part in schema["allOf"] for error in find_errors(value, part, root, place)]


def _check_any(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    each = [find_errors(value, part, root, place) for part in schema["anyOf"]]
    return [] if not all(each) else [error for errors in each for error in errors]


def _check_one(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    valid = sum(not find_errors(value, part, root, place) for part in schema["oneOf"])
    return [] if valid == 1 else [f"{place}: fits {valid} forms of oneOf"]


def _check_not(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    return [] if find_errors(value, schema["not"], root, place) else [f"{place}: is excluded"]


def _check_if(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    branch = "else" if find_errors(value, schema["if"], root, place) else "then"
    return find_errors(value, schema.get(branch, True), root, place)


def _check_properties(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    inner = ((key, value[key], rule) for key, rule in schema["properties"].items() if key in value)
    return [e for key, one, rule in inner for e in find_errors(one, rule, root, f"{place}.{key}")]


def _check_patterns(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    found: list[str] = []
    for pattern, rule in schema["patternProperties"].items():
        for key in value if isinstance(value, dict) else ():
            if re.search(pattern, key):
                found += find_errors(value[key], rule, root, f"{place}.{key}")
    return found


def _check_other_keys(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    rule = schema["additionalProperties"]
    return [
        error
        for key in _list_other_keys(value, schema)
        for error in find_errors(value[key], rule, root, f"{place}.{key}")
    ]


def _list_other_keys(value: Any, schema: dict) -> Iterator[str]:
    patterns = schema.get("patternProperties", {})
    for key in value if isinstance(value, dict) else ():
        known = key in schema.get("properties", {})
        if not known and not any(re.search(pattern, key) for pattern in patterns):
            yield key


def _check_required(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    missing = [key for key in schema["required"] if isinstance(value, dict) and key not in value]
    return [f"{place}.{key}: is required" for key in missing]


def _check_items(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    items = enumerate(value if isinstance(value, list) else ())
    found = (find_errors(one, schema["items"], root, f"{place}[{i}]") for i, one in items)
    return [error for errors in found for error in errors]


def _check_length(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    bounds = {list: ("minItems", "maxItems"), str: ("minLength", "maxLength")}
    for kind, (low, high) in bounds.items():
        if isinstance(value, kind):
            right = schema.get(low, 0) <= len(value) <= schema.get(high, len(value))
            return [] if right else [f"{place}: has the wrong length {len(value)}"]
    return []


def _check_pattern(value: Any, schema: dict, root: Any, place: str) -> list[str]:
    right = not isinstance(value, str) or re.search(schema["pattern"], value)
    return [] if right else [f"{place}: {value!r} does not match {schema['pattern']}"]


RULES: Mapping[str, Callable[[Any, dict, Any, str], list[str]]] = {
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_enum,
    "$ref": _check_reference,
    "allOf": _check_all,
    "anyOf": _check_any,
    "oneOf": _check_one,
    "not": _check_not,
    "if": _check_if,
    "properties": _check_properties,
    "patternProperties": _check_patterns,
    "additionalProperties": _check_other_keys,
    "required": _check_required,
    "items": _check_items,
    "minItems": _check_length,
    "maxItems": _check_length,
    "minLength": _check_length,
    "maxLength": _check_length,
    "pattern": _check_pattern,
}
