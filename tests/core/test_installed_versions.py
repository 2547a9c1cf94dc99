"""Versions by the names of folders are those that the packages themselves state."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from dperm_cli.core import installed_versions
from dperm_cli.core.installed_versions import find_version

LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "matplotlib", "hydra-core", "omegaconf")


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_folder_states_what_the_package_does(package):
    find_version.cache_clear()
    assert find_version(package) == metadata.version(package)


def test_what_is_not_installed_has_none():
    assert find_version("no-such-package-of-anybody") is None


def test_the_first_folder_counts_and_a_longer_name_is_another(tmp_path, monkeypatch):
    for name in ("made_up-1.5.dist-info", "made_up_too-3.0.dist-info"):
        (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "b" / "made_up-2.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", ["", "/nowhere", str(tmp_path / "a"), str(tmp_path / "b")])
    find_version.cache_clear()
    installed_versions._list_names.cache_clear()
    assert (find_version("Made.Up"), find_version("made_up_too")) == ("1.5", "3.0")
    find_version.cache_clear()
    installed_versions._list_names.cache_clear()


def test_nothing_that_takes_long_is_imported_for_it():
    program = (
        "import sys; from dperm_cli.core.installed_versions import find_version\n"
        "assert find_version('numpy')\n"
        "assert 'importlib.metadata' not in sys.modules"
    )
    program = f"import sys; sys.path[:] = {sys.path!r}\n{program}"
    subprocess.run([sys.executable, "-S", "-c", program], check=True)
