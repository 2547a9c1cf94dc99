"""Errors of code from outside: their text may hold values of the records, and is shown to nobody.

Whoever calls such code with records, or with what follows from them, does so in ``hide_words``.
With ``--debug`` the text goes to the terminal, and nowhere else.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dperm_cli.core import environment, imported_files, plugin_sources
from dperm_cli.core.errors import NOTHING, DpermError, InputError

VARIABLE = "DPERM_DEBUG"  # is inherited by workers
_OWN = __name__.partition(".")[0]
_LIBRARIES = ("builtins", _OWN, "numpy", "scipy", "pandas")


@contextmanager
def hide_words(is_active: bool, keep: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Name an error of a cell with plug-ins by its type and place alone.

    What dperm itself refuses keeps its words, unless code from outside made the call: it may have
    given the value that they name.

    Args:
        is_active: Whether there are plug-ins; without, every error passes unchanged.
        keep: Further types of errors that keep their words: of code that sees public facts alone.

    Raises:
        DpermError: In the place of the error.
    """
    hidden = ""
    try:
        yield
    except (Exception, SystemExit) as error:
        if not is_active or environment.find_end(error) is not None or _is_harmless(error, keep):
            raise
        hidden = describe(error)
    if hidden:  # outside of the block above: no trace of the error stays with it
        raise DpermError(hidden)


@contextmanager
def refuse_errors() -> Iterator[None]:
    """Refuse, by type and place alone, what raises in code from outside before a cell has run.

    Raises:
        InputError: In the place of the error.
    """
    hidden = ""
    try:
        yield
    except (Exception, SystemExit) as error:
        cut = environment.find_end(error) or environment.find_shortage(error)
        if cut is not None or os.environ.get(VARIABLE) or not is_foreign(error):
            raise
        hidden = describe(error)
    if hidden:
        raise InputError("plugin", NOTHING, hidden)


def describe(error: BaseException) -> str:
    """``ValueError (line 3 of mine.py)``; with ``--debug`` the rest goes to stderr."""
    if os.environ.get(VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
    words = f"{_name_type(error)} ({_find_place(error)[1]}) in a run with a plug-in; its "
    return f"{words}message may show records, and is not kept: --debug shows it"


def is_foreign(error: BaseException) -> bool:
    """Whether an error came through the code of a plug-in, or of a notebook's cell."""
    return any(_is_outside(frame) for frame, _ in traceback.walk_tb(error.__traceback__))


@contextmanager
def show_words(is_shown: bool) -> Iterator[None]:
    """Whether errors are told in full on stderr while the block runs, by workers too."""
    if not is_shown:
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def _name_type(error: BaseException) -> str:
    """The nearest type that a library defines: code from outside may put a value into a name."""
    for kind in type(error).__mro__:
        top = kind.__module__.partition(".")[0]
        found = getattr(sys.modules.get(kind.__module__), kind.__name__, None)
        if top in _LIBRARIES and found is kind:
            return kind.__name__
    return "error"


def _is_harmless(error: BaseException, keep: tuple[type[Exception], ...]) -> bool:
    if isinstance(error, keep):
        return True
    if not isinstance(error, DpermError) or _find_place(error)[0] != _OWN:
        return False
    # a value, an event or a step that code from outside gave may stand in the words
    return not is_foreign(error)


def _is_outside(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    top = name.partition(".")[0]
    if top == _OWN or top in sys.stdlib_module_names:
        return False
    installed = imported_files.is_installed(frame.f_code.co_filename)
    return not installed or bool(plugin_sources.sources_of([name]))


def _find_place(error: BaseException) -> tuple[str, str]:
    """The topmost module of the code that raised an error, and ``line 3 of mine.py``."""
    module, place = "", "no line"
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module != _OWN:
            place = f"line {line} of {os.path.basename(frame.f_code.co_filename)}"
    return module, place


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Show no warning in the block: whether numpy or scipy warns follows from the records.

    A filter that makes errors of warnings still does.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda *_, **__: None
        yield
