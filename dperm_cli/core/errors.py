"""Errors and the exit codes they map to (the table is in docs/conventions.md)."""

from __future__ import annotations

from collections.abc import Iterable

from dperm_cli.core.near_names import nearest

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_INPUT = 2
EXIT_STORAGE = 3


NOTHING = object()  # in the place of a value: the user typed none


class DpermError(Exception):
    """An error that reaches the user as one line and an exit code."""

    exit_code = EXIT_FAILED


class InputError(DpermError):
    """Bad input. The message names the key, the value, what is allowed and the nearest known name.

    Args:
        key: the configuration key as the user types it (``constraint.radius``).
        value: what was given; ``NOTHING`` where a word is missing.
        allowed: the allowed range or form, as a phrase.
        known: names to suggest from, where the value should have been one of them.
    """

    exit_code = EXIT_INPUT

    def __init__(self, key: str, value: object, allowed: str, known: Iterable[str] = ()) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        self.nearest = nearest(str(value), known)
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        shown = key if value is NOTHING else f"{key}={format_value(value)}"
        super().__init__(f"{shown}: {allowed}{hint}")


class UnknownKey(InputError):
    """An unknown configuration key; the message lists the known ones.

    Args:
        key: the key that was typed.
        known: the keys that there are.
        guess: what to suggest, instead of the nearest of the known keys.
        elsewhere: what to type to have the key, behind the known ones.
    """

    def __init__(
        self, key: str, known: Iterable[str], guess: str | None = None, elsewhere: str = ""
    ) -> None:
        known = sorted(known)
        if guess is None:
            guess = nearest(key.rpartition(".")[2], [k.rpartition(".")[2] for k in known])
        self.key, self.value, self.allowed = key, None, "unknown key"
        self.nearest = guess
        hint = f" (did you mean {guess!r}?)" if guess else ""
        listed = f"known: {', '.join(known)}" if known else "there is nothing to set"
        listed += f"; {elsewhere}" if elsewhere else ""
        DpermError.__init__(self, f"{key}: unknown key{hint}; {listed}")


class PrivacyError(DpermError):
    """A release was refused because its accounted guarantee exceeds the budget."""


class StorageError(DpermError):
    """The output folder cannot be read or written."""

    exit_code = EXIT_STORAGE


class Unsupported(Exception):
    """The mechanism has no guarantee for this combination of problem and budget.

    It becomes a row with status ``unsupported``, which is not a failure.

    >>> Unsupported("needs a ridge").reason
    'needs a ridge'
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def format_value(value: object) -> str:
    """A value as it should appear in one line of an error: of a long path its end."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = f"<{type(value).__name__} that is too long to show>"
    text = " ".join(text.split())
    if len(text) <= 80:
        return text
    return f"...{text[-77:]}" if text.startswith("/") else f"{text[:77]}..."


def describe_error(error: BaseException) -> str:
    """``ValueError: its message``, as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def find_line(error: BaseException, file: str) -> str:
    """`` (line 12)`` for the last line of a file that an error came through, if any."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f" (line {line})"


def make_printable(text: object, most: int = 100) -> str:
    """The first ``most`` characters of a text, with non-printable ones replaced by ``?``."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:most])
