"""Files are written whole or not at all, whoever else writes them and however a run ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OLD = Path(__file__).parent / "old_study" / "42d5b68"
STUDY = [
    "run", "-m", "mechanism=noisy_gd,output_perturbation", "dataset=synthetic_logistic",
    "dataset.n=20", "dataset.p=2", "epsilon=1", "ridge=0.1", "trials=1",
]  # fmt: skip
KERNEL = [
    "run", "dataset=synthetic_logistic", "dataset.n=20", "dataset.p=2", "kernel=rbf",
    "kernel.size=4", "ridge=0.1", "mechanism=output_perturbation", "trials=1", "save=model.npz",
]  # fmt: skip
# Ends its own process, as `kill -9` does, at the moment when a file of that name would be replaced
KILLED = """
import os, signal, sys
real = os.replace
def replace(source, target, **more):
    if os.path.basename(os.fspath(target)).endswith(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(source, target, **more)
os.replace = replace
from dperm_cli.cli import main
sys.exit(main(sys.argv[2:]))
"""


def start(folder: Path, *words: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "dperm_cli", *words]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def list_files(folder: Path) -> set[str]:
    """What is in a folder, and nothing that was left half-written."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert not {name for name in found if name.endswith(".tmp") or "/." in f"/{name}"}
    return found


def break_at(monkeypatch, name: str) -> None:
    """Press Ctrl-C at the moment when a file of that name would be replaced."""
    real = os.replace

    def replace(source, target, **more):
        if Path(target).name.endswith(name):
            raise KeyboardInterrupt
        return real(source, target, **more)

    monkeypatch.setattr(os, "replace", replace)


class TestTwoAtOnce:
    """Two processes that write the same files leave what one of them would have left."""

    @pytest.mark.slow
    def test_one_study(self, dperm, tmp_path):
        assert dperm(*STUDY, "out=alone").code == 0
        both = [start(tmp_path, *STUDY, "out=shared") for _ in range(2)]
        for process in both:
            _, said = process.communicate()
            assert process.returncode == 0, said
        alone, shared = tmp_path / "alone", tmp_path / "shared"
        # figures are drawn by these two, and not inside this process
        tables = {name for name in list_files(alone) if not name.startswith(("figure", "report"))}
        assert tables <= list_files(shared)
        assert (shared / "table.csv").read_bytes() == (alone / "table.csv").read_bytes()
        assert (shared / "ledger.json").read_bytes() == (alone / "ledger.json").read_bytes()
        assert dperm("verify", "shared").code == 0

    def test_one_file(self, dperm, tmp_path):
        words = ("reproduce", "claims", "out=claims.md")
        assert dperm(*words[:2], "out=alone.md").code == 0
        (tmp_path / "claims.md").write_text("old")
        both = [start(tmp_path, *words) for _ in range(2)]
        assert [process.wait() for process in both] == [0, 0]
        assert [process.communicate()[1] for process in both] == ["wrote claims.md\n"] * 2
        assert list_files(tmp_path) == {"claims.md", "alone.md"}
        assert (tmp_path / "claims.md").read_bytes() == (tmp_path / "alone.md").read_bytes()


class TestBrokenOff:
    """What breaks off in the middle of a write leaves the file of before."""

    @pytest.mark.parametrize("name", ["table.csv", "table.md", "ledger.json", "report.html"])
    def test_ctrl_c_in_a_report(self, name, dperm, tmp_path, monkeypatch):
        study = shutil.copytree(OLD, tmp_path / "study")
        before = (study / name).read_bytes() if (study / name).exists() else None
        with monkeypatch.context() as patch:
            break_at(patch, name)
            assert dperm("report", "study").code == 130
        assert ((study / name).read_bytes() if before else None) == before
        assert (name in list_files(study)) == (before is not None)
        assert dperm("report", "study").code == 0
        assert name in list_files(study)

    @pytest.mark.parametrize("name", [".parquet", "manifest.json", "table.csv"])
    def test_ctrl_c_in_a_run(self, name, dperm, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            break_at(patch, name)
            assert dperm(*STUDY, "out=study").code == 130
        assert not any(file.endswith(name) for file in list_files(tmp_path))
        assert dperm(*STUDY, "out=study").code == 0
        assert any(file.endswith(name) for file in list_files(tmp_path))
        assert dperm("verify", "study").code == 0

    def test_ctrl_c_in_a_saved_model(self, dperm, tmp_path, monkeypatch):
        (tmp_path / "model.npz").write_bytes(b"")
        with monkeypatch.context() as patch:
            break_at(patch, "model.npz")
            assert dperm(*KERNEL, "out=study").code == 130
        assert (tmp_path / "model.npz").read_bytes() == b""
        assert dperm(*KERNEL, "out=study").code == 0
        assert (tmp_path / "model.npz").read_bytes()[:2] == b"PK"
        list_files(tmp_path)

    def test_kill_while_a_page_is_written(self, dperm, tmp_path):
        page = tmp_path / "claims.md"
        page.write_text("old")
        words = ("reproduce", "claims", "out=claims.md")
        done = subprocess.run([sys.executable, "-c", KILLED, "claims.md", *words], cwd=tmp_path)
        assert done.returncode == -signal.SIGKILL
        assert page.read_text() == "old"
        assert dperm(*words).code == 0
        assert page.read_text().startswith("#")

    def test_kill_while_a_record_is_written(self, dperm, tmp_path):
        words = (*STUDY, "out=study")
        done = subprocess.run([sys.executable, "-c", KILLED, ".parquet", *words], cwd=tmp_path)
        assert done.returncode == -signal.SIGKILL
        assert not list((tmp_path / "study" / "records").glob("[!.]*"))
        assert dperm(*words).code == 0
        assert len(list((tmp_path / "study" / "records").iterdir())) == 2
        list_files(tmp_path)
