"""What a release of a plug-in from outside may not do unseen."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from dperm_cli.core.errors import DpermError
from dperm_cli.core.plugin_classes import is_shipped
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.privacy.gate import Gate

_OWN = __name__.partition(".")[0]


@contextmanager
def hide_words() -> Iterator[None]:
    """Name an error by its type and place alone: its message may hold values of the records.

    What dperm itself refuses keeps its words.

    Raises:
        DpermError: In the place of the error.
    """
    hidden = ""
    try:
        yield
    except (Exception, SystemExit) as error:
        module, place = _find_place(error)
        if isinstance(error, DpermError) and module == _OWN:
            raise
        words = f"{type(error).__name__} ({place}) in a release with a plug-in; its message may "
        hidden = f"{words}show records, and is not kept: --debug shows it"
    if hidden:  # outside of the block above: no trace of the error stays with it
        raise DpermError(hidden)


def check_drawn(mechanism: Mechanism, gate: Gate) -> None:
    """DpermError where a mechanism from outside has released without noise for any event."""
    if gate.is_untouched and not is_shipped(type(mechanism)):
        allowed = "released without asking the gate for any event of its plan: no noise was drawn"
        raise DpermError(f"{type(mechanism).__name__} {allowed}")


def _find_place(error: BaseException) -> tuple[str, str]:
    """The topmost module of the code that raised an error, and ``line 3 of mine.py``."""
    module, place = "", "no line"
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module != _OWN:
            place = f"line {line} of {os.path.basename(frame.f_code.co_filename)}"
    return module, place
