"""List the entry points for plug-ins of installed packages; none is imported."""

from __future__ import annotations

import os
import sys
from typing import Any

from dperm_cli.core.plugin_files import ENTRY_POINTS

_MOST_BYTES = 1 << 20  # of a package's entry points that are read
_unreadable: set[str] = set()  # where packages are that this process has told of


def list_entry_points() -> tuple[Any, ...]:
    """The entry points of all installed packages in the groups of ``ENTRY_POINTS``."""
    folders = [folder for folder in sys.path if _offers_plugins(folder)]
    if not folders:
        return ()
    from importlib.metadata import distributions  # takes longer than all the rest

    found = {
        (point.group, point.name, point.value, package.name): point
        for package in distributions(path=folders)
        for point in _read_entry_points(package)
        if point.group in ENTRY_POINTS
    }
    return tuple(found[key] for key in sorted(found))


def _read_entry_points(package: Any) -> tuple[Any, ...]:
    """The entry points of a package; none, and a line on stderr, where its files are no text."""
    try:
        if not package.name:
            raise ValueError("a package without a name")
        return tuple(package.entry_points)
    except Exception as error:  # whatever the files of a stranger make the parser raise
        place = str(package.locate_file(""))
        if place not in _unreadable:
            _unreadable.add(place)
            words = f"entry points of a package there cannot be read ({type(error).__name__})"
            print(f"dperm: package={place}: {words}; they are left out", file=sys.stderr)
        return ()


def _offers_plugins(folder: str) -> bool:
    """Whether a package that is installed in a folder has entry points for plug-ins.

    The working folder is none where packages are installed, though ``python -m`` imports from it.
    """
    if not folder or os.path.realpath(folder) == os.getcwd():
        return False
    try:
        names = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(_mentions_plugins(os.path.join(folder, name)) for name in names)


def _mentions_plugins(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return b"dperm." in file.read(_MOST_BYTES)
    except OSError:
        return False


def find_package(point: Any) -> str:
    """The name of the installed package that an entry point is of."""
    return point.dist.name if point.dist is not None else point.value.partition(":")[0]
