"""``dperm statement`` on the command line: formats, files and refusals."""

from __future__ import annotations

import pytest
import yaml

from dperm_cli.core.files import OutputFile
from dperm_cli.runner.models import save_model
from tests.runner.test_statement import FILLED, make


@pytest.fixture
def model(dperm, tmp_path):
    """The name of a model file in the working folder, of secure noise."""
    save_model.save(OutputFile.of("save", str(tmp_path / "m.npz")), make())
    return "m.npz"


def test_text_is_printed_and_nothing_is_written(dperm, model, tmp_path):
    done = dperm("statement", model)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Privacy statement: a model of csv\n")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npz"]


def test_the_ending_of_a_file_says_its_format(dperm, model, tmp_path):
    for name, begin in {
        "s.html": b"<!doctype html>",
        "s.PDF": b"%PDF",
        "s.txt": b"Privacy",
    }.items():
        done = dperm("statement", model, f"out={name}")
        assert (done.code, done.out, done.err) == (0, "", "")
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert dperm("statement", model, "out=s.html", "format=text").code == 0
    assert (tmp_path / "s.html").read_text() == dperm("statement", model).out


def test_answers_are_drafted_filled_in_and_used(dperm, model, tmp_path):
    assert dperm("statement", model, "format=answers", "out=a.yaml").code == 0
    draft = (tmp_path / "a.yaml").read_text()
    assert draft == dperm("statement", model, "format=answers").out
    again = dperm("statement", model, "format=answers", "out=a.yaml")
    assert again.code == 2
    assert "not overwritten" in again.err
    lacking = dperm("statement", model, "answers=a.yaml", "out=r.yaml")
    assert lacking.code == 2
    assert "`url_slug: ...`" in lacking.err
    assert not (tmp_path / "r.yaml").exists()
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(FILLED))
    assert dperm("statement", model, "answers=a.yaml", "out=r.yaml").code == 0
    assert yaml.safe_load((tmp_path / "r.yaml").read_text())["tier"] == 3
    assert "Ward model" in dperm("statement", model, "answers=a.yaml").out


def test_research_noise_is_said_on_stderr_too(dperm, tmp_path):
    save_model.save(OutputFile.of("save", str(tmp_path / "r.npz")), make(noise="research"))
    done = dperm("statement", "r.npz")
    assert done.code == 0
    assert "not for release" in done.err
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(FILLED))
    done = dperm("statement", "r.npz", "answers=a.yaml", "format=registry")
    assert (done.code, done.out) == (2, "")
    assert "noise=secure" in done.err


@pytest.mark.parametrize(("words", "told"), [
    (["m.npz", "n.npz"], "one model"),
    (["none.npz"], "is not a file"),
    (["rows.csv"], "is not a predictor"),
    (["m.npz", "format=htm"], "did you mean 'html'"),
    (["m.npz", "format=pdf"], "out=statement.pdf"),
    (["m.npz", "answer=a.yaml"], "did you mean 'answers'"),
    (["m.npz", "answers=none.yaml"], "cannot be read"),
    (["m.npz", "answers=rows.csv"], "key: value"),
    (["m.npz", "answers=odd.yaml"], "did you mean 'name'"),
    (["m.npz", "answers=bomb.yaml"], "anchors"),
    (["m.npz", "out=."], "is a folder"),
])  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(dperm, model, tmp_path, words, told):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    (tmp_path / "odd.yaml").write_text("nane: x\n")
    (tmp_path / "bomb.yaml").write_text("name: &a [x]\nnotes: *a\n")
    before = sorted(tmp_path.iterdir())
    done = dperm("statement", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_help_is_there(dperm):
    assert dperm("statement", "--help").out.startswith("usage: dperm statement MODEL")
    assert dperm("statement").code == 2
