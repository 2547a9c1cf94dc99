"""A cache of parsed files: plain .npz, keyed by the file's sha256 and the parser's version.

A cache entry is checked against its own digest and silently rebuilt when it is damaged; a folder
that cannot be written only costs time. Entries are readable by their owner alone, since they hold
a copy of the data.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

CACHE_DIR = "DPERM_CACHE_DIR"
_DIGEST = "digest"


def cache_dir() -> Path | None:
    """$DPERM_CACHE_DIR, or ~/.cache/dperm; None when there is no home."""
    found = os.environ.get(CACHE_DIR)
    try:
        return Path(found).expanduser() if found else Path.home() / ".cache" / "dperm"
    except RuntimeError:
        return None


def fetch(
    source: Path, version: str, build: Callable[[], Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The arrays parsed from ``source``: from the cache, or built and then stored."""
    folder = cache_dir()
    if folder is None:
        return dict(build())
    entry = folder / f"{version}-{sha256(source)}.npz"
    arrays = _load(entry)
    if arrays is None:
        arrays = dict(build())
        _store(entry, arrays)
    return arrays


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(entry: Path) -> dict[str, np.ndarray] | None:
    try:
        with open(entry, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError):
        return None
    stored = arrays.pop(_DIGEST, None)
    return arrays if stored is not None and str(stored) == _digest(arrays) else None


def _store(entry: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write to a temporary file of the same folder, then rename."""
    temporary = None
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=entry.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            everything: dict[str, Any] = {**arrays, _DIGEST: np.array(_digest(arrays))}
            np.savez(file, **everything)
        os.replace(temporary, entry)
    except OSError:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape};".encode())
        digest.update(array.data.cast("B"))
    return digest.hexdigest()
