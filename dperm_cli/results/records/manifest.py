"""Build ``manifest.json``: where a study's records come from. It contains no dates."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dperm_cli
from dperm_cli.core.installed_versions import find_version

SEED_SCHEME = "Philox keyed by SeedSequence(seed, blake2b-128(role, cell, trial))"
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow")


def build(
    cells: Iterable[str], argv: Sequence[str], extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The manifest of a study: versions, git state, command, seed scheme, cells in order.

    The command is given without what no result depends on (``out=``, ``workers=``): equal runs have
    equal manifests and pages.
    """
    return {
        **(extra or {}),
        "cells": list(dict.fromkeys(cells)),
        "argv": list(argv),
        "seed_scheme": SEED_SCHEME,
        "versions": versions(),
        "git": git_state(),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python, dperm and the packages the numbers depend on, without importing them."""
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "dperm": dperm_cli.__version__,
    }
    return found | {package: find_version(package) for package in _PACKAGES}


def git_state() -> str | None:
    """The commit of the source tree (``-dirty`` when changed), None when it is no git checkout."""
    root = Path(dperm_cli.__file__).resolve().parents[1]
    if not os.path.exists(root / ".git"):
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    command += ["--exclude=*"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        return done.stdout.strip() or None
    return None
