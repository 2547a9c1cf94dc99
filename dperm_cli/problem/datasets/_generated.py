"""What generated data sets have in common: seeds, rows in a ball, sizes that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.rng import generator, seed_sequence

# Rows are placed this far (relatively) inside the bound, so that rounding keeps them within it.
INSIDE = 1.0 - 1e-13


def leaf(seed: int, *path: str) -> np.random.Generator:
    """The generator of one part of one data set."""
    return generator(seed_sequence(int(seed), "dataset", *path))


def ball(rng: np.random.Generator, n: int, p: int, uniform: np.ndarray | None) -> np.ndarray:
    """[n, p] rows uniform on the unit sphere or, given uniform numbers [n], in the unit ball."""
    x = rng.standard_normal((n, p))
    radius = 1.0 if uniform is None else uniform ** (1.0 / p)
    x *= (INSIDE * radius / np.linalg.norm(x, axis=1))[:, None]
    return x


@contextmanager
def fitting(n: int, p: int) -> Iterator[None]:
    """InputError about ``dataset.n`` when the records do not fit into memory."""
    try:
        yield
    except InputError:
        raise
    except (MemoryError, ValueError):
        allowed = "these rows do not fit into memory"
        raise InputError("dataset.n", f"{n} (p={p})", allowed) from None
