"""The public Python interface. What is heavy is imported when a name is first asked for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from dperm_cli.api.name_table import NAMES, ROOMS, list_names


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list_names()
    if name in ROOMS:
        return importlib.import_module(ROOMS[name])
    if name not in NAMES:
        raise AttributeError(f"module 'dperm_cli' has no attribute {name!r}")
    module, _, word = NAMES[name].partition(":")
    with warnings.catch_warnings():  # libraries add filters when they are imported
        return getattr(importlib.import_module(module), word or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *list_names()})
