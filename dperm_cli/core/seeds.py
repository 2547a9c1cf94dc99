"""Derive random seeds: every random number has a key that says what it is for.

A leaf is named by (seed, role, path); two leaves with different names never share a key,
and nothing depends on the order in which leaves are asked for.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.core.digests import hash_parts


def seed_sequence(seed: int, role: str, *path: object) -> np.random.SeedSequence:
    """The SeedSequence of one leaf of the tree.

    ``seed`` is the user's base seed (a non-negative integer); ``role`` and ``path`` say what is
    drawn (``"noise", cell_hash, trial``). The name is hashed to 128 bits, so that no arithmetic
    on seeds can make two leaves collide.
    """
    name = "\x1f".join([role, *(str(part) for part in path)])
    words = np.frombuffer(bytes.fromhex(hash_parts(name)), dtype="<u4")
    return np.random.SeedSequence([seed, *(int(word) for word in words)])


def generator(sequence: np.random.SeedSequence) -> np.random.Generator:
    """A counter-based generator for a leaf (Philox: the same bytes on every platform)."""
    return np.random.Generator(np.random.Philox(sequence))
