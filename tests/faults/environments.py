"""Environments of the fault matrix: each Python that is installed, with old and new libraries.

``python -m tests.faults.environments [--short]`` makes those that are missing below
``.venv-faults``. Beside one that cannot be made stands the reason, in ``NAME.why``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / ".venv-faults"
PYTHONS = ("3.11", "3.12", "3.13")
# The lowest releases that pyproject.toml allows and that are built for the Python, or the newest.
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
EVERY = tuple((python, libraries) for python in PYTHONS for libraries in RESOLUTIONS)
# The one that CI makes beside its own, which has the versions of constraints.txt.
SHORT = (("3.13", "lowest"),)
# OmegaConf needs this one, of which there are only sources.
FROM_SOURCES = "antlr4-python3-runtime"


class CannotMake(Exception):
    """Why there is no such environment."""


def name_environment(python: str, libraries: str) -> str:
    return f"{python}-{libraries}"


def find_environment(python: str, libraries: str) -> Path:
    """The interpreter of an environment.

    Args:
        python: One of ``PYTHONS``.
        libraries: One of ``RESOLUTIONS``.

    Raises:
        CannotMake: It was not made; the text says why.
    """
    folder = FOLDER / name_environment(python, libraries)
    why = folder.with_name(folder.name + ".why")
    if why.is_file():
        raise CannotMake(why.read_text().strip())
    if not (folder / "made").is_file():
        raise CannotMake("its environment was not asked for: `make faults` makes it")
    return folder / "bin" / "python"


def find_python(version: str) -> Path:
    """An interpreter of this version that runs: on the PATH, or among those of pyenv.

    Raises:
        CannotMake: None is installed.
    """
    for path in _list_candidates(version):
        asked = [str(path), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=60)
        if found.returncode == 0 and found.stdout.strip() == version:
            return path
    raise CannotMake(f"no Python {version} is installed")


def _list_candidates(version: str) -> Iterator[Path]:
    yield Path(sys.executable)
    for folder in os.get_exec_path():
        if (path := Path(folder) / f"python{version}").is_file():
            yield path
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)


def make_environment(python: str, libraries: str, uv: Path) -> None:
    """Make an environment, unless there is one from the same ``pyproject.toml``.

    Raises:
        CannotMake: The Python is not here, or a library cannot be installed.
    """
    folder = FOLDER / name_environment(python, libraries)
    project = REPOSITORY / "pyproject.toml"
    stamp = hashlib.sha256(project.read_bytes()).hexdigest()
    if (folder / "made").is_file() and (folder / "made").read_text() == stamp:
        return
    shutil.rmtree(folder, ignore_errors=True)
    run([uv, "venv", "-q", "--python", find_python(python), folder])
    install = [uv, "pip", "install", "-q", "--python", folder / "bin" / "python"]
    run([
        *install, "--resolution", RESOLUTIONS[libraries], "--prerelease", "disallow",
        "--only-binary", ":all:", "--no-binary", FROM_SOURCES, "-r", project,
    ])  # fmt: skip
    run([*install, "pytest", "hypothesis"])
    (folder / "made").write_text(stamp)


def make_uv() -> Path:
    """The installer that can take the lowest releases, in an environment of its own.

    Raises:
        CannotMake: No package index can be reached.
    """
    tools = FOLDER / "tools"
    if not (tools / "bin" / "uv").is_file():
        run([sys.executable, "-m", "venv", tools])
        run([tools / "bin" / "python", "-m", "pip", "install", "-q", "uv"])
    return tools / "bin" / "uv"


def run(words: Sequence[str | Path]) -> None:
    """Run a program; its last line on stderr is the reason where it fails.

    Raises:
        CannotMake: It fails, or takes longer than ten minutes.
    """
    try:
        made = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        raise CannotMake("the package index does not answer") from None
    if made.returncode:
        lines = [line.strip() for line in made.stderr.splitlines() if line.strip()]
        raise CannotMake(lines[-1] if lines else f"{Path(words[0]).name} failed without a word")


def main(words: Sequence[str]) -> None:
    """Make all environments, or those of ``SHORT``; one that cannot be made is said and noted."""
    FOLDER.mkdir(exist_ok=True)
    for python, libraries in SHORT if "--short" in words else EVERY:
        name = name_environment(python, libraries)
        why = FOLDER / f"{name}.why"
        why.unlink(missing_ok=True)
        try:
            make_environment(python, libraries, make_uv())
            print(f"{name}: made", file=sys.stderr)
        except CannotMake as error:
            why.write_text(f"{error}\n")
            print(f"{name}: not made: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
