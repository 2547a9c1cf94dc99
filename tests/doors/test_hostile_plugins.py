"""Code comes only from where the user pointed, and what is no plug-in is refused in one line."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.doors._doors import SMALL, dperm, json_lines, mostly_slow, refused
from tests.doors._plugins import BROKEN, CLOUD, OWN, replaced

MARK = "from pathlib import Path\nPath({path!r}).touch()\n"
LOOK = ("run", "mechanism=noisy_gd", *SMALL, "--cfg", "job")


@pytest.fixture
def evil(tmp_path):
    """A plug-in file elsewhere that leaves a mark when it is imported."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    mark = tmp_path / "imported"
    (folder / "own.py").write_text(MARK.format(path=str(mark)) + OWN)
    return folder / "own.py", mark


def test_the_mark_of_the_evil_file_works(evil, tmp_path):
    """Without this the tests below could pass because nothing is ever imported."""
    file, mark = evil
    dperm(*LOOK, "--plugin", file, cwd=tmp_path, code=0)
    assert mark.exists()


@pytest.mark.parametrize(
    "key", mostly_slow(["plugins", "plugin", "_plugin_", "dperm.plugins", "module"], "plugins")
)
def test_no_yaml_names_a_plugin(key, evil, tmp_path):
    file, mark = evil
    (tmp_path / "conf" / "mechanism").mkdir(parents=True)
    yaml = tmp_path / "conf" / "mechanism" / "mine.yaml"
    yaml.write_text(f"name: noisy_gd\n{key}: [{file}]\n")
    done = dperm("run", "--config-dir", "conf", "mechanism=mine", *SMALL, cwd=tmp_path)
    refused(done, key)
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", mostly_slow(["{file}", "{file}:OneStep", "own:OneStep", "own.OneStep"], "{file}")
)
def test_no_name_in_a_yaml_is_a_path_to_code(name, evil, tmp_path):
    file, mark = evil
    (tmp_path / "conf" / "mechanism").mkdir(parents=True)
    value = name.format(file=file)
    (tmp_path / "conf" / "mechanism" / "mine.yaml").write_text(f"name: '{value}'\n")
    shutil.copy(file, tmp_path / "own.py")
    refused(dperm("run", "--config-dir", "conf", "mechanism=mine", *SMALL, cwd=tmp_path))
    assert not mark.exists()


def test_a_key_of_a_cell_names_no_plugin(evil, tmp_path):
    file, mark = evil
    refused(dperm("run", f"plugins=[{file}]", *SMALL, cwd=tmp_path), "plugin")
    assert not mark.exists()


@pytest.mark.parametrize("folder", mostly_slow(["data", "conf", "."], "."))
def test_no_folder_is_searched_for_plugins(folder, evil, tmp_path):
    """Neither the data folder, nor that of YAML files, nor where the command runs."""
    file, mark = evil
    (tmp_path / "conf" / "mechanism").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    for name in ("one_step.py", "own.py", "plugins.py", "conftest.py", "sitecustomize.py"):
        if folder != "." or name != "sitecustomize.py":  # python itself imports that one
            shutil.copy(file, tmp_path / folder / name)
    more = {"DPERM_DATA_DIR": str(tmp_path / "data")}
    words = ("--config-dir", "conf", "mechanism=one_step", *SMALL)
    refused(dperm("run", *words, cwd=tmp_path, **more), "one_step")
    dperm("list", "mechanism", cwd=tmp_path, code=0, **more)
    assert not mark.exists()


@pytest.mark.slow
def test_no_study_folder_holds_plugins(study_folder, evil, tmp_path):
    file, mark = evil
    copy = tmp_path / "study"
    shutil.copytree(study_folder, copy)
    for name in ("own.py", "plugins.py", "__init__.py"):
        shutil.copy(file, copy / name)
    manifest = (copy / "manifest.json").read_text()
    place = manifest.index("{") + 1
    (copy / "manifest.json").write_text(
        f'{manifest[:place]}"plugins": ["{file}"],"plugin": "{file}",{manifest[place:]}'
    )
    for verb in ("report", "verify", "status"):
        dperm(verb, "study", cwd=tmp_path)
    assert not mark.exists()


def test_an_unknown_mechanism_says_how_a_file_is_given(tmp_path):
    refused(dperm("run", "mechanism=one_step", *SMALL, cwd=tmp_path), "one_step", "--plugin")


@pytest.mark.parametrize(
    "fault", mostly_slow(BROKEN, "a syntax error", "a file that ends the process")
)
def test_a_file_that_is_no_plugin_is_refused(fault, tmp_path):
    text, words = BROKEN[fault]
    (tmp_path / "mine.py").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(dperm(*LOOK, "--plugin", "mine.py", cwd=tmp_path), r"mine\.py", *words)


@pytest.mark.parametrize("place", mostly_slow(["absent.py", "folder", "notes.txt"], "absent.py"))
def test_a_path_that_is_no_python_file_is_refused(place, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text(OWN)
    refused(dperm(*LOOK, "--plugin", place, cwd=tmp_path), "plugin", place.replace(".", r"\."))


@pytest.mark.slow
def test_the_option_without_a_file_is_refused(tmp_path):
    line = refused(dperm("run", "mechanism=noisy_gd", "--plugin", cwd=tmp_path), "--plugin")
    assert "FILE" in line or "file" in line


def test_a_plugin_that_shadows_a_shipped_name_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text(OWN.replace("class OneStep", "class NoisyGd"))
    refused(dperm(*LOOK, "--plugin", "mine.py", cwd=tmp_path), "noisy_gd", r"mine\.py")


@pytest.mark.parametrize("name", mostly_slow(["squared", "auto"], "squared"))
def test_a_loss_that_says_a_shipped_name_is_refused(name, tmp_path):
    """The class has a name of its own; what it says of itself is taken, or a word of dperm's."""
    text = replaced(OWN, '"quantile", ("regression",)', f'"{name}", ("regression",)')
    (tmp_path / "mine.py").write_text(text)
    refused(dperm(*LOOK, "--plugin", "mine.py", cwd=tmp_path), name, r"mine\.py")


@pytest.mark.parametrize(
    "name", mostly_slow(["../up", "a b", "a=b", "a,b", "", "_hidden", "Ünï"], "../up")
)
def test_a_name_that_no_command_line_could_hold_is_refused(name, tmp_path):
    text = replaced(OWN, '"quantile", ("regression",)', f'"{name}", ("regression",)')
    (tmp_path / "mine.py").write_text(text)
    refused(dperm(*LOOK, "--plugin", "mine.py", cwd=tmp_path), r"mine\.py", "name")


def test_two_plugins_of_one_name_are_refused(tmp_path):
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(OWN + f"# {name}\n")
    files = ("--plugin", "first.py", "--plugin", "second.py")
    refused(dperm(*LOOK, *files, cwd=tmp_path), r"first\.py", r"second\.py", "one_step|quantile")


@pytest.mark.slow
def test_the_variable_and_the_option_together_find_two_of_one_name(tmp_path):
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(OWN + f"# {name}\n")
    done = dperm(*LOOK, "--plugin", "first.py", cwd=tmp_path, DPERM_PLUGINS="second.py")
    refused(done, r"first\.py", r"second\.py")


def test_two_different_files_go_together(own, cloud, tmp_path):
    files = os.pathsep.join([str(own), str(cloud)])
    done = dperm("list", "dataset", cwd=tmp_path, code=0, DPERM_PLUGINS=files)
    assert "cloud" in done.stdout
    listed = dperm("list", "loss", "--plugin", own, "--plugin", cloud, cwd=tmp_path, code=0)
    assert "quantile" in listed.stdout


def test_what_a_file_prints_at_import_is_no_result(tmp_path):
    (tmp_path / "mine.py").write_text("print('hello')\nimport os\nos.write(1, b'raw')\n" + OWN)
    keys = ("mechanism=one_step", *SMALL, "format=json", "out=study")
    done = dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=0)
    assert [row["mechanism"] for row in json_lines(done.stdout)] == ["one_step"]


@pytest.mark.slow
def test_what_a_release_prints_is_no_result(tmp_path):
    text = replaced(
        OWN, "        start = np.tile", "        print('hello')\n        start = np.tile"
    )
    (tmp_path / "mine.py").write_text(text)
    keys = ("mechanism=one_step", *SMALL, "format=json", "out=study")
    done = dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=0)
    assert len(json_lines(done.stdout)) == 1


def test_a_path_may_have_spaces_commas_and_other_letters(tmp_path):
    folder = tmp_path / "my plug-ins, β=1"
    folder.mkdir()
    (folder / "the cloud.py").write_text(CLOUD)
    done = dperm("list", "dataset", "--plugin", folder / "the cloud.py", cwd=tmp_path, code=0)
    assert "cloud" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("error", ["raise SystemExit(0)", "raise KeyError('theta')", "1 / 0"])
def test_a_release_that_fails_is_a_failed_row(error, tmp_path):
    """Neither ends the sweep: the cells of the other mechanism are there."""
    text = replaced(OWN, "        start = np.tile", f"        {error}\n        start = np.tile")
    (tmp_path / "mine.py").write_text(text)
    keys = ("mechanism=one_step,noisy_gd", *SMALL, "format=json", "out=study")
    done = dperm("run", "-m", "--plugin", "mine.py", *keys, cwd=tmp_path, code=1)
    assert {row["mechanism"]: row["status"] for row in json_lines(done.stdout)} == {
        "one_step": "failed",
        "noisy_gd": "ok",
    }


def test_a_mechanism_that_asks_too_little_noise_is_not_released(tmp_path):
    """The runner adds the events up again, also those of a plug-in with a scale of its own."""
    text = replaced(
        OWN,
        "    def release(self, view, plan, gate):",
        "    def scale(self, spec, budget):\n        return 1e-3\n\n"
        "    def release(self, view, plan, gate):",
    )
    (tmp_path / "mine.py").write_text(text)
    keys = ("mechanism=one_step", *SMALL, "format=json", "out=study")
    done = dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=1)
    (row,) = json_lines(done.stdout)
    assert row["status"] == "failed"
    assert "epsilon" in row["reason"]
    assert row["excess_risk_median"] is None
