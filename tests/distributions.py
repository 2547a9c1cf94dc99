"""What a built wheel and sdist hold, and that nothing is in them that does not belong there.

python -m tests.distributions dist     the folder of both; a line a fault, exit 1
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

# Beginnings of names; {v} is the version.
IN_WHEEL = ("dperm_cli/", "dperm-{v}.dist-info/")
NEEDED_IN_WHEEL = (
    "dperm_cli/cli.py", "dperm_cli/conf/config.yaml", "dperm_cli/core/help_pages/run.txt",
    "dperm_cli/datasets/shared/embedded/LICENSE.txt", "dperm-{v}.dist-info/licenses/LICENSE",
    "dperm-{v}.dist-info/entry_points.txt",
)  # fmt: skip
NEEDED_IN_SDIST = (
    "pyproject.toml", "constraints.txt", "Makefile", "README.md", "CHANGELOG.md", "CITATION.cff",
    "LICENSE", "SECURITY.md", "conf/config.yaml", "tests/conftest.py", "docs/architecture.md",
)  # fmt: skip
FORBIDDEN = ("__pycache__", ".pyc", ".DS_Store", ".venv", ".git/", "outputs/")
MOST_BYTES = 20 << 20  # of either file


def find_faults(names: Iterable[str], needed: Iterable[str], begins: tuple[str, ...]) -> list[str]:
    """What is missing from an archive, or does not belong there.

    Args:
        names: The names of its files.
        needed: Names that have to be there.
        begins: How the names of all files begin.

    Returns:
        A line a fault.
    """
    there = [name for name in names if not name.endswith("/")]
    missing = [f"{name} is missing" for name in needed if name not in there]
    foreign = [
        f"{name} does not belong there"
        for name in there
        if not name.startswith(begins) or any(part in name for part in FORBIDDEN)
    ]
    return missing + foreign


def check_wheel(path: Path, version: str) -> list[str]:
    """The faults of a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    needed, begins = (
        tuple(name.format(v=version) for name in some) for some in (NEEDED_IN_WHEEL, IN_WHEEL)
    )
    return find_faults(names, needed, begins) + _check_size(path)


def check_sdist(path: Path, version: str) -> list[str]:
    """The faults of an sdist, whose files are in one folder."""
    top = f"dperm-{version}/"
    with tarfile.open(path) as archive:
        names = [member.name for member in archive if member.isfile()]
    needed = [top + name for name in NEEDED_IN_SDIST]
    return find_faults(names, needed, (top,)) + _check_size(path)


def _check_size(path: Path) -> list[str]:
    size = path.stat().st_size
    return [f"{path.name} has {size} bytes"] if size > MOST_BYTES else []


def main(folder: Path) -> int:
    """Check the one wheel and the one sdist of a folder; the exit code."""
    from dperm_cli import __version__

    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    faults = [
        f"{len(found)} files in place of one" for found in (wheels, sdists) if len(found) != 1
    ]
    for path in wheels:
        faults += check_wheel(path, __version__)
    for path in sdists:
        faults += check_sdist(path, __version__)
    print("\n".join(faults) or f"{wheels[0].name} and {sdists[0].name} hold what they should")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
