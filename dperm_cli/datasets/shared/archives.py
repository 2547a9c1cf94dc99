"""Open data files: plain, compressed or in an archive, up to a declared unpacked size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any

from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.read_errors import TooLarge
from dperm_cli.datasets.shared.row_blocks import INSTEAD

# GiB that a compressed file of the user may unpack to, unless dataset.max_size says otherwise.
DEFAULT_GIB = 8.0
GIB = 1 << 30
_BUFFER = 1 << 20
_MEMORY_CHECK = 1 << 24  # bytes read between two looks at the memory in use


class _Capped(io.RawIOBase):
    """A reader that refuses to hand out more than ``limit`` bytes (None: as many as there are).

    Now and then it looks at the memory in use, so that no parser takes more than is allowed.
    """

    def __init__(self, source: IO[bytes], limit: int | None, name: str, *owned: Any) -> None:
        self._source, self._limit, self._name = source, limit, name
        self._read, self._next_check = 0, 0
        self._owned = (source, *owned)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._source.read(len(buffer))
        self._read += len(piece)
        if self._limit is not None and self._read > self._limit:
            raise TooLarge(self._limit)
        if self._read >= self._next_check:
            current_limit().check(0, f"reading {self._name}", INSTEAD)
            self._next_check = self._read + _MEMORY_CHECK
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        for part in self._owned:
            part.close()
        super().close()


def open_bytes(path: Path, limit: int | None = None, member: str | None = None) -> IO[bytes]:
    """A file's content, unpacked when its first bytes say gz, bz2, xz or zip.

    ``limit`` bounds the unpacked bytes (a plain file has no limit); reading past it raises
    TooLarge, an OSError. ``member`` is the base name of the wanted file in a zip or tar archive;
    nothing is ever extracted to disk.
    """
    limit = int(DEFAULT_GIB * GIB) if limit is None else limit
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PK\x03\x04") and not path.name.endswith(".npz"):
        return _zip_member(path, limit, member)
    packed = _decompressor(path, magic)
    if packed is None:
        # not unbuffered: the reader over it asks for the bytes of a whole buffer
        return io.BufferedReader(_Capped(open(path, "rb"), None, path.name), _BUFFER)
    if member is not None and _is_tar(path, magic):
        packed.close()
        return _tar_member(path, limit, member)
    return io.BufferedReader(_Capped(packed, limit, path.name), _BUFFER)


def _decompressor(path: Path, magic: bytes) -> Any:
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path, "rb")
    if magic.startswith(b"BZh"):
        return bz2.open(path, "rb")
    if magic == b"\xfd7zXZ\x00":
        return lzma.open(path, "rb")
    return None


def _zip_member(path: Path, limit: int, member: str | None) -> IO[bytes]:
    try:
        archive = zipfile.ZipFile(path)
        names = [n for n in archive.namelist() if not n.endswith("/")]
        if member is not None:
            names = [n for n in names if n.rpartition("/")[2] == member]
        if len(names) != 1:
            archive.close()
            raise OSError(f"the zip archive must hold one file{_name_member(member)}")
        return io.BufferedReader(
            _Capped(archive.open(names[0]), limit, path.name, archive), _BUFFER
        )
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise OSError(f"damaged zip archive: {error}") from None


def _is_tar(path: Path, magic: bytes) -> bool:
    packed = _decompressor(path, magic)
    with packed:
        return packed.read(263)[257:262] == b"ustar"


def _tar_member(path: Path, limit: int, member: str) -> IO[bytes]:
    """The regular file of that base name; links and devices are not followed."""
    try:
        # A stream, so that the cap below also bounds the search for the member.
        with open(path, "rb") as file:
            magic = file.read(6)
        inside = io.BufferedReader(_Capped(_decompressor(path, magic), limit, path.name), _BUFFER)
        archive = tarfile.open(fileobj=inside, mode="r|")  # noqa: SIM115
        for info in archive:
            found = archive.extractfile(info) if info.isreg() else None
            if found is not None and info.name.rpartition("/")[2] == member:
                return io.BufferedReader(_Capped(found, limit, path.name, archive, inside), _BUFFER)
    except tarfile.TarError as error:
        raise OSError(f"damaged tar archive: {error}") from None
    inside.close()
    raise OSError(f"the tar archive holds no file{_name_member(member)}")


def _name_member(member: str | None) -> str:
    return "" if member is None else f" called {member}"
