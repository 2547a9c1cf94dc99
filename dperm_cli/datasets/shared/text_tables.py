"""Published text tables: comma-separated numbers, and words in declared columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared.archives import open_bytes
from dperm_cli.datasets.shared.published_file import Source


def read(path: Path, source: Source, width: int, words: Sequence[int] = ()) -> Any:
    """A pandas table of ``width`` columns; those in ``words`` hold text, all others numbers.

    A first line of names is left out. InputError when a line has another width or holds text
    where a number belongs; an empty cell is nan.
    """
    import pandas as pd

    header = _has_header(path, source, width)
    with io.TextIOWrapper(open_bytes(path, source.limit, source.member), "utf-8") as text:
        try:
            return pd.read_csv(
                text, header=None, skiprows=int(header), names=range(width), index_col=False,
                dtype={i: str if i in words else np.float64 for i in range(width)},
                keep_default_na=False, na_values=["", "nan", "NaN"],
                **nearest_floats(pd.__version__),
            )  # fmt: skip
        except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
            lines = str(error).rpartition("C error: ")[2].strip().splitlines() or ["damaged"]
            raise InputError("dataset", path.name, f"is not a regular table ({lines[0]})") from None


def nearest_floats(version: str) -> dict[str, Any]:
    """Nearest floats, so that digests agree: an option before pandas 3.1, the only way since."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _has_header(path: Path, source: Source, width: int) -> bool:
    with open_bytes(path, source.limit, source.member) as file:
        first = file.readline(1 << 16).decode("utf-8", "replace").strip()
    cells = first.split(",")
    if len(cells) != width:
        raise InputError("dataset", path.name, f"must have {width} columns, not {len(cells)}")
    return not any(_is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
