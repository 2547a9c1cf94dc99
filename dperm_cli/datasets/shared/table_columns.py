"""Columns of a table with a target: which ones are features, and turning them into numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, Help
from dperm_cli.core.number_text import number_in
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.shared.delimiter_hint import refuse_delimiter
from dperm_cli.datasets.shared.file_options import OwnTable


def _column(key: str, value: Any) -> Any:
    if not isinstance(value, (str, int, float)):
        raise InputError(key, value, "must be a column's name or position")
    return value


def _column_list(key: str, value: Any) -> tuple:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(key, value, "must be a list of column names or positions")
    return tuple(_column(key, column) for column in value)


@dataclass(frozen=True, kw_only=True)
class TableOptions(OwnTable):
    """The keys of tables: a column is given by name or by position (from 0; -1 is the last).

    target : the column of labels or targets; None takes the last, and with task=location none
        (a column of labels is left out with ``drop``).
    columns : the feature columns, in this order; None takes all but target and drop.
    drop : columns that are neither feature nor target.
    """

    target: Annotated[
        str | int | None, Check(_column), Help("name or position; null = the last")
    ] = None
    columns: Annotated[
        Sequence[str | int] | None,
        Check(_column_list),
        Help("feature columns; null = all but target and drop"),
    ] = None
    drop: Annotated[Sequence[str | int] | None, Check(_column_list), Help("to leave out")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None and self.task == "location":
            allowed = "task=location has no target; a column is left out with dataset.drop"
            raise InputError("dataset.target", self.target, allowed)
        if self.columns is not None and not self.columns:
            raise InputError("dataset.columns", [], "must name at least one column")

    def named_columns(
        self, data_dir: Path | None = None
    ) -> tuple[tuple[str, ...] | None, str | None]:
        """(names of the feature columns in order, name of the target) as the file's header has
        them: format and header of a file are public. (None, None) where it has no header.
        """
        path = self.locate(data_dir)
        with report_read_errors("dataset.path", path):
            names = self.header_of("dataset.path", path)
        if names is None:
            return None, None
        wanted, target = self.choose(names)
        return tuple(names[i] for i in wanted), None if target is None else names[target]

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        names, _ = self.named_columns(data_dir)
        return None if names is None else len(names)

    @abstractmethod
    def header_of(self, key: str, path: Path) -> list[str] | None:
        """The names of all columns of the file, or None where it has none."""

    def choose(self, header: list[str]) -> tuple[list[int], int | None]:
        """(positions of the features, position of the target) in a table with this header."""
        target = None
        if self.task != "location":
            named = -1 if self.target is None else self.target
            target = position("dataset.target", named, header)
        dropped = {position("dataset.drop", c, header) for c in self.drop or ()}
        if self.columns is None:
            wanted = [i for i in range(len(header)) if i != target and i not in dropped]
            return wanted, target
        wanted = [position("dataset.columns", c, header) for c in self.columns]
        if len(set(wanted)) < len(wanted) or set(wanted) & (dropped | {target}):
            allowed = "must be distinct columns, apart from target and drop"
            raise InputError("dataset.columns", list(self.columns), allowed)
        return wanted, target


def position(key: str, column: str | float, header: list[str]) -> int:
    """Where a column is; InputError names the nearest column name.

    A whole number is a position, and where there is none of it a name, as is any other number or
    truth value: ``true``, ``1.5`` and ``2020`` may stand in a header. Spaces at the ends of a name
    do not count where it is found without them.
    """
    if is_position(column, header):
        return int(column) % len(header)
    found = [i for i, name in enumerate(header) if name == column]
    found = found or [i for i, name in enumerate(header) if _reads_as(name, column)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(key, column, "occurs more than once in the header; give its position")
    if _is_whole(column):
        raise InputError(key, column, f"the table has {len(header)} columns")
    refuse_delimiter(key, column, "dataset.delimiter", header)
    names = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
    raise InputError(key, column, f"no such column; there are {names}", header)


def is_position(column: Any, header: list[str]) -> bool:
    """Whether a column is given by its place."""
    return _is_whole(column) and -len(header) <= column < len(header)


def is_named(column: Any, header: list[str]) -> bool:
    """Whether a column is given by a name, which is there."""
    if column is None or is_position(column, header):
        return False
    return any(_reads_as(name, column) for name in header)


def _is_whole(column: Any) -> bool:
    return isinstance(column, int) and not isinstance(column, bool)


def _reads_as(name: str, column: str | float) -> bool:
    """Whether a configuration that says ``name`` without quotes has this value."""
    if isinstance(column, str):
        return name.strip() == column.strip()
    if isinstance(column, bool):
        return name.strip().lower() == str(column).lower()
    value = number_in(name)
    return value is not None and (value == column or (value != value and column != column))


def check_delimiter(key: str, value: object) -> str:
    """The character a name stands for: one that cannot be part of a number or a line end."""
    if value in ("tab", "\\t", "\t"):
        return "\t"
    if value in ("space", " "):
        return " "
    return checks.choice(key, value, (",", ";", "|", ":", "space", "tab"))
