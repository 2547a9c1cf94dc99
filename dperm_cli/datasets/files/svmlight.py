"""Records in an svmlight (LIBSVM) text file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Choices, Help, Range, Required
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared import svmlight_reader
from dperm_cli.datasets.shared.file_options import FileOptions
from dperm_cli.datasets.shared.row_blocks import INSTEAD, row_slices

LEAST_ENTRY = 4  # bytes of text of an entry: index, colon, value and a space
UNDECLARED = (
    "must be declared: the number of columns is public, and the largest index in the file depends "
    "on its records"
)


@dataclass(frozen=True, kw_only=True)
class Svmlight(FileOptions):
    """``label index:value ...`` lines, indices from 1; kept as CSR unless storage=dense.

    n_features : the number of columns, required: the largest index in a file is a fact about its
        records (one record may decide it), and p must be public.
    cache : keep the parsed arrays in the cache folder (a copy of the data, readable by you only).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "one.svm").write_text("-1 1:3 4:4")
    ...     data = Svmlight(path=f"{folder}/one.svm", n_features=5, test_fraction=0.0).load()
    >>> data.x.toarray().round(3).tolist(), data.y.tolist()
    ([[0.6, 0.0, 0.0, 0.8, 0.0]], [-1.0])
    """

    n_features: Annotated[
        int | None, Range(1, 2**31 - 2), Required(UNDECLARED), Help("required")
    ] = None
    storage: Annotated[str, Choices("sparse", "dense"), Help("of the rows in memory")] = "sparse"
    cache: Annotated[bool, Help("keep the parsed arrays in the cache folder")] = False

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        return self.n_features

    def size_of(self, n: int, p: int | None, held_out: int, unpacked: int) -> Size:
        found = super().size_of(n, p, held_out, unpacked)
        if self.storage == "dense" or p is None:
            return found
        return replace(found, entries=min(n * p, unpacked // LEAST_ENTRY), dense=False)

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[Any, np.ndarray]]:
        assert self.n_features is not None
        width = int(self.n_features)
        blocks = svmlight_reader.read_blocks(
            key, path, width, self.cache, self.limit, skip_malformed=self.invalid == "zero"
        )
        for x, labels in blocks:
            if self.storage == "sparse":
                yield x, labels
                continue
            for part in row_slices(x):
                rows = x[part]
                current_limit().check(8 * rows.shape[0] * width, f"reading {path.name}", INSTEAD)
                yield rows.toarray(), labels[part]
