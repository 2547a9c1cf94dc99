"""Files that are written a part at a time, in a folder of one's own that gets its name at the end.

What an interruption leaves is whole up to some part. Who goes on has to know how far, as by sums
that are kept beside the files.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dperm_cli.core.files import storage_errors

_MOST_WRITTEN = 1 << 28  # bytes that one call writes


def append_bytes(path: Path, data: memoryview) -> None:
    """Write the bytes at the end of a file, which is made, for its owner alone, where none is.

    Args:
        path: The file.
        data: Bytes, of one dimension.

    Raises:
        StorageError: They cannot be written to their end.
    """
    with storage_errors(path), open(path, "ab", buffering=0, opener=_open_private) as file:
        done = 0
        while done < len(data):
            done += file.write(data[done : done + _MOST_WRITTEN]) or 0


def remove_folder(folder: Path) -> None:
    """Take a folder of one's own away, as far as the system allows it."""
    shutil.rmtree(folder, ignore_errors=True)


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
