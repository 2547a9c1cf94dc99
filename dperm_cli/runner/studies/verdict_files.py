"""``experiments/<id>/verdicts.json``: the last verdicts on an experiment's claims.

The file is kept with the sources of the experiment.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli import __version__
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.results.claims import claims_page
from dperm_cli.results.claims.claims import SIZES, Verdict

FILE = "verdicts.json"


def read(folder: Path, name: str) -> dict[str, Any]:
    """The last verdicts, by size of the experiment; empty where none were kept.

    Raises:
        InputError: the file is not such a file.
    """
    path = folder / name / FILE
    data = read_bytes(path)
    if data is None:
        return {}
    with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        found = json.loads(data)["sizes"]
        if set(found) <= set(SIZES) and all(isinstance(v["claims"], dict) for v in found.values()):
            return found
    raise InputError("verdicts", str(path), "is no file of verdicts; remove it")


def write(folder: Path, name: str, size: str, verdicts: Sequence[Verdict]) -> None:
    """Replace the verdicts that are kept for this size."""
    sizes: Mapping[str, Any] = {
        **read(folder, name),
        size: claims_page.verdict_record(verdicts, __version__),
    }
    found = json.dumps({"experiment": name, "sizes": sizes}, indent=1, sort_keys=True)
    write_atomically(folder / name / FILE, found.encode() + b"\n")
