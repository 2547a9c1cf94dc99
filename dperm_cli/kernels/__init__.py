"""Kernels: one plug-in per file, and the finite feature maps that stand for them."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry


def __getattr__(name: str) -> Any:
    return registry.find_class("kernel", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.list_classes("kernel")})
