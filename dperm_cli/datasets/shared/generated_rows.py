"""Base classes of generated data sets: seeds, rows in a ball, and a check of memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Choices, Help, NonNegative, Positive, Range
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.datasets.base import DataSet, Size
from dperm_cli.datasets.shared.row_blocks import INSTEAD
from dperm_cli.datasets.shared.row_pipeline import Columns, DrawSeed, Records, make_data
from dperm_cli.problem.data import Data

# Rows are placed this far (relatively) inside the bound, so that rounding keeps them within it.
INSIDE = 1.0 - 1e-13

_ROOT_BITS = 32
_BLOCK = 1 << 16
_ROWS = 1 << 12

ROWS = ("unit", "clip", "none")


@dataclass(frozen=True, kw_only=True)
class Made(DataSet):
    """A set that is made here: of n records and p columns."""

    where: ClassVar[str] = "generated"

    n: Records = 1000
    p: Columns = 10

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), int(self.p)


@dataclass(frozen=True, kw_only=True)
class Generated(Made, ABC):
    """The keys of a set that is drawn record by record: a smaller n gives a prefix of a larger one.

    n, n_test : training and held-out records; p : columns; row_bound : bound on the rows' L2 norm.
    """

    n: Records = 2000
    row_bound: Annotated[Positive, Help("of the rows' L2 norm")] = 1.0
    n_test: Annotated[int, Range(0), Help("held-out records")] = 2000
    seed: DrawSeed = 0

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        with guard_memory(self.n, self.row_entries):
            theta = self._parameter()
            x, y = self._draw("train", int(self.n), theta)
            held = self._draw("test", int(self.n_test), theta) if self.n_test else (None, None)
        return self.make_part(x, y, held, theta)

    def make_part(self, x: Any, y: np.ndarray, held: tuple[Any, Any], theta: np.ndarray) -> Data:
        """Data of some of the records, with the rows and labels that are held out."""
        return make_data(
            self.name, self.task, x, y, *held,
            row_bound=float(self.row_bound),
            preprocessing=(self.rows_in_words,),
            minimiser=theta if self.law else None,
        )  # fmt: skip

    def fresh(self, count: int, minimiser: np.ndarray) -> np.ndarray:
        """Rows of the same law that belong to neither part, [count, p]."""
        return self._draw("population", count, minimiser)[0]

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        total = int(self.n + self.n_test)
        dense = self.row_entries == self.p
        entries = None if dense else total * self.row_entries
        return Size(total, int(self.p), int(self.n_test), entries, dense=dense)

    @property
    def row_entries(self) -> int:
        """How many numbers of a row are held in memory."""
        return self.p

    @property
    @abstractmethod
    def rows_in_words(self) -> str:
        """The law of the rows, as a step of the preprocessing."""

    @abstractmethod
    def _parameter(self) -> np.ndarray:
        """The true parameter [p], which the law of the records is built on."""

    @abstractmethod
    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rows [n, p] and responses [n] of a part of the set."""


@dataclass(frozen=True, kw_only=True)
class LinearModel(Generated, ABC):
    """Rows around 0 and a response to <x, theta*>, with theta* of norm ``signal``.

    Rows are uniform on the sphere of radius row_bound (``rows=unit``) or in its ball (``clip``,
    ``none``).
    """

    signal: Annotated[NonNegative, Help("norm of the true parameter")] = 1.0
    rows: Annotated[str, Choices(*ROWS), Help("unit: on the sphere; else: in the ball")] = "unit"

    @property
    def rows_in_words(self) -> str:
        """The law of the rows, as a step of the preprocessing."""
        place = "on the sphere" if self.rows == "unit" else "in the ball"
        return f"rows uniform {place} of radius {self.row_bound:g}"

    @property
    def row_sphere(self) -> tuple[int, float]:
        """The rows' own sphere; for rows in a ball, the sphere in two more dimensions.

        The first p coordinates of its uniform points are uniform in the ball.
        """
        return int(self.p) + (0 if self.rows == "unit" else 2), float(self.row_bound)


def leaf(seed: int, *path: str) -> np.random.Generator:
    """The generator of one part of one data set."""
    return generator(seed_sequence(int(seed), "dataset", *path))


def roots(values: np.ndarray, degree: int) -> np.ndarray:
    """The roots of values [n] in [0, 1), the same bytes on every processor.

    Roots of a degree above 2 are the largest numbers of 32 bits whose powers are below the values,
    found by products alone: the last bits of numpy's other powers differ between processors.
    """
    if degree <= 2:
        return np.sqrt(values) if degree == 2 else values
    found = np.zeros(len(values))
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        for bit in range(1, _ROOT_BITS + 1):
            larger = found[part] + 2.0**-bit
            found[part] = np.where(_power(larger, degree) < values[part], larger, found[part])
    return found


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    result = np.ones(len(base))
    for digit in f"{exponent:b}":
        result *= result
        if digit == "1":
            result *= base
    return result


def ball(rng: np.random.Generator, n: int, p: int, uniform: np.ndarray | None) -> np.ndarray:
    """[n, p] rows uniform on the unit sphere or, given uniform numbers [n], in the unit ball."""
    x = rng.standard_normal((n, p))
    radius = 1.0 if uniform is None else roots(uniform, p)
    x *= (INSIDE * radius / lengths(x))[:, None]
    return x


def responses(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """<x, theta> of the rows of [n, p], added column by column: [n].

    The order in which a matrix product adds depends on the processor and on how many rows there
    are, so that its last bits would too.
    """
    found = np.zeros(len(x))
    for start in range(0, len(x), _ROWS):  # so few that a line of the cache serves its columns
        part = slice(start, start + _ROWS)
        for j in np.flatnonzero(theta):
            found[part] += x[part, j] * theta[j]
    return found


def lengths(x: np.ndarray) -> np.ndarray:
    """L2 norms of the rows of [n, p], a block at a time: squares of all would double the memory.

    Not for one vector at a time (``np.linalg.norm``): its sum would be a product of BLAS.
    """
    step = max(1, (1 << 22) // x.shape[1])
    found = [np.linalg.norm(x[i : i + step], axis=1) for i in range(0, len(x), step)]
    return np.concatenate(found)


@contextmanager
def guard_memory(n: int, p: int) -> Iterator[None]:
    """InputError about ``limits.memory`` where n records of p numbers do not fit into memory."""
    limit, what = current_limit(), f"making {n} records of {p} numbers"
    limit.check(8 * n * p, what, INSTEAD)
    try:
        yield
    except MemoryError:
        raise limit.refuse_more(what, INSTEAD) from None
