"""Constraint sets: one file each."""

from __future__ import annotations

from typing import Any

from dperm_cli.sets.l2_ball import L2Ball


def make_ball(radius: float, p: int) -> Any:
    """{theta in R^p : |theta|_2 <= radius}, for those whose theorem is about it."""
    return L2Ball(radius, p)
