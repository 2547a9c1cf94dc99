"""Share data sets between processes: folders of arrays that workers map into memory.

A folder is its owner's alone, since it holds the records.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from dperm_cli.core.files import storage_errors
from dperm_cli.results.records.cell_claims import WORK


@contextlib.contextmanager
def use_spool(out: Path) -> Iterator[Path]:
    """A new folder for the data sets of one sweep; it goes when the block ends.

    It lies with the study, which the workers of other machines can reach as well. That of a killed
    process goes with its lease (``study_lease``).
    """
    folder = out / WORK / f"spool-{secrets.token_hex(4)}"
    try:
        with storage_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
