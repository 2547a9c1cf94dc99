"""Work that is shared by threads: all of it, in order, by no more threads than were asked for."""

from __future__ import annotations

import threading
import time

import pytest

from dperm_cli.loops.thread_count import count_threads, run_in_threads, use_threads


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_is_done_in_the_order_of_the_items(threads, count):
    with use_threads(threads):
        assert run_in_threads(lambda item: item * item, range(count)) == [
            item * item for item in range(count)
        ]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_no_more_threads_work_than_were_asked_for(threads):
    seen, most, lock = set(), [0, 0], threading.Lock()

    def work(_):
        with lock:
            most[0] += 1
            most[1] = max(most)
        seen.add(threading.get_ident())
        time.sleep(0.002)
        with lock:
            most[0] -= 1

    with use_threads(threads):
        run_in_threads(work, range(40))
    assert len(seen) == most[1] == threads
    assert threading.get_ident() in seen


def test_work_that_is_shared_starts_no_further_threads():
    with use_threads(4):
        inner = run_in_threads(lambda _: count_threads(), range(12))
        assert count_threads() == 4
    assert set(inner) == {1}


@pytest.mark.parametrize("failing", ["the calling thread", "another thread", "all threads"])
def test_an_error_ends_the_work_and_is_raised(failing):
    caller, done = threading.get_ident(), []

    def work(item):
        is_caller = threading.get_ident() == caller
        if failing == "all threads" or is_caller == (failing == "the calling thread"):
            raise ZeroDivisionError(item)
        done.append(item)
        time.sleep(0.005)

    with use_threads(2), pytest.raises(ZeroDivisionError):
        run_in_threads(work, range(400))
    assert len(done) < 100
