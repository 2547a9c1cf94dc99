"""Files of the user's: what goes wrong while one is read becomes one line that names it."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dperm_cli.core.errors import DpermError, InputError


class TooLarge(OSError):
    """A compressed file holds more than its declared limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"unpacks to more than the declared limit of {limit / (1 << 30):.4g} GiB")


@contextmanager
def report_read_errors(key: str, path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while reading a file into one line about it.

    Parsers raise what they like on bytes that nobody thought of; none of it may reach the user as a
    traceback, which could show records. ``--debug`` shows where it came from.
    """
    try:
        yield
    except DpermError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(key, path.name, "is not UTF-8 text") from error
    except MemoryError as error:
        raise InputError(key, path.name, "does not fit into memory") from error
    except TooLarge as error:
        raise InputError(key, path.name, str(error)) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        words = getattr(error, "strerror", None) or first_words(error) or "damaged file"
        raise InputError(key, path.name, f"cannot be read ({words})") from error
    except Exception as error:
        words = ": ".join(filter(None, [type(error).__name__, first_words(error)]))
        raise InputError(key, path.name, f"cannot be read ({words})") from error


def first_words(error: BaseException) -> str:
    """The beginning of an error's message, as one line that a terminal can show."""
    line = " ".join(str(error).split())[:120]
    return "".join(c if c.isprintable() else "?" for c in line)
