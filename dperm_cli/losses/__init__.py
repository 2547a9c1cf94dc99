"""Loss functions, one file each."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry


def __getattr__(name: str) -> Any:
    return registry.find_class("loss", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.list_classes("loss")})
