"""Write and check the lines of ``releases.log``.

A line is ``CHECKSUM JSON``. The checksum is SHA-256 without a key: it detects damage, not forgery.
Therefore every value is checked as well. A line with a value that dperm does not write counts as
damaged and is reported by its number.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import make_printable
from dperm_cli.results.ledger.statement import has_fresh_noise
from dperm_cli.results.records.schema import BY_NAME, coerce

MOST_TRIALS = 1_000_000  # as of a cell's configuration
_SHOWN = 12  # digits of a content digest in the name of an earlier release without a name
_NAME_BYTES = 16
_NAME = re.compile(f"[0-9a-f]{{{2 * _NAME_BYTES}}}")
CELL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_WORDS = 1000  # characters of a gap
_ENTRY = {"cell", "content", "row", "trials"}
# What no release can lack, and numbers of its claim.
_REQUIRED_COLUMNS = (
    "dataset",
    "mechanism",
    "relation",
    "guarantee",
    "noise",
    "events",
    "data_fingerprint",
)
_CLAIM = ("epsilon", "delta", "epsilon_accounted", "delta_accounted", "information_accounted")
_MOST_WHOLE = 2**63


@dataclass(frozen=True)
class Entry:
    """One release: its cell, the digest of what the record holds, how many trials, its facts."""

    cell: str
    content: str
    trials: int
    row: dict[str, Any]

    @property
    def release(self) -> str | None:
        """The name drawn with the release; None in what an earlier dperm wrote."""
        return self.row.get("release")

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for two entries of the same release.

        That is the drawn name; facts stand beside it, so that whoever copies a name to a release
        that costs less does not take the other's place. Without a name: cell and content.
        """
        if self.release is None:
            return ("content", self.cell, self.content)
        facts = {name: value for name, value in self.row.items() if value is not None}
        text = json.dumps(facts, sort_keys=True)
        return ("name", self.release, self.cell, self.trials, text)

    @property
    def name(self) -> str:
        """What tells the release from the record of its cell, and from other releases of it."""
        return f"{self.cell}-{self.release or self.content[:_SHOWN]}"


@dataclass(frozen=True)
class Gap:
    """Words on releases that were lost elsewhere, before a merge took the rest along."""

    words: str

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for equal words."""
        return ("gap", self.words)


@dataclass(frozen=True)
class Lines:
    """What a log holds: releases and gaps in order, and ``faults``, what is not whole."""

    entries: tuple[Entry, ...]
    gaps: tuple[Gap, ...]
    faults: tuple[str, ...]


def new_name() -> str:
    """A name for a release with fresh noise: 128 bits of the system's generator."""
    return secrets.token_hex(_NAME_BYTES)


def is_name(word: Any) -> bool:
    """Whether ``new_name`` can have made it."""
    return isinstance(word, str) and _NAME.fullmatch(word) is not None


def line_of(entry: Entry | Gap, before: bytes) -> bytes:
    """The line of an entry behind the bytes ``before``, of which the last line counts."""
    facts: dict[str, Any] = {"before": _last_digest(before)}
    if isinstance(entry, Gap):
        facts |= {"gap": entry.words}
    else:
        facts |= {name: getattr(entry, name) for name in _ENTRY}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    return hash_sha256(text).encode() + b" " + text + b"\n"


def read_lines(data: bytes) -> Lines:
    """Whole entries of a log's bytes, and what is wrong with the rest: no error for any bytes."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    entries: list[Entry] = []
    gaps: list[Gap] = []
    faults: list[str] = []
    before, whole = b"", True
    for at, line in enumerate(lines, start=1):
        found = None
        try:
            chained, found = _parse_line(line)
            if whole and chained is not None and chained != _last_digest(before):
                faults.append(f"line {at}: what stood before it was changed or taken away")
        except RecursionError:
            faults.append(f"line {at}: is damaged (it is nested too deeply)")
        except (ValueError, TypeError, KeyError) as error:
            faults.append(f"line {at}: is damaged ({make_printable(error)})")
        if isinstance(found, Entry):
            entries.append(found)
        elif isinstance(found, Gap):
            gaps.append(found)
            faults.append(f"line {at}: releases were lost before a merge ({found.words})")
        before, whole = line, found is not None
    return Lines(tuple(entries), tuple(gaps), tuple(faults))


def _last_digest(data: bytes) -> str:
    """The digest of the last line, whatever it holds; empty where there is none."""
    last = data.removesuffix(b"\n").rpartition(b"\n")[2]
    return hash_sha256(last) if last else ""


def _parse_line(line: bytes) -> tuple[str | None, Entry | Gap]:
    """The digest of the line before (None: an earlier dperm wrote none), and what the line says."""
    digest, _, text = line.partition(b" ")
    if hash_sha256(text).encode() != digest:
        raise ValueError("its checksum is another")
    facts = json.loads(text, object_pairs_hook=_refuse_repeated)
    if not isinstance(facts, dict):
        raise ValueError("it is no mapping")
    chained = facts.pop("before", None)
    if chained not in (None, "") and not _is_digest(chained):
        raise ValueError("before is no digest")
    if set(facts) == {"gap"} and chained is not None:
        return chained, Gap(_words(facts["gap"]))
    if set(facts) != _ENTRY:
        raise ValueError("it has other keys than a release")
    return chained, _entry(**facts)


def _entry(cell: Any, content: Any, trials: Any, row: Any) -> Entry:
    if not isinstance(cell, str) or not CELL_NAME.fullmatch(cell):
        raise ValueError("cell is no plain name")
    if not _is_digest(content):
        raise ValueError("content is no digest")
    check_trials(trials)
    if not isinstance(row, dict):
        raise ValueError("row is no mapping")
    for name, value in row.items():
        check_value(name, value)
    missing = [name for name in _REQUIRED_COLUMNS if row.get(name) is None]
    if missing:
        raise ValueError(f"row has no {missing[0]}")
    if row.get("cell") != cell:
        raise ValueError("row is of another cell")
    check_release(row)
    return Entry(cell, content, trials, row)


def check_trials(trials: Any) -> None:
    """ValueError unless a release can have been made so often."""
    if not _is_whole(trials) or not 1 <= trials <= MOST_TRIALS:
        raise ValueError(f"trials is no whole number from 1 to {MOST_TRIALS}")


def check_release(row: Mapping[str, Any]) -> None:
    """ValueError unless these facts can be those of a release with fresh noise."""
    release = row.get("release")
    if release is not None and not is_name(release):
        raise ValueError("release is no name of one")
    if row.get("status") != "ok" or not has_fresh_noise(row):
        raise ValueError("it is no release with fresh noise")
    for name in _CLAIM:
        value = row.get(name)
        if value is not None and not value >= 0.0:
            raise ValueError(f"{name} is no level")
    for name in ("delta", "delta_accounted"):
        if (row.get(name) or 0.0) > 1.0:
            raise ValueError(f"{name} is no probability")


def check_value(name: str, value: Any) -> None:
    """ValueError unless the value is one that the column of this name can hold, as JSON has it."""
    column = BY_NAME.get(name)
    if column is None:
        raise ValueError(f"column {make_printable(name)} is unknown")
    if column.kind == "json" and not (value is None or isinstance(value, str)):
        raise ValueError(f"{name} is no text")
    if column.kind == "int" and value is not None and not _is_whole(value):
        raise ValueError(f"{name} is no whole number")
    found = coerce(column, value)
    if column.kind == "int" and found is not None and not -_MOST_WHOLE <= found < _MOST_WHOLE:
        raise ValueError(f"{name} is out of range")
    if isinstance(found, float) and math.isnan(found) and name in _CLAIM:
        raise ValueError(f"{name} is no level")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _words(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > _MOST_WORDS:
        raise ValueError("gap is no line of words")
    return value


def _refuse_repeated(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError("a key stands twice")
        found[key] = value
    return found
