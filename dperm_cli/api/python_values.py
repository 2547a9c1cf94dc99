"""Settings from values of Python, and the words of a command line that mean the same."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.plain_yaml import NODES
from dperm_cli.runner.compose.command_line import Setting, check_setting

_WORD = re.compile(r"(?!(?:true|false|null|nan|inf)$)[A-Za-z_/][A-Za-z0-9_./-]*", re.IGNORECASE)


def make_setting(key: str, value: Any) -> Setting:
    """A setting from a value, which is taken as it is and not read as words.

    Args:
        key: As on the command line.
        value: A number, text, None, or lists and maps of these; a list is an axis.

    Raises:
        InputError: The value is something else.
    """
    return check_setting(Setting(key, (to_plain(key, value),), False))


def to_plain(key: str, value: Any) -> Any:
    """The same of Python's own types: no scalars and arrays of numpy, no paths, no tuples."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(word): to_plain(f"{key}.{word}", item) for word, item in value.items()}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.size <= NODES:
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [to_plain(key, item) for item in value]
    allowed = "must be a number, text, None, a list or map of these, or a plug-in"
    raise InputError(key, f"<{type(value).__name__}>", allowed)


def write_word(setting: Setting, sweep: bool = False) -> str:
    """The word of a command line that means the same; with ``sweep`` a list is ``a,b``."""
    (value,) = setting.values
    if sweep and isinstance(value, list) and value:
        return f"{setting.key}={','.join(map(_write, value))}"
    return f"{setting.key}={_write(value)}"


def _write(value: Any) -> str:
    """A value as Hydra's grammar reads it back."""
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(map(_write, value))}]"
    return json.dumps(value, ensure_ascii=False)
