"""A cache of parsed files, keyed by the file's sha256 and the parser's version.

An entry is one file of plain arrays. Each starts on a 64-byte boundary, so that it can be mapped
into memory instead of being read. An entry is checked against its own digest, and rebuilt without a
message if it is damaged. If the folder cannot be written, files are parsed every time. Entries are
readable by their owner only, since they hold a copy of the data.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from dperm_cli.core import npy_files as npy
from dperm_cli.core.digests import hash_file
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import open_atomically
from dperm_cli.core.package_paths import cache_dir

ALIGNMENT = 64


def fetch(
    source: Path, version: str, build: Callable[[], Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The arrays parsed from ``source``, mapped from the cache (read-only) or built and stored.

    Args:
        source: the file that is parsed.
        version: the name and version of the parser.
        build: parses the file.
    """
    folder = cache_dir()
    if folder is None:
        return dict(build())
    entry = folder / f"{version}-{hash_file(source)}.arrays"
    arrays = _load(entry)
    if arrays is None:
        arrays = dict(build())
        _store(entry, arrays)
    return arrays


def _load(entry: Path) -> dict[str, np.ndarray] | None:
    try:
        with open(entry, "rb") as file:
            head = json.loads(bytes(_map_array(file)))
            arrays = {str(name): _map_array(file) for name in head["names"]}
    except (OSError, ValueError, EOFError, KeyError, TypeError, MemoryError):
        return None
    return arrays if head.get("digest") == _digest(arrays) else None


def _map_array(file: IO[bytes]) -> np.ndarray:
    """The array whose .npy header begins here; the file is left at the next boundary."""
    mapped = npy.map_array(file)
    file.seek(-file.tell() % ALIGNMENT, os.SEEK_CUR)
    return mapped


def _store(entry: Path, arrays: Mapping[str, np.ndarray]) -> None:
    head = {"names": sorted(arrays), "digest": _digest(arrays)}
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    # without a folder to write to, the file is parsed again the next time
    with (
        contextlib.suppress(StorageError),
        open_atomically(entry, sync=False, private=True) as file,
    ):
        for array in (text, *(arrays[name] for name in sorted(arrays))):
            np.lib.format.write_array(
                file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
            )
            file.write(bytes(-file.tell() % ALIGNMENT))


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """CRC-32 of names, types and bytes: it detects damage, not malice."""
    value = 0
    for name in sorted(arrays):
        array: Any = np.ascontiguousarray(arrays[name])
        value = zlib.crc32(f"{name}{array.dtype.str}{array.shape};".encode(), value)
        if array.size:
            value = zlib.crc32(array.reshape(-1).view(np.uint8), value)
    return f"{value:08x}"
