"""Frames with columns of many kinds, which a schema declares: ``schema=`` of the estimators."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.frame import Frame, encode_rows, read_frame, write_cells
from dperm_cli.datasets.shared.label_names import canonical
from dperm_cli.datasets.shared.table_cells import Cells
from dperm_cli.datasets.shared.table_schema import parse_schema


class DeclaredFrame:
    """What a schema makes of frames, and of the target that stands beside them.

    Args:
        schema: the name of a YAML file, or its content as a map.
        tasks: those that the estimator is for.

    Raises:
        InputError: it is no schema, or its target is of another task.

    >>> told = {"target": {"column": "sick", "classes": ["no", "yes"]},
    ...         "columns": {"age": {"kind": "number", "bounds": [0, 100]}}}
    >>> DeclaredFrame(told, ("binary",)).dataset.table.target.column
    'sick'
    """

    def __init__(self, schema: Any, tasks: Sequence[str]) -> None:
        if isinstance(schema, Mapping):
            parse_schema(schema)
            schema = json.dumps(schema)
        self.dataset = Frame(schema=schema)
        self.target = self.dataset.table.target
        if self.target.task not in tasks:
            allowed = f"declares a target for {self.target.task}; this one is for {_join(tasks)}"
            raise InputError("schema", self.target.column, allowed)

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of a run that name the frame and its schema."""
        return {"dataset": "frame", "dataset.schema": self.dataset.schema}

    def join(self, X: Any, y: Any) -> Cells:
        """The texts of the training table's cells: those of X, and y under the target's name.

        Raises:
            InputError: X is no frame, holds the target, or has another length than y.
        """
        cells = read_frame(X)
        if self.target.column in cells:
            allowed = "is the target: it stands in y alone"
            raise InputError("X", f"column {self.target.column!r}", allowed)
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise InputError("y", f"<shape {list(values.shape)}>", "must be one value for each row")
        n = len(next(iter(cells.values()), []))
        if len(values) != n:
            raise InputError("y", f"{len(values)} values", f"must be {n}: one for each row of X")
        if not n:
            raise InputError("X", "0 rows", "must hold records")
        return cells | {self.target.column: write_cells(values.tolist())}

    def list_classes(self, declared: Any) -> np.ndarray:
        """The classes in the order of the schema: its words, or the declared values for them.

        Raises:
            InputError: the declared values are others than the schema's.
        """
        words = list(self.target.classes)
        if declared is None:
            return np.array(words)
        values = np.asarray(declared)
        found = {canonical(value): value for value in values.ravel().tolist()}
        if sorted(found) != sorted(words):
            raise InputError("classes", values.tolist(), f"must be those of the schema: {words}")
        return np.array([found[word] for word in words])

    def encode(self, X: Any) -> np.ndarray:
        """Rows to predict [m, width]; InputError where X lacks a column of the schema."""
        return encode_rows(self.dataset, read_frame(X))


def _join(words: Sequence[str]) -> str:
    return " or ".join(words)
