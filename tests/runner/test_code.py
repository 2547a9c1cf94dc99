"""Which sources a record's code digest follows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli.runner.cells import record_digest

HERE = Path(dperm_cli.__file__).parent


def digest(folder, monkeypatch):
    monkeypatch.setattr(record_digest.dperm_cli, "__file__", str(folder / "__init__.py"))
    return record_digest.code_digest.__wrapped__()


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("runner/cells/run_cell.py", True), ("runner/cells/kernel_cells.py", True),
        ("runner/cells/channel_rows.py", True), ("runner/cells/geometry_rows.py", True),
        ("runner/verbs/account.py", True), ("loops/sgd.py", True),
        ("mechanisms/gradient/noisy_gd.py", True), ("core/progress.py", False),
        ("results/tables/summary_table.py", False), ("runner/sweep/progress.py", False),
    ],
)  # fmt: skip
def test_a_changed_source_is_other_code_if_it_makes_records(name, decides, tmp_path, monkeypatch):
    copy = tmp_path / "dperm_cli"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = digest(copy, monkeypatch)
    with (copy / name).open("a") as source:
        source.write("\n")
    assert (digest(copy, monkeypatch) != before) == decides
