"""Compute hashes of texts, buffers, files and JSON-able facts.

Three places compute hashes by themselves, because one call would not do: records one by one with a
key (``problem/record_names``), rows in a tight loop (``datasets/shared/content_digest``), and a
running digest of draws (``audit/opened_cell``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Text, or an object with a contiguous buffer, such as bytes or a contiguous array.
Part = Any
FACTS_SIZE = 10  # bytes of the digest of facts
_FACTS = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def hash_parts(*parts: Part, size: int = 16) -> str:
    """BLAKE2b of the parts, concatenated.

    Args:
        parts: Text (as UTF-8) or buffers. The boundaries between parts are not hashed.
        size: Length of the digest in bytes.

    Returns:
        The digest in hexadecimal, two digits a byte.

    >>> hash_parts("ab", b"c") == hash_parts("abc")
    True
    """
    return hash_each(parts, size)


def hash_each(parts: Iterable[Part], size: int = 16) -> str:
    """As ``hash_parts``, for parts that an iterator makes one at a time to save memory."""
    return _hash(hashlib.blake2b(digest_size=size), parts)


def hash_sha256(*parts: Part) -> str:
    """SHA-256 of the parts, as ``hash_parts`` takes them, in hexadecimal."""
    return _hash(hashlib.sha256(), parts)


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes in hexadecimal, read piece by piece."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_sources(paths: Iterable[Path], root: Path) -> str:
    """BLAKE2b of source files: their names below ``root`` and their bytes, in the order given."""
    named = ((path.relative_to(root).as_posix() + "\0", path.read_bytes()) for path in paths)
    return hash_each(part for pair in named for part in pair)


def hash_facts(facts: Any, size: int = FACTS_SIZE) -> str:
    """A short name for JSON-able facts, whatever the order of their keys.

    >>> hash_facts({"a": 1, "b": 2}) == hash_facts({"b": 2, "a": 1})
    True
    """
    return hash_parts(write_facts(facts), size=size)


def write_facts(facts: Any) -> str:
    """The JSON text that ``hash_facts`` hashes."""
    # most of what is written is a number that differs from cell to cell
    return int.__repr__(facts) if type(facts) is int else _FACTS.encode(facts)


def _hash(digest: Any, parts: Iterable[Part]) -> str:
    for part in parts:
        view = memoryview(part.encode() if isinstance(part, str) else part)
        # a view without bytes cannot be cast
        digest.update(view.cast("B") if view.nbytes else b"")
    return digest.hexdigest()
