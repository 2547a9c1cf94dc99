"""What goes wrong while a file of unknown origin is read, as one line about it."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dperm_cli.core.errors import DpermError, InputError, make_printable
from dperm_cli.core.memory_limits import current_limit


class TooLarge(OSError):
    """A compressed file holds more than its declared limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"unpacks to more than the declared limit of {limit / (1 << 30):.4g} GiB")


@contextmanager
def report_read_errors(key: str, path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while reading a file into one line about it.

    Parsers may raise any exception on malformed bytes. A traceback could show records, so every
    exception becomes an InputError. ``--debug`` shows the traceback.
    """
    try:
        yield
    except DpermError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(key, path.name, "is not UTF-8 text") from error
    except MemoryError as error:
        instead = "take a smaller file, or raise the limit"
        raise current_limit().refuse_more(f"reading {path.name}", instead) from error
    except TooLarge as error:
        raise InputError(key, path.name, str(error)) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        words = getattr(error, "strerror", None) or first_words(error) or "damaged file"
        raise InputError(key, path.name, f"cannot be read ({words})") from error
    except Exception as error:
        words = ": ".join(filter(None, [type(error).__name__, first_words(error)]))
        raise InputError(key, path.name, f"cannot be read ({words})") from error


def first_words(message: object, most: int = 120) -> str:
    """The beginning of an error's message, as one line that a terminal can show."""
    return make_printable(" ".join(str(message).split()), most)
