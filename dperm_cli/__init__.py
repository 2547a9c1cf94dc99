"""dperm: differentially private convex empirical risk minimization.

``run`` runs a study, ``load`` opens one, ``describe``, ``plans``, ``account`` and ``audit`` answer
what ``dperm describe``, ``dperm account`` and ``dperm audit`` do. docs/api.md has an example of
every name.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

TYPE_CHECKING = False  # as in typing, which takes a fifth of the time of `dperm --help` to import
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.6.0"
# The rooms are reached by `from dperm_cli.audit import ...`.
CALLS_NAMED_LIKE_ROOMS = ("audit",)


def _front() -> Any:
    return importlib.import_module(f"{__name__}.api")


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_front(), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_front().list_names()})


class _Package(ModuleType):
    """This package. A public call keeps its name, though a room of that name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in CALLS_NAMED_LIKE_ROOMS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
