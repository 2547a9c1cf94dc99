"""Records in an svmlight (LIBSVM) text file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.fields import Choices, Help, Range, Required
from dperm_cli.datasets.shared import svmlight_reader
from dperm_cli.datasets.shared.file_options import FileOptions

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

    def read(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        assert self.n_features is not None
        width = int(self.n_features)
        x, labels = svmlight_reader.read(
            key, path, width, self.cache, self.limit, skip_malformed=self.invalid == "zero"
        )
        return (x.toarray() if self.storage == "dense" else x), labels
