"""A digest of the code that decides what a record holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import dperm_cli
from dperm_cli.core.digests import hash_sources

# Rooms whose change may change a record; tables and figures are made anew from records.
ROOMS = (
    "core", "loops", "privacy", "problem", "losses", "sets", "datasets", "solvers", "kernels",
    "samplers", "views", "mechanisms", "bounds",
)  # fmt: skip
# files in these rooms that only affect help, completion and progress
IGNORED_FILES = ("core/catalogue.py", "core/completion.py", "core/help.py", "core/progress.py")
FILES = (
    "runner/verbs/account.py", "runner/cells/run_cell.py", "runner/cells/channel_rows.py",
    "runner/cells/geometry_rows.py", "runner/cells/kernel_cells.py", "runner/cells/metrics.py",
)  # fmt: skip


@cache
def code_digest() -> str:
    """Hex digest of the sources: records of other code are never mixed with this code's."""
    root = Path(dperm_cli.__file__).parent
    paths = [root / name for name in FILES]
    for room in ROOMS:
        paths += sorted((root / room).rglob("*.py"))
    decides = (path for path in paths if path.relative_to(root).as_posix() not in IGNORED_FILES)
    return hash_sources(decides, root, size=10)
