"""The seed tree: leaves never share a key and do not depend on order."""

from __future__ import annotations

import numpy as np

from dperm_cli.core.seeds import generator, seed_sequence


def key_words(*leaf):
    """The two words that the key of a compiled stream is made of."""
    return seed_sequence(*leaf).generate_state(2, np.uint64)


def test_leaves_differ_in_their_first_128_bits():
    leaves = [
        tuple(key_words(seed, role, path, trial))
        for seed in (0, 1, 2**40)
        for role in ("noise", "dataset")
        for path in ("a", "b")
        for trial in range(200)
    ]
    assert len(set(leaves)) == len(leaves)


def test_path_parts_cannot_run_together():
    one = key_words(0, "noise", "ab", "c")
    other = key_words(0, "noise", "a", "bc")
    assert not np.array_equal(one, other)


def test_same_leaf_same_bytes():
    draws = [generator(seed_sequence(7, "split", "x")).integers(0, 2**63, 8) for _ in range(2)]
    assert np.array_equal(*draws)


def test_known_bytes():
    """Pinned, so that a change of the seed scheme cannot go unnoticed."""
    words = [int(word) for word in key_words(0, "noise", "cell", 0)]
    assert words == [2679509614164886606, 1210194344683338281]
