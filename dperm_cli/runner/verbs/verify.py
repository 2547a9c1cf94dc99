"""``dperm verify``: whether a study's files are what was written, and say what their events say."""

from __future__ import annotations

import os
import sys

from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE
from dperm_cli.core.files import read_bytes
from dperm_cli.core.operands import Syntax
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.ledger import kept_ledger, release_log
from dperm_cli.results.record_format import content_digest
from dperm_cli.results.records.store import Snapshot, list_old
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import summary_table
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.studies import study_folder

_LISTED = 50


def verify(arguments: list[str]) -> int:
    """``dperm verify STUDY``; 3 where a file is damaged, 1 where one contradicts the records."""
    out = study_folder.find_folder(study_folder.name_one(Syntax(keys=("out",)).split(arguments)))
    store = Snapshot(out)
    damaged = store.verify()
    wrong = [] if damaged else contents(store)
    lost = [*release_log.list_damage(out), *release_log.find_unlogged(store)]
    if not damaged and not wrong:
        found = rebuild_ledger(store)
        lost, wrong = list(found.gaps) or lost, [*found.faults, *check_table(store)]
    damaged += [f"{out}{os.sep}{gap}" for gap in lost]
    for path in damaged[:_LISTED]:
        print(f"damaged: {path}")
    for fault in wrong[:_LISTED]:
        print(f"wrong: {fault}")
    for many in (damaged, wrong):
        if len(many) > _LISTED:
            print(f"and {len(many) - _LISTED} more")
    if damaged:
        print("dperm: the same `dperm run` computes damaged records again, but no line of "
              f"{release_log.LOG}; the rest is checked "
              "when they are whole", file=sys.stderr)  # fmt: skip
        return EXIT_STORAGE
    if wrong:
        return EXIT_FAILED
    names = store.cells()
    missing = len(set(study_folder.list_cells(store)) - set(names))
    more = f"; {missing} cells have no record yet" if missing else ""
    old = len(list_old(names))
    more += f"; {old} with names of the old form" if old else ""
    print(f"{len(names)} records whole, contents, ledger and table as they should be{more}")
    return EXIT_OK


def contents(store: Snapshot) -> list[str]:
    """Records whose rows are not those that their digest was taken of, or not their file's."""
    found = []
    for cell in store.cells():
        rows = store.read(cell) or []
        if any(row["cell"] != cell for row in rows):
            found.append(f"{store.path(cell)}: holds another cell's rows")
        elif store.digest(cell) != content_digest(rows):
            found.append(f"{store.path(cell)}: its rows are not those of its content digest")
    return found


def rebuild_ledger(store: Snapshot) -> kept_ledger.LedgerState:
    """Records, log and ledger against the events, added up again."""
    names = list(dict.fromkeys([*study_folder.list_cells(store), *store.cells()]))
    return kept_ledger.state(store, names, Accounting())


def check_table(store: Snapshot) -> list[str]:
    """The table, where the study is finished, against the one that its records make."""
    names = study_folder.list_cells(store)
    path = store.out / "table.csv"
    written = read_bytes(path)
    if written is None or any(store.state(cell) != "whole" for cell in names):
        return []
    records = store.read_all(names)
    about = experiment_tables.read_about(store.read_manifest() or {})
    if about is None:
        made = summary_table.csv_text(summarise(records))
    else:
        made = experiment_tables.format_tables(records, about)["csv"]
    if written == made.encode():
        return []
    return [f"{path}: is not the table of these records; `dperm report` makes that one"]
