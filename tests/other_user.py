"""Programs that root starts as a user who owns nothing, by an interpreter it can run."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534
LIBRARIES = sysconfig.get_path("purelib")


def run_as_nobody(command, folder, environment):
    return subprocess.run(
        command, cwd=folder, env=environment, user=NOBODY, group=NOBODY, extra_groups=[],
        umask=0o022, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def open_folder():
    """A folder that everybody can reach: those of pytest are for their owner alone."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def interpreter(open_folder):
    """One of this version, that another user can run with the libraries of this one."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (os.path.realpath(sys.executable), f"/usr/bin/{version}"):
        code = f"import sys; sys.path.append({LIBRARIES!r}); import numpy, numba, pyarrow"
        try:
            tried = run_as_nobody([found, "-c", code], open_folder, {})
        except OSError:
            continue
        if not tried.returncode:
            return found
    pytest.skip("no interpreter of this version that another user can run")
