"""A reader of svmlight text (``label index:value index:value ...``, one record a line).

The text is read in blocks of whole lines. Array operations check each block and convert it to
numbers (over a million entries a second). Only a block that fails is read again line by line, to
find the line that is wrong.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import parsed_cache
from dperm_cli.datasets.shared.archives import open_bytes
from dperm_cli.datasets.shared.row_blocks import stack_blocks

VERSION = "svmlight1"
BLOCK = 1 << 22

_SPACE = np.zeros(256, dtype=bool)
_SPACE[list(b" \t\r\n\v\f")] = True
_COMMENT = re.compile(rb"#[^\n]*")
_NUMBER = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Entries:
    """Records as parsed: labels [n], entries per record [n], columns (from 1) and values."""

    labels: np.ndarray
    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


_FIELDS = tuple(Entries.__annotations__)


def join_blocks(
    blocks: Iterable[tuple[sparse.csr_array, np.ndarray]], path: Path
) -> tuple[sparse.csr_array, np.ndarray]:
    """(x [n, n_features] CSR, labels [n]) of a whole file, from ``read_blocks`` of it."""
    found = stack_blocks(blocks, path.name)
    assert found is not None
    return found


def read_blocks(
    key: str,
    path: Path,
    n_features: int,
    cache: bool = False,
    limit: int | None = None,
    member: str | None = None,
    skip_malformed: bool = False,
) -> Iterator[tuple[sparse.csr_array, np.ndarray]]:
    """(x [b, n_features] CSR, labels [b]), at least one; stored zeros are dropped, indices sorted.

    InputError with ``key`` on malformed lines, on indices that are 0, fractional, repeated within
    a record or beyond ``n_features``. ``limit`` and ``member`` are those of
    ``archives.open_bytes``. With ``skip_malformed`` the records of such lines have no entries and
    the label nan.
    """
    before = 0
    parse = _parse_once if cache else _parse
    for entries in parse(key, path, limit, member, skip_malformed):
        if skip_malformed:
            entries = _without_wrong_indices(entries, n_features)
        yield _matrix(key, path, entries, n_features, before), entries.labels
        before += entries.labels.size


def _parse_once(
    key: str, path: Path, limit: int | None, member: str | None, skip_malformed: bool
) -> Iterator[Entries]:
    """The entries of a file as one block, from the cache where it was parsed before."""
    version = f"{VERSION}-lenient" if skip_malformed else VERSION
    parsed = parsed_cache.fetch(
        path, version, lambda: vars(_join(_parse(key, path, limit, member, skip_malformed)))
    )
    yield Entries(**parsed)


def _join(parts: Iterable[Entries]) -> Entries:
    found = list(parts)
    return Entries(*(np.concatenate([getattr(part, name) for part in found]) for name in _FIELDS))


def _parse(
    key: str, path: Path, limit: int | None, member: str | None, skip_malformed: bool
) -> Iterator[Entries]:
    """The entries of a file, block by block; of an empty file one block of none."""
    line = 1
    yield _empty()
    with open_bytes(path, limit, member) as file:
        for block in _blocks(file):
            part = _parse_block(block)
            if part is None and skip_malformed:
                part = _join(_parse_halves(block))
            if part is None:
                raise InputError(key, path.name, _explain(block, line))
            yield part
            line += block.count(b"\n")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Pieces of whole lines; the last may lack its newline."""
    rest: list[bytes] = []
    first = True
    while piece := file.read(BLOCK):
        if first:
            piece, first = piece.removeprefix(b"\xef\xbb\xbf"), False
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, piece[:end]])
            rest = []
        rest.append(piece[end:])
    if any(rest):
        yield b"".join(rest)


def _empty() -> Entries:
    none = np.zeros(0)
    return Entries(none, none.astype(np.int64), none.astype(np.int64), none)


def _parse_block(block: bytes) -> Entries | None:
    """The entries of a block of lines, or None when something in it is malformed."""
    if b"#" in block:
        block = _COMMENT.sub(b"", block)
    text = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    space = _SPACE[text]
    starts = np.flatnonzero(space[:-1] & ~space[1:]) + 1
    if starts.size == 0:
        return _empty()
    colons = np.flatnonzero(text == ord(":"))
    if np.any(space[colons - 1]) or np.any(space[colons + 1]):
        return None
    token = np.searchsorted(starts, colons, side="right") - 1
    lines = np.searchsorted(np.flatnonzero(text == ord("\n")), starts)
    first = np.concatenate([[True], lines[1:] != lines[:-1]])
    # Every token but a line's first holds exactly one colon.
    has_colon = np.zeros(starts.size, dtype=bool)
    has_colon[token] = True
    if np.any(np.diff(token) == 0) or np.any(has_colon == first):
        return None
    numbers = _numbers(block, starts.size + colons.size)
    if numbers is None:
        return None
    # A first token is one number, every other token is two.
    is_label = np.zeros(numbers.size, dtype=bool)
    is_label[np.flatnonzero(first) + np.cumsum(~first)[first]] = True
    pairs = numbers[~is_label].reshape(-1, 2)
    counts = np.diff(np.append(np.flatnonzero(first), first.size)) - 1
    columns = _integers(pairs[:, 0])
    if columns is None:
        return None
    return Entries(numbers[is_label], counts, columns, np.ascontiguousarray(pairs[:, 1]))


def _parse_halves(block: bytes) -> Iterator[Entries]:
    """The entries of the lines of a malformed block: halved until what is malformed is a line."""
    middle = block.find(b"\n", len(block) // 2) + 1
    if middle in (0, len(block)):
        middle = block.rfind(b"\n", 0, len(block) // 2) + 1
    if middle == 0:
        none = _empty()
        yield Entries(np.array([np.nan]), np.zeros(1, dtype=np.int64), none.columns, none.values)
        return
    for half in (block[:middle], block[middle:]):
        part = _parse_block(half)
        if part is None:
            yield from _parse_halves(half)
        else:
            yield part


def _without_wrong_indices(entries: Entries, n_features: int) -> Entries:
    """Without the entries of records that have an index out of range or twice; labelled nan."""
    columns, owner = entries.columns, np.repeat(np.arange(entries.counts.size), entries.counts)
    order = np.lexsort((columns, owner))
    again = (np.diff(columns[order]) == 0) & (np.diff(owner[order]) == 0)
    bad = np.zeros(entries.counts.size, dtype=bool)
    bad[owner[(columns < 1) | (columns > n_features)]] = True
    bad[owner[order[1:][again]]] = True
    kept = ~bad[owner]
    labels, counts = np.where(bad, np.nan, entries.labels), np.where(bad, 0, entries.counts)
    return Entries(labels, counts, columns[kept], entries.values[kept])


def _numbers(block: bytes, count: int) -> np.ndarray | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            numbers = np.fromstring(block.replace(b":", b" "), dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    return numbers if numbers.size == count else None


def _integers(values: np.ndarray) -> np.ndarray | None:
    if not np.all((values >= 0) & (values < 2.0**53) & (values == np.floor(values))):
        return None
    return values.astype(np.int64)


def _explain(block: bytes, line: int) -> str:
    """What is wrong with the first malformed line of a block, in words."""
    for number, content in enumerate(block.split(b"\n"), start=line):
        tokens = content.partition(b"#")[0].split()
        for position, token in enumerate(tokens):
            text = token.decode("utf-8", "replace")[:40]
            if position == 0 and not _NUMBER.fullmatch(token):
                return f"line {number}: the label {text!r} is not a number"
            if position == 0:
                continue
            index, colon, value = token.partition(b":")
            if not colon or not _NUMBER.fullmatch(value):
                return f"line {number}: {text!r} is not of the form index:value"
            if not index.isdigit() or int(index) >= 2**53:
                return f"line {number}: the index of {text!r} is not a whole number >= 1"
    return f"not svmlight text (near line {line})"


def _matrix(
    key: str, path: Path, entries: Entries, n_features: int, before: int
) -> sparse.csr_array:
    columns = entries.columns
    wrong = np.flatnonzero((columns < 1) | (columns > n_features))
    indptr = np.concatenate([[0], np.cumsum(entries.counts)])
    if wrong.size:
        record = before + int(np.searchsorted(indptr, wrong[0], side="right"))
        allowed = f"record {record} has index {columns[wrong[0]]}; "
        allowed += f"indices go from 1 to n_features={n_features}"
        raise InputError(key, path.name, allowed)
    # A copy: what follows works in place, and the entries may be a file mapped read-only.
    parts = (entries.values.copy(), columns - 1, indptr)
    x = sparse.csr_array(parts, shape=(entries.counts.size, n_features))
    x.sort_indices()
    owner = np.repeat(np.arange(entries.counts.size), entries.counts)
    again = np.flatnonzero((np.diff(x.indices) == 0) & (np.diff(owner) == 0))
    if again.size:
        allowed = f"record {before + owner[again[0]] + 1} has index {x.indices[again[0]] + 1} twice"
        raise InputError(key, path.name, allowed)
    x.eliminate_zeros()
    return x
