"""``dperm verify``: check a study's files against their checksums and privacy events."""

from __future__ import annotations

import csv
import io
import math
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from dperm_cli import __version__
from dperm_cli.core import plugin_words
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE
from dperm_cli.core.files import read_bytes
from dperm_cli.core.operands import Syntax
from dperm_cli.privacy.accounting.rigorous_level import require_flint
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.ledger import kept_ledger, release_log
from dperm_cli.results.records import given_names
from dperm_cli.results.records.row_facts import format_count
from dperm_cli.results.records.store import Snapshot, list_old
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.study_files import LOG
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.account_table import format_up
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.record_digest import is_of_today
from dperm_cli.runner.models import model_file
from dperm_cli.runner.studies import study_folder
from dperm_cli.runner.verbs import verify_rigorous

_LISTED = 50
_CLOSE = 1e-9  # relative difference of two numbers that are the same up to their last bits
_WORDS = ("remarks",)  # columns in which a version speaks for itself
OLDER, RECOMPUTED, WHOLE = "older code, whole", "whole, recomputed", "whole, nothing to recompute"


def verify(arguments: list[str]) -> int:
    """``dperm verify STUDY|MODEL``; 3 where a file is damaged, 1 where it contradicts records."""
    words = Syntax(keys=("out", "rigorous")).split(arguments)
    rigorous = words.choose("rigorous", ("false", "true")) == "true"
    if rigorous:
        require_flint()
    if len(words.operands) == 1 and words.operands[0].endswith(".npz"):
        return verify_model(words.operands[0], rigorous)
    out = study_folder.find_folder(study_folder.name_one(words))
    store = Snapshot(out)
    damaged = store.verify()
    wrong = [] if damaged else contents(store)
    lost = [*release_log.list_damage(out), *release_log.find_unlogged(store)]
    ledger = "contents, ledger and table"
    if not damaged and not wrong:
        found = rebuild_ledger(store)
        ledger = ledger if found.found or found.faults else "contents and table"
        lost, wrong = list(found.gaps) or lost, [*found.faults, *check_table(store)]
    damaged += [f"{out}{os.sep}{gap}" for gap in lost]
    for path in damaged[:_LISTED]:
        print(f"damaged: {path}")
    for fault in wrong[:_LISTED]:
        print(f"contradicts: {fault}")
    for many in (damaged, wrong):
        if len(many) > _LISTED:
            print(f"and {len(many) - _LISTED} more")
    if damaged:
        print("dperm: the same `dperm run` computes damaged records again, but no line of "
              f"{LOG}; the rest is checked "
              "when they are whole", file=sys.stderr)  # fmt: skip
        return EXIT_STORAGE
    if wrong:
        return EXIT_FAILED
    names = store.cells()
    missing = len(set(study_folder.list_cells(store)) - set(names))
    if not names:
        print(f"{out}: holds no record that could be checked; {missing} cells have none yet")
        return EXIT_FAILED
    more = f"; {missing} cells have no record yet" if missing else ""
    old = len(list_old(names))
    more += f"; {old} with names of the old form" if old else ""
    for line in list_verdicts(store):
        print(line)
    for line in verify_rigorous.list_proved(store) if rigorous else ():
        print(line)
    print(f"{len(names)} records whole, {ledger} as they should be{more}")
    return EXIT_OK


def verify_model(word: str, rigorous: bool = False) -> int:
    """Read a model file whole, and recompute its guarantee from the events in it.

    Args:
        word: The name of the file.
        rigorous: Whether its epsilon is proved in ball arithmetic too.
    """
    found = model_file.read(word)
    print(f"{word}: whole; {found.level()}, recomputed from its events ({found.guarantee.source})")
    if rigorous:
        proved = verify_rigorous.prove_events(found.events, found.guarantee.delta, found.relation)
        told = "" if proved.epsilon is None else f"epsilon {format_up(proved.epsilon)}, "
        print(f"rigorous: {told}{proved.words}")
    print("that this mechanism ran with these events is the file's own word", file=sys.stderr)
    return EXIT_OK


def contents(store: Snapshot) -> list[str]:
    """Records whose rows are not those that their digest was taken of, or not their file's."""
    found = []
    for cell in store.cells():
        if store.holds_another(cell):
            found.append(f"{store.path(cell)}: holds another cell's rows")
        elif not store.has_true_content(cell):
            found.append(f"{store.path(cell)}: its rows are not those of its content digest")
    return found


def rebuild_ledger(store: Snapshot) -> kept_ledger.LedgerState:
    """Records, log and ledger against the events, added up again."""
    names = list(dict.fromkeys([*study_folder.list_cells(store), *store.cells()]))
    return kept_ledger.state(store, names, Accounting())


def list_verdicts(store: Snapshot) -> Iterator[str]:
    """What whole records are, whose claims follow from their events: a line for each verdict."""
    found: dict[str, list[list[dict[str, Any]]]] = {OLDER: [], RECOMPUTED: [], WHOLE: []}
    for cell in store.cells():
        rows, footer = store.read(cell), store.footer(cell)
        if rows and footer:
            missing = plugin_words.list_missing(rows[0].get("plugins"))
            if missing:
                found.setdefault(f"whole, but {missing}", []).append(rows)
                continue
            claims = rows[0]["status"] == "ok" and rows[0]["guarantee"] != "none"
            today = RECOMPUTED if claims else WHOLE
            found[today if is_of_today(footer.code) else OLDER].append(rows)
    for verdict, records in found.items():
        if records:
            versions = sorted({str(rows[0]["version"]) for rows in records})
            whose = f", by dperm {', '.join(versions)}" if verdict == OLDER else ""
            yield f"{verdict}: {format_count(len(records), 'record')}{whose}"


def check_table(store: Snapshot) -> list[str]:
    """The table against its records; where the study is finished, against the one that they make.

    One of another version has other columns: what both have is compared.
    """
    names = study_folder.list_cells(store)
    path = store.out / "table.csv"
    written = read_bytes(path)
    gone = sum(store.state(cell) == "absent" for cell in _list_table_cells(written or b""))
    if gone:
        have = "1 cell whose record is" if gone == 1 else f"{gone} cells whose records are"
        return [f"{path}: has {have} not there; the same `dperm run` computes what is missing"]
    if written is None or any(store.state(cell) != "whole" for cell in names):
        return []
    manifest = store.read_manifest() or {}
    records = given_names.name_rows(store.read_all(names), manifest)
    about = experiment_tables.read_about(manifest)
    if about is None:
        made = summary_table.csv_text(summarise(records))
    else:
        made = experiment_tables.format_tables(records, about)["csv"]
    older = any(row["version"] != __version__ for row in records)
    if written == made.encode() or (older and _agree(written, made)):
        return []
    return [f"{path}: is not the table of these records; `dperm report` makes that one"]


def _list_table_cells(written: bytes) -> list[str]:
    """The cells that a table names; none where it is no table."""
    try:
        rows = _read_table(written.decode())
    except (UnicodeDecodeError, csv.Error):
        return []
    return sorted({row["cell"] for row in rows if row.get("cell")})


def _agree(written: bytes, made: str) -> bool:
    """Whether two tables, of different versions, say the same in the columns that both have."""
    try:
        before = _read_table(written.decode())
    except (UnicodeDecodeError, csv.Error):
        return False
    now = _read_table(made)
    shared = [name for name in (before[0] if before else {}) if name in now[0]]
    return (
        "cell" in shared
        and len(before) == len(now)
        and all(
            name in _WORDS or _is_same(one[name], other[name])
            for one, other in zip(before, now, strict=True)
            for name in shared
        )
    )


def _read_table(text: str) -> list[Mapping[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _is_same(one: str | None, other: str | None) -> bool:
    try:
        return math.isclose(float(one or ""), float(other or ""), rel_tol=_CLOSE)
    except ValueError:
        return one == other
