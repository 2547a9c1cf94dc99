"""Declared labels: what a file calls a class, and the sign or number that dperm gives it.

The classes are what the user declares; they are never read off the records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.number_text import number_in

KEY = "dataset.labels"
ANY_OTHER = "*"
PLUS_MINUS = (("1", 1.0), ("-1", -1.0))
# In a YAML file these words are booleans unless they are quoted, and their spelling is lost.
BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
SIGNS = "must map file labels to 1 or -1, as in {1: 1, 2: -1}"
_CLASSES = "must list three or more file labels in class order, or number them from 0, as in "
_CLASSES += "{a: 0, b: 1, c: 2}; for two, use task=binary"

Pairs = tuple[tuple[str, float], ...]


def label_map(labels: object) -> Pairs:
    """The declared map as pairs (label as text, -1.0 or +1.0); InputError names what is wrong."""
    if labels is None:
        return PLUS_MINUS
    return _distinct(_pairs(labels, SIGNS), (1, -1), SIGNS)


def class_map(labels: object) -> Pairs:
    """The declared classes as pairs (label as text, class number from 0), from a list or a map."""
    if labels is None:
        raise InputError(KEY, None, f"{_CLASSES} (task=multiclass takes them from nowhere else)")
    if isinstance(labels, Sequence) and not isinstance(labels, str):
        listed = all(isinstance(item, tuple) for item in labels)
        labels = labels if listed else tuple((name, k) for k, name in enumerate(labels))
    pairs = _pairs(labels, _CLASSES)
    found = _distinct(pairs, range(len(pairs)), _CLASSES)
    numbers = {number for _, number in found}
    if numbers != set(range(max(len(numbers), 3))):
        raise InputError(KEY, dict(found), _CLASSES)
    return found


def map_labels(labels: np.ndarray, pairs: Pairs, before: int = 0) -> np.ndarray:
    """Labels [n] as the declared numbers; InputError names the first one outside the map.

    ``before`` records of the file come before these.
    """
    known = dict(pairs)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    distinct, code = np.unique(labels, return_inverse=True)
    numbers = np.array([_number(canonical(label), known) for label in distinct])
    y = numbers[code.reshape(-1)]
    outside = np.flatnonzero(np.isnan(y))
    if outside.size:
        record = int(outside[0])
        style = "+g" if min(known.values()) < 0 else "g"
        shown = ", ".join(f"{name}: {number:{style}}" for name, number in pairs[:8])
        more = ", ..." if len(pairs) > 8 else ""
        place = before + record + 1
        allowed = f"the label of record {place} is outside the declared map {{{shown}{more}}}"
        if pairs == PLUS_MINUS:
            words = "true: 1, false: -1" if labels.dtype.kind == "b" else "yes: 1, no: -1"
            allowed += f"; declare others, as in dataset.labels='{{{words}}}'"
        raise InputError(KEY, canonical(labels[record]), allowed)
    return y


def known_numbers(labels: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Labels [n] as the declared numbers, nan for one that is missing or outside the map."""
    cells, known = labels.tolist(), dict(pairs)
    numbers = {label: _number_or_nan(label, known) for label in set(cells)}
    return np.array([numbers[label] for label in cells], dtype=np.float64)


def _number_or_nan(label: object, known: Mapping[str, float]) -> float:
    missing = label in ("", b"") or label != label  # nan differs from itself
    return math.nan if missing else _number(canonical(label), known)


def canonical(label: object) -> str:
    """One spelling per label: 1, 1.0, "1" and "+1" are the same, and so are true and TRUE."""
    text = (label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)).strip()
    value = number_in(text)
    if value is None or not math.isfinite(value):
        return text.lower() if text.lower() in ("true", "false") else text
    return str(int(value)) if value == int(value) else repr(value)


def _pairs(labels: object, allowed: str) -> list[tuple[object, object]]:
    if isinstance(labels, Mapping):
        return list(labels.items())
    if isinstance(labels, tuple) and all(isinstance(i, tuple) and len(i) == 2 for i in labels):
        return list(labels)
    raise InputError(KEY, labels, allowed)


def _distinct(pairs: list, numbers: Sequence[int], allowed: str) -> Pairs:
    result: dict[str, float] = {}
    for name, number in pairs:
        if isinstance(number, bool) or number not in numbers:
            raise InputError(KEY, f"{{{name}: {number}}}", allowed)
        text = canonical(name)
        if result.setdefault(text, float(number)) != number:
            raise InputError(KEY, name, f"is mapped to both {result[text]:g} and {number:g}")
    if not result:
        raise InputError(KEY, dict(pairs), allowed)
    return tuple(result.items())


def _number(label: str, known: Mapping[str, float]) -> float:
    """The declared number, or nan for a label outside; a missing label is no other label."""
    found = known.get(label, known.get(BOOLEANS.get(label.lower(), label)))
    if found is None and label.lower() not in ("", "nan", "none"):
        found = known.get(ANY_OTHER)
    return math.nan if found is None else found
