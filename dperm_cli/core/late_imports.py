"""Load modules that libraries import and hardly ever use when something is taken from them.

SciPy looks through all of NumPy when it is imported, also at NumPy's compiler of Fortran and at its
test helpers; matplotlib imports a table of glyph names for figures in TeX. A small run has no use
for any of them, and would spend a tenth of its time on them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

LATE = ("numpy.f2py", "numpy.testing", "fontTools.agl")


class _LateFinder:
    """Finds the modules of ``LATE``, with a loader that waits until they are used."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python's own finder; None for every other module."""
        if name not in LATE:
            return None
        from importlib.util import LazyLoader

        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def load_late() -> None:
    """From now on, load the modules of ``LATE`` when they are used: for a process of dperm's own.

    A process that imports dperm as a library is left as it is.
    """
    if _LateFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LateFinder)
