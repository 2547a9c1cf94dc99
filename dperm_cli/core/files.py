"""Read files with clear errors, write them whole or not at all, and lock them by name.

Everything that dperm writes to be read again goes through ``write_atomically`` or
``open_atomically``, and every lock of one process against others through ``hold_lock``.
"""

from __future__ import annotations

import contextlib
import errno
import lzma
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dperm_cli.core.errors import DpermError, InputError, StorageError, make_printable
from dperm_cli.core.shared_lock import NO_LOCKS

if TYPE_CHECKING:
    from filelock import BaseFileLock

_LOCK_SECONDS = 0.02  # between two tries of whoever waits for a lock
_MOST_TRIES = 100  # to make a folder that other processes take away
_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9a-f]+\.tmp")


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
        raise InputError(key, path.name, "does not fit into memory") from error
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


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {words.lower()}") from error


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes, None when there is none; StorageError names the path."""
    with storage_errors(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def write_atomically(path: Path, data: bytes, sync: bool = True) -> None:
    """Put the bytes at ``path``: all of them or, on any error, what was there before.

    Args:
        path: The file; its folder is made where there is none.
        data: Its content.
        sync: Whether the bytes are on the disk when this returns. Without, they survive any end
            of the process, but not a power cut.

    Raises:
        StorageError: It cannot be written.
    """
    with open_atomically(path, sync=sync) as file:
        file.write(data)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names in a folder, each as ``write_atomically``; name them on stderr."""
    for name, content in files.items():
        write_atomically(folder / name, content)
    print(f"wrote {folder}: {', '.join(files)}", file=sys.stderr)


@contextmanager
def open_atomically(path: Path, *, sync: bool = True, private: bool = False) -> Iterator[IO[bytes]]:
    """A new binary file that takes the place of ``path`` when the block ends without an error.

    Readers see the old file or the new one, never a part. The file lies beside ``path`` as
    ``.NAME.*.tmp`` until then; an error in the block, an interrupt too, takes it away.

    Args:
        path: The file; its folder is made where there is none.
        sync: As in ``write_atomically``.
        private: Whether file and new folder are for their owner alone.

    Raises:
        StorageError: It cannot be written.
    """
    with storage_errors(path):
        path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        mode = 0o600 if private else 0o666
        try:
            # opened for reading too: numpy then writes through Python, which says why it cannot
            with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as f:
                yield f
                f.flush()
                if sync:
                    os.fsync(f.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if sync:
            sync_folder(path.parent)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that ``open_atomically`` had not finished."""
    return _TEMPORARY.fullmatch(name) is not None


def sync_file(path: Path) -> None:
    """Bring a file's bytes to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make what was renamed in a folder durable, where the system allows it."""
    with contextlib.suppress(OSError):
        sync_file(folder)


@contextmanager
def hold_lock(path: Path, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of this file name while the block runs; the file goes with the lock.

    The system lets go of a lock when its process ends, however it ends. Where the file system has
    no locks, everybody is granted every lock.

    Args:
        path: The lock's file; its folder is made where there is none.
        wait: Whether to wait for whoever holds it.

    Yields:
        Whether the lock is held; always True with ``wait``.

    Raises:
        StorageError: The file cannot be made.
    """
    from filelock import FileLock  # 40 ms to import, and most verbs lock nothing

    lock = FileLock(path, mode=0o600, fallback_to_soft=False)
    with storage_errors(path):
        held = _acquire(lock, path, wait)
    try:
        yield held
    finally:
        if held:
            # while it is held: whoever opened this file before finds that it has no name any more
            with contextlib.suppress(OSError):
                os.unlink(path)
            lock.release()


def _acquire(lock: BaseFileLock, path: Path, wait: bool) -> bool:
    why: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for _ in range(_MOST_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=wait, poll_interval=_LOCK_SECONDS)
        except TimeoutError:
            return False
        except (FileNotFoundError, FileExistsError) as error:
            why = error  # another process took the empty folder away in between
            continue
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        return True
    raise why
