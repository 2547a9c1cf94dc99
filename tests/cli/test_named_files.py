"""Files that the user names: a regular file is replaced, a link followed, a device written to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dperm_cli import cli
from tests.conftest import draw_nothing

RUN = (
    "run", "dataset=synthetic_logistic", "dataset.n=20", "dataset.p=2", "epsilon=1", "ridge=0.1",
    "mechanism=output_perturbation", "trials=1", "dataset.n_test=5",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    """A model file of two columns."""
    folder = tmp_path_factory.mktemp("model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        draw_nothing(patch)
        assert cli.main([*RUN, "out=study", "save=m.npz"]) == 0
    return (folder / "m.npz").read_bytes()


@pytest.fixture
def verbs(tmp_path, model) -> dict[str, list[str]]:
    """The words of every verb that writes a file which the user names, the file's name left out."""
    (tmp_path / "m.npz").write_bytes(model)
    (tmp_path / "rows.csv").write_text("0.1,0.2\n0.3,0.4\n")
    return {
        "predict": ["predict", "m.npz", "rows.csv", "out="],
        "claims": ["reproduce", "claims", "out="],
        "save": [*RUN, "out=study", "save="],
    }


VERBS = pytest.mark.parametrize("verb", ["predict", "claims", "save"])


def make_device(path: Path) -> None:
    """A null device of the test's own."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
        path.write_bytes(b"")
    except OSError:
        pytest.skip("only root makes devices, and not in every folder")


def write_file(call, words: list[str], name: str):
    return call(*words[:-1], words[-1] + name)


@VERBS
class TestEveryVerb:
    """All verbs write to what is there."""

    def test_a_device_stays_a_device(self, dperm, verbs, tmp_path, verb):
        device = tmp_path / "null.npz"
        make_device(device)
        os.chmod(device, 0o666)
        assert write_file(dperm, verbs[verb], "null.npz").code == 0
        found = device.stat()
        assert stat.S_ISCHR(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o666
        assert found.st_rdev == os.stat(os.devnull).st_rdev

    def test_a_pipe_is_written_to(self, dperm, verbs, tmp_path, verb):
        pipe = tmp_path / "pipe.npz"
        os.mkfifo(pipe)
        assert write_file(dperm, verbs[verb], "file.npz").code == 0
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
        reader.start()
        assert write_file(dperm, verbs[verb], "pipe.npz").code == 0
        assert stat.S_ISFIFO(pipe.lstat().st_mode)
        reader.join(10.0)
        assert read == [(tmp_path / "file.npz").read_bytes()]

    def test_a_link_is_followed_to_its_file(self, dperm, verbs, tmp_path, verb):
        (tmp_path / "far").mkdir()
        file, link = tmp_path / "far" / "file", tmp_path / "link.npz"
        file.write_bytes(b"" if verb == "save" else b"old")
        file.chmod(0o640)
        link.symlink_to("far/file")
        assert write_file(dperm, verbs[verb], "link.npz").code == 0
        assert os.readlink(link) == "far/file"
        assert file.read_bytes() not in (b"", b"old")
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert os.listdir(tmp_path / "far") == ["file"]

    def test_what_cannot_be_written_is_refused_in_a_line(self, dperm, verbs, tmp_path, verb):
        (tmp_path / "folder.npz").mkdir()
        (tmp_path / "loop.npz").symlink_to("loop.npz")
        for name in ("folder.npz", "loop.npz"):
            done = write_file(dperm, verbs[verb], name)
            assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
            assert name in done.err
        assert (tmp_path / "loop.npz").is_symlink()
        assert not (tmp_path / "study").exists()


def test_standard_output_by_its_name_is_written_to(verbs, tmp_path):
    """Through a link to it, so that the machine's own name for it is in no danger."""
    own = "/proc/self/fd/1" if os.path.exists("/proc/self/fd/1") else "/dev/fd/1"
    (tmp_path / "stdout").symlink_to(own)
    command = [sys.executable, "-m", "dperm_cli", *verbs["predict"][:-1]]
    kept = tmp_path / "kept.csv"
    with open(kept, "w") as file:
        print("before", file=file, flush=True)
        words = [*command, "out=stdout"]
        done = subprocess.run(words, stdout=file, cwd=tmp_path, check=False)
        print("after", file=file)
    assert done.returncode == 0
    assert os.readlink(tmp_path / "stdout") == own
    printed = subprocess.run(command, stdout=subprocess.PIPE, cwd=tmp_path, check=True).stdout
    assert kept.read_bytes() == b"before\n" + printed + b"after\n"
    through = subprocess.run(words, stdout=subprocess.PIPE, cwd=tmp_path, check=True).stdout
    assert through == printed


@pytest.mark.parametrize("verb", ["run", "describe", "account", "audit", "merge", "ask"])
def test_a_folder_is_no_link_to_nothing(dperm, tmp_path, verb):
    (tmp_path / "gone").symlink_to("nowhere")
    session = ("mechanism=kernel_interactive", "kernel=rbf", "ridge=0.1", "dataset.seed=1")
    more = {
        "run": RUN[1:], "describe": RUN[1:4], "ask": (*RUN[1:4], *session),
        "account": ("mechanism=output_perturbation", "n=20", "p=2", "figure=true"),
        "audit": ("mechanism=output_perturbation", "--quick"), "merge": ("a", "b"),
    }  # fmt: skip
    done = dperm(verb, *more[verb], "out=gone")
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err == "dperm: out=gone: is a link to nothing; it must be a folder\n"
    assert os.listdir(tmp_path) == ["gone"]


def test_a_device_in_the_folder_of_a_study_stays(dperm, tmp_path):
    """Before the first cell: what stands where a file of the study would be is no file."""
    assert dperm(*RUN, "out=study").code == 0
    for name in ("table.csv", "figure.png"):
        device = tmp_path / "study" / name
        device.unlink(missing_ok=True)
        make_device(device)
        done = dperm(*RUN, "out=study")
        assert (done.code, done.out) == (2, "")
        assert f"holds a device by the name of {name}" in done.err
        assert dperm("report", "study").code == 3
        assert stat.S_ISCHR(device.stat().st_mode)
        device.unlink()
