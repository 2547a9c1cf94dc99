"""Say where the header of a text table looks as if another character stood between its columns."""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.core.errors import InputError

_OTHERS = {";": "semicolons", "\t": "tabs"}


def refuse_delimiter(key: str, column: object, delimiter_key: str, header: Sequence[str]) -> None:
    """Refuse a header of one column that holds semicolons or tabs; nothing for any other.

    Args:
        key: What the user typed to name a column.
        column: The name that is not in the header.
        delimiter_key: The key that says what stands between columns.
        header: The names in the first line.

    Raises:
        InputError: Another delimiter is likely.
    """
    if len(header) != 1:
        return
    for sign, words in _OTHERS.items():
        if sign in header[0]:
            shown = f"{delimiter_key}=';'" if sign == ";" else f"{delimiter_key}= a tab"
            allowed = f"no such column: the header is one column with {words} in it; say {shown}"
            raise InputError(key, column, allowed)
