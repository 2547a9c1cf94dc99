"""``dperm budget``: open a budget for a group of people, and see what was spent of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands, refuse_repeated
from dperm_cli.results.records.schema import json_lines
from dperm_cli.runner.models import budget_ledger
from dperm_cli.runner.models.budget_request import create_budget

ACTIONS = ("create", "show", "list")
KEYS = ("epsilon", "delta", "relation", "rule", "kept_share", "format")


def budget(arguments: list[str]) -> int:
    """``dperm budget create NAME epsilon=3 delta=1e-6 | show NAME | list``."""
    words = Syntax(keys=KEYS).split(arguments)
    action, *names = words.operands or ("",)
    checks.choice("budget", action, ACTIONS)
    if len(names) != (0 if action == "list" else 1):
        allowed = f"write dperm budget {action}" + ("" if action == "list" else " NAME")
        raise refuse_operands("budget", words.operands, allowed)
    form = words.choose("format", FORMATS)
    if action != "create":
        checks.known_keys(words.settings, ("format",))
    if action == "create":
        refuse_repeated(arguments)
        _create(names[0], words.settings)
        rows = [_describe(budget_ledger.read_budget(names[0]))]
    elif action == "list":
        found = map(budget_ledger.read_budget, budget_ledger.list_budgets())
        rows = [_describe(one) for one in found]
    else:
        whole = budget_ledger.read_budget(names[0])
        if form == "table":
            print(_table([_describe(whole)]))
            print()
        rows = [_describe_entry(entry) for entry in whole.entries]
        if form == "json":
            rows = [_describe(whole), *rows]
    if rows:
        print(json_lines(rows) if form == "json" else _table(rows))
    elif form == "table":
        told = "no release yet" if names else f"no budgets in {budget_ledger.find_folder()}"
        print(told)
    return EXIT_OK


def _create(name: str, given: Any) -> None:
    if "epsilon" not in given:
        raise InputError("epsilon", None, "must be given: what all releases together may spend")
    numbers = ("epsilon", "delta", "kept_share")
    values = {key: _number(word) if key in numbers else word for key, word in given.items()
              if key != "format"}  # fmt: skip
    create_budget(name, **values)


def _number(text: str) -> Any:
    value = number_in(text)
    return text if value is None else value


def _describe(found: budget_ledger.Budget) -> dict[str, Any]:
    rule = found.rule
    return {
        "budget": found.name,
        "epsilon": rule.epsilon,
        "delta": rule.delta,
        "relation": rule.relation,
        "rule": rule.rule,
        "opened": found.opened,
        "releases": len(found.entries),
        "unfinished": sum(not entry.finished for entry in found.entries),
        "largest_pure_epsilon": 0.0 if rule.rule == "gaussian" else rule.largest_pure(found.spends),
        "largest_gaussian_mu": rule.largest_gaussian(found.spends),
    }


def _describe_entry(entry: budget_ledger.Entry) -> dict[str, Any]:
    spend = entry.spend
    return {
        "when": entry.when,
        "who": entry.who,
        "what": entry.what,
        "mechanism": entry.mechanism,
        "epsilon": spend.epsilon,
        "delta": spend.delta,
        "mu": spend.mu,
        "state": "released" if entry.finished else "reserved",
        "place": entry.place,
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(rows[0])
    lines = [[_format_cell(row[name]) for name in columns] for row in rows]
    widths = [max(len(name), *(len(line[k]) for line in lines)) for k, name in enumerate(columns)]
    head = "  ".join(name.ljust(width) for name, width in zip(columns, widths, strict=True))
    body = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines)  # fmt: skip
    return "\n".join(line.rstrip() for line in (head, *body))


def _format_cell(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
