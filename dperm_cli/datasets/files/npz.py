"""Records in a NumPy archive (.npz)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.candidate_lists import SCALING
from dperm_cli.core.data_files import locate
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Help
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.read_errors import TooLarge, first_words
from dperm_cli.datasets.shared import projected_records
from dperm_cli.datasets.shared.file_options import OwnTable
from dperm_cli.datasets.shared.row_blocks import INSTEAD
from dperm_cli.datasets.shared.row_pipeline import Split
from dperm_cli.problem.data import Data
from dperm_cli.sets.shared.public_arrays import NOT_A_FILE

_NOT_AN_ARRAY = "must be the name of an array"
ArrayName = Annotated[str, Allowed(_NOT_AN_ARRAY), Help("in the archive")]


@dataclass(frozen=True, kw_only=True)
class Npz(OwnTable):
    """One array of rows [n, p] and one of labels or targets [n]; nothing is ever unpickled.

    x, y : the names of the two arrays; task=location reads x alone.
    phi : a public .npz (array ``phi``) or .csv file with the matrix [m, d] that the rows, of m
        columns, have been projected by: parameters are then those of R^d.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/records.npz", x=[[3.0, 4.0], [0.0, 9.0]], y=[1.0, -1.0])
    ...     data = Npz(path=f"{folder}/records.npz", test_fraction=0.0, intercept=False).load()
    >>> data.x.round(3).tolist(), data.y.tolist()
    ([[0.6, 0.8], [0.0, 1.0]], [1.0, -1.0])
    """

    x: ArrayName = "x"
    y: ArrayName = "y"
    phi: Annotated[
        str | None, Allowed(NOT_A_FILE), Help("file of the public matrix [m, d] of projected rows")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phi is not None and self.scalings:
            allowed = "is not for records that dataset.phi has projected"
            raise InputError(f"tune.{SCALING}", list(self.scalings), allowed)

    @property
    def has_predictors(self) -> bool:
        return super().has_predictors and self.phi is None  # a projected row has no constant

    @property
    def is_raw(self) -> bool:
        return super().is_raw and self.phi is None

    def load(self, data_dir: Path | None = None) -> Data:
        """Read, scale and bound the records; with ``phi`` they become rows of R^d."""
        phi = None if self.phi is None else projected_records.matrix(self.phi)
        data = super().load(data_dir)
        return data if phi is None else projected_records.backwards(data, phi)

    @property
    def split_later(self) -> Split | None:
        """There are no parts: an archive is read at once."""
        return None

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The archives, and the file of the matrix."""
        files = super().list_files(data_dir)
        more = () if self.phi is None else (locate("dataset.phi", self.phi, None),)
        return None if files is None else (*files, *more)

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        shape = self._shape("dataset.path", self.locate(data_dir))
        return shape[1] if len(shape) == 2 else None

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        shape = self._shape(key, path)
        return (shape or (0,))[0], npy_files.names_in(path)[1]

    def _shape(self, key: str, path: Path) -> tuple[int, ...]:
        """What the header of the rows' array says."""
        try:
            return npy_files.shape_in(path, self.x)
        except (npy_files.NotAnArray, OSError):
            return ()  # what is wrong is said when it is read

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if not zipfile.is_zipfile(path):
            raise InputError(key, path.name, "is not an npz archive")
        wanted = [self.x] if self.task == "location" else [self.x, self.y]
        try:
            names, held = npy_files.names_in(path)
            most = max(self.limit, path.stat().st_size)
            # Compressed archives only: a plain one cannot hold more than it weighs.
            if held > most:
                raise TooLarge(self.limit)
            current_limit().check(held, f"reading {path.name}", INSTEAD)
            found = npy_files.read_archive(path, wanted, npy_files.LABELS, most)
        except npy_files.NotAnArray as error:
            allowed = f"is not a plain npz archive ({first_words(error)})"
            raise InputError(key, path.name, allowed) from error
        for field, name in zip(("dataset.x", "dataset.y"), wanted, strict=False):
            if name not in found:
                listed = ", ".join(names) or "none"
                raise InputError(field, name, f"no such array; the archive holds {listed}", names)
        x = found[self.x]
        y = np.zeros(x.shape[:1]) if self.task == "location" else found[self.y]
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            allowed = f"{self.x!r} must be a matrix of real numbers, not {x.dtype}{list(x.shape)}"
            raise InputError(key, path.name, allowed)
        if y.shape not in ((len(x),), (len(x), 1)) or y.dtype.kind not in "biufUS":
            allowed = f"{self.y!r} must hold one label for each of the {len(x)} rows, "
            allowed += f"not {y.dtype}{list(y.shape)}"
            raise InputError(key, path.name, allowed)
        if x.dtype != np.float64 or not x.flags.c_contiguous:
            current_limit().check(8 * x.size, f"reading {path.name}", INSTEAD)
        yield npy_files.real(x), y.reshape(-1)
