"""The public Python interface. What is heavy is imported when a name is first asked for."""

from __future__ import annotations

import importlib
from typing import Any

from dperm_cli.core.public_names import PLACES


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, word = PLACES[name].partition(":")
    return getattr(importlib.import_module(module), word or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})
