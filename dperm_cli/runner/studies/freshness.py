"""Check whether an experiment's tables, figures and page are up to date with its records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import dperm_cli
from dperm_cli import results
from dperm_cli.core.digests import hash_parts, hash_sha256, hash_sources
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.results.records.schema import canonical_json
from dperm_cli.results.records.store import Store
from dperm_cli.results.study_files import CLAIMS, LOG

NOTE = "shown.json"


def is_fresh(out: Path, judged: bytes) -> bool:
    """True when every file that the last report wrote is whole and made of what is there now."""
    try:
        noted = json.loads(read_bytes(out / NOTE) or b"{}")
        files = dict(noted["files"])
        plain = all(Path(name).name == name for name in files)
        same = plain and noted["inputs"] == digest_inputs(out, judged)
        return same and files == {name: _digest(out / name) for name in files}
    except (ValueError, KeyError, TypeError, RecursionError, StorageError):
        return False


def note(out: Path, judged: bytes, files: Sequence[str]) -> None:
    """Remember what the files of this report were made of."""
    names = sorted({CLAIMS, *(Path(path).name for path in files)})
    found = {"inputs": digest_inputs(out, judged), "files": {n: _digest(out / n) for n in names}}
    write_atomically(out / NOTE, json.dumps(found, indent=1, sort_keys=True).encode() + b"\n")


def digest_inputs(out: Path, judged: bytes) -> str:
    """Records, log, verdicts, manifest without the command line, and the code that shows them."""
    store = Store(out)
    manifest = store.read_manifest() or {}
    said = {name: value for name, value in manifest.items() if name not in ("argv", "git")}
    records = {cell: store.digest(cell) for cell in store.cells()}
    made = {"records": records, "manifest": said, "log": _digest(out / LOG)}
    return hash_sha256(canonical_json(made), judged, _code())


@cache
def _code() -> str:
    folder = Path(results.__file__).parent
    shown = [path for path in folder.rglob("*") if path.suffix in (".py", ".js", ".css", ".html")]
    return hash_parts(dperm_cli.__version__, hash_sources(sorted(shown), folder))


def _digest(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else hash_sha256(data)
