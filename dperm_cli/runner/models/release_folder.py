"""The folder of a release: what may leave in ``release/``, what stays with the holder in
``private/``.

    FOLDER/release/     model.npz, ledger.json, card.md: functions of a ``Publishable`` alone
    FOLDER/release-2/   the second release, asked for with again=true, and so on
    FOLDER/private/     releases.log and diagnostics.json: for the holder of the records

Nothing is overwritten. A line of ``releases.log`` is on the disk before noise is drawn, so that a
release whose process died is counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import (
    append_durably,
    hold_lock,
    read_bytes,
    storage_errors,
    write_atomically,
    write_folder,
)
from dperm_cli.results.study_files import LOG

PRIVATE, RELEASE = "private", "release"
DIAGNOSTICS = "diagnostics.json"
NOTE = (
    "For the holder of the records alone: exact figures about the records, which no privacy "
    "guarantee covers. Do not publish them."
)


def check_folder(folder: Path, again: bool) -> int:
    """The number of the next release into a folder, from 1.

    Args:
        folder: where releases of one table go.
        again: whether another release may follow.

    Raises:
        InputError: a release was made, or the folder holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("out", str(folder), "is a file; it must be a folder")
    made = count_releases(folder)
    if folder.is_dir() and not made and any(folder.iterdir()):
        raise InputError("out", str(folder), "holds other files; choose another folder")
    if made and not again:
        times = "a release was" if made == 1 else f"{made} releases were"
        allowed = f"{times} made into it; another one spends as much again: say again=true"
        raise InputError("out", str(folder), allowed)
    return made + 1


def count_releases(folder: Path) -> int:
    """How many releases were begun in a folder."""
    return len((read_bytes(folder / PRIVATE / LOG) or b"").splitlines())


def begin_release(folder: Path, number: int, facts: Mapping[str, Any]) -> None:
    """Count a release before its noise is drawn.

    Args:
        folder: where releases of one table go.
        number: as ``check_folder`` gave it.
        facts: public facts of the plan, for the log.

    Raises:
        InputError: another process began a release meanwhile.
        StorageError: the log cannot be written.
    """
    private = folder / PRIVATE
    with storage_errors(private):
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(private / f".{LOG}.lock", wait=True):
        if count_releases(folder) + 1 != number:
            raise InputError("out", str(folder), "another release into it was begun meanwhile")
        line = json.dumps({"number": number, **facts}, allow_nan=False)
        append_durably(private / LOG, line.encode() + b"\n")


def name_release(number: int) -> str:
    """The name of the folder of a release."""
    return RELEASE if number == 1 else f"{RELEASE}-{number}"


def write_release(folder: Path, number: int, files: Mapping[str, bytes]) -> Path:
    """Write what leaves: all of the files, or no folder of that name.

    Args:
        folder: where releases of one table go.
        number: of the release.
        files: contents by name.

    Returns:
        The folder of the release.

    Raises:
        StorageError: it cannot be written.
    """
    to = folder / name_release(number)
    write_folder(to, files)
    return to


def write_diagnostics(folder: Path, number: int, found: Mapping[str, Any]) -> None:
    """Write the holder's own figures on a release."""
    name = DIAGNOSTICS if number == 1 else f"diagnostics-{number}.json"
    text = json.dumps({"note": NOTE, **found}, indent=2)
    write_atomically(folder / PRIVATE / name, text.encode() + b"\n")
