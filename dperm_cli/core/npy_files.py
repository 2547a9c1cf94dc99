"""Read arrays from .npy files and .npz archives of unknown origin.

All reading of such files goes through this module. Nothing is unpickled or evaluated. A header is
accepted only if it matches the pattern below. Memory for an array is reserved only after its size
was compared with the bytes in the file. For a compressed member, its stated size and the caller's
limit are used instead.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from dperm_cli.core.dataclass import dataclass

NUMBERS = "biuf"  # booleans, whole numbers, floating-point numbers
LABELS = "biufSU"  # and texts
_MAGIC = b"\x93NUMPY"
_MOST_HEADER, _MOST_AXES = 1 << 12, 8
_READ_BYTES = 1 << 24
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}  # bytes of an entry
_ENTRY = rb" *'(descr|fortran_order|shape)' *: *('[^'\\]{1,20}'|True|False|\([0-9, ]{0,160}\)) *"
_HEADER = re.compile(rb"\{" + rb",".join([_ENTRY] * 3) + rb",? *\} *\n?")
_SHAPE = re.compile(r"\( *\)|\( *\d{1,18} *,( *\d{1,18} *,)* *(\d{1,18} *)?\)")
_KIND = re.compile(r"([<>|=]?)([A-Za-z?])(\d{0,5})(\[\w{1,9}\])?")


class NotAnArray(ValueError):
    """The bytes are not an array of the wanted kind; the message says why."""


@dataclass(frozen=True)
class Header:
    """The header of .npy bytes: the array's type, order and shape.

    ``start`` is the header's own length in bytes: the numbers begin there.
    """

    version: tuple[int, int]
    dtype: np.dtype
    fortran: bool
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """Bytes of the numbers after the header."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], kinds: str = NUMBERS) -> Header:
    """Read the header that begins here; the file is left at the first number.

    Args:
        file: bytes of a .npy file.
        kinds: the kinds of entries that are wanted, ``NUMBERS`` or ``LABELS``.

    Raises:
        NotAnArray: for anything but a plain array of these kinds.
    """
    head = file.read(8)
    version = tuple(head[6:])
    if head[:6] != _MAGIC or version not in ((1, 0), (2, 0), (3, 0)):
        raise NotAnArray("it does not begin as a .npy array")
    width = 2 if version == (1, 0) else 4
    field = file.read(width)
    length = int.from_bytes(field, "little")
    if len(field) < width or length > _MOST_HEADER:
        raise NotAnArray("its header is too long")
    text = file.read(length)
    found = _HEADER.fullmatch(text)
    if len(text) < length or found is None:
        raise NotAnArray("its header is not that of a plain array of numbers")
    parts = found.groups()
    said = {parts[i].decode(): parts[i + 1].decode("latin-1") for i in range(0, 6, 2)}
    if len(said) != 3 or said["fortran_order"] not in ("True", "False"):
        raise NotAnArray("its header is not that of a plain array of numbers")
    dtype, shape = _dtype(said["descr"], kinds), _shape(said["shape"])
    return Header((version[0], version[1]), dtype, said["fortran_order"] == "True", shape,
                  8 + width + length)  # fmt: skip


def read_array(file: IO[bytes], size: int, kinds: str = NUMBERS) -> np.ndarray:
    """The array in the next ``size`` bytes of a .npy file, which must end there."""
    return read_body(file, read_header(file, kinds), size)


def read_body(file: IO[bytes], header: Header, size: int) -> np.ndarray:
    """The numbers after ``header``. ``size`` is the bytes of header and numbers together.

    Raises:
        NotAnArray: the bytes are fewer or more than the header says.
    """
    if header.size != size - header.start:
        raise NotAnArray("it is cut short, or longer than it says")
    raw = np.empty(header.size, dtype=np.uint8)
    view, done = memoryview(raw), 0  # type: ignore
    while done < header.size:
        count = file.readinto(view[done : done + _READ_BYTES])  # type: ignore[attr-defined]
        if not count:
            raise NotAnArray("it is cut short")
        done += count
    if file.read(1):  # reading to the end also makes an archive check its checksum
        raise NotAnArray("it is longer than it says")
    if header.dtype.kind == "b":
        raw = raw != 0  # numpy's booleans must be bytes of 0 or 1
    found = raw.view(header.dtype) if header.size else np.empty(0, header.dtype)
    return _shaped(found, header)


def read_file(path: Path) -> np.ndarray:
    """The array of numbers of a .npy file; OSError where the file cannot be read."""
    with _refuse_damage(), open(path, "rb") as file:
        return read_array(file, path.stat().st_size)


def map_array(file: IO[bytes], mode: str = "r") -> np.ndarray:
    """The array whose header begins here, mapped from the file, which is left at its end.

    Args:
        file: an open file.
        mode: ``r``, or ``c`` for an array that may be written to without changing the file.
    """
    with _refuse_damage():
        begin = file.tell()
        header = read_header(file)
        start = begin + header.start
        if header.size == 0:
            return np.empty(header.shape, header.dtype)
        if header.size > file.seek(0, 2) - start:
            raise NotAnArray("it is cut short")
        count = (math.prod(header.shape),)
        found = np.memmap(file, header.dtype, mode=mode, offset=start, shape=count)  # type: ignore
        file.seek(start + header.size)
        return _shaped(np.asarray(found), header)


def map_rows(path: Path, begin: int, end: int) -> np.ndarray:
    """The entries ``begin .. end - 1`` of the array of a .npy file; nothing else is mapped.

    They may be written to without changing the file.

    Args:
        path: the file; its array is in C order.
        begin, end: along the first axis.

    Raises:
        NotAnArray: for anything else, and where there are fewer entries.
    """
    with _refuse_damage(), open(path, "rb") as file:
        header = read_header(file)
        if header.fortran or not header.shape or not 0 <= begin <= end <= header.shape[0]:
            raise NotAnArray("it has no such rows")
        shape = (end - begin, *header.shape[1:])
        count, row = math.prod(shape), math.prod(header.shape[1:]) * header.dtype.itemsize
        if count == 0:
            return np.empty(shape, header.dtype)
        if header.start + end * row > file.seek(0, 2):
            raise NotAnArray("it is cut short")
        start = header.start + begin * row
        found = np.memmap(file, header.dtype, mode="c", offset=start, shape=(count,))
        return np.asarray(found).reshape(shape)


def read_archive(
    path: Path,
    names: Iterable[str] | None = None,
    kinds: str = NUMBERS,
    most: int | None = None,
) -> dict[str, np.ndarray]:
    """Arrays of a .npz archive by their names.

    Args:
        path: the archive.
        names: the wanted arrays; None takes all. Names that the archive lacks are left out.
        kinds: as in ``read_header``.
        most: the most bytes that the wanted arrays may have together, unpacked. None allows as
            many as the archive file has.

    Raises:
        NotAnArray: for a damaged archive, and for an array that is not plain.
        OSError: the file cannot be read.
    """
    with _refuse_damage(), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        wanted = list(members if names is None else [name for name in names if name in members])
        whole = path.stat().st_size
        limit = whole if most is None else most
        if sum(members[name].file_size for name in wanted) > limit:
            raise NotAnArray(f"its arrays have more than {limit} bytes")
        found = {}
        for name in wanted:
            entry = members[name]
            if entry.compress_type == zipfile.ZIP_STORED and entry.file_size > whole:
                raise NotAnArray("its arrays are larger than the file")
            with archive.open(entry) as file:
                try:
                    found[name] = read_array(file, entry.file_size, kinds)
                except NotAnArray as error:
                    raise NotAnArray(f"array {name[:40]!r}: {error}") from None
        return found


def names_in(path: Path) -> tuple[list[str], int]:
    """The names of the arrays of a .npz archive, and the unpacked bytes of all its members."""
    with _refuse_damage(), zipfile.ZipFile(path) as archive:
        return list(_members(archive)), sum(entry.file_size for entry in archive.infolist())


def shape_in(path: Path, name: str) -> tuple[int, ...]:
    """The shape of an array of a .npz archive, from its header alone; () where there is none."""
    with _refuse_damage(), zipfile.ZipFile(path) as archive:
        entry = _members(archive).get(name)
        if entry is None:
            return ()
        with archive.open(entry) as file:
            return read_header(file, LABELS).shape


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        if name in found:
            raise NotAnArray(f"array {name[:40]!r} is there twice")
        if name != entry.filename:
            found[name] = entry
    return found


def _dtype(word: str, kinds: str) -> np.dtype:
    found = _KIND.fullmatch(word.strip("'")) if word.startswith("'") else None
    if found is None:
        raise NotAnArray("its header is not that of a plain array of numbers")
    order, kind, size, unit = found.groups()
    if kind == "O":
        raise NotAnArray("it holds pickled objects, which are never loaded")
    if kind not in kinds or unit:
        raise NotAnArray(f"it holds {found.group()}, not {_words(kinds)}")
    if not size or int(size) not in _SIZES.get(kind, (int(size) or -1,)):
        raise NotAnArray(f"it holds {found.group()}, not {_words(kinds)} that dperm knows")
    return np.dtype(f"{order}{kind}{size}")


def _words(kinds: str) -> str:
    return "real numbers" if kinds == NUMBERS else "real numbers or texts"


def _shape(word: str) -> tuple[int, ...]:
    if _SHAPE.fullmatch(word) is None:
        raise NotAnArray("its header is not that of a plain array of numbers")
    found = tuple(int(number) for number in re.findall(r"\d+", word))
    if len(found) > _MOST_AXES or math.prod(max(length, 1) for length in found) >= 2**63:
        raise NotAnArray("its shape is beyond what can be held")
    return found


def _shaped(flat: np.ndarray, header: Header) -> np.ndarray:
    if header.fortran:
        return flat.reshape(header.shape[::-1]).T
    return flat.reshape(header.shape)


@contextmanager
def _refuse_damage() -> Iterator[None]:
    """Turn whatever a damaged archive makes the standard library raise into ``NotAnArray``."""
    try:
        yield
    except (NotAnArray, OSError, MemoryError):
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:100] or type(error).__name__
        raise NotAnArray(f"damaged: {words}") from error


def real(found: np.ndarray) -> np.ndarray:
    """Numbers as float64 in C order."""
    return np.ascontiguousarray(found, dtype=np.float64)
