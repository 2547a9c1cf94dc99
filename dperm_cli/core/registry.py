"""The plug-in registry is the folder listing: adding a file adds a plug-in.

A room is a package such as ``mechanisms`` or ``problem.losses``. Every module in it whose
name does not begin with an underscore defines one public class, the camel-case form of
the module's name (``noisy_sgd`` -> ``NoisySgd``).
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from dperm_cli.core.errors import InputError

ROOMS = {
    "dataset": "problem.datasets",
    "loss": "problem.losses",
    "constraint": "problem.constraints",
    "mechanism": "mechanisms",
    "sampler": "samplers",
    "kernel": "problem.kernels",
}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@cache
def names(room: str) -> tuple[str, ...]:
    """The plug-in names of a room, without importing any of them."""
    folder = os.path.join(_PACKAGE, *ROOMS[room].split("."))
    found = (f[:-3] for f in os.listdir(folder) if f.endswith(".py") and not f.startswith("_"))
    return tuple(sorted(found))


def load(room: str, name: str) -> type[Any]:
    """The class behind a name of a room; InputError names the nearest one."""
    if name not in names(room):
        raise InputError(room, name, f"must be one of {', '.join(names(room))}", names(room))
    module = importlib.import_module(f"dperm_cli.{ROOMS[room]}.{name}")
    return getattr(module, class_name(name))


def protective() -> tuple[str, ...]:
    """The mechanisms that can promise something; others are baselines with guarantee none."""
    found = names("mechanism")
    return tuple(name for name in found if load("mechanism", name).guarantees != ("none",))


def class_name(name: str) -> str:
    """``noisy_sgd`` -> ``NoisySgd``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
