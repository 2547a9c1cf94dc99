"""Budgets that releases share: opened and read from Python as by ``dperm budget``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dperm_cli.core import checks
from dperm_cli.privacy.accounting.budget_filter import KEPT_SHARE, RULES, BudgetFilter
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.runner.models import budget_ledger


def create_budget(
    name: str,
    *,
    epsilon: Any,
    delta: Any = 0.0,
    relation: str = RELATIONS[0],
    rule: str | None = None,
    kept_share: Any = KEPT_SHARE,
    folder: Path | None = None,
) -> budget_ledger.Budget:
    """Open a budget for a group of people.

    Args:
        name: A word for the people.
        epsilon, delta: What all releases together may spend.
        relation: Of the budget.
        rule: How releases add up: ``pure``, ``gaussian`` or ``mixed``; None is ``pure`` without
            delta, else ``mixed``.
        kept_share: Of delta, kept for releases that are neither pure nor Gaussian.
        folder: Of ledgers; None is ``budgets``, or what ``DPERM_BUDGET_DIR`` names.

    Returns:
        The budget. ``read_budget`` reads it again after releases.

    Raises:
        InputError: There is such a budget, or a value makes no sense.
        StorageError: Its file cannot be written.
    """
    checks.choice("relation", relation, RELATIONS)
    if rule is not None:
        checks.choice("rule", rule, RULES)
    opened = BudgetFilter.open(
        checks.positive("epsilon", epsilon),
        checks.number("delta", delta, low=0.0, high=0.1),
        relation,
        rule,
        checks.number("kept_share", kept_share, low=0.0, high=0.9),
    )
    budget_ledger.create_budget(name, opened, folder)
    return budget_ledger.read_budget(name, folder)
