"""The examples that are scripts and Makefiles: what can run on one machine runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors import tutorials

EXAMPLES = tutorials.FOLDER.parents[1] / "examples"


def run_there(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    given = tutorials.make_environment(folder) | variables
    done = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_the_makefile_of_a_paper_makes_what_is_missing(tmp_path):
    work = tmp_path / "own_paper"
    shutil.copytree(EXAMPLES / "own_paper", work)
    run_there(["make", "-s"], work)
    assert re.search("^confirmed  ", (work / "build/verdicts.txt").read_text(), re.M)
    built = [work / "build" / name for name in ("risk.pdf", "risk.tex", "verdicts.txt")]
    assert all(path.stat().st_size > 100 for path in built)
    claims = json.loads((work / "build/steps/claims.json").read_text())
    assert "below_floor" in json.dumps(claims)
    before = [path.stat().st_mtime_ns for path in built]
    run_there(["make", "-s"], work)
    assert [path.stat().st_mtime_ns for path in built] == before


@pytest.mark.slow
def test_a_sweep_on_a_dask_cluster(tmp_path):
    pytest.importorskip("distributed")
    script = EXAMPLES / "sweep" / "dask_cluster.py"
    done = run_there([sys.executable, str(script), "sweep", "", "500"], tmp_path)
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line[:1] == "|"]
    assert rows.count("objective_perturbation") == rows.count("noisy_gd") == 3


def test_the_words_of_the_sweep_on_slurm(tmp_path):
    done = run_there(["sh", str(EXAMPLES / "sweep" / "slurm.sh")], tmp_path, SBATCH="no")
    assert "noisy_sgd" in done.stdout or "cells" in done.stdout
    assert not (tmp_path / "sweep").exists()


def test_the_page_of_examples_names_what_is_there():
    page = (EXAMPLES / "README.md").read_text()
    for path in (*EXAMPLES.iterdir(), *(EXAMPLES / "sweep").iterdir()):
        if path.name not in ("README.md", "__pycache__") and not path.name.startswith("."):
            assert path.name in page or os.sep + path.name in page, path.name
