"""dperm: differentially private convex empirical risk minimization.

``run`` runs a study, ``load`` opens one, ``describe``, ``plans``, ``account`` and ``audit`` answer
what ``dperm describe``, ``dperm account`` and ``dperm audit`` do. docs/api.md has an example of
every name.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.3.0"


def _front() -> Any:
    return importlib.import_module(f"{__name__}.api")


def __getattr__(name: str) -> Any:
    if name == "audit":  # the room of that name, which can be called
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_front(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_front().list_names()})


class _AuditRoom(ModuleType):
    """The room ``dperm_cli.audit``, which is also the function of that name."""

    def __call__(self, *overrides: Any, **keys: Any) -> Any:
        return _front().audit(*overrides, **keys)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return _front().audit.__annotations__


class _Package(ModuleType):
    """This package: whoever imports the room of audits first, ``audit`` can be called."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "audit" and type(value) is ModuleType:
            value.__class__ = _AuditRoom
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
