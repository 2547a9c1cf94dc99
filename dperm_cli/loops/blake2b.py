"""BLAKE2b of many short messages under one key, 8 bytes a digest (RFC 7693).

``hashlib`` computes the same digests, one call a message, which takes longer than the hashing.
Here a message is a run of 64-bit words, so that its bytes are a multiple of eight.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.loops.jit import compile_inline, compile_loop

DIGEST_SIZE = 8  # bytes: the first word of the state
BLOCK = 16  # words of a block
_BLOCK_BYTES = np.uint64(128)
_ZERO, _ALL = np.uint64(0), np.uint64(2**64 - 1)
_INITIAL = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
# which word of the block is used when, in each of ten rounds; two more begin again
_ORDERS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    dtype=np.uint8,
)


@compile_inline
def _rotate(word, right):
    """The word turned to the right by so many bits."""
    return (word >> np.uint64(right)) | (word << np.uint64(64 - right))


@compile_inline
def _mix(a, b, c, d, x, y):
    """The mixing function G: four words of the state, with two of the block."""
    a = a + b + x
    d = _rotate(d ^ a, 32)
    c = c + d
    b = _rotate(b ^ c, 24)
    a = a + b + y
    d = _rotate(d ^ a, 16)
    c = c + d
    return a, _rotate(b ^ c, 63), c, d


@compile_inline
def _compress(state, block, count, last):
    """state [8] <- the compression of block [16], after ``count`` bytes in all."""
    a0, a1, a2, a3 = state[0], state[1], state[2], state[3]
    b0, b1, b2, b3 = state[4], state[5], state[6], state[7]
    c0, c1, c2, c3 = _INITIAL[0], _INITIAL[1], _INITIAL[2], _INITIAL[3]
    d0, d1, d3 = _INITIAL[4] ^ count, _INITIAL[5], _INITIAL[7]
    d2 = _INITIAL[6] ^ (_ALL if last else _ZERO)
    for r in range(12):
        m = _ORDERS[r % 10]
        a0, b0, c0, d0 = _mix(a0, b0, c0, d0, block[m[0]], block[m[1]])
        a1, b1, c1, d1 = _mix(a1, b1, c1, d1, block[m[2]], block[m[3]])
        a2, b2, c2, d2 = _mix(a2, b2, c2, d2, block[m[4]], block[m[5]])
        a3, b3, c3, d3 = _mix(a3, b3, c3, d3, block[m[6]], block[m[7]])
        a0, b1, c2, d3 = _mix(a0, b1, c2, d3, block[m[8]], block[m[9]])
        a1, b2, c3, d0 = _mix(a1, b2, c3, d0, block[m[10]], block[m[11]])
        a2, b3, c0, d1 = _mix(a2, b3, c0, d1, block[m[12]], block[m[13]])
        a3, b0, c1, d2 = _mix(a3, b0, c1, d2, block[m[14]], block[m[15]])
    state[0] ^= a0 ^ c0
    state[1] ^= a1 ^ c1
    state[2] ^= a2 ^ c2
    state[3] ^= a3 ^ c3
    state[4] ^= b0 ^ d0
    state[5] ^= b1 ^ d1
    state[6] ^= b2 ^ d2
    state[7] ^= b3 ^ d3


@compile_loop
def _hash_messages(key, key_size, words, ends, out):
    """out[i] <- the digest of words[ends[i - 1] : ends[i]]; key [16 words] filled with zeros."""
    keyed, state, block = _INITIAL.copy(), np.empty(8, np.uint64), np.empty(16, np.uint64)
    keyed[0] ^= np.uint64(0x01010000) ^ (key_size << np.uint64(8)) ^ np.uint64(DIGEST_SIZE)
    _compress(keyed, key, _BLOCK_BYTES, False)
    at = 0
    for i in range(ends.size):
        state[:] = keyed
        count = _BLOCK_BYTES
        while at < ends[i]:
            taken = min(ends[i] - at, BLOCK)
            for k in range(taken):
                block[k] = words[at + k]
            for k in range(taken, BLOCK):
                block[k] = _ZERO
            at += taken
            count += np.uint64(8 * taken)
            _compress(state, block, count, at == ends[i])
        out[i] = state[0]


def hash_messages(key: bytes, words: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The keyed BLAKE2b digest of each message, 8 bytes, read as a little-endian number.

    Args:
        key: From 1 to 64 bytes.
        words: The messages one after another, uint64.
        ends: Where each ends in ``words`` [n]; each has a word at least.

    Returns:
        Digests [n], uint64: the bytes of ``hashlib.blake2b(message, key=key, digest_size=8)``.
    """
    if not 0 < len(key) <= 64:
        raise ValueError(f"a key of {len(key)} bytes: must have from 1 to 64")
    if ends.size and (ends[0] < 1 or ends[-1] > words.size or np.any(np.diff(ends) < 1)):
        raise ValueError("messages must have a word at least, and end inside ``words``")
    padded = np.frombuffer(key.ljust(128, b"\0"), dtype="<u8").astype(np.uint64)
    out = np.empty(ends.size, np.uint64)
    _hash_messages(padded, np.uint64(len(key)), words, ends.astype(np.int64), out)
    return out
