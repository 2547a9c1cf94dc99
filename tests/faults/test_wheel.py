"""The built wheel, installed on each Python with the least and the latest libraries.

In an empty folder the commands of the README and of the first tutorial run there, and the Python
that the README shows. Nothing of the repository is on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_page_commands import write_shown
from tests.faults.environments import (
    EVERY,
    FOLDER,
    FROM_SOURCES,
    REPOSITORY,
    RESOLUTIONS,
    CannotMake,
    find_python,
    make_uv,
    name_environment,
    run,
)
from tests.structure import commands

PAGES = ("README.md", "docs/tutorials/1_first_comparison.md")
ASK = "import dperm_cli, sys; print(dperm_cli.__file__); print('%d.%d' % sys.version_info[:2])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    try:
        run([sys.executable, "-m", "build", "-q", "--wheel", "--outdir", folder, REPOSITORY])
    except CannotMake as error:
        pytest.skip(f"the wheel cannot be built here: {error}")
    [made] = folder.glob("*.whl")
    return made


def install(wheel: Path, python: str, libraries: str, folder: Path) -> Path:
    """Install the wheel into an empty environment; the folder of its programs.

    Raises:
        CannotMake: The Python is not here, or a library cannot be installed.
    """
    uv = make_uv()
    run([uv, "venv", "-q", "--python", find_python(python), folder])
    run([
        uv, "pip", "install", "-q", "--python", folder / "bin" / "python",
        "--resolution", RESOLUTIONS[libraries], "--prerelease", "disallow",
        "--only-binary", ":all:", "--no-binary", FROM_SOURCES, wheel,
    ])  # fmt: skip
    return folder / "bin"


def list_programs(page: str) -> list[list[str]]:
    """What a page runs: its commands, and the Python that is not shown as a file."""
    shown = commands.list_files(page).values()
    programs = [["sh", "-c", line.typed] for line in commands.list_commands(page) if line.runs]
    python = [text for language, text in commands.read_blocks(page) if language == "python"]
    return programs + [["python", "-c", text] for text in python if text not in shown]


@pytest.mark.faults
@pytest.mark.parametrize(("python", "libraries"), EVERY)
def test_the_wheel_does_what_the_first_pages_show(python, libraries, wheel, tmp_path):
    FOLDER.mkdir(exist_ok=True)
    try:
        programs = install(wheel, python, libraries, tmp_path / name_environment(python, libraries))
    except CannotMake as error:
        pytest.skip(str(error))
    kept = ("LANG", "LC_ALL", "TMPDIR")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    given |= {"HOME": str(tmp_path / "home"), "DPERM_OFFLINE": "1"}
    given["PATH"] = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    (tmp_path / "home").mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()

    def call(words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=empty, env=given, capture_output=True, text=True, timeout=400
        )

    where, version = call(["python", "-c", ASK]).stdout.split()
    assert Path(where).is_relative_to(programs.parent)
    assert version == python
    failed = {}
    for name in PAGES:
        page = (REPOSITORY / name).read_text("utf-8")
        write_shown(page, empty)
        words = list_programs(page)
        assert len(words) >= 4
        ended = {made[-1]: call(made) for made in words}
        failed |= {line: one.stderr[-500:] for line, one in ended.items() if one.returncode}
    assert failed == {}
