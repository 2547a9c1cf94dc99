"""The atomic writer and the lock by file name."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dperm_cli.core import files
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import hold_lock, open_atomically, read_bytes, write_atomically

# Ends, as a killed process does, when the new content is written and not yet in its place.
CRASH = """
import os, sys
from pathlib import Path
from dperm_cli.core.files import write_atomically
os.replace = lambda *_: os._exit(9)
write_atomically(Path(sys.argv[1]), b"new")
"""
HOLD = """
import sys, time
from pathlib import Path
from dperm_cli.core.files import hold_lock
with hold_lock(Path(sys.argv[1])) as held:
    print(held, flush=True)
    time.sleep(60)
"""


def test_a_crash_between_write_and_rename_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    child = subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False)
    assert child.returncode == 9
    assert path.read_bytes() == b"old"
    (left,) = [name for name in os.listdir(tmp_path) if name != "a.csv"]
    assert left.startswith(".a.csv.")
    assert left.endswith(".tmp")
    write_atomically(path, b"newer")
    assert path.read_bytes() == b"newer"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(error), open_atomically(path) as file:  # noqa: PT012
        file.write(b"half of")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_names_the_path(tmp_path, monkeypatch, call):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(StorageError, match="a: no space left on device"):
        write_atomically(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == []


def test_folders_are_made_and_private_files_are_for_their_owner(tmp_path):
    public, private = tmp_path / "b" / "c" / "d", tmp_path / "e" / "f"
    write_atomically(public, b"x")
    with open_atomically(private, sync=False, private=True) as file:
        file.write(b"y")
    assert read_bytes(public) == b"x"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    assert read_bytes(tmp_path / "absent") is None


def test_a_lock_is_had_once_and_its_file_goes_with_it(tmp_path):
    path = tmp_path / "new" / "a"
    with hold_lock(path) as first, hold_lock(path) as second:
        assert (first, second) == (True, False)
        assert path.exists()
    assert os.listdir(path.parent) == []
    with hold_lock(path) as again:
        assert again


def test_waiting_ends_with_the_holder(tmp_path):
    order = []

    def wait():
        with hold_lock(tmp_path / "a", wait=True) as held:
            order.append(("second", held))

    with hold_lock(tmp_path / "a") as held:
        other = threading.Thread(target=wait)
        other.start()
        other.join(0.05)
        order.append(("first", held))
    other.join(10.0)
    assert order == [("first", True), ("second", True)]


def test_many_who_wait_hold_it_one_at_a_time(tmp_path, monkeypatch):
    """Each takes the file away as it lets go, while the others are between opening and locking."""
    monkeypatch.setattr(files, "_LOCK_SECONDS", 1e-4)
    inside, most, turns = [], [], []

    def work():
        for _ in range(20):
            with hold_lock(tmp_path / "sub" / "a", wait=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                turns.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert (len(turns), max(most)) == (80, 1)


def test_the_lock_of_a_killed_process_is_taken(tmp_path):
    path = tmp_path / "a"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    with hold_lock(path) as held:
        assert not held
    child.kill()
    child.communicate()
    with hold_lock(path) as held:
        assert held


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_without_locks_everybody_is_granted_one(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold_lock(tmp_path / "a") as first, hold_lock(tmp_path / "a", wait=True) as second:
        assert (first, second) == (True, True)
    assert os.listdir(tmp_path) == []


def test_a_lock_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file/a"), hold_lock(tmp_path / "file" / "a"):
        pass


@pytest.mark.parametrize("error", [FileNotFoundError, FileExistsError])
def test_a_folder_that_others_take_away_meanwhile_is_made_again(tmp_path, monkeypatch, error):
    """Making a folder with its parents fails so where one of them goes in between."""
    make, failures = Path.mkdir, [error(), error()]

    def fail_at_first(path, *rest, **named):
        if failures:
            raise failures.pop()
        make(path, *rest, **named)

    monkeypatch.setattr(Path, "mkdir", fail_at_first)
    with hold_lock(tmp_path / "work" / "claims" / "a") as held:
        assert held
    assert failures == []


def test_a_file_keeps_its_rights_and_where_possible_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    write_atomically(path, b"new")
    after = path.stat()
    assert path.read_bytes() == b"new"
    assert after.st_ino != before.st_ino  # replaced, not written over
    assert stat.S_IMODE(after.st_mode) == 0o604
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_group_that_cannot_be_kept_loses_its_rights(tmp_path, monkeypatch):
    """Else the file would be open to the group of whoever replaces it."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o660)
    monkeypatch.setattr(files.os, "fchown", refuse)
    facts = os.fstat

    def of_another_group(file):
        found = facts(file)
        return os.stat_result((*found[:5], found.st_gid + 9, *found[6:10]))

    monkeypatch.setattr(files.os, "fstat", of_another_group)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("act", [lambda path: write_atomically(path, b"new"), files.remove_file])
def test_a_pipe_is_neither_replaced_nor_removed(tmp_path, act):
    path = tmp_path / "a"
    os.mkfifo(path)
    with pytest.raises(StorageError, match="a: is a pipe"):
        act(path)
    assert stat.S_ISFIFO(path.lstat().st_mode)
    assert os.listdir(tmp_path) == ["a"]


def test_files_and_links_are_removed(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("file")
    files.remove_file(tmp_path / "link")
    assert os.listdir(tmp_path) == ["file"]
    files.remove_file(tmp_path / "file")
    files.remove_file(tmp_path / "file")
    assert os.listdir(tmp_path) == []


class TestOutputFile:
    """A file that a user named."""

    def test_a_link_to_nothing_makes_its_file(self, tmp_path):
        (tmp_path / "link").symlink_to("new/file")
        files.OutputFile.of("out", str(tmp_path / "link")).write(b"new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "new" / "file").read_bytes() == b"new"

    def test_a_socket_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("a")
            with pytest.raises(InputError, match="out=a: is a socket"):
                files.OutputFile.of("out", "a")

    def test_a_descriptor_that_cannot_be_written_to_is_refused(self, tmp_path):
        (tmp_path / "a").write_bytes(b"old")
        with open(tmp_path / "a", "rb") as file:
            name = f"/dev/fd/{file.fileno()}"
            with pytest.raises(InputError, match="cannot be written to"):
                files.OutputFile.of("out", name)
        with pytest.raises(InputError, match="cannot be written to"):
            files.OutputFile.of("out", name)
        assert (tmp_path / "a").read_bytes() == b"old"

    def test_a_descriptor_goes_on_where_it_is(self, tmp_path):
        with open(tmp_path / "a", "wb", buffering=0) as file:
            file.write(b"before ")
            files.OutputFile.of("out", f"/dev/fd/{file.fileno()}").write(b"here ")
            file.write(b"after")
        assert (tmp_path / "a").read_bytes() == b"before here after"

    def test_a_link_that_became_a_loop_is_left(self, tmp_path):
        found = files.OutputFile.of("out", str(tmp_path / "a"))
        (tmp_path / "a").symlink_to("a")
        with pytest.raises(StorageError):
            found.write(b"new")
        assert (tmp_path / "a").is_symlink()


WRITING = """
import sys, time
from pathlib import Path
from dperm_cli.core.files import hold_lock, open_atomically
folder = Path(sys.argv[1])
with open_atomically(folder / "optimum.npz") as file, hold_lock(folder / ".problem.lock"):
    file.write(b"half")
    print("written", flush=True)
    time.sleep(60)
"""


def test_only_what_nobody_writes_to_is_abandoned(tmp_path):
    """A half-written file and a lock stay for the life of their process, and go after its death."""
    (tmp_path / "kept.npz").write_bytes(b"whole")
    (tmp_path / ".hidden").write_bytes(b"of others")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        before = sorted(os.listdir(tmp_path))
        assert len(before) == 4
        files.remove_abandoned(tmp_path)
        assert sorted(os.listdir(tmp_path)) == before
    finally:
        writer.kill()
        writer.communicate()
    files.remove_abandoned(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "kept.npz"]


def test_a_file_that_is_taken_for_abandoned_before_it_is_locked_is_begun_anew(
    tmp_path, monkeypatch
):
    real, seen = files.lock_alone, []

    def lock_later(file, path):
        seen.append(path)
        if len(seen) == 1:
            path.unlink()
        return real(file, path)

    monkeypatch.setattr(files, "lock_alone", lock_later)
    files.write_atomically(tmp_path / "result", b"whole")
    assert len(seen) == 2
    assert os.listdir(tmp_path) == ["result"]
    assert (tmp_path / "result").read_bytes() == b"whole"


def test_without_locks_files_are_written_and_nothing_is_abandoned(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "lock_alone", lambda file, path: None)
    files.write_atomically(tmp_path / "result", b"whole")
    left = tmp_path / ".other.1-ab.tmp"
    left.write_bytes(b"half")
    files.remove_abandoned(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [left.name, "result"]


def test_a_folder_that_is_not_there_has_nothing_abandoned(tmp_path):
    files.remove_abandoned(tmp_path / "none")
    assert os.listdir(tmp_path) == []
