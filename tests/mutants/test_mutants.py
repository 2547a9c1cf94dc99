"""Bugs put into a copy of the package are found, and harmless changes are not flagged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.checks import CHECKS
from tests.mutants.patches import BROKEN, HARMLESS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """{job: {check: reason}} of one run of the driver over everything."""
    jobs = [{"name": p.name, "patches": [p._asdict()], "checks": [p.check]} for p in BROKEN]
    # all at once: a copy that passes everything has no harmless change that is flagged, and no
    # check that fails by itself
    harmless = [patch._asdict() for patch in HARMLESS]
    jobs.insert(0, {"name": "harmless", "patches": harmless, "checks": list(CHECKS)})
    folder = tmp_path_factory.mktemp("copies")
    command = [sys.executable, str(Path(__file__).with_name("driver.py")), str(ROOT), str(folder)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, input=json.dumps(jobs), capture_output=True, text=True, env=environment,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row["faults"] for row in found}


def test_there_are_enough_of_them():
    assert len(BROKEN) >= 20
    assert len(HARMLESS) >= 5
    assert len({patch.name for patch in (*BROKEN, *HARMLESS)}) == len(BROKEN) + len(HARMLESS)
    assert {patch.check for patch in BROKEN} == set(CHECKS)


def test_a_copy_with_harmless_changes_passes_every_check(faults):
    assert faults["harmless"] == {}


@pytest.mark.parametrize("patch", BROKEN, ids=lambda patch: patch.name.replace(" ", "_"))
def test_is_caught(patch, faults):
    found = faults[patch.name]
    # a patch that no longer applies is reported under another name, and fails here
    assert list(found) == [patch.check], found
