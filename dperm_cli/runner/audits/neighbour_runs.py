"""A whole ``dperm run`` on two data sets one record apart, with the noise of the first on both.

What a run makes is a function of public facts, of the noisy values that passed the gate, and, for
the holder of the records alone, of what ``audit.holder_facts`` lists. With equal noisy values all
else must be equal byte for byte: files, their names and sizes, messages, exit code, progress, the
released point, the saved model.

Records, and the lines of ``releases.log``, are compared column by column. What is rendered from
them (tables, page, what is printed) holds risks among words; there it is checked that the same
records give the same bytes again, and that the records of both runs do so without the listed
columns.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.audit import holder_facts
from dperm_cli.audit.first_difference import find_place, first_difference, line_difference
from dperm_cli.audit.noise_tape import SameNoise
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import DpermError
from dperm_cli.core.memo import clear_memos
from dperm_cli.core.package_paths import use_cache
from dperm_cli.privacy.gate import install_tape
from dperm_cli.results.ledger import release_log
from dperm_cli.results.ledger.release_log_lines import Entry
from dperm_cli.results.records.schema import BY_NAME
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import write_report
from dperm_cli.results.study_files import LEDGER, LOG
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.studies import study_report
from dperm_cli.runner.verbs import run

OUT, MASKED = "out", "masked"  # inside a run's folder
CRASH_CODE = -1  # in place of an exit code: a traceback
# What stands in a masked record, by the kind of its column.
_MASKS: dict[str, Any] = {"float": 1.0, "int": 1, "bool": False}
# Rooms whose functions remember what they computed.
_CACHING_ROOMS = (
    "dperm_cli.bounds", "dperm_cli.datasets", "dperm_cli.kernels", "dperm_cli.losses",
    "dperm_cli.mechanisms", "dperm_cli.privacy", "dperm_cli.problem", "dperm_cli.samplers",
    "dperm_cli.sets", "dperm_cli.solvers", "dperm_cli.views",
)  # fmt: skip
_RENDERED = ("table.csv", "table.md", "table.tex", "report.html")


@dataclass(frozen=True)
class RunOutput:
    """All that one run made.

    ``code`` is the exit code, ``progress`` the public reports in order, ``files`` the mode and the
    bytes of every file by its path in the run's folder, less the records, ``records`` their rows,
    ``logged`` the releases of ``releases.log``, ``masked`` what is rendered from the records
    without the holder's columns, and ``impure`` names what is not a function of the records. Hashes
    of records and the state of the source tree are replaced by words throughout.
    """

    code: int
    stdout: str
    stderr: str
    progress: list[tuple[str, float, float]]
    files: Mapping[str, tuple[int, bytes]]
    records: list[dict[str, Any]]
    logged: list[dict[str, Any]]
    masked: Mapping[str, bytes]
    impure: str | None

    @property
    def status(self) -> str:
        """How the cell ended, or ``refused`` where nothing ran."""
        return str(self.records[0]["status"]) if self.records else "refused"


def run_on_both(
    words: Sequence[str], first: Path, second: Path, *, cache: Path, figures: bool = False
) -> tuple[str | None, RunOutput, RunOutput]:
    """Run the words in two folders that hold neighbouring data files, with the same noise.

    Args:
        words: the arguments of ``dperm run``, without ``out`` and ``save``; paths in them are
            relative to the folders.
        first, second: folders that hold files of equal names.
        cache: folder for what a run caches.
        figures: whether to draw, which takes longest.
    Returns: the first difference in words, or None; and what the two runs made.
    """
    tape = SameNoise()
    one = run_in_folder(words, first, tape, cache=cache, figures=figures)
    tape.rewind()
    other = run_in_folder(words, second, tape, cache=cache, figures=figures)
    fault = compare_runs(one, other)
    if fault is None and (unlike := tape.find_fault()):
        fault = f"noise: {unlike}"
    return fault, one, other


def run_in_folder(
    words: Sequence[str], folder: Path, tape: SameNoise, *, cache: Path, figures: bool = False
) -> RunOutput:
    """One run inside ``folder`` with ``tape`` on its gates, and all that it made."""
    forget()
    inputs = set(_paths(folder))
    reports: list[tuple[str, float, float]] = []
    printed, told = io.StringIO(), io.StringIO()

    with use_cache(cache), contextlib.chdir(folder), _capture_streams(printed, told):
        with install_tape(tape), progress.listen(lambda *report: reports.append(report)):
            code = _code_of([*words, f"out={OUT}"], figures)
        files = {
            name: (os.stat(name).st_mode, Path(name).read_bytes())
            for name in _paths(Path())
            if name not in inputs
        }
        stdout, stderr = printed.getvalue(), told.getvalue()
        store = Store(OUT)
        rows = store.read_all(store.cells()) if os.path.isdir(OUT) else []
        impure = _impure(words, stdout, files, figures) if rows else None
        logged = release_log.read_entries(store.out)
        impure = impure or _log_impure(store, logged)
        names = _hashes(store, rows)
        rows = [_hide_release_name(row) for row in rows]
        masked = _render_masked(store, rows, names) if rows else {}
    kept = {
        _plain(name, names): (mode, _plain_bytes(content, names))
        for name, (mode, content) in files.items()
    }
    return RunOutput(
        code, _plain(stdout, names), _plain(holder_facts.public_lines(stderr), names),
        holder_facts.public_progress(reports), kept, rows,
        [{**_hide_release_name(entry.row), "trials": entry.trials} for entry in logged], masked,
        impure,
    )  # fmt: skip


def forget() -> None:
    """Clear all caches in this process, so that each run starts as in a new process."""
    clear_memos()
    for name, module in list(sys.modules.items()):
        if name.startswith(_CACHING_ROOMS):
            for held in list(vars(module).values()):
                if hasattr(held, "cache_clear"):
                    held.cache_clear()


def compare_runs(one: RunOutput, other: RunOutput) -> str | None:
    """The first difference between two runs beyond what is the holder's, or None."""
    if one.code != other.code:
        tail = _tail(one) if one.code else _tail(other)
        codes = ["a traceback" if code == CRASH_CODE else code for code in (one.code, other.code)]
        return f"exit code: {codes[0]} and {codes[1]}: {tail}"
    statuses = [[row["status"] for row in made.records] for made in (one, other)]
    if statuses[0] != statuses[1]:
        reasons = [str(row["reason"]) for made in (one, other) for row in made.records[:1]]
        return f"status: {statuses[0]} and {statuses[1]}: {' / '.join(reasons)[:200]}"
    return (
        line_difference(one.stderr, other.stderr, "stderr")
        or first_difference(one.progress, other.progress, "progress")
        or _records(one.records, other.records, "record")
        or _records(one.logged, other.logged, LOG)
        or _files(one.files, other.files)
        or next((f"{made.impure}: not made of the records" for made in (one, other)
                 if made.impure), None)
        or _texts(one.masked, other.masked)
        or (None if one.records else line_difference(one.stdout, other.stdout, "stdout"))
    )  # fmt: skip


def _code_of(words: list[str], figures: bool) -> int:
    """The exit code; errors are told as the command line tells them."""
    try:
        return run.run(words, *study_plan.parse_request(words), figures=figures)
    except DpermError as error:
        print(f"dperm: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return CRASH_CODE


@contextlib.contextmanager
def _capture_streams(printed: io.StringIO, told: io.StringIO) -> Iterator[None]:
    """Capture stdout and stderr; show each warning once per line of code, as a new process does."""
    told_too = contextlib.redirect_stderr(told)
    with contextlib.redirect_stdout(printed), told_too, warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


def _paths(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _hashes(store: Store, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Hashes of the records, and the state of the source tree, with the words in their place."""
    manifest = store.read_manifest() or {} if os.path.isdir(store.out) else {}
    found = {str(cell): f"<cell {i}>" for i, cell in enumerate(manifest.get("cells", []))}
    for row in rows:
        found |= {str(row["data_fingerprint"]): "<fingerprint>"}
        found.setdefault(str(row["cell"]), "<cell>")
        if row["release"] is not None:
            found[row["release"]] = "<release>"
    if manifest.get("git"):
        found[str(manifest["git"])] = "<source tree>"
    return found


def _plain(text: str, names: Mapping[str, str]) -> str:
    for name, word in names.items():
        text = text.replace(name, word)
    return text


def _plain_bytes(content: bytes, names: Mapping[str, str]) -> bytes:
    return _plain(content.decode("latin-1"), names).encode("latin-1")


def _impure(
    words: Sequence[str], stdout: str, files: Mapping[str, tuple[int, bytes]], figures: bool
) -> str | None:
    """Render the records again; what comes out otherwise than in the run, or None."""
    again = io.StringIO()
    format_ = "json" if "format=json" in words else "table"
    with contextlib.redirect_stdout(again), contextlib.redirect_stderr(io.StringIO()):
        made = study_report.make_report(Path(OUT), trust=True, figures=figures)
        study_report.print_report(made, Path(OUT), format_)
    if again.getvalue() != stdout:
        return line_difference(stdout, again.getvalue(), "stdout")
    for name in (*_RENDERED, LEDGER):
        path = os.path.join(OUT, name)
        if path in files and files[path][1] != Path(path).read_bytes():
            return name
    return None


def _render_masked(
    store: Store, rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, bytes]:
    """What is rendered from the records with fixed values in the holder's columns."""
    found = Store(MASKED)
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(str(row["cell"]), []).append(_mask(row))
    manifest = dict(store.read_manifest() or {})
    for number, masked in enumerate(cells.values()):
        named = {"cell": f"cell{number}"}
        if release_log.has_fresh_noise(masked):
            named["release"] = f"{number:032x}"
        found.write(f"cell{number}", [{**row, **named} for row in masked])
    manifest["cells"] = [f"cell{number}" for number in range(len(cells))]
    manifest["git"] = None
    found.write_manifest(manifest)
    made = write_report(found.out, figures=False, accountant=Accounting(), trust=True)
    texts = {name: Path(MASKED, name).read_bytes() for name in _RENDERED}
    texts["what is printed"] = made.text.encode()
    return {name: _plain_bytes(text, names) for name, text in texts.items()}


def _hide_release_name(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with a word for the name of its release, which is drawn anew every time."""
    return {**row, "release": None if row["release"] is None else "<release>"}


def _mask(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with fixed values in the holder's columns, also where it has none."""
    fixed = {name: _MASKS.get(BY_NAME[name].kind, "0") for name in holder_facts.COLUMNS}
    return {**row, **fixed}


def _log_impure(store: Store, logged: Sequence[Entry]) -> str | None:
    """The log's name where a line says something else than the record that it is of."""
    whole = [
        release_log.make_entry(cell, rows)
        for cell in store.cells()
        if release_log.has_fresh_noise(rows := store.read_all([cell]))
    ]
    same = sorted(whole, key=lambda entry: entry.cell) == sorted(logged, key=lambda e: e.cell)
    return None if same and not release_log.list_damage(store.out) else LOG


def _records(
    one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]], where: str
) -> str | None:
    if len(one) != len(other):
        return f"{where}: {len(one)} and {len(other)} entries"
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        for name in a:
            found = first_difference(a[name], b[name], f"{where} {number}, column {name}")
            if found and name not in holder_facts.COLUMNS:
                return found
    return None


def _files(
    one: Mapping[str, tuple[int, bytes]], other: Mapping[str, tuple[int, bytes]]
) -> str | None:
    """Files that have no column of the holder's must be equal; of the others their names."""
    left = [
        sorted(name for name in files if os.path.basename(name) not in holder_facts.FIGURES)
        for files in (one, other)
    ]
    if left[0] != left[1]:
        return f"names of files: {sorted(set(left[0]) ^ set(left[1]))} in one folder alone"
    for name in left[0]:
        (mode, content), (other_mode, other_content) = one[name], other[name]
        if mode != other_mode:
            return f"{name}: mode {mode:o} and {other_mode:o}"
        if _from_records(name) or content == other_content:
            continue
        if name.endswith(".json"):
            texts = content.decode(), other_content.decode()
            return line_difference(*texts, name) or f"{name}: other bytes"
        return f"{name}: {_bytes_apart(content, other_content)}"
    return None


def _texts(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> str | None:
    for name in one:
        a, b = (made[name].decode(errors="replace") for made in (one, other))
        if found := line_difference(a, b, f"{name}, without the holder's columns"):
            return found
    return None


def _from_records(name: str) -> bool:
    """Files made of all columns of the records: these are compared by column instead."""
    known = (*_RENDERED, LOG)
    return os.path.basename(name) in known or name.endswith(".parquet")


def _bytes_apart(one: bytes, other: bytes) -> str:
    """Where two files differ, with a little of what stands there."""
    if one[:4] == other[:4] == b"PK\x03\x04":
        return _archives_apart(one, other)
    place = find_place(one, other)
    if place == min(len(one), len(other)):
        return f"{len(one)} and {len(other)} bytes"
    near = slice(max(0, place - 20), place + 20)
    return f"byte {place}: {one[near]!r} and {other[near]!r}"


def _archives_apart(one: bytes, other: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(one)) as a, zipfile.ZipFile(io.BytesIO(other)) as b:
        if a.namelist() != b.namelist():
            return f"members {a.namelist()} and {b.namelist()}"
        for name in a.namelist():
            if a.read(name) != b.read(name):
                return f"{name}, {_bytes_apart(a.read(name), b.read(name))}"
    return "other stamps or order of members"


def _tail(made: RunOutput) -> str:
    """The last line of stderr, or the reason in the records."""
    reason = made.records[0].get("reason") if made.records else None
    lines = made.stderr.strip().splitlines()
    return str(reason or (lines[-1] if lines else ""))[:200]
