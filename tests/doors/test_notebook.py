"""Each notebook of the repository: what it shows, and that it runs as a newcomer runs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.doors._doors import ROOT
from tests.structure import commands

FIRST = ROOT / "examples" / "first_study.ipynb"
MADE = ("build", "site", "outputs", "dist")  # by make docs and by runs
NOTEBOOKS = [
    path
    for path in sorted(ROOT.glob("[!.]*/**/*.ipynb"))
    if path.parent.name[0] != "." and path.relative_to(ROOT).parts[0] not in MADE
]
WORDS = ("load(", ".rank(", ".plot_ranks(", "(Mechanism)", "dperm_cli.audit(", 'theme="single"')
PAGES = ("README.md", "docs/api.md", "docs/plugins.md", "examples/plugins/README.md")
WIDTH = round(3.3 * 96)  # pixels of one column of a paper


def read(path: Path):
    import nbformat

    return nbformat.read(path, nbformat.NO_CONVERT)


def join_cells(notebook, kind: str) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == kind)


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """A call that runs a notebook in an empty folder, offline, with the package as in its wheel.

    It gives the notebook with its outputs, and the folder.
    """
    import nbclient

    wheel, home, folder = (tmp_path / name for name in ("wheel", "home", "empty"))
    for made in (wheel, home, folder):
        made.mkdir()
    commands.lay_out_wheel(wheel)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DPERM_") or "CACHE" in k}
    kept = {k: v for k, v in kept.items() if k != "MPLBACKEND"}
    given = {"PYTHONPATH": str(wheel), "DPERM_OFFLINE": "1", "IPYTHONDIR": str(home)}
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(home / name))  # neither kernels nor settings of the user

    def run(path: Path):
        where = {"metadata": {"path": str(folder)}}
        notebook = read(path)
        client = nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources=where, coalesce_streams=True
        )
        client.execute(env={**kept, **given})
        return notebook, folder

    return run


def test_the_notebook_shows_what_a_newcomer_needs():
    """Load, two plots at the width of a column, ranks, an own mechanism, an audit."""
    notebook = read(FIRST)
    code, prose = join_cells(notebook, "code"), join_cells(notebook, "markdown")
    assert [word for word in WORDS if word not in code] == []
    assert len(re.findall(r'study\.plot\([^)]*theme="single"', code)) == 2
    assert re.search(r"simulation, not a release", prose)
    assert re.search(r"its guarantee rests on its own proof", prose)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    """What it gives is made when it runs, so that nothing that is kept can be out of date."""
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert cells
    assert [cell.id for cell in cells if cell.outputs or cell.execution_count] == []


def test_every_notebook_is_run_by_a_test_of_this_file():
    assert NOTEBOOKS == [FIRST]


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_lead_to_it(page):
    links = re.findall(r"\]\(([^)#]+\.ipynb)\)", (ROOT / page).read_text())
    assert [(ROOT / page).parent.joinpath(link).resolve() for link in links] == [FIRST]


def list_widths(cell) -> list[int]:
    """How wide the images of a cell are shown, in pixels."""
    found = [out for out in cell.outputs if "image/png" in out.get("data", {})]
    return [out.metadata["image/png"]["width"] for out in found]


def find_outputs(cells, words: str):
    """What the one cell with these words gives."""
    (found,) = [cell.outputs for cell in cells if words in cell.source]
    return found


def test_the_first_study_runs_from_top_to_bottom(execute):
    notebook, folder = execute(FIRST)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell for cell in cells if cell.source.count(".plot") != len(list_widths(cell))] == []
    assert [width for cell in cells for width in list_widths(cell)] == [WIDTH] * 4
    # a study shows the columns that have room, and not all of them
    shown = find_outputs(cells, 'out="study"')[-1].data["text/html"]
    assert 48 < shown.count("<tr") < 60
    assert 4 < shown.count("<th style") < 12
    ranks = find_outputs(cells, "study.rank()")[0].data["text/plain"]
    for name in ("noisy_gd", "objective_perturbation", "one_pass_sgd"):
        assert re.search(rf"{name} +\S+ +16 ", ranks)  # four data sets at four levels
    assert find_outputs(cells, "report.passed")[0].data["text/plain"] == "True"
    said = [out for cell in cells for out in cell.outputs if out.output_type == "stream"]
    errors = "".join(out.text for out in said if out.name == "stderr")
    lines = [line.split("\r")[-1].strip() for line in errors.split("\n")]
    assert [line for line in lines if line and not re.match(r"\d+ cells: \d+ done, ", line)] == []
    assert sorted(path.name for path in folder.iterdir()) == ["study", "with_mine"]
    assert (folder / "study" / "risk.pdf").stat().st_size > 1000
