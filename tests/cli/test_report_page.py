"""``report.html`` from the command line: written by a run and by a report, unless refused."""

from __future__ import annotations

from tests.results.html_study import embedded, rows_in

TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=2", "mechanism=noisy_gd",
        "mechanism.steps=2", "trials=2")  # fmt: skip


def test_a_run_and_a_report_write_the_same_page(dperm, tmp_path):
    done = dperm("run", *TINY, "epsilon=[0.5,5]", "out=here")
    assert done.code == 0, done.err
    path = tmp_path / "here" / "report.html"
    first = path.read_bytes()
    made = embedded(first.decode())
    assert [row["epsilon"] for row in rows_in(made)] == [0.5, 5.0]
    releases = made["ledger"]["releases"]
    assert releases["count"] == 2
    assert "Gaussian noise" in str(releases["columns"]["events"])
    assert made["provenance"]["argv"][0] == TINY[0]
    path.unlink()
    again = dperm("report", "here", "html=false")
    assert (again.code, path.exists()) == (0, False)
    assert dperm("report", "here").code == 0
    assert path.read_bytes() == first


def test_a_wrong_word_is_refused_in_one_line(dperm):
    dperm("run", *TINY, "out=here")
    refused = dperm("report", "here", "html=maybe")
    assert refused.code == 2
    assert "html" in refused.err
    assert len(refused.err.strip().splitlines()) == 1


def test_a_folder_with_a_page_of_somebody_else_is_left_alone(dperm, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("my own")
    refused = dperm("run", *TINY, "out=mine")
    assert refused.code == 2
    assert (tmp_path / "mine" / "report.html").read_text() == "my own"
