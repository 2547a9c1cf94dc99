"""Configuration is data: what would run, look up, expand or escape is refused, and leaves nothing.

Every payload would create a file named ``owned`` if any part of it ran.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dperm_cli.core import catalogue
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import shipped_files, user_yaml
from dperm_cli.runner.compose.study_plan import MOST_CELLS
from tests.cli._payloads import BOMB, FILES, RUNS, SWEEPS, WORDS, assert_refused, evil

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def no_hydra(monkeypatch):
    """Composing with Hydra is an error: what is refused must be refused before."""

    def started(*_, **__):
        raise AssertionError("Hydra was started")

    monkeypatch.setattr(shipped_files, "compose", started)


@pytest.mark.parametrize("word", list(WORDS), ids=lambda word: word[:60].encode("unicode_escape"))
def test_hostile_words(dperm, tmp_path, word):
    assert_refused(dperm("run", word), tmp_path, WORDS[word], [])


@pytest.mark.parametrize("word", [word for word in WORDS if "_target_" in word or "hydra" in word])
def test_refused_before_hydra_starts(dperm, tmp_path, word, no_hydra):
    if not word.startswith("++mechanism."):  # its keys are those of the composed mechanism
        assert_refused(dperm("run", word), tmp_path, WORDS[word], [])


@pytest.mark.parametrize("word", list(SWEEPS))
def test_hostile_sweeps(dperm, tmp_path, word):
    assert_refused(dperm("run", "-m", word), tmp_path, SWEEPS[word], [])


def test_a_sweep_without_end_is_counted_before_it_is_made(dperm, tmp_path):
    words = ("epsilon=range(1,9000)", "seed=range(0,9000)", "trials=range(1,9000)")
    done = dperm("run", "-m", *words)
    assert_refused(done, tmp_path, f"at most {MOST_CELLS}", [])


@pytest.mark.parametrize("text", list(FILES), ids=lambda text: text[:50])
def test_hostile_files(dperm, tmp_path, text):
    verb = "describe" if text == BOMB else "run"
    evil(tmp_path, text)
    done = dperm(verb, "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, FILES[text], ["mine"])
    assert os.listdir(tmp_path / "mine" / "mechanism") == ["evil.yaml"]


@pytest.mark.parametrize("text", list(FILES), ids=lambda text: text[:50])
def test_hydra_never_sees_a_users_file(tmp_path, text, no_hydra):
    evil(tmp_path, text)
    folder = user_yaml.UserFolder.from_path(str(tmp_path / "mine"))
    try:
        folder.load("mechanism", "evil")
    except InputError:
        return
    assert FILES[text].startswith("mechanism=")  # a plain file with an unknown name


def test_only_shipped_files_reach_hydra(dperm, tmp_path, monkeypatch):
    seen, compose = [], shipped_files.compose

    def watched(root, *overrides):
        seen.extend(overrides)
        return compose(root, *overrides)

    monkeypatch.setattr(shipped_files, "compose", watched)
    evil(tmp_path, "name: noisy_gd\nsteps: 3\n", "short")
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=short", "loss=hinge")
    assert done.code == 0, done.err
    assert '"steps":3' in done.out
    assert set(seen) == {"loss=hinge", "mechanism=noisy_gd"}  # with the shipped defaults


def test_numbers_are_read_as_in_the_shipped_files(tmp_path):
    from omegaconf import OmegaConf

    for group in catalogue.GROUPS:
        for name in catalogue.choices(group):
            path = ROOT / "conf" / group / f"{name}.yaml"
            own = user_yaml.read(group, name, path, ROOT)
            assert own == OmegaConf.to_container(OmegaConf.load(path))
    evil(tmp_path, "name: x\na: 1e5\nb: -2E-3\nc: .5\nd: .nan\ne: 1_000\nf: 2001-01-01\ng: null\n")
    found = user_yaml.UserFolder.from_path(str(tmp_path / "mine")).load("mechanism", "evil")
    assert [found[key] for key in "abcefg"] == [1e5, -2e-3, 0.5, 1000, "2001-01-01", None]
    assert found["d"] != found["d"]


@pytest.mark.parametrize(
    "name", ["Evil", "evil-1", "évil", "..", ".", "a b", "evil.yaml", "", "evil/../evil", "x" * 300]
)
def test_file_names_have_one_alphabet(dperm, tmp_path, name):
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    if "/" not in name and len(name) < 200:
        (folder / f"{name}.yaml").write_text("name: noisy_gd\n")
    done = dperm("run", "--config-dir", "mine", f"mechanism='{name}'")
    assert_refused(done, tmp_path, "mechanism=", ["mine"])


def test_a_shipped_name_cannot_be_taken(dperm, tmp_path):
    evil(tmp_path, "name: noisy_sgd\n", "noisy_gd")
    done = dperm("run", "--config-dir", "mine", "mechanism=noisy_gd")
    assert_refused(done, tmp_path, "shipped name", ["mine"])


def test_links_pipes_and_folders_in_the_users_folder(dperm, tmp_path):
    outside = tmp_path / "secret.yaml"
    outside.write_text("name: noisy_gd\n")
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    (folder / "link.yaml").symlink_to(outside)
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    (folder / "gone.yaml").symlink_to("nowhere.yaml")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    (folder / "good.yaml").write_text("name: noisy_gd\nsteps: 3\n")
    (folder / "alias.yaml").symlink_to("good.yaml")
    expected = {
        "link": "leads out", "device": "leads out", "folder": "cannot be read|not a regular",
        "pipe": "not a regular", "gone": "cannot be read", "loop": "cannot be read",
    }  # fmt: skip
    for name, part in expected.items():
        done = dperm("run", "--config-dir", "mine", f"mechanism={name}")
        assert any(p in done.err for p in part.split("|")), done.err
        assert_refused(done, tmp_path, f"mechanism={name}", ["mine", "secret.yaml"])
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=alias")
    assert done.code == 0, done.err
    whole = tmp_path / "other"
    whole.symlink_to(tmp_path / "mine")
    assert dperm("run", "--cfg", "job", "--config-dir", "other", "mechanism=good").code == 0


def test_a_linked_group_does_not_lead_out(dperm, tmp_path):
    (tmp_path / "mine").mkdir()
    evil(tmp_path / "elsewhere", "name: noisy_gd\n")
    (tmp_path / "mine" / "mechanism").symlink_to(tmp_path / "elsewhere" / "mine" / "mechanism")
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, "leads out", ["elsewhere", "mine"])


def test_other_files_of_the_users_folder_are_not_read(dperm, tmp_path):
    """A primary configuration, Hydra's own groups and Python beside the choices do nothing."""
    evil(tmp_path, "name: noisy_gd\nsteps: 3\n", "good")
    evil(tmp_path, f"callbacks:\n  x: {RUNS}\n", "default", "hydra/callbacks")
    payload = f"hydra:\n  callbacks:\n    x: {RUNS}\nepsilon: 99\n"
    (tmp_path / "mine" / "config.yaml").write_text(payload)
    (tmp_path / "mine" / "hydra_plugins").mkdir()
    (tmp_path / "mine" / "hydra_plugins" / "x.py").write_text("open('owned', 'w')\n")
    (tmp_path / "mine" / "sitecustomize.py").write_text("open('owned', 'w')\n")
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=good")
    assert done.code == 0, done.err
    assert '"epsilon":1' in done.out
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("words", [("path", "../a9a"), ("fetch", "/etc/passwd"), ("verify", "..")])
def test_data_verbs_look_names_up(dperm, tmp_path, words):
    assert_refused(dperm("data", *words), tmp_path, "dataset=", [])


@pytest.mark.parametrize(
    "text", [b"name: noisy_gd\nsteps: \xff\n", b"\x80\x02c__builtin__\neval\n", b"\0" * 100]
)
def test_files_that_are_no_text(dperm, tmp_path, text):
    evil(tmp_path, text)
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, "mechanism=evil", ["mine"])


SUBPROCESS = {
    "target": "name: noisy_gd\n_target_: os.mkdir\npath: owned\n",
    "callbacks": f"# @package _global_\nname: noisy_gd\nhydra:\n  callbacks:\n    x: {RUNS}\n",
    "searchpath": "name: noisy_gd\nhydra:\n  searchpath: [file:///etc]\n",
    "bomb": BOMB,
}


def test_payloads_through_a_new_process(tmp_path):
    """From the shell, as a user would: exit 2, one line, an empty folder. One start serves all."""
    for name, text in SUBPROCESS.items():
        evil(tmp_path, text, name)
    (tmp_path / "work").mkdir()
    calls = [["--config-dir", "../mine", f"mechanism={name}"] for name in SUBPROCESS]
    calls += [["mechanism=../x"], [f"hydra.callbacks.x={RUNS}"], ["hydra.run.dir=owned"]]
    script = f"""
import sys
from dperm_cli.cli import main
for words in {calls!r}:
    print(main(["run", *words]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "work", capture_output=True, text=True,
        timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["2"] * len(calls), done.stderr
    assert len(done.stderr.splitlines()) == len(calls)
    assert os.listdir(tmp_path / "work") == []
    assert sorted(os.listdir(tmp_path)) == ["mine", "work"]


def test_output_names_are_made_of_registered_names(dperm, tmp_path):
    """Whatever was typed, the study's folder is built of plug-in names and a digest."""
    from dperm_cli.runner.compose import study_plan
    from dperm_cli.runner.compose.command_line import parse

    study = study_plan.plan_study(parse([
        "mechanism=[noisy_gd,noisy_sgd]", "dataset=[digits,breast_cancer]", "loss=[auto]",
        "epsilon=[1,2]",
    ]))  # fmt: skip
    assert user_yaml.NAME.fullmatch(study.name.replace("-", "_"))
    assert study.out == f"outputs/{study.name}"


@pytest.mark.parametrize("cell", ["../x", "/x", "a/b", "", ".", "a" * 200, "a\0b", "..", "a.b"])
def test_record_names_cannot_leave_the_store(tmp_path, cell):
    from dperm_cli.results.records.store import Store

    store = Store(tmp_path / "out")
    with pytest.raises(ValueError, match="hash"):
        store.path(cell)
    with pytest.raises(ValueError, match="hash"):
        store.write_manifest({"cells": [cell]})
    assert os.listdir(tmp_path) == []


def test_a_forged_manifest_reads_nothing(dperm, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"cells": ["../../secret"]}')
    done = dperm("report", "out")
    assert done.code == 2
    assert sorted(os.listdir(tmp_path / "out")) == ["manifest.json"]


def test_links_in_the_output_folder_are_replaced_and_not_followed(tmp_path):
    from dperm_cli.core.files import write_atomically

    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "table.csv").symlink_to(precious)
    write_atomically(tmp_path / "table.csv", b"new")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "table.csv").is_symlink()
