"""The names that ``import dperm_cli`` offers, and the module that each is taken from.

Nothing is imported before a name is asked for. ``dperm_cli/__init__.pyi`` says the same to type
checkers (``type_stub.py`` writes it), and docs/api.md has an example of each.
"""

from __future__ import annotations

from dperm_cli.core import registry
from dperm_cli.core.public_names import PLACES

# What a reader calls, and what that gives.
CALLS = {
    "run": "dperm_cli.api.studies",
    "load": "dperm_cli.api.studies",
    "Study": "dperm_cli.api.studies",
    "plan": "dperm_cli.api.forecasts",
    "RiskForecast": "dperm_cli.api.forecasts",
    "plans": "dperm_cli.api.questions",
    "account": "dperm_cli.api.questions",
    "AccountTable": "dperm_cli.api.questions",
    "audit": "dperm_cli.api.questions",
    "audit_fit": "dperm_cli.api.foreign_claims",
    "FitAudit": "dperm_cli.api.foreign_claims",
    "check": "dperm_cli.audit.contracts.suite",
    "CheckReport": "dperm_cli.audit.contracts.suite",
    "AuditReport": "dperm_cli.api.questions",
    "describe": "dperm_cli.api.questions",
    "Description": "dperm_cli.api.questions",
    "load_data": "dperm_cli.api.problems",
    "make_problem": "dperm_cli.api.problems",
    "Problem": "dperm_cli.api.problems",
    "Optimum": "dperm_cli.solvers.optimum",
    "Guarantee": "dperm_cli.privacy.budget",
    "create_budget": "dperm_cli.runner.models.budget_request",
    "read_budget": "dperm_cli.runner.models.budget_ledger",
    "StudyComparison": "dperm_cli.api.studies",
    "Exponential": "dperm_cli.privacy.events",
    "SparseAnswers": "dperm_cli.privacy.events",
    # errors
    "DpermError": "dperm_cli.core.errors",
    "InputError": "dperm_cli.core.errors",
    "UnknownKey": "dperm_cli.core.errors",
    "PrivacyError": "dperm_cli.core.errors",
    "StorageError": "dperm_cli.core.errors",
}
# Losses and sets under their own names. Other plug-ins are in their rooms.
OBJECTS = {
    registry.class_name(name): f"dperm_cli.{registry.ROOMS[room]}.{name}"
    for room in ("loss", "constraint")
    for name in registry.list_shipped(room)
}
# Rooms that a reader looks into: ``dperm_cli.losses.Logistic``.
ROOMS = {
    "losses": "dperm_cli.losses",
    "sets": "dperm_cli.sets",
    "datasets": "dperm_cli.datasets",
    "kernels": "dperm_cli.kernels",
    "samplers": "dperm_cli.samplers",
    "mechanisms": "dperm_cli.mechanisms",
    "events": "dperm_cli.privacy.events",
    "channels": "dperm_cli.privacy.channels",
    "accountant": "dperm_cli.privacy.accounting.accountant",
}
NAMES = OBJECTS | PLACES | CALLS


def list_names() -> list[str]:
    """Every public name, sorted."""
    return sorted({*NAMES, *ROOMS})
