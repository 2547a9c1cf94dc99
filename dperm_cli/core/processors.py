"""How many processors this process may use, as the system and its container say.

Python counts those of the machine. A library that counts these takes a twentieth of a small run's
time to import.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def count() -> int:
    """Those that the process is bound to, and no more than its control groups give it time on."""
    try:
        bound = len(os.sched_getaffinity(0))
    except AttributeError:  # of Linux alone
        bound = os.cpu_count() or 1
    return max(1, min([bound, *_list_limits(_OWN_GROUP, _GROUPS)]))


def _list_limits(own: Path, groups: Path) -> Iterator[int]:
    """The limit of each control group that this process is in, in whole processors.

    A line of ``own`` is ``number:controllers:path``. The group that it names may be the root of
    what a container sees, so that all groups above it are looked at, down from ``groups``.

    Args:
        own: The file that names the groups of this process.
        groups: Where the groups' files are.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            room = groups / "cpu" if controllers else groups  # of version 1, and of version 2
            inner = PurePosixPath(path).relative_to("/")
            for group in (inner, *inner.parents):
                with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                    quota, period = _read_quota(room / group)
                    yield math.ceil(quota / period)


def _read_quota(folder: Path) -> tuple[float, float]:
    """Microseconds of processor time in each period of so many; infinite ones raise ValueError."""
    together = folder / "cpu.max"
    if together.exists():
        quota, period = map(float, together.read_text().split())
    else:
        quota = float((folder / "cpu.cfs_quota_us").read_text())
        period = float((folder / "cpu.cfs_period_us").read_text())
    if quota <= 0:
        raise ValueError("no limit")  # version 1 writes -1, version 2 the word max
    return quota, period
