"""What a user names as output is written to: devices, pipes and links are never replaced."""

from __future__ import annotations

import contextlib
import io
import os
import select
import socket
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.breaks._files import NAMES, WAYS, make_rows, write_named, write_table_with_test


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model file and rows to predict, made once."""
    from dperm_cli.cli import main

    folder = tmp_path_factory.mktemp("trained")
    words = write_table_with_test(folder, make_rows(100), make_rows(20, seed=9))
    words += [*WAYS["plain"], "ridge=0.05", "epsilon=8", "trials=1", "delta=1e-5"]
    assert main(["run", *words, f"out={folder}/study", f"save={folder}/m.npz"]) == 0
    write_named(folder / "rows.csv", make_rows(4, seed=5)[:, :3], NAMES)
    return folder, words


def predict_words(trained, path):
    return ["predict", str(trained[0] / "m.npz"), str(trained[0] / "rows.csv"), f"out={path}"]


def save_words(trained, path):
    return ["run", *trained[1], f"out={path.parent}/study", f"save={path}"]


def claims_words(trained, path):
    return ["reproduce", "claims", f"out={path}"]


DOORS = {"predict out=": (predict_words, "out.csv"), "run save=": (save_words, "m.npz"),
         "claims out=": (claims_words, "claims.md")}  # fmt: skip


@pytest.fixture(params=DOORS)
def door(request, trained, tmp_path):
    """(words for a path, a path whose name the door takes)."""
    words, name = DOORS[request.param]
    (tmp_path / "named").mkdir()
    return (lambda path: words(trained, path)), tmp_path / "named" / name


def make_null_device(path: Path) -> None:
    """A private device that takes everything, as /dev/null does."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.chmod(0o666)
        with open(path, "wb") as file:
            file.write(b"taken")
    except OSError as error:
        pytest.skip(f"this user cannot make or open devices: {error}")


def test_a_device_is_written_to(door, dperm):
    words, path = door
    make_null_device(path)
    before = path.stat()
    done = dperm(*words(path))
    after = path.lstat()
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_mode, after.st_rdev) == (
        before.st_ino, before.st_mode, before.st_rdev)  # fmt: skip
    assert done.code == 0, done.err
    assert sorted(os.listdir(path.parent)) in ([path.name], sorted([path.name, "study"]))


def test_a_pipe_gets_the_bytes_that_a_file_gets(door, dperm):
    words, path = door
    assert dperm(*words(path)).code == 0
    expected = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    # opened for both: neither side then waits for a partner that never comes
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    got: list[bytes] = []
    ended = threading.Event()

    def read():
        while select.select([descriptor], [], [], 0.05)[0] or not ended.is_set():
            with contextlib.suppress(BlockingIOError):
                got.append(os.read(descriptor, 1 << 16))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    done = dperm(*words(path))
    ended.set()
    reader.join(10.0)
    os.close(descriptor)
    assert stat.S_ISFIFO(path.lstat().st_mode)
    assert done.code == 0, done.err
    assert unpacked(path, b"".join(got)) == unpacked(path, expected)


def unpacked(path: Path, data: bytes):
    """What an archive holds, as the same arrays may be packed differently; else the bytes."""
    if path.suffix != ".npz":
        return data
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name].tobytes() for name in archive.files}


def old_content(path):
    """What a file holds that is written over; ``save=`` writes over nothing."""
    return b"" if path.suffix == ".npz" else b"old"


@pytest.mark.parametrize("kind", ["absolute", "relative", "chain", "dangling"])
def test_a_link_is_followed_to_its_file(kind, door, dperm, tmp_path):
    words, path = door
    target = tmp_path / "elsewhere" / path.name
    target.parent.mkdir()
    if kind != "dangling":
        target.write_bytes(old_content(path))
    if kind == "relative":
        path.symlink_to(Path("..") / "elsewhere" / path.name)
    elif kind == "chain":
        (tmp_path / "middle").symlink_to(target)
        path.symlink_to(tmp_path / "middle")
    else:
        path.symlink_to(target)
    done = dperm(*words(path))
    assert done.code == 0, done.err
    assert path.is_symlink()
    assert not target.is_symlink()
    assert len(target.read_bytes()) > 3


def test_a_link_to_a_device_is_written_to(door, dperm, tmp_path):
    words, path = door
    make_null_device(tmp_path / "null")
    path.symlink_to(tmp_path / "null")
    dperm(*words(path))
    assert path.is_symlink()
    assert stat.S_ISCHR((tmp_path / "null").lstat().st_mode)


def test_a_link_in_a_circle_is_refused(door, dperm):
    words, path = door
    path.symlink_to(path)
    done = dperm(*words(path))
    assert path.is_symlink()
    assert os.readlink(path) == str(path)
    assert done.code in (2, 3)
    assert done.out == ""


def test_a_socket_is_refused(door, dperm, monkeypatch):
    words, path = door
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(path.parent)  # a socket's path is short
        listener.bind(path.name)
        done = dperm(*words(path))
        assert stat.S_ISSOCK(path.lstat().st_mode)
    assert done.code in (2, 3)
    assert done.err.splitlines()[-1].startswith("dperm: ")


def test_a_folder_is_refused(door, dperm):
    words, path = door
    path.mkdir()
    (path / "kept").write_text("kept")
    done = dperm(*words(path))
    assert done.code in (2, 3)
    assert (path / "kept").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o640, 0o666, 0o600, 0o751])
def test_a_regular_file_keeps_its_rights(mode, door, dperm):
    words, path = door
    path.write_bytes(old_content(path))
    path.chmod(mode)
    done = dperm(*words(path))
    assert done.code == 0, done.err
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() not in (b"", b"old")


def test_a_saved_model_replaces_nothing(trained, dperm, tmp_path):
    """Neither a file of somebody else nor another release; the same release may be saved again."""
    path = tmp_path / "m.npz"
    path.write_bytes(b"old")
    done = dperm(*save_words(trained, path))
    assert done.code == 2
    assert "a release replaces nothing" in done.err
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == (b"old", ["m.npz"])
    path.unlink()
    assert dperm(*save_words(trained, path)).code == 0
    saved = path.read_bytes()
    assert dperm(*save_words(trained, path)).code == 0
    others = dperm(*save_words(trained, path), "seed=5")
    assert (others.code, path.read_bytes()) == (2, saved)
    looked_up = tmp_path / "n.npz"
    assert dperm(*save_words(trained, looked_up), "seed=5").code == 0
    late = dperm(*save_words(trained, path), "seed=5")
    assert (late.code, path.read_bytes()) == (2, saved)
    assert late.err.count("a release replaces nothing") == 1


def test_a_refused_run_leaves_the_named_file_as_it_was(trained, dperm, tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    bad = tmp_path / "bad.csv"
    bad.write_text("c0,c1,c2\n0.1,word,0.2\n")
    done = dperm("predict", str(trained[0] / "m.npz"), str(bad), f"out={path}")
    assert done.code == 2
    assert path.read_bytes() == b"old"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_new_files_have_the_rights_that_the_user_asks_for(door, dperm):
    words, path = door
    before = os.umask(0o027)
    try:
        done = dperm(*words(path))
    finally:
        os.umask(before)
    assert done.code == 0, done.err
    assert stat.S_IMODE(path.stat().st_mode) & 0o137 == 0


def test_the_output_of_predict_is_what_it_prints(trained, dperm, tmp_path):
    path = tmp_path / "out.csv"
    assert dperm(*predict_words(trained, path)).code == 0
    printed = dperm(*predict_words(trained, path)[:-1]).out
    assert path.read_text() == printed
    assert np.isfinite(float(printed.splitlines()[1].split(",")[0]))
