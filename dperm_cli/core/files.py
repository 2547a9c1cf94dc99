"""Read files with clear errors, write them whole or not at all, and lock them by name.

Nothing else in the package opens a file for writing or renames one. Files that dperm names are
written by ``write_atomically`` or ``open_atomically``, files that the user names by ``OutputFile``.
Every lock of one process against others is one of ``hold_lock``.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from dperm_cli.core import checks, system_calls
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.shared_lock import NO_LOCKS, lock_alone

if TYPE_CHECKING:
    from filelock import BaseFileLock

_LOCK_SECONDS = 0.02  # between two tries of whoever waits for a lock
_MOST_TRIES = 100  # to make a folder that other processes take away
_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9a-f]+\.tmp")
_LOCK = re.compile(r"\..+\.lock")
_MOST_LINKS = 40  # that lead to each other
_GROUP = stat.S_IRWXG
# What is at a path and is neither a file nor a folder nor a link.
_SPECIAL = {
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip
_DESCRIPTORS = ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {words.lower()}") from error


def read_bytes(path: Path) -> bytes | None:
    """The bytes of a regular file, None when there is no file of this name.

    Raises:
        StorageError: It cannot be read, or is a pipe or a device, whose bytes may never end. It
            names the path.
    """
    with storage_errors(path):
        try:
            number = system_calls.open_to_read(path)
        except FileNotFoundError:
            return None
        kind = os.fstat(number).st_mode
        if not stat.S_ISREG(kind):
            os.close(number)
            words = "is a directory" if stat.S_ISDIR(kind) else "is no regular file"
            raise StorageError(f"{path}: {words}")
        with open(number, "rb") as file:
            return file.read()


def write_atomically(path: Path, data: bytes, sync: bool = True, private: bool = False) -> None:
    """Put the bytes at ``path``: all of them or, on any error, what was there before.

    Args:
        path: The file; its folder is made where there is none.
        data: Its content.
        sync: Whether the bytes are on the disk when this returns. Without, they survive any end
            of the process, but not a power cut.
        private: Whether the file is for its owner alone, whatever was there before.

    Raises:
        StorageError: It cannot be written.
    """
    with open_atomically(path, sync=sync, private=private) as file:
        file.write(data)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names in a folder, each as ``write_atomically``; name them on stderr."""
    for name, content in files.items():
        write_atomically(folder / name, content)
    print(f"wrote {folder}: {', '.join(files)}", file=sys.stderr)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a new folder with these files: all of them or, on any error, no folder.

    Args:
        folder: The folder, which is not there yet; the one above is made where there is none.
        files: Contents by name.

    Raises:
        StorageError: It cannot be written, or is there.
    """
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with storage_errors(folder):
        try:
            unfinished.mkdir(parents=True)
            for name, content in files.items():
                write_atomically(unfinished / name, content)
            finish_folder(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def finish_folder(unfinished: Path, folder: Path) -> None:
    """Give a folder that is whole its name; StorageError where something of that name is there."""
    with storage_errors(folder):
        if os.path.lexists(folder):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(unfinished, folder)
        sync_folder(folder.parent)


@contextmanager
def open_atomically(path: Path, *, sync: bool = True, private: bool = False) -> Iterator[IO[bytes]]:
    """A new binary file that takes the place of ``path`` when the block ends without an error.

    Readers see the old file or the new one, never a part. The file lies beside ``path`` as
    ``.NAME.*.tmp`` until then; an error in the block, an interrupt too, takes it away. The new file
    has the rights of the old one, and its owner and group where the system allows it. A link is
    replaced and not followed.

    Args:
        path: The file; its folder is made where there is none.
        sync: As in ``write_atomically``.
        private: Whether file and new folder are for their owner alone, whatever was there before.

    Raises:
        StorageError: It cannot be written, or is a device, pipe or socket, which stays.
    """
    with storage_errors(path):
        path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        old = None if private else _find_file(path)
        mode = 0o600 if private else 0o666 if old is None else old.st_mode & 0o777
        with _hold_temporary(path, mode) as (temporary, f):
            with f:
                if old is not None:
                    _keep_rights(f.fileno(), old, mode)
                yield f
                f.flush()
                if sync:
                    os.fsync(f.fileno())
            os.replace(temporary, path)
        if sync:
            sync_folder(path.parent)


@contextmanager
def _hold_temporary(path: Path, mode: int) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file beside ``path``, locked while the block runs; an error in the block takes it away.

    The lock tells ``remove_abandoned`` that somebody writes it.
    """
    for _ in range(_MOST_TRIES):
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        locked = None
        try:
            # opened for reading too: numpy then writes through Python, which says why it cannot
            with open(
                temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)
            ) as file:
                found = lock_alone(file.fileno(), temporary)
                if found is not None:  # without locks nothing may be open when it is renamed
                    locked = os.dup(file.fileno())  # holds the lock when the file is closed
                if found is False:
                    continue  # somebody who tidies saw it before it was locked
                yield temporary, file
            return
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            if locked is not None:
                os.close(locked)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def remove_abandoned(folder: Path) -> None:
    """Take away what killed processes left in a folder: files that nobody writes to, and locks.

    What a living process writes to or holds is locked, and stays. Where the file system has no
    locks, everything stays.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if is_temporary(name) or _LOCK.fullmatch(name):
                with contextlib.suppress(OSError):
                    _remove_unlocked(folder / name)


def _remove_unlocked(path: Path) -> None:
    file = system_calls.open_to_lock(path)
    try:
        if lock_alone(file, path):
            os.unlink(path)
    finally:
        os.close(file)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that ``open_atomically`` had not finished."""
    return _TEMPORARY.fullmatch(name) is not None


def find_special(path: Path) -> str | None:
    """What is at a path and must stay there, as ``a device``; None for files, folders and links."""
    try:
        return _SPECIAL.get(stat.S_IFMT(os.lstat(path).st_mode))
    except OSError:
        return None


def _find_file(path: Path) -> os.stat_result | None:
    """The facts of the file that is to be replaced; None for a link, and where nothing is."""
    special = find_special(path)
    if special is not None:
        raise StorageError(f"{path}: is {special}, which is not replaced")
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _keep_rights(descriptor: int, old: os.stat_result, mode: int) -> None:
    """Give a new file the owner, the group and the rights of the one that it replaces.

    Where the system refuses the owner, the group alone. Where it refuses the group, its rights go,
    which would be another group's.
    """
    for owner in (old.st_uid, -1):
        with contextlib.suppress(OSError):
            system_calls.keep_owner(descriptor, owner, old.st_gid)
            break
    if os.fstat(descriptor).st_gid != old.st_gid:
        mode &= ~_GROUP
    with contextlib.suppress(OSError):
        system_calls.keep_mode(descriptor, mode)


def remove_file(path: Path) -> None:
    """Take a file or a link away, if it is there.

    Raises:
        StorageError: It cannot be taken away, or is a device, pipe or socket, which stays.
    """
    with storage_errors(path):
        _find_file(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def append_durably(path: Path, data: bytes) -> None:
    """Write the bytes at the end of a file; they are on the disk when this returns.

    Raises:
        StorageError: They cannot be written to their end.
    """
    with storage_errors(path):
        with open(path, "ab", buffering=0) as file:
            if file.write(data) != len(data):
                raise StorageError(f"{path}: could not be written to its end")
            os.fsync(file.fileno())
        sync_file(path.parent)


def truncate_file(path: Path, size: int) -> None:
    """Take away what lies beyond the first ``size`` bytes of a file.

    Raises:
        StorageError: It cannot be written.
    """
    with storage_errors(path):
        os.truncate(path, size)
        sync_file(path)


@dataclass(frozen=True)
class OutputFile:
    """A file that the user named, to be written once all of it is known.

    A regular file is replaced as by ``write_atomically``. A link is followed to its file, which is
    made where there is none. A device, a pipe and an open file of this process, which
    ``/dev/stdout`` is, are written to: they are never replaced.

    Attributes:
        path: As it was typed.
    """

    path: Path

    @classmethod
    def of(cls, key: str, word: str) -> Self:
        """The file of this name.

        Args:
            key: The key that it is the value of.
            word: The name.

        Raises:
            InputError: It is a folder, a socket or anything else that cannot be written to.
        """
        path = Path(checks.path(key, word))
        try:
            descriptor = _find_descriptor(path)
            if descriptor is not None:
                os.write(descriptor, b"")
            elif os.path.isdir(path):
                raise InputError(key, word, "is a folder")
            elif find_special(_follow(path)) == "a socket":
                raise InputError(key, word, "is a socket; it must be a file")
        except OSError as error:
            words = f"cannot be written to: {(error.strerror or type(error).__name__).lower()}"
            raise InputError(key, word, words) from None
        return cls(path)

    def write(self, data: bytes) -> None:
        """Make the bytes its content, or the next that the device or pipe gets.

        Raises:
            StorageError: It cannot be written.
        """
        with self.open() as file:
            file.write(data)

    def read_existing(self) -> bytes:
        """What the regular file of this name holds; empty where there is none, or another thing."""
        target = _follow(self.path)
        if _find_descriptor(self.path) is not None or find_special(target) is not None:
            return b""
        return read_bytes(target) or b""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """A binary file whose bytes are its content when the block ends without an error.

        Raises:
            StorageError: It cannot be written.
        """
        with storage_errors(self.path):
            descriptor, target = _find_descriptor(self.path), _follow(self.path)
            if descriptor is None and find_special(target) is None:
                with open_atomically(target) as file:
                    yield file
                return
            sys.stdout.flush()
            opened = system_calls.open_device(target) if descriptor is None else os.dup(descriptor)
            with os.fdopen(opened, "wb") as file:
                yield file

    @contextmanager
    def open_text(self) -> Iterator[IO[str]]:
        """As ``open``, for text in UTF-8."""
        with self.open() as file:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            yield text
            text.flush()
            text.detach()


def _follow(path: Path) -> Path:
    """Where the links of a path lead to, whether something is there or not; OSError for a loop."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(path)
    return Path(os.path.realpath(path))


def _find_descriptor(path: Path) -> int | None:
    """The open file of this process that a path stands for, as /dev/stdout does for 1."""
    folders = set(map(os.path.realpath, _DESCRIPTORS))
    here = os.fspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(here)
        if name.isdecimal() and os.path.realpath(folder) in folders:
            return int(name)
        if not os.path.islink(here):
            break
        here = os.path.join(folder, os.readlink(here))
    return None


def sync_file(path: Path) -> None:
    """Bring a file's bytes to the disk."""
    descriptor = system_calls.open_to_sync(path)
    if descriptor is None:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make what was renamed in a folder durable, where the system allows it."""
    with contextlib.suppress(OSError):
        sync_file(folder)


@contextmanager
def hold_lock(path: Path, wait: bool = False, required: bool = False) -> Iterator[bool]:
    """Hold the lock of this file name while the block runs; the file goes with the lock.

    The system lets go of a lock when its process ends, however it ends. Where the file system has
    no locks, everybody is granted every lock.

    Args:
        path: The lock's file; its folder is made where there is none.
        wait: Whether to wait for whoever holds it.
        required: Whether to refuse a file system that has no locks.

    Yields:
        Whether the lock is held; always True with ``wait``.

    Raises:
        StorageError: The file cannot be made, or not be locked where that is required.
    """
    from filelock import FileLock  # 40 ms to import, and most verbs lock nothing

    lock = FileLock(path, mode=0o600, fallback_to_soft=False)
    with storage_errors(path):
        held = _acquire(lock, path, wait, required)
    try:
        yield held
    finally:
        if held:
            # while it is held: whoever opened this file before finds that it has no name any more
            with contextlib.suppress(OSError):
                os.unlink(path)
            lock.release()


def _acquire(lock: BaseFileLock, path: Path, wait: bool, required: bool) -> bool:
    why: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for _ in range(_MOST_TRIES):
        try:
            lock.acquire(blocking=wait, poll_interval=_LOCK_SECONDS)  # makes the folder as well
        except TimeoutError:
            return False
        except (FileNotFoundError, FileExistsError) as error:
            why = error  # another process took the empty folder away in between
            continue
        except OSError as error:
            if required or error.errno not in NO_LOCKS:
                raise
        return True
    raise why
