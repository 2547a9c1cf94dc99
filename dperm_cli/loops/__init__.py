"""Compiled loops: counter-based Gaussians and the n^2-step stochastic gradient loop.

``from dperm_cli.loops import sgd`` outside this room imports the file, and numba with it, when
something of ``sgd`` is first asked for: what only plans, counts or looks up runs no loop.
"""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dperm_cli.core import private_folders

# before any file of this room imports numba
KEEPS_CODE = private_folders.settle_numba(Path(__file__).parent)
# files without numba
_LIGHT = ("arguments", "noise_ranges", "record_parts", "sealed_noise", "thread_count")
_FILES = {path.stem for path in Path(__file__).parent.glob("*.py")} - {"__init__", *_LIGHT}


class _Later(ModuleType):
    """A file of this room that stands for itself until it is imported, and passes all on to it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(importlib.import_module(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__name__))


@cache
def _later(name: str) -> ModuleType:
    return _Later(f"{__name__}.{name}")


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # files of this room import each other at once: numba has to see the modules themselves
    if any(f"{__name__}.{file}" in sys.modules for file in _FILES):
        return importlib.import_module(f"{__name__}.{name}")
    return _later(name)
