"""Counts of a preparation: what a neighbour moves, thresholds, and the guarantee computed."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import private_columns
from dperm_cli.privacy import preparation
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import Approx

GIVEN = {
    "target": {"column": "cost", "kind": "number", "bounds": "private"},
    "columns": {
        "age": {"kind": "number", "bounds": "private"},
        "ward": {"kind": "category", "values": "private"},
        "sex": {"kind": "category", "values": ["f", "m"]},
    },
}
CELLS = ("12", "-3.5", "1e300", "-inf", "nan", "", "words", "0", "1e-300", "a", "b", "\x07", "é")


def make_cells(rng, n):
    return {name: rng.choice(CELLS, n).tolist() for name in ("cost", "age", "ward")}


def count(cells):
    asked = private_columns.read_private(GIVEN, "schema.yaml")
    return private_columns.count_columns(asked, [(cells, np.ones(len(cells["age"]), bool))])


def find_distance(one, other):
    words = [
        abs(a[word] - b[word])
        for a, b in zip(one.words, other.words, strict=True)
        for word in {*a, *b}
    ]
    return float(np.abs(one.bins - other.bins).sum()) + sum(words)


@pytest.mark.parametrize("seed", range(5))
def test_a_neighbour_moves_the_counts_no_farther_than_is_paid_for(seed):
    rng = np.random.default_rng(seed)
    cells = make_cells(rng, 30)
    plan = preparation.plan_preparation(2, 1, 1, 1.0, 1e-6, "replace_one")
    farthest = 0.0
    for _ in range(40):
        place, other = int(rng.integers(30)), make_cells(rng, 1)
        replaced = {k: [*v[:place], *other[k], *v[place + 1 :]] for k, v in cells.items()}
        removed = {k: [*v[:place], *v[place + 1 :]] for k, v in cells.items()}
        farthest = max(farthest, find_distance(count(cells), count(replaced)))
        assert find_distance(count(cells), count(removed)) <= plan.event.record_norm / 2
    assert 4.0 <= farthest <= plan.event.record_norm == 6.0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("at_most", [1, 3])
def test_the_event_is_worth_the_epsilon(relation, at_most):
    plan = preparation.plan_preparation(3, 2, at_most, 0.7, 1e-5, relation)
    events = [plan.event, Approx(0.0, plan.delta, relation=relation)]
    assert account(events, delta=1.01e-5, relation=relation).epsilon <= 0.7 * (1.0 + 1e-9)
    assert account([plan.event], delta=0.0, relation=relation).epsilon == pytest.approx(0.7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_one_word_of_one_person_by_exact_laws(epsilon, delta):
    """A person's own word against a common one: the hockey-stick divergence in both directions."""
    plan = preparation.plan_preparation(0, 1, 1, epsilon, delta, "replace_one")
    scale, passes = plan.event.scale, plan.word_threshold
    own = 0.5 * math.exp(-(passes - 1.0) / scale)  # that the person's word passes
    assert own <= delta
    # the common word's count differs by 1: the likelihood ratio is at most e^(1/scale)
    assert math.exp(1.0 / scale) <= math.exp(epsilon) * (1.0 - own)
    assert own + max(0.0, (1.0 - own) - math.exp(epsilon - 1.0 / scale)) <= delta


def test_thresholds():
    plan = preparation.plan_preparation(2, 1, 3, 0.5, 1e-7, "replace_one")
    assert plan.event.scale == 36.0
    empty = 2 * preparation.BINS * 2
    taken = empty * 0.5 * math.exp(-(plan.bin_threshold - 0.5) / 36.0)
    assert taken == pytest.approx(preparation.EMPTY_TAKEN)
    assert plan.word_threshold > 3 + 36.0 * math.log(3 / 2e-7)
    alone = preparation.plan_preparation(1, 0, 1, 2.0, 0.0, "add_remove")
    assert (alone.event.scale, alone.word_threshold, alone.delta) == (0.5, math.inf, 0.0)


@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_words_need_a_delta(delta):
    with pytest.raises(InputError, match="delta"):
        preparation.plan_preparation(0, 1, 1, 1.0, delta, "replace_one")


def test_the_vector_of_the_source():
    """64 bins at epsilon 1 under replace_one: scale 2, threshold 1/2 + 2 ln 3200."""
    plan = preparation.plan_preparation(1, 0, 1, 1.0, 0.0, "replace_one")
    one_sign = 0.5 + plan.event.scale * math.log(64 / (2.0 * 0.01))
    assert one_sign == pytest.approx(16.642, abs=5e-4)
    assert plan.bin_threshold == pytest.approx(one_sign + 2.0 * math.log(2.0))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (1.0, (1, 32)), (1.999, (1, 32)), (2.0, (1, 33)), (-0.5, (0, 31)), (math.inf, (1, 63)),
        (2.0**-32, (1, 0)), (2.0**-33, None), (0.0, None), (math.nan, None),
    ],
)  # fmt: skip
def test_bins(value, place):
    assert preparation.find_bin(value) == place


def test_bounds_are_read_off_noisy_bins():
    noisy = np.zeros((2, preparation.BINS))
    assert preparation.read_bounds(noisy, 10.0) is None
    noisy[1, 32 + 6] = noisy[1, 32 + 2] = 10.0
    assert preparation.read_bounds(noisy, 10.0) == (0.0, 128.0)
    assert preparation.read_bounds(noisy, 10.0, positive=True) == (4.0, 128.0)
    noisy[0, 32] = 11.0
    assert preparation.read_bounds(noisy, 10.0) == (-2.0, 128.0)
    assert preparation.read_bounds(np.flip(noisy, 0), 12.0, positive=True) is None


@pytest.mark.stat
def test_counts_come_back_with_the_noise_of_the_plan():
    """Of 20 releases with 128 counts: the mean of |noise| / scale is 1 up to 5 standard errors."""
    plan = preparation.plan_preparation(1, 1, 1, 2.0, 1e-3, "replace_one")
    bins, off = np.zeros((1, 2, preparation.BINS), dtype=np.int64), []
    bins[0, 1, 40] = 1000
    words = [Counter(common=500, rare=1)]
    for _ in range(20):
        noisy, found = preparation.release_counts(plan, bins, words, plan.open_secure_gate())
        off.append(np.abs(noisy - bins).ravel() / plan.event.scale)
        assert set(found[0]) == {"common"}
        assert noisy[0, 1, 40] == pytest.approx(1000, abs=60)
    every = np.concatenate(off)
    assert abs(float(np.mean(every)) - 1.0) < 5.0 / math.sqrt(len(every))
