"""Columns of records as they come, in files that an interrupted conversion goes on with.

Every block of records is appended to a file for each column. A line in the journal then says how
long the files are and what each block's bytes add up to. Whoever goes on checks the blocks by these
sums and cuts off what is not whole.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.files import read_bytes, storage_errors, truncate_file, write_atomically
from dperm_cli.core.growing_files import append_bytes

JOURNAL = "blocks.jsonl"
_READ = 1 << 24  # bytes that are checked at once


class Stage:
    """A folder with one file for each column, and the journal of its blocks.

    Args:
        folder: Where the files are; it is made where there is none.
        about: What is converted, JSON-able: blocks of something else are dropped.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder, self.records = folder, 0
        self._sizes: dict[str, int] = {}
        with storage_errors(folder):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        head = (json.dumps({"about": about}, sort_keys=True) + "\n").encode()
        found = (read_bytes(folder / JOURNAL) or b"").splitlines(keepends=True)
        kept = [head, *(self._take_whole(found[1:]) if found[:1] == [head] else ())]
        write_atomically(folder / JOURNAL, b"".join(kept), sync=False)
        with storage_errors(folder):
            for path in folder.iterdir():
                if path.name in self._sizes:
                    truncate_file(path, self._sizes[path.name])
                elif path.name != JOURNAL:
                    path.unlink()

    def append(self, columns: Mapping[str, np.ndarray], records: int) -> None:
        """Write one block of records.

        Args:
            columns: Its part of each column, the same columns for every block.
            records: How many there are.

        Raises:
            StorageError: It cannot be written.
        """
        line: dict[str, Any] = {"records": records, "columns": {}}
        for name, values in columns.items():
            view = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8))  # type: ignore
            append_bytes(self.folder / name, view)
            self._sizes[name] = self._sizes.get(name, 0) + len(view)
            line["columns"][name] = [len(view), zlib.crc32(view)]
        append_bytes(self.folder / JOURNAL, memoryview((json.dumps(line) + "\n").encode()))
        self.records += records

    def map_column(self, name: str, kind: Any, width: int | None = None) -> np.ndarray:
        """A column as an array [n], or [n, width], mapped from its file."""
        count = self._sizes.get(name, 0) // np.dtype(kind).itemsize
        shape = (count,) if width is None else (count // max(1, width), width)
        if not count:
            return np.zeros(shape, kind)
        with storage_errors(self.folder / name):
            return np.memmap(self.folder / name, kind, "r", shape=shape)

    def _take_whole(self, lines: list[bytes]) -> list[bytes]:
        """The lines of the first blocks, as far as all bytes of all columns are there."""
        kept = []
        for line in lines:
            try:
                block = json.loads(line)
                is_whole = all(
                    self._matches(name, size, total)
                    for name, (size, total) in block["columns"].items()
                )
            except (ValueError, KeyError, TypeError, OSError):
                break  # a line that was not written to its end
            if not is_whole:
                break
            for name, (size, _) in block["columns"].items():
                self._sizes[name] = self._sizes.get(name, 0) + size
            self.records += block["records"]
            kept.append(line)
            progress.report("records found from before", self.records, 0)
        return kept

    def _matches(self, name: str, size: int, total: int) -> bool:
        found, left = 0, size
        with open(self.folder / name, "rb") as file:
            file.seek(self._sizes.get(name, 0))
            while left:
                piece = file.read(min(left, _READ))
                if not piece:
                    return False
                found, left = zlib.crc32(piece, found), left - len(piece)
        return found == total
