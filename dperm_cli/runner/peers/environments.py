"""Environments of peers: made with venv and pip from a lock, each in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from dperm_cli.core.errors import DpermError, StorageError
from dperm_cli.core.files import read_bytes, storage_errors, write_atomically
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.read_errors import first_words
from dperm_cli.runner.peers.catalogue import Peer

_DONE = "installed.lock"  # the lock that was installed, written last
_PIP_SECONDS = 1800.0


class PeerError(DpermError):
    """An environment cannot be made."""


def find_folder(given: str | None = None) -> Path:
    """Where the environments lie: the folder that was given, else one in the user's cache."""
    if given is not None:
        return Path(given)
    cache = cache_dir()
    if cache is None:
        raise StorageError("there is no cache folder: name one with --folder")
    return cache / "peers"


def find_python(peer: Peer, folder: Path) -> Path | None:
    """The interpreter of a peer; None where its environment is not there or is an old one."""
    if peer.lock is None:
        return Path(sys.executable)
    home = folder / peer.name
    if read_bytes(home / _DONE) != peer.lock.read_bytes():
        return None
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(peer: Peer, folder: Path) -> Path:
    """Make the environment of a peer; one that is there with the same lock stays.

    Raises:
        PeerError: pip cannot install the packages, such as without a network.
    """
    found = find_python(peer, folder)
    if found is not None or peer.lock is None:
        return found or Path(sys.executable)
    home = folder / peer.name
    remove(peer, folder)
    with storage_errors(home):
        home.parent.mkdir(parents=True, exist_ok=True)
    _run_step(peer, [sys.executable, "-m", "venv", str(home)])
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        _run_step(peer, [*pip, "--retries", "1", "-r", str(peer.lock)])
    except PeerError:
        remove(peer, folder)
        raise
    write_atomically(home / _DONE, peer.lock.read_bytes())
    return python


def remove(peer: Peer, folder: Path) -> bool:
    """Take the environment of a peer away; whether there was one."""
    home = folder / peer.name
    is_there = os.path.isdir(home)
    if is_there:
        with storage_errors(home):
            shutil.rmtree(home)
    return is_there


def _run_step(peer: Peer, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"peer {peer.name} cannot be installed: {first_words(error)}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        words = first_words((lines or done.stderr.splitlines() or ["pip failed"])[-1], 200)
        raise PeerError(f"peer {peer.name} cannot be installed: {words}")
