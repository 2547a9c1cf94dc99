"""The licences of all packages that dperm needs, as those packages declare them.

python -m tests.licences > docs/licences.md     the page, from the packages of this environment
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    "dask",
    "onnx",
    "rigorous",
    "sklearn",
    "slurm",
)  # what users install; dev and docs are no part of it
# Licences that let a user pass dperm and its packages on, also in a closed program.
ALLOWED = {
    "0BSD", "3-Clause BSD License", "Apache 2.0", "Apache License v2.0", "Apache Software License",
    "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD 3-Clause", "BSD License",
    "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MIT License", "MIT-0", "MIT-CMU", "PSF-2.0",
    "Python Software Foundation License", "Zlib",
    # of shared libraries inside python-flint, which comes with an extra only: a user may replace
    # them, and a program that calls them stays under its own licence
    "LGPL-3.0-or-later",
}  # fmt: skip
_LONGEST = 60  # characters of a licence's name; what is longer is its text
HEAD = """# Licences

dperm is under the MIT licence. The data files that it ships are those of scikit-learn, under
BSD-3-Clause. The packages below come with it, or with one of its extras, when it is installed. Each
line has what the package itself declares. `make licences` writes this page, and a test compares it
with the packages that are installed.

| package | licence | comes with |
|---|---|---|
"""


def normalise(name: str) -> str:
    """A package's name in the one form that indexes use.

    >>> normalise("Hydra_core")
    'hydra-core'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def find_packages(extras: Iterable[str] = EXTRAS) -> dict[str, str]:
    """Names of all packages that dperm needs, each with the extra that it comes with, or "".

    A package that the environment does not have is there by its name; what it needs is not known.
    """
    found: dict[str, str] = {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra in ("", *extras):
        waiting = [Requirement(line) for line in asked[extra]]
        seen: set[str] = set()
        while waiting:
            needed = waiting.pop()
            name = normalise(needed.name)
            mark = f"{name}{sorted(needed.extras)}"
            if mark not in seen:
                seen.add(mark)
                found.setdefault(name, extra)
                waiting += _list_needs(name, needed.extras)
    return dict(sorted(found.items()))


def _list_needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for needed in map(Requirement, lines):
        marks = [{"extra": extra} for extra in ("", *extras)]
        if needed.marker is None or any(map(needed.marker.evaluate, marks)):
            yield needed


def read_licence(name: str) -> str:
    """What a package declares: the expression, else the short name, else the classifier."""
    said = metadata.metadata(name)
    short = (said.get("License") or "").strip()
    classifiers = [line for line in said.get_all("Classifier") or [] if "License ::" in line]
    if said.get("License-Expression"):
        return said["License-Expression"]
    if short and "\n" not in short and len(short) <= _LONGEST and "Copyright" not in short:
        return short
    if classifiers:
        return classifiers[0].rpartition(" :: ")[2]
    return "not declared"


def list_terms(licence: str) -> list[str]:
    """The licences of an expression; one of several that a user may choose from will do.

    >>> list_terms("BSD-3-Clause AND (MIT OR Zlib)")
    ['BSD-3-Clause', 'MIT', 'Zlib']
    """
    return [part.strip(" ()") for part in re.split(r" AND | OR ", licence)]


def write_page() -> str:
    """The page of all licences, in Markdown."""
    rows = [
        f"| {name} | {read_licence(name)} | {f'extra `{extra}`' if extra else 'dperm'} |"
        for name, extra in find_packages().items()
        if _is_installed(name)
    ]
    return HEAD + "\n".join(rows) + "\n"


def _is_installed(name: str) -> bool:
    return any(metadata.Distribution.discover(name=name))


if __name__ == "__main__":
    print(write_page(), end="")
