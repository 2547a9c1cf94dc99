"""The wheel where nobody may write, used by a user who has nothing: no home, no variables.

Needs root, to become somebody else; an interpreter that this somebody can run; and a wheel, in
``dist`` or built here, for which the build needs its own tools.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.other_user import LIBRARIES, NOBODY, run_as_nobody

ROOT = Path(__file__).parents[2]
WORDS = {
    "run": ("run", "-m", "mechanism=noisy_gd,noisy_sgd", "epsilon=1", "trials=2", "out=first"),
    "report": ("report", "first"),
    "describe": ("describe", "dataset=digits", "loss=hinge", "out=described"),
    "account": ("account", "mechanism=noisy_sgd", "n=1000", "epsilon=1", "delta=1e-6"),
    "audit": ("audit", "--quick", "mechanism=noisy_gd", "workers=1"),
    "warmup": ("warmup",),
}
PLACES = ("TMPDIR", "none")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user"),
]


@pytest.fixture(scope="module")
def installed(open_folder, interpreter):
    """The interpreter of an environment with the wheel, which nobody else may write to."""
    wheels = sorted((ROOT / "dist").glob("dperm-*.whl"))
    if not wheels:
        source = open_folder / "source"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "outputs", "dist")
        shutil.copytree(ROOT, source, ignore=ignored)
        command = [sys.executable, "-m", "build", "-q", "--wheel", "-o", open_folder, source]
        built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if built.returncode:
            pytest.skip(f"no wheel can be built here: {built.stderr[-200:]}")
        wheels = sorted(open_folder.glob("dperm-*.whl"))
    subprocess.run([interpreter, "-m", "venv", "--without-pip", open_folder / "env"], check=True)
    (packages,) = (open_folder / "env").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheels[-1]).extractall(packages)
    (packages / "libraries.pth").write_text(LIBRARIES + "\n")
    # as sys.path has it first, so that no other copy of the package is used
    return open_folder / "env" / "bin" / "python"


@pytest.mark.parametrize("place", PLACES)
def test_every_verb_works_for_a_user_with_nothing(place, installed, open_folder):
    """With a temporary folder to keep machine code in, and with none."""
    folder, temporary = open_folder / f"work-{place}", open_folder / f"temporary-{place}"
    for made in (folder, temporary):
        made.mkdir()
        os.chown(made, NOBODY, NOBODY)
    environment = {"TMPDIR": str(temporary)}
    if place == "none":
        taken = temporary / f"dperm-{NOBODY}"  # the name is somebody else's
        taken.mkdir()
    words = WORDS if place == "TMPDIR" else {name: WORDS[name] for name in ("account", "run")}
    for name, verb in sorted(words.items(), key=lambda item: list(WORDS).index(item[0])):
        done = run_as_nobody([installed, "-m", "dperm_cli", *verb], folder, environment)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        assert "Traceback" not in done.stderr
        # it says where it puts its fonts when it has no place to keep them
        assert ("Matplotlib created" in done.stderr) == (place == "none" and name == "run")
    assert (folder / "first" / "table.csv").stat().st_size
    assert str(installed.parents[1]) in _where(installed, folder)
    kept = list((temporary / f"dperm-{NOBODY}").rglob("*.nbi"))
    assert bool(kept) == (place == "TMPDIR")


def test_a_study_that_cannot_be_written_is_reported(installed, open_folder):
    folder = open_folder / "shared"
    folder.mkdir()
    run = [installed, "-m", "dperm_cli", *WORDS["run"]]
    environment = {"TMPDIR": str(open_folder), "NUMBA_CACHE_DIR": str(open_folder / "code")}
    made = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True,
                          check=True)  # fmt: skip
    done = run_as_nobody([installed, "-m", "dperm_cli", "report", "first"], folder, {})
    assert (done.returncode, done.stdout) == (3, made.stdout)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("dperm:")]
    assert "permission denied; not written: table.csv, table.md, table.tex, ledger.json" in line


def _where(interpreter, folder):
    code = "import dperm_cli; print(dperm_cli.__file__)"
    return run_as_nobody([interpreter, "-c", code], folder, {}).stdout
