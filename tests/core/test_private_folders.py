"""Machine code is kept where nobody else can write, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile

import pytest

from dperm_cli.core import private_folders


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Places for every cache, and a package that cannot be written beside its code."""
    for name in ("home", "cache", "temporary", "package"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "package" / "__pycache__").write_text("in the way")
    # numba of this process stays as it is
    monkeypatch.setitem(private_folders.sys.modules, "numba", None)
    monkeypatch.delitem(private_folders.sys.modules, "numba")
    return tmp_path


def settle(place):
    """Whether code is kept, and the folder below ``place``."""
    kept = private_folders.settle_numba.__wrapped__(place / "package")
    folder = os.environ.pop("NUMBA_CACHE_DIR", None)
    return kept, folder and os.path.relpath(folder, place)


def block(folder):
    """Put a file in the place of a folder: nobody can write there, not even root."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("in the way")


def test_the_package_is_first(place):
    (place / "package" / "__pycache__").unlink()
    assert settle(place) == (True, None)


def test_each_place_stands_in_for_the_one_before(place):
    assert settle(place) == (True, "cache/numba")
    block(place / "cache")
    assert settle(place) == (True, "home/.cache/dperm/numba")
    block(place / "home")
    assert settle(place) == (True, f"temporary/dperm-{os.getuid()}/numba")
    assert stat.S_IMODE((place / "temporary" / f"dperm-{os.getuid()}").stat().st_mode) == 0o700
    block(place / "temporary")
    assert settle(place) == (False, None)


def test_without_a_cache_folder_or_a_home(place, monkeypatch):
    monkeypatch.delenv("DPERM_CACHE_DIR")
    monkeypatch.setenv("HOME", str(place / "home" / "x"))
    block(place / "home" / "x")
    assert settle(place) == (True, f"temporary/dperm-{os.getuid()}/numba")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
@pytest.mark.parametrize("name", ["cache", "cache/numba"])
def test_a_folder_that_others_can_write_to_is_not_used(name, mode, place):
    (place / name).mkdir(exist_ok=True)
    (place / name).chmod(mode)
    open_to_others = mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert settle(place)[1] == ("home/.cache/dperm/numba" if open_to_others else "cache/numba")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["cache", "cache/numba"])
def test_a_folder_of_another_user_is_not_used(name, place):
    (place / name).mkdir(exist_ok=True)
    os.chown(place / name, 12345, 12345)
    assert settle(place)[1] == "home/.cache/dperm/numba"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_name_in_the_temporary_folder_may_be_taken(place):
    block(place / "cache")
    block(place / "home")
    mine = place / "temporary" / f"dperm-{os.getuid()}"
    mine.mkdir()
    os.chown(mine, 12345, 12345)
    assert settle(place) == (False, None)


def test_a_package_that_is_closed_does_not_trust_open_code_beside_it(place):
    beside = place / "package" / "__pycache__"
    beside.unlink()
    beside.mkdir()
    beside.chmod(0o777)
    assert settle(place)[1] == "cache/numba"


def test_what_the_user_asks_for_is_checked_as_well(place, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(place / "own"))
    assert settle(place) == (True, "own")
    (place / "own").chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(place / "own"))
    assert settle(place)[1] == "cache/numba"


def test_a_link_is_followed_to_its_folder(place):
    (place / "elsewhere").mkdir(mode=0o700)
    (place / "cache").rmdir()
    (place / "cache").symlink_to(place / "elsewhere")
    assert settle(place)[1] == "elsewhere/numba"
