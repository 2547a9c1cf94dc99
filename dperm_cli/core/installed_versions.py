"""Find the versions of installed packages by the names of their folders, which takes no time.

``importlib.metadata`` reads the same from a file, and imports a tenth of what a small run needs.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache

_ENDING = ".dist-info"


@cache
def find_version(package: str) -> str | None:
    """The installed version of a package, which is not imported; None where it is not installed.

    Args:
        package: Its name, such as ``hydra-core``.
    """
    begin = re.sub("[-_.]+", "_", package).lower() + "-"
    for folder in sys.path:
        for name in _list_names(folder):
            if name.endswith(_ENDING) and name.lower().startswith(begin):
                return name[len(begin) : -len(_ENDING)]
    from importlib import metadata  # for what is installed in another form

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _list_names(folder: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))
    except (OSError, TypeError):  # an archive, or nothing that is a path
        return ()
