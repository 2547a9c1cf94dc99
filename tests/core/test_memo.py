"""The memo: its byte budget holds, and what was used last stays."""

from __future__ import annotations

import copy
import doctest
import pickle
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import memo as module
from dperm_cli.core.memo import Memo, clear_memos, measure_bytes, memoise

KILO = np.zeros(1000, dtype=np.uint8)


@dataclass
class Pair:
    """Something with fields."""

    left: object
    right: object


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (np.zeros(10), 80), ("ab", 2), (b"abc", 3), (None, 0), (3.5, 0), (len, 0), (np.ndarray, 0),
        ([np.zeros(1), (np.zeros(2), {"k": np.zeros(3)})], 49),
        (Pair(np.zeros(4), Pair("x", None)), 33),
        (Pair(KILO, KILO), 1000), ([KILO[:1], KILO[5:]], 1000),
        (sparse.csr_array(np.eye(10)), 164), (np, 0),
    ],
)  # fmt: skip
def test_what_a_value_holds_is_measured_once(value, size):
    # a sparse array keeps a few words beside its three parts
    assert size <= measure_bytes(value) <= size + 10 * sparse.issparse(value)


def test_a_value_that_holds_itself_is_measured():
    ring = Pair(np.zeros(1), None)
    ring.right = ring
    assert measure_bytes(ring) == 8


def test_the_budget_holds_and_the_least_recently_used_goes_first():
    memo = Memo(4000)
    for key in "abc":
        memo.put(key, KILO.copy())
    assert memo.get("a") is not None  # used now: b is the oldest
    memo.put("d", KILO.copy())
    assert [key in memo for key in "abcd"] == [True, False, True, True]
    for number in range(200):
        memo.put(str(number), np.zeros(number * 5, dtype=np.uint8))
        assert memo.held <= memo.budget
    assert "199" in memo
    assert "a" not in memo


def test_a_value_is_made_once_while_it_is_kept():
    memo, made = Memo(3000), []

    def make(key):
        made.append(key)
        return KILO.copy()

    for key in ("a", "a", "b", "a", "c", "b"):
        memo.recall(key, lambda key=key: make(key))
    assert made == ["a", "b", "c", "b"]


def test_one_value_above_the_budget_stays_until_the_next():
    memo = Memo(500)
    memo.put("large", KILO)
    assert memo.get("large") is KILO
    memo.put("small", np.zeros(1))
    assert ("large" in memo, "small" in memo) == (False, True)
    assert memo.held <= memo.budget


def test_a_value_that_grows_is_measured_when_it_is_used():
    memo, growing = Memo(5000), Pair(None, None)
    memo.put("a", np.zeros(100))
    memo.put("growing", growing)
    assert "a" in memo
    growing.left = np.zeros(550)
    assert memo.get("growing") is growing
    assert "a" not in memo


def test_a_replaced_value_is_not_counted_twice():
    memo = Memo(5000)
    for _ in range(10):
        memo.put("a", KILO.copy())
    assert len(memo) == 1
    assert memo.held < 1300
    memo.clear()
    assert (len(memo), memo.held) == (0, 0)


def test_a_number_of_values_may_be_the_limit():
    memo = Memo(10**9, most=2)
    for key in "abc":
        memo.put(key, key)
    assert [key in memo for key in "abc"] == [False, True, True]


def test_a_failure_is_not_kept():
    memo = Memo(1000)
    with pytest.raises(ZeroDivisionError):
        memo.recall("a", lambda: 1 / 0)
    assert memo.recall("a", lambda: 2) == 2


@pytest.mark.parametrize("take", [copy.deepcopy, lambda memo: pickle.loads(pickle.dumps(memo))])
def test_a_copy_is_empty(take):
    memo = Memo(1000, most=3)
    memo.put("a", 1)
    other = take(memo)
    assert (len(other), other.budget, other.most, len(memo)) == (0, 1000, 3, 1)


def test_functions_are_remembered_by_their_arguments():
    calls = []

    @memoise(budget=10_000)
    def make_table(rows, *, columns=2):
        """A table."""
        calls.append((rows, columns))
        return np.zeros((rows, columns))

    assert make_table(3) is make_table(3)
    assert make_table(3, columns=4) is not make_table(3)
    assert (calls, make_table.__doc__) == ([(3, 2), (3, 4)], "A table.")
    clear_memos()
    make_table(3)
    assert calls[-1] == (3, 2)


def test_threads_may_share_one():
    memo = Memo(20_000)

    def work():
        for number in range(300):
            assert memo.recall(number % 40, lambda: np.zeros(100)).shape == (100,)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert memo.held == sum(size for _, size, _ in memo._values.values()) <= memo.budget


def test_the_examples():
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 3) == (0, True)
