"""Samplers of exp(-f) on a convex set, and what each proves about the law of its draws."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry


def __getattr__(name: str) -> Any:
    return registry.find_class("sampler", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.list_classes("sampler")})
