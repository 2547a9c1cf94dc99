"""Plug-ins from outside on the command line: runs, what names them afterwards, and where no code
comes from.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.cli import main
from dperm_cli.core import plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.runner.models import model_file
from dperm_cli.runner.verbs.predict import describe_predictions
from tests.core.test_plugin_sources import CLOUD, MINE, OTHERS, STEP

SMALL = ("dataset=diabetes", "constraint.radius=1", "trials=2", "epsilon=10")
RUN = ("mechanism=one_step", "loss=quantile", *SMALL)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(plugin_sources.VARIABLE, raising=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A study with a mechanism and a loss from outside, and the model of it."""
    folder = tmp_path_factory.mktemp("kept")
    out, model = f"out={folder / 'study'}", f"save={folder / 'model.npz'}"
    assert main(["run", "--plugin", str(MINE), *RUN, out, model]) == 0
    return folder


@pytest.fixture
def study(kept, tmp_path):
    shutil.copytree(kept / "study", tmp_path / "study")
    return tmp_path / "study"


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def refused(capsys, *words: str) -> str:
    out, error = capsys.readouterr()
    lines = error.strip().splitlines()
    assert out == ""
    assert len(lines) == 1, error
    for word in words:
        assert re.search(word, lines[0]), lines[0]
    return lines[0]


def test_rows_ledger_table_and_page_name_the_plugin(study):
    (row,) = table(study)
    with plugin_sources.use_plugins([MINE]):
        digest = plugin_sources.list_sources()[0].digest
    assert row["plugins"] == (
        f"loss quantile of mine.py (version 1.2, sha256 {digest}): the guarantee rests on its own "
        f"proof; mechanism one_step of mine.py (version 1.2, sha256 {digest}): the guarantee rests "
        "on its own proof"
    )
    (entry,) = json.loads((study / "ledger.json").read_text())["releases"]
    assert entry["plugins"] == row["plugins"]
    words = f"loss quantile, mechanism one_step of mine.py (version 1.2, sha256 {digest[:12]})"
    assert f"Plug-ins from outside dperm: {words}" in entry["statement"]
    for name in ("table.md", "report.html"):
        assert f"mechanism one_step of mine.py (version 1.2, sha256 {digest[:12]})" in (
            (study / name).read_text().replace("\\_", "_")
        )


def test_a_study_without_its_plugin_is_read_as_far_as_it_can_be(study, capsys):
    before = {p: p.read_bytes() for p in study.iterdir() if p.suffix in (".csv", ".json", ".md")}
    assert main(["report", str(study)]) == main(["status", str(study)]) == 0
    assert {p: p.read_bytes() for p in before} == before
    capsys.readouterr()
    assert main(["verify", str(study)]) == 0
    said = capsys.readouterr().out
    assert "cannot be recomputed without plug-in loss quantile, mechanism one_step" in said
    assert "give --plugin FILE.py" in said
    assert main(["verify", str(study), "--plugin", str(MINE)]) == 0
    assert "whole, recomputed: 1 record" in capsys.readouterr().out


def test_a_changed_file_makes_new_cells(study, tmp_path, capsys):
    path = tmp_path / "mine.py"
    shutil.copy(MINE, path)
    run = ["run", "--plugin", str(path), *RUN, f"out={study}"]
    (before,) = table(study)
    assert main(run) == 0
    assert table(study) == [before]  # wherever the file lies
    path.write_text(path.read_text() + "# a remark\n")
    assert main(run) == 0
    (after,) = table(study)
    assert after["cell"] != before["cell"]
    assert after["plugins"] != before["plugins"]
    assert len(list((study / "records").glob("*.parquet"))) == 2
    capsys.readouterr()
    assert main(["verify", str(study), "--plugin", str(path)]) == 0
    said = capsys.readouterr().out
    assert "whole, recomputed: 1 record" in said
    assert "the one given has other bytes: 1 record" in said


def test_a_model_names_the_plugin_and_is_read_without_it(kept):
    found = model_file.read(str(kept / "model.npz"))
    assert found.mechanism == "one_step"
    (told,) = [line for line in describe_predictions(found, 1) if "Plug-ins" in line]
    assert "loss quantile, mechanism one_step of mine.py" in told
    assert "the guarantee rests on its own proof" in told
    assert np.isfinite(found.values(np.ones((1, 10)))).all()


def test_the_statement_on_a_model_names_the_plugin(kept, capsys):
    capsys.readouterr()
    assert main(["statement", str(kept / "model.npz")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Proof none of dperm: one_step is a plug-in of mine.py" in told
    assert "Plug-ins from outside dperm: loss quantile, mechanism one_step of mine.py" in told


def test_a_model_with_another_word_on_plugins_is_refused(kept, tmp_path):
    """The words are data of unknown origin: they are those that dperm writes, or none."""
    found = model_file.read(str(kept / "model.npz"))
    for words in ("anything", found.plugins + " and more", ""):
        (tmp_path / "m.npz").write_bytes(model_file.bytes_of(replace(found, plugins=words)))
        with pytest.raises(InputError, match="plugins is no list of plug-ins"):
            model_file.read(str(tmp_path / "m.npz"))


def test_a_model_says_nothing_of_plugins_where_there_are_none(tmp_path, capsys):
    words = ["run", "mechanism=noisy_gd", "loss=squared", *SMALL, f"out={tmp_path / 'plain'}"]
    assert main([*words, f"save={tmp_path / 'm.npz'}"]) == 0
    found = model_file.read(str(tmp_path / "m.npz"))
    assert found.plugins is None
    assert "plugins" not in found.plain()
    assert table(tmp_path / "plain")[0]["plugins"] == ""


@pytest.mark.parametrize("place", [1, 2, -1])
def test_the_option_stands_anywhere_after_the_verb(place, capsys):
    words = ["run", *RUN, "--cfg", "job"]
    words[place:place] = [f"--plugin={MINE}"]
    assert main(words) == 0
    (cell,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert cell["mechanism"] == {"name": "one_step", "step_size": 0.1}
    assert cell["loss"] == {"name": "quantile", "tau": 0.5}


def test_keys_of_a_plugin_are_swept_and_checked(capsys):
    words = ["run", "--plugin", str(MINE), *RUN, "--cfg", "job"]
    assert main([*words, "-m", "mechanism.step_size=0.1,0.2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    for word, said in (
        ("mechanism.step_size=-1", "must be a finite number > 0"),
        ("mechanism.step_siz=1", "did you mean 'step_size'"),
        ("loss.tau=1", r"must be a number in \(0, 1\)"),
    ):
        assert main([*words, word]) == 2
        refused(capsys, said)


def test_a_field_without_a_default_must_be_set(capsys):
    words = ["run", "--plugin", str(MINE), *RUN[:3], "constraint=nonnegative_ball", "--cfg", "job"]
    assert main(words) == 2
    refused(capsys, r"constraint\.radius")
    assert main([*words, "constraint.radius=1"]) == 0


def test_list_help_completion_and_account_show_it(capsys):
    for words, said in (
        (["list", "mechanism", "one_step"], "mechanism.step_size: 0.1"),
        (["list", "loss"], "quantile"),
        (["list"], "mine.py, version 1.2, sha256"),
        (["run", "--help"], "one_step"),
        (["account", "--help"], "one_step"),
        (["account", "mechanism=one_step", "n=100", "epsilon=1"], "one_step"),
        (["completion", "--words", "run", "--", "mechanism=one"], "mechanism=one_step"),
        (["completion", "--words", "run", "mechanism=one_step", "--", "mechanism.s"],
         "mechanism.step_size="),
        (["completion", "--words", "audit", "--", "mechanism=one"], "mechanism=one_step"),
    ):  # fmt: skip
        place = words.index("--") if "--" in words else len(words)
        assert main([*words[:place], "--plugin", str(MINE), *words[place:]]) == 0
        assert said in capsys.readouterr().out, words
    assert main(["list", "mechanism"]) == 0
    assert "one_step" not in capsys.readouterr().out


def test_a_line_that_is_being_typed_is_completed_all_the_same(capsys):
    assert main(["completion", "--words", "run", "--plugin", "abs", "--", "loss=hin"]) == 0
    assert capsys.readouterr().out.split() == ["loss=hinge"]


def test_an_unknown_name_says_how_a_file_is_given(capsys):
    assert main(["run", *RUN]) == 2
    refused(capsys, "one_step", r"--plugin FILE\.py")
    assert main(["run", *RUN, "--plugin"]) == 2
    refused(capsys, "--plugin", "needs a file")
    assert main(["merge", "a", "b", "--plugin", str(MINE)]) == 2
    refused(capsys, "option=--plugin")


def test_the_variable_is_heeded_by_every_verb_that_names_plugins(monkeypatch, capsys):
    monkeypatch.setenv(plugin_sources.VARIABLE, str(MINE))
    assert main(["run", *RUN, "--cfg", "job"]) == 0
    monkeypatch.setenv(plugin_sources.VARIABLE, "absent.py")
    capsys.readouterr()
    assert main(["run", *RUN, "--cfg", "job"]) == 2
    refused(capsys, plugin_sources.VARIABLE, r"absent\.py: is not there")


def test_no_yaml_no_folder_and_no_study_leads_to_code(study, tmp_path, monkeypatch, capsys):
    mark = tmp_path / "imported"
    text = f"open({str(mark)!r}, 'w').close()\n" + MINE.read_text()
    (tmp_path / "conf" / "mechanism").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    places = ("conf", "conf/mechanism", "data", "study", "study/records", ".")
    for place in places:
        for name in ("one_step.py", "mine.py", "plugins.py"):
            (tmp_path / place / name).write_text(text)
    monkeypatch.setenv("DPERM_DATA_DIR", str(tmp_path / "data"))
    for line in (f"plugins: [{tmp_path / 'mine.py'}]", "plugin: mine.py", "_plugin_: mine.py"):
        yaml = tmp_path / "conf" / "mechanism" / "own.yaml"
        yaml.write_text(f"name: noisy_gd\n{line}\n")
        assert main(["run", "--config-dir", "conf", "mechanism=own", "--cfg", "job"]) == 2
        refused(capsys, r"mechanism\._?plugin")
    for name in ("one_step", "mine:OneStep", str(tmp_path / "mine.py"), "mine.OneStep"):
        yaml.write_text(f"name: '{name}'\n")
        assert main(["run", "--config-dir", "conf", "mechanism=own", "--cfg", "job"]) == 2
        refused(capsys, "mechanism=")
    manifest = json.loads((study / "manifest.json").read_text())
    assert manifest["plugins"][0].startswith("mine.py, sha256 ")
    manifest["plugins"] = manifest["plugin"] = [str(tmp_path / "mine.py")]
    (study / "manifest.json").write_text(json.dumps(manifest))
    for verb in ("report", "verify", "status"):
        main([verb, str(study)])
    assert not mark.exists()
    main(["list", "--plugin", str(tmp_path / "mine.py")])
    assert mark.exists()  # the mark is made where the user points


def test_an_event_and_a_bound_from_outside_stand_in_every_row(tmp_path, capsys):
    files = ["--plugin", str(OTHERS), "--plugin", str(CLOUD)]
    words = ["run", *files, "mechanism=quiet_step", "dataset=cloud"]
    assert main([*words, *SMALL[1:], "out=study"]) == 0
    (row,) = table(tmp_path / "study")
    assert "event Quiet of others.py" in row["plugins"]
    assert "the accountant believes it" in row["plugins"]
    assert "bound one guess of others.py" in row["plugins"]
    assert row["bound_upper_id"] == "one guess"
    assert "dataset cloud of cloud.py" in row["plugins"]
    capsys.readouterr()
    ledger = (tmp_path / "study" / "ledger.json").read_bytes()
    assert main(["report", "study"]) == 0
    assert "ledger.json stays as it is: cannot be recomputed without plug-in event Quiet" in (
        capsys.readouterr().err
    )
    assert (tmp_path / "study" / "ledger.json").read_bytes() == ledger
    assert main(["verify", "study", *files]) == 0
    assert "whole, recomputed: 1 record" in capsys.readouterr().out


@pytest.mark.parametrize("words", [
    ("mechanism=exponential", "sampler=centre", "privacy=pure", "dataset=cloud",
     "constraint.radius=1", "epsilon=10"),
    ("mechanism=kernel_release", "kernel=affine", "loss=hinge", "ridge=0.1"),
])  # fmt: skip
def test_a_sampler_and_a_kernel_from_outside_run(words, tmp_path):
    files = ["--plugin", str(OTHERS), "--plugin", str(CLOUD)]
    assert main(["run", *files, *words, "trials=2", "out=study"]) == 0
    (row,) = table(tmp_path / "study")
    name = words[1].replace("=", " ")
    assert f"{name} of others.py" in row["plugins"]
    assert ("the accountant believes it" in row["plugins"]) == name.startswith("sampler")
    assert "dperm_plugin" not in json.dumps(row)


@pytest.mark.parametrize(("line", "status"), [
    ("raise SystemExit(0)", "failed"), ("1 / 0", "failed"), ("print('hello')", "ok"),
])  # fmt: skip
def test_what_a_release_does_ends_no_sweep_and_is_no_result(line, status, tmp_path, capsys):
    text = MINE.read_text().replace("        start = np", f"        {line}\n        start = np")
    (tmp_path / "mine.py").write_text(text)
    words = ["run", "-m", "--plugin", "mine.py", "mechanism=one_step,noisy_gd", "loss=squared"]
    assert main([*words, *SMALL, "format=json"]) == (status == "failed")
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == [status, "ok"]


def test_a_scale_that_keeps_to_no_budget_is_not_released(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(STEP + "    def scale(self, spec, budget):\n"
                                      "        return 1e-3\n")  # fmt: skip
    words = ["run", "--plugin", "mine.py", "mechanism=my_step", "loss=squared", *SMALL]
    assert main([*words, "format=json"]) == 1
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["status"] == "failed"
    assert "refused to release" in row["reason"]


@pytest.mark.slow
def test_an_audit_walks_the_grid_of_a_plugin_and_finds_a_planted_fault(tmp_path, capsys):
    assert main(["audit", "--plugin", str(MINE), "mechanism=one_step", "--quick"]) == 0
    assert "one_step" in capsys.readouterr().out
    text = MINE.read_text().replace("spec.lipschitz, gap=spec.gradient_gap", "spec.lipschitz / 4")
    (tmp_path / "mine.py").write_text(text)
    assert main(["audit", "--plugin", "mine.py", "mechanism=one_step", "--quick"]) == 1


@pytest.mark.parametrize("others", ["", ",noisy_gd"])
def test_a_cell_that_failed_names_its_plugin_too(others, tmp_path, capsys):
    before = "    def release(self, view, plan, gate):"
    text = MINE.read_text().replace(before, f"{before}\n        raise ValueError")
    (tmp_path / "mine.py").write_text(text)
    words = ("-m", "--plugin", "mine.py", f"mechanism=one_step{others}", "loss=squared", *SMALL)
    assert main(["run", *words, "out=study"]) == 1
    assert "from outside: mechanism one_step of mine.py" in capsys.readouterr().out
    study = tmp_path / "study"
    for name in ("table.md", "table.tex", "report.html"):
        shown = (study / name).read_text().replace("\\_", "_").lower()
        assert "from outside: mechanism one_step of mine.py" in shown, name
    (entry,) = json.loads((study / "ledger.json").read_text())["not_released"]
    assert entry["plugins"].startswith("mechanism one_step of mine.py")
