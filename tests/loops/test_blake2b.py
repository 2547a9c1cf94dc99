"""Digests of many messages are those of hashlib."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from dperm_cli.loops.blake2b import hash_messages


@pytest.mark.parametrize("key", [b"k", b"dperm-record-1", bytes(range(64))])
def test_digests_are_those_of_hashlib(key):
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.arange(1, 70), rng.integers(1, 200, 50)])
    ends = np.cumsum(lengths)
    words = rng.integers(0, 2**64, size=ends[-1] + 3, dtype=np.uint64)
    content, found = words.astype("<u8").tobytes(), hash_messages(key, words, ends)
    for end, length, digest in zip(ends, lengths, found, strict=True):
        message = content[8 * (end - length) : 8 * end]
        wanted = hashlib.blake2b(message, key=key, digest_size=8).digest()
        assert int(digest) == int.from_bytes(wanted, "little")


def test_no_messages_have_no_digests():
    assert hash_messages(b"k", np.empty(0, np.uint64), np.empty(0, np.int64)).shape == (0,)


def test_messages_outside_the_words_and_wrong_keys_are_refused():
    words = np.zeros(4, np.uint64)
    for ends in ([0], [2, 2], [3, 1], [5], [-1]):
        with pytest.raises(ValueError, match="messages"):
            hash_messages(b"k", words, np.array(ends))
    for key in (b"", bytes(65)):
        with pytest.raises(ValueError, match="key"):
            hash_messages(key, words, np.array([1]))
