"""The report: made from the store alone, the same twice, honest about gaps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import write_report
from dperm_cli.results.study_files import CAPTION
from tests.results.conftest import refused, stored, study_rows, trial_rows
from tests.results.html_study import Adding

TABLES = ("table.csv", "table.md", "table.tex")
WRITTEN = (*TABLES, "ledger.json", "report.html", CAPTION, "figure.png")


def test_everything_is_written_and_written_alike_again(tmp_path):
    store = stored(tmp_path, study_rows())
    first = write_report(tmp_path, Adding())
    before = {name: (tmp_path / name).read_bytes() for name in WRITTEN}
    again = write_report(str(tmp_path), Adding())
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert (again.text, again.summary) == (first.text, first.summary)
    assert sorted(map(os.path.basename, first.files)) == sorted(before)
    assert [row["cell"] for row in first.summary] == store.read_manifest()["cells"]
    assert first.broken == ()


def test_gaps_are_named(tmp_path):
    store = stored(tmp_path, [*trial_rows("a"), *trial_rows("b"), *trial_rows("c")])
    store.path("a").unlink()
    store.path("b").write_bytes(b"PAR1")
    found = write_report(tmp_path, Adding(), figures=False)
    assert found.broken == ("b",)
    assert [row["cell"] for row in found.summary] == ["c"]
    assert "unfinished: 1 of 3 cells" in found.text
    assert f"broken record, to be recomputed: {store.path('b')}" in found.text
    assert not (tmp_path / "figure.png").exists()


def test_records_of_other_studies_in_the_folder_stay_out(tmp_path):
    stored(tmp_path, trial_rows("a"))
    Store(tmp_path).write("b", trial_rows("b"))
    assert [row["cell"] for row in write_report(tmp_path, Adding(), figures=False).summary] == ["a"]


def test_an_old_figure_does_not_outlive_its_data(tmp_path):
    stored(tmp_path, trial_rows("a"))
    write_report(tmp_path, Adding())
    write_report(tmp_path, Adding(), formats=("pdf",))
    assert {path.name for path in tmp_path.glob("figure*")} == {"figure.png", "figure.pdf", CAPTION}
    stored(tmp_path, [refused("u")])
    found = write_report(tmp_path, Adding())
    assert not list(tmp_path.glob("figure*"))
    assert "no figure" in found.text
    assert "no pure guarantee" in found.text


def test_a_folder_without_a_study_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="out="):
        write_report(tmp_path / "nowhere", Adding())
    assert not (tmp_path / "nowhere").exists()


def test_a_table_that_cannot_be_written_names_its_path(tmp_path):
    stored(tmp_path, trial_rows("a"))
    (tmp_path / "table.md").mkdir()
    with pytest.raises(StorageError, match=r"table\.md"):
        write_report(tmp_path, Adding(), figures=False)


def test_the_room_knows_records_only_and_imports_nothing_heavy():
    code = (
        "import sys, dperm_cli.results.report, dperm_cli.results.records.manifest\n"
        "rooms = ('mechanisms', 'problem', 'privacy', 'runner', 'bounds', 'loops', 'losses',"
        " 'sets', 'datasets', 'solvers', 'kernels', 'samplers', 'views', 'audit')\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in"
        " ('matplotlib', 'pyarrow', 'pandas', 'hydra', 'scipy')]\n"
        "bad += [m for m in sys.modules for r in rooms if m.startswith('dperm_cli.' + r)]\n"
        "print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
