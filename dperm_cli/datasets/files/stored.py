"""A data set that `dperm data store` wrote: its arrays are mapped into memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from dperm_cli.core.data_files import data_folder as find_data_folder
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.fields import Check, Help
from dperm_cli.core.files import read_bytes
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.base import DataSet, Size
from dperm_cli.datasets.shared.stored_rows import SOURCE
from dperm_cli.problem.data import Data
from dperm_cli.problem.data_folder import FACTS, check_folder, read_folder


def _path_text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InputError(key, value, "must be given: a folder that `dperm data store` wrote")
    return value


@dataclass(frozen=True, kw_only=True)
class Stored(DataSet):
    """The records of a folder, larger than memory if need be.

    path : the folder, relative to the working directory or else to the data folder.

    >>> from dperm_cli.core.errors import InputError
    >>> try:
    ...     Stored(path="kept").load()
    ... except InputError as error:
    ...     print(error)
    dataset.path=kept: is no folder of `dperm data store NAME to=FOLDER`
    """

    where: ClassVar[str] = "file"

    path: Annotated[Any, Check(_path_text), Help("here or in the data folder; required")] = None

    def load(self, data_dir: Path | None = None) -> Data:
        """The records, mapped, after a look at every byte: damage is refused."""
        with report_read_errors("dataset.path", self._locate(data_dir)):
            try:
                check_folder(self._locate(data_dir))
            except StorageError as error:
                words = f"cannot be used ({error}); store the data set again"
                raise InputError("dataset.path", str(self.path), words) from None
        return self._read(data_dir)

    @property
    def task(self) -> str:  # type: ignore[override]
        """What the records are for, as the folder says."""
        return self._contents.task

    @property
    def classes(self) -> int:  # type: ignore[override]
        """Number of classes of a multiclass task."""
        return self._contents.classes

    @property
    def row_bound(self) -> float:
        """The bound on the norm of a row."""
        return self._contents.row_bound

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        """Records and columns. They need no memory of their own."""
        data = self._read(data_dir)
        held = 0 if data.x_test is None else data.x_test.shape[0]
        return Size(data.n + held, data.p, held, entries=0, dense=False)

    def find_folder(self, data_dir: Path | None = None) -> Path | None:
        """The folder, by its whole path."""
        return self._locate(data_dir).resolve()

    def identity(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What a run on the data set that was stored says of it."""
        found = read_bytes(self._locate(None) / SOURCE)
        return {} if found is None else json.loads(found)

    @cached_property
    def _contents(self) -> Data:
        return self._read(None)

    def _read(self, data_dir: Path | None) -> Data:
        folder = self._locate(data_dir)
        with report_read_errors("dataset.path", folder):
            try:
                return read_folder(folder)
            except StorageError as error:
                raise InputError(
                    "dataset.path", str(self.path), f"cannot be read ({error})"
                ) from None

    def _locate(self, data_dir: Path | None) -> Path:
        places = [Path.cwd(), find_data_folder(data_dir)]
        for place in places:
            if place is not None and (place / str(self.path) / FACTS).is_file():
                return place / str(self.path)
        raise InputError("dataset.path", str(self.path),
                         "is no folder of `dperm data store NAME to=FOLDER`")  # fmt: skip
