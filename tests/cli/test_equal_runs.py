"""Equal runs leave equal files, whether their cells were computed or looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from dperm_cli.results.records.schema import COLUMNS
from dperm_cli.results.records.store import Store

TIMES = {column.name for column in COLUMNS if column.role == "diagnostic"}
# one that learns something, one that does not at the small epsilon, and one that is unsupported
STUDY = [
    "run", "-m", "mechanism=noisy_gd,frank_wolfe", "epsilon=0.01,8",
    "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2", "dataset.n_test=10", "ridge=0.1",
    "trials=3",
]  # fmt: skip


def read_files(folder: str) -> dict[str, bytes]:
    """Every file of a study, by its name."""
    root = Path(folder)
    found = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def read_results(folder: str) -> dict[str, object]:
    """Every file of a study, and of records their rows without the times that cells took."""
    found: dict[str, object] = dict(read_files(folder))
    store = Store(folder)
    for cell in store.cells():
        rows = store.read(cell) or []
        plain = [{name: row[name] for name in row if name not in TIMES} for row in rows]
        found[f"records/{cell}.parquet"] = repr(plain)
    return found


def run_first(dperm) -> dict[str, object]:
    """The files of a first run; looking its cells up and a report leave every byte of them."""
    assert dperm(*STUDY, "out=first").code == 0
    first = read_files("first")
    assert {"manifest.json", "report.html", "table.md", "ledger.json"} <= set(first)
    assert dperm(*STUDY, "out=first").code == 0
    assert read_files("first") == first, "all cells looked up"
    assert dperm("report", "first").code == 0
    assert read_files("first") == first, "reported again"
    return read_results("first")


def test_no_byte_depends_on_how_a_cell_was_had(dperm):
    expected = run_first(dperm)
    half = [word.replace("epsilon=0.01,8", "epsilon=8") for word in STUDY]
    assert dperm(*half, "out=half").code == 0
    assert dperm(*STUDY, "out=half", "format=json").code == 0
    assert read_results("half") == expected, "half of the cells looked up"
    assert dperm(*STUDY, "out=half", "force=true").code == 0
    assert read_results("half") == expected, "all cells computed again"


@pytest.mark.slow
def test_nor_on_the_number_of_workers(dperm, figures):
    """With figures, which the tests above leave out, as they take seconds."""
    expected = run_first(dperm)
    assert any(name.endswith(".png") for name in expected)
    assert dperm(*STUDY, "out=two", "workers=2").code == 0
    assert read_results("two") == expected


def test_a_page_does_not_say_where_it_was_made(dperm, tmp_path):
    """What no result depends on is in no file: the folder, the workers, what was printed."""
    assert dperm(*STUDY[:1], *STUDY[4:], "out=a-folder-of-mine", "save=kept-model.npz").code == 0
    for name, content in read_files("a-folder-of-mine").items():
        assert b"a-folder-of-mine" not in content, name
        assert b"kept-model" not in content, name
