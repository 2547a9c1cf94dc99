"""What the tests of secure noise share: words of a seeded generator, and the grid of an output."""

from __future__ import annotations

import dataclasses

import numpy as np

from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace

BUDGET = Budget(1.0, 1e-6)
KINDS = {"gaussian": Gaussian, "laplace": Laplace}


def source(seed=0, first=()):
    """Words of a seeded generator after the given ones."""
    rng, ahead = np.random.default_rng(seed), list(first)

    def words(count):
        begun, ahead[:] = ahead[:count], ahead[count:]
        rest = rng.integers(0, 2**64, count - len(begun), dtype=np.uint64)
        return np.concatenate([np.array(begun, np.uint64), rest])

    return words


def off_grid(values, step):
    units = values / step  # exact: the step is a power of two
    return int(np.sum(units != np.rint(units)))


def with_rows(problem, x, y):
    return dataclasses.replace(problem, data=problem.data.with_records(x, y))
