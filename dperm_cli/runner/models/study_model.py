"""The predictor that ``dperm run ... save=`` keeps: from the check of its name to its file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose.cell_schema import Cell
from dperm_cli.runner.models import machine_file, save_model
from dperm_cli.runner.models.input_schema import InputSchema


@dataclass
class StudyModel:
    """The predictor of a study of one cell.

    Attributes:
        to: The file.
        item: The cell with its data, once these are loaded.
        described: What rows that it predicts from look like.
    """

    to: OutputFile
    item: Prepared | None = None
    described: InputSchema | None = None

    @classmethod
    def open(cls, word: Any, cells: Sequence[Cell]) -> StudyModel | None:
        """Check the name and the cells; None where nothing is to be saved.

        Raises:
            InputError: For what is no name, for several cells, and for one of which nothing may be
                given away.
        """
        to = save_model.check_path(word)
        if to is None:
            return None
        save_model.check_cell(cells[0])
        if len(cells) > 1:
            raise InputError("save", word, f"keeps one cell, and there are {len(cells)}")
        return cls(to)

    def describe(self, item: Prepared) -> None:
        """Note what the rows of the cell look like; InputError where that cannot be written."""
        self.item, self.described = item, save_model.schema_of(item)

    def check_free(self) -> None:
        """InputError where a file of this name holds something."""
        save_model.check_free(self.to)

    def save(self, store: Store) -> bool:
        """Keep the first trial's predictor: one release, and no other; whether there was one."""
        assert self.item is not None
        assert self.described is not None
        rows: list[dict[str, Any]] = store.read(self.item.key) or [{}]
        row = rows[0]
        if row.get("status") != "ok":
            print(f"nothing to save: {row.get('reason')}", file=sys.stderr)
            return False
        save_model.save(self.to, save_model.publishable(self.item, self.described, row))
        machine_file.write_beside(self.to, store.out, self.item.key)
        use = f"dperm predict {self.to.path} rows.csv"
        print(f"saved {self.to.path}: the predictor of trial 0, for `{use}`", file=sys.stderr)
        return True
