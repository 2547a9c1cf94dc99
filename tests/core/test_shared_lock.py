"""Shared locks: many hold one at once, and whoever is alone tidies."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest

from dperm_cli.core.shared_lock import NO_LOCKS, is_locked, share_lock

HOLD = """
import sys, time
from pathlib import Path
from dperm_cli.core.shared_lock import share_lock
with share_lock(Path(sys.argv[1]), lambda: True):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "work" / "lease"


def test_the_first_and_the_last_tidy_and_nobody_between(lock):
    said = []

    def tidy(who):
        return lambda: said.append(who) is None

    with share_lock(lock, tidy("first")):
        with share_lock(lock, tidy("second")):
            assert said == ["first"]
        assert said == ["first"]
        assert lock.exists()
    assert said == ["first", "first"]
    assert not lock.parent.exists()


def test_the_file_stays_when_tidying_says_so(lock):
    with share_lock(lock, lambda: False):
        pass
    assert lock.exists()
    assert not is_locked(lock)


def test_a_killed_holder_leaves_the_next_one_alone(lock):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    said = []
    with share_lock(lock, lambda: said.append(1) is None):
        assert said == []
    assert said == []
    child.kill()
    child.communicate()
    with share_lock(lock, lambda: said.append(1) is None):
        assert said == [1]
    assert not lock.parent.exists()


def test_whoever_comes_and_goes_never_tidies_beside_another(lock):
    """Threads open files of their own, so that they are to one another as processes are."""
    inside, beside, turns = [], [], []

    def tidy():
        beside.extend(inside)
        time.sleep(1e-4)
        beside.extend(inside)
        return True

    def work():
        for _ in range(50):
            with share_lock(lock, tidy):
                inside.append(1)
                turns.append(lock.exists())
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert turns == [True] * 400
    assert beside == []
    assert not lock.parent.exists()


@pytest.mark.parametrize("code", NO_LOCKS)
def test_a_file_system_without_locks_is_an_error(lock, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=os.strerror(code)), share_lock(lock, lambda: True):
        pass
    assert not is_locked(lock)


def test_what_is_in_the_way_is_named(lock):
    lock.parent.write_text("a file")
    with pytest.raises(FileExistsError) as caught, share_lock(lock, lambda: True):
        pass
    assert caught.value.errno == errno.EEXIST
