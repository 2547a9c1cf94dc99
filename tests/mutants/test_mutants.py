"""Bugs put into a copy of the package are found, and harmless changes are not flagged."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import patches
from tests.mutants.checks import CHECKS
from tests.mutants.edits import apply_edit
from tests.mutants.patches import HARMLESS
from tests.mutants.patches_paths import PATHS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

# `make test` makes every sixteenth mutant and the checks of these, `make test-slow` all
EVERY = 16
BROKEN = (*patches.BROKEN, *PATHS)
FEW = BROKEN[::EVERY]
CHECKED = {"few": sorted({patch.check for patch in FEW}), "every": list(CHECKS)}


@pytest.fixture(scope="module")
def faults(request, tmp_path_factory):
    """{job: {check: reason}} of one run of the driver over all that the tests here ask for."""
    asked = [i.callspec.params for i in request.session.items
             if i.path == request.path and hasattr(i, "callspec")]  # fmt: skip
    broken = [found["patch"] for found in asked if "patch" in found]
    jobs = [{"name": p.name, "patches": [p._asdict()], "checks": [p.check]} for p in broken]
    # all at once: a copy that passes everything has no harmless change that is flagged, and no
    # check that fails by itself
    harmless = [patch._asdict() for patch in HARMLESS]
    for which in (found["which"] for found in asked if "which" in found):
        jobs.insert(0, {"name": which, "patches": harmless, "checks": CHECKED[which]})
    folder = tmp_path_factory.mktemp("copies")
    command = [sys.executable, "-m", "tests.mutants.driver", str(ROOT), str(folder)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, input=json.dumps(jobs), capture_output=True, text=True, env=environment, cwd=ROOT,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row["faults"] for row in found}


def test_there_are_enough_of_them():
    assert len(BROKEN) >= 80
    assert len(HARMLESS) >= 5
    assert len({patch.name for patch in (*BROKEN, *HARMLESS)}) == len(BROKEN) + len(HARMLESS)
    assert {patch.check for patch in BROKEN} == set(CHECKS)


@pytest.mark.parametrize("patch", [*BROKEN, *HARMLESS], ids=lambda patch: patch.name)
def test_every_patch_still_fits_the_code(patch):
    """Told here, and not only where the slow tests run: code that moved leaves a patch behind."""
    file, text = apply_edit(ROOT / "dperm_cli", patch.symbol, patch.old, patch.new)
    assert text != ast.unparse(ast.parse((ROOT / "dperm_cli" / file).read_text())) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("which", ["few", "every"])
def test_a_copy_with_harmless_changes_passes_the_checks(which, faults):
    assert faults[which] == {}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(p, marks=() if p in FEW else pytest.mark.slow, id=p.name.replace(" ", "_"))
        for p in BROKEN
    ],
)
def test_is_caught(patch, faults):
    found = faults[patch.name]
    # a patch that no longer applies is reported under another name, and fails here
    assert list(found) == [patch.check], found
    # a patch with a name that is not there fails any check
    assert not found[patch.check].startswith(("NameError", "ImportError", "ModuleNotFoundError"))
