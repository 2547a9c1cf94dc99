"""Write the record of a private session before its first answer, so that a crash cannot lose it."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting.budget_filter import Spend
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.problem.data import Matrix
from dperm_cli.results.ledger import kept_ledger
from dperm_cli.results.ledger.release_log_lines import new_name
from dperm_cli.results.ledger.statement import SESSION
from dperm_cli.results.record_format import CodeIdentity
from dperm_cli.results.records.cell_claims import hold_ledger_lock
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.runner.cells import plugin_columns, run_cell
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.models import budget_ledger
from dperm_cli.runner.verbs.run import check_folder


class RecordedSession:
    """A session that spends nothing before its record lies in the folder ``out``.

    One that is asked nothing leaves nothing.

    Args:
        session: what answers.
        out: the folder of the record.
        row: the record.
        code: what wrote it.
        budget: what the session is counted under; None for no budget.
        spend: what it takes of the budget.
    """

    def __init__(
        self, session: Any, out: Path, row: dict[str, Any], code: CodeIdentity,
        budget: str | None = None, spend: Spend | None = None,
    ) -> None:  # fmt: skip
        check_folder(out)
        self._session, self._out, self._row, self._code = session, out, row, code
        self._budget, self._spend = budget, spend
        self._kept = False

    def ask(self, rows: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """The session's answers.

        Raises:
            StorageError: its record cannot be written, and nothing is answered.
            PrivacyError: it does not fit into its budget, or its answers are spent.
        """
        if not self._kept:
            self._keep()
            self._kept = True
        return self._session.ask(rows)

    def _keep(self) -> None:
        entry = ""
        if self._budget is not None and self._spend is not None:
            row = self._row
            what = f"session {row['release']}"
            entry = budget_ledger.reserve(
                self._budget, self._spend, row["relation"], row["mechanism"], what
            )
        write_record(self._out, self._row, self._code)
        if self._budget is not None:
            budget_ledger.finish(self._budget, entry, str(self._out))


def row(prepared: Prepared, plan: Plan, budget: Budget, found: Guarantee) -> dict[str, Any]:
    """What a session releases, as one record: a name of its own each time, and no seed."""
    common = run_cell.make_common_columns(prepared) | run_cell.plan_columns(plan, found)
    common["plugins"] = plugin_columns.add_uses(common, plan.events)
    return common | {
        "cell": f"session-{secrets.token_hex(10)}",
        "trial": 0,
        "trials": 1,
        "delta": budget.delta,
        "seed": None,
        "release": new_name(),
        "settings": dict(plan.settings) | {SESSION: True},
    }


def write_record(out: Path, found: dict[str, Any], code: CodeIdentity) -> None:
    """Write the record, then the ledger of all the folder's records.

    A ledger that contradicts these is left as it is, and said so: the record stands beside it.
    """
    store = Store(out)
    with hold_lease(out):
        store.write(found["cell"], [found], code=code)
        with hold_ledger_lock(out):
            stated = kept_ledger.state(store, store.cells(), Accounting())
            kept_ledger.write(store, stated)
    faults = [*stated.faults, *(f"releases may be missing: {gap}" for gap in stated.gaps)]
    if faults:
        print(f"dperm: the privacy ledger does not hold: {faults[0]}", file=sys.stderr)
    print(f"recorded in {out} as {found['cell']}", file=sys.stderr)
