"""The README: short, two doors, one figure, and Python that runs; its table and counts are tested
in ``tests/results/test_pictures.py`` and ``tests/theory/test_errata_page.py``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.doors import tutorials
from tests.structure import commands

PAGE = (commands.ROOT / "README.md").read_text()
MOST_LINES = 120
DOORS = ("Release one private model from your table", "Compare mechanisms, reproduce papers")


def test_it_is_short():
    assert len(PAGE.splitlines()) <= MOST_LINES
    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)
    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert long == []


def test_it_begins_with_the_commands_and_has_two_doors():
    first = [command.line.partition(" #")[0].strip() for command in commands.list_commands(PAGE)]
    assert first[:3] == ["make run", "make test", "pip install ."]
    assert tuple(re.findall(r"^## (.*)$", PAGE, re.M)[:2]) == DOORS


def test_make_run_ends_with_how_to_reach_dperm(tmp_path):
    """With a program that does nothing in the place of dperm."""
    folder = tmp_path / "env/bin"
    folder.mkdir(parents=True)
    (folder / "dperm").write_text("#!/bin/sh\n")
    (folder / "dperm").chmod(0o755)
    (tmp_path / "env/.run").touch()
    words = ["make", "-s", "-C", str(commands.ROOT), "run", f"VENV={tmp_path / 'env'}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    last = done.stderr.splitlines()[-1]
    assert f". {folder}/activate" in last
    assert "pip install ." in last
    assert ". .venv/bin/activate" in PAGE


def test_it_has_one_figure_and_four_lines_of_python():
    assert re.findall(r"!\[.*?\]\((.*?)\)", PAGE) == ["docs/first_run.png"]
    (code,) = list_python()
    assert len([line for line in code.splitlines() if line.strip()]) == 4


def test_every_page_of_the_documentation_can_be_reached_from_it():
    reached, new = set(), {commands.ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        links = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())
        found = {(page.parent / link).resolve() for link in links}
        new |= {path for path in found if path.exists()} - reached
    assert {page.name for page in commands.ROOT.glob("docs/*.md") if page not in reached} == set()


@pytest.mark.slow
def test_its_python_runs(tmp_path):
    (code,) = list_python()
    given = tutorials.make_environment(tmp_path)
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r"noisy_gd|objective_perturbation", done.stdout)) == 4


def list_python() -> list[str]:
    return [content for language, content in commands.read_blocks(PAGE) if language == "python"]
