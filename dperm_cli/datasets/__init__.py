"""Data sets, one file each: each yields a Data object whose bounds are declared, not measured."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry


def __getattr__(name: str) -> Any:
    return registry.find_class("dataset", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.list_classes("dataset")})
