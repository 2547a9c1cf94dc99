"""The lease on a study's folder: who writes there holds it, and who is alone there tidies.

Every process that writes into the folder shares the lease while it does. What killed processes
left (claims, data sets for workers, half-written files) is taken away by whoever finds that nobody
else shares it, at the beginning or at the end. So nothing that a living process needs can go.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from dperm_cli.core.files import is_temporary, storage_errors
from dperm_cli.core.shared_lock import NO_LOCKS, remove_lock, share_lock
from dperm_cli.results.records.cell_claims import CLAIMS, WORK

_LEASE = "lease"


@contextlib.contextmanager
def hold_lease(out: str | os.PathLike[str]) -> Iterator[None]:
    """Share the study's folder while the block runs; nothing is held where one may not write.

    On a file system without locks nobody is known to be alone: it is said once on stderr, and what
    killed processes left stays.

    Args:
        out: The study's folder; it is made where there is none.

    Raises:
        StorageError: The lease cannot be made.
    """
    with _hold(Path(out), lambda: True, _tell_no_locks):
        yield


@contextlib.contextmanager
def hold_worker_lease(out: Path, may_tidy: Callable[[], bool]) -> Iterator[None]:
    """Share the study's folder as a worker of a run, which may have been killed or have ended.

    Args:
        out: The study's folder.
        may_tidy: Whether a worker that finds itself alone takes away what others left: where the
            run was killed, more of its workers may come.

    Raises:
        StorageError: The lease cannot be made.
    """
    with _hold(out, may_tidy, lambda out: None):
        yield


@contextlib.contextmanager
def _hold(
    out: Path, may_tidy: Callable[[], bool], tell_no_locks: Callable[[Path], None]
) -> Iterator[None]:
    lease = out / WORK / _LEASE

    def tidy() -> bool:
        if may_tidy():
            _take_away_leftovers(out)
            return True
        return False

    with contextlib.ExitStack() as held:
        try:
            held.enter_context(share_lock(lease, tidy))
        except PermissionError:
            pass  # what comes next cannot be written either, and says so
        except OSError as error:
            if error.errno in NO_LOCKS:
                tell_no_locks(out)
                held.callback(_remove_empty, lease)
            elif error.errno != errno.EROFS:
                with storage_errors(lease):
                    raise
        yield


def _take_away_leftovers(out: Path) -> None:
    """Everything in the folder of work but the lease, and half-written files beside results."""
    for folder in (out, out / "records"):
        for name in filter(is_temporary, _names(folder)):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
    for name in _names(out / WORK):
        path = out / WORK / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif name != _LEASE:
            with contextlib.suppress(OSError):
                path.unlink()


def _remove_empty(lease: Path) -> None:
    with contextlib.suppress(OSError):
        (lease.parent / CLAIMS).rmdir()
    remove_lock(lease)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@cache
def _tell_no_locks(out: Path) -> None:
    words = f"may compute a cell twice, and what a killed run leaves in {WORK} stays there"
    print(f"{out}: no locks on this file system: runs at once {words}", file=sys.stderr)
