"""Constraint sets: one file each."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry
from dperm_cli.sets.l2_ball import L2Ball


def make_ball(radius: float, p: int) -> Any:
    """{theta in R^p : |theta|_2 <= radius}, for those whose theorem is about it."""
    return L2Ball(radius, p)


def __getattr__(name: str) -> Any:
    return registry.find_class("constraint", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.list_classes("constraint")})
