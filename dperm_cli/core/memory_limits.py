"""How much memory this process may take, and a question to ask before more is taken.

``limits.memory=auto`` is what the system allows: the limit of ``ulimit -v``, of the control group
(either version of Linux's) or the machine's memory, whichever leaves the least room.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dperm_cli.core import system_calls
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError

KEY = "limits.memory"
AUTO = "auto"
_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip
_SIZE = re.compile(rf"(\d{{1,6}}(?:\.\d{{1,6}})?) ?({'|'.join(_UNITS)})", re.ASCII | re.IGNORECASE)
_UNLIMITED = 1 << 60  # version 1 of control groups writes a number near 2^63 for no limit


def check_size(key: str, value: Any) -> int | str:
    """Bytes from a text such as ``4GB``, or ``auto``; InputError for anything else."""
    if value == AUTO:
        return AUTO
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    units = {unit.lower(): size for unit, size in _UNITS.items()}
    size = int(float(found[1]) * units[found[2].lower()]) if found else 0
    if size < 1:
        raise InputError(key, value, "must be auto, or a size with its unit, such as 4GB or 512MiB")
    return size


def format_bytes(size: float) -> str:
    """A size in the unit that suits it: 3.22 GB."""
    unit = next((u for u in ("TB", "GB", "MB", "kB") if size >= _UNITS[u]), None)
    return f"{size:.0f} B" if unit is None else f"{size / _UNITS[unit]:.3g} {unit}"


@dataclass(frozen=True)
class MemoryLimit:
    """A limit in bytes, and who set it.

    ``given`` is the value of ``limits.memory``. ``addresses`` is True for a limit on what a process
    reserves, which ``ulimit -v`` counts whether or not it is used.
    """

    bytes: int
    source: str
    given: str = AUTO
    addresses: bool = False

    @property
    def used(self) -> int:
        """What this process has of it now."""
        reserved, resident = _measure_process()
        return reserved if self.addresses else resident

    @property
    def room(self) -> int:
        """How much more this process may take."""
        return self.bytes - self.used

    def check(self, more: int, what: str, instead: str) -> None:
        """InputError with both numbers where ``more`` bytes are beyond the limit.

        Args:
            more: bytes that are about to be taken.
            what: who needs them, the begin of a sentence.
            instead: what to type instead.
        """
        needed = self.used + more
        if needed > self.bytes:
            raise self.refuse(needed, what, instead)

    def refuse(self, needed: int, what: str, instead: str) -> InputError:
        """The error about a need that is beyond the limit."""
        return self._refuse(f"{what} needs about {format_bytes(needed)} of memory", instead)

    def refuse_more(self, what: str, instead: str) -> InputError:
        """The error about memory that was asked for and not given."""
        return self._refuse(
            f"{what} needs more memory than the {format_bytes(self.used)} it has", instead
        )

    def _refuse(self, need: str, instead: str) -> InputError:
        allowed = f"{need}, and {format_bytes(self.bytes)} are allowed ({self.source}); {instead}"
        return InputError(KEY, self.given, allowed)


def find_limits(root: Path = Path("/")) -> list[MemoryLimit]:
    """What the system sets for this process, of the file system below ``root``."""
    memory = system_calls.read_machine_memory()
    unknown = MemoryLimit(_UNLIMITED, "the memory of this machine, which is not known")
    found = [unknown if memory is None else MemoryLimit(memory, "the memory of this machine")]
    addresses = address_limit()
    if addresses is not None:
        found.append(addresses)
    group = _group_limit(root)
    if group is not None:
        found.append(MemoryLimit(group, "the control group of this process"))
    return found


def address_limit() -> MemoryLimit | None:
    """The limit of ``ulimit -v``, where there is one."""
    soft = system_calls.read_address_limit()
    return None if soft is None else MemoryLimit(soft, "ulimit -v", addresses=True)


def current_limit() -> MemoryLimit:
    """The limit in force: that of ``hold_memory_to``, else the one with the least room."""
    held = _HELD.get()
    return min(find_limits(), key=lambda limit: limit.room) if held is None else held


@contextlib.contextmanager
def hold_memory_to(size: int | str) -> Iterator[MemoryLimit]:
    """Make ``size`` bytes the limit in the block; ``auto`` is what the system allows."""
    given = None
    if not isinstance(size, str):
        given = MemoryLimit(size, KEY, format_bytes(size).replace(" ", ""))
    token = _HELD.set(given)
    try:
        yield current_limit()
    finally:
        _HELD.reset(token)


_HELD: ContextVar[MemoryLimit | None] = ContextVar("memory_limit", default=None)


def _group_limit(root: Path) -> int | None:
    """The least limit of the process's control groups and of those that they lie in."""
    limits = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "memory" not in names.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("memory" if names else "")
        file = "memory.limit_in_bytes" if names else "memory.max"
        place = top / path.strip("/")
        for folder in (place, *place.parents):
            limits.append(_read(folder / file).strip())
            if folder == top:
                break
    found = [int(text) for text in limits if text.isdigit() and int(text) < _UNLIMITED]
    return min(found, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _measure_process() -> tuple[int, int]:
    """Bytes that this process has reserved, and bytes that it holds in memory."""
    pages = _read(Path("/proc/self/statm")).split()
    if pages:
        return int(pages[0]) * mmap.PAGESIZE, int(pages[1]) * mmap.PAGESIZE
    held = system_calls.read_peak() or 0  # elsewhere the most that it has held
    return held, held
