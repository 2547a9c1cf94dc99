"""Reading .npy bytes and .npz archives that anybody may have written."""

from __future__ import annotations

import ast
import contextlib
import io
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core import npy_files
from dperm_cli.core.npy_files import LABELS, NotAnArray

ROOM = Path(npy_files.__file__).parents[1]
FORBIDDEN = ("np.load", "numpy.load", "np.fromfile", "np.lib.format.open_memmap")


def written(array, version=(1, 0)):
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of later versions of the format
        np.lib.format.write_array(sink, array, version)
    return sink.getvalue()


def headed(text: str, body=b"") -> bytes:
    """.npy bytes with this text for a header."""
    line = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line + body


def read(content: bytes, kinds=npy_files.NUMBERS):
    return npy_files.read_array(io.BytesIO(content), len(content), kinds)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 4), (2, 1, 3)])
@pytest.mark.parametrize("kind", ["<f8", ">f4", "<i8", ">u2", "|b1", "<f2", "|i1"])
def test_what_numpy_writes_is_read(kind, shape, version):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5).astype(kind)
    for one in (array, np.asfortranarray(array)):
        found = read(written(one, version))
        assert found.shape == one.shape
        assert found.dtype == one.dtype
        assert np.array_equal(found, one)


def test_texts_are_read_where_they_are_wanted():
    for array in (np.array(["a", "bc"]), np.array([b"x"]), np.array("one")):
        assert np.array_equal(read(written(array), LABELS), array)
        with pytest.raises(NotAnArray, match="not real numbers"):
            read(written(array))


@pytest.mark.parametrize(
    "array",
    [np.ones(2, complex), np.zeros(2, "M8[s]"), np.zeros(2, "m8[D]"), np.zeros(2, [("a", "<f8")])],
    ids=["complex", "datetime", "timedelta", "structured"],
)
def test_other_kinds_are_refused(array):
    for kinds in (npy_files.NUMBERS, LABELS):
        with pytest.raises(NotAnArray):
            read(written(array), kinds)


GOOD = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
BAD_HEADERS = [
    "[" * 300, "(" * 300, "{" * 300, "'" * 99, "", "{}", "\\", "\x00", "{'descr': '<f8'}",
    GOOD.replace("False", "0"), GOOD.replace("(3,)", "(3)"), GOOD.replace("(3,)", "3"),
    GOOD.replace("(3,)", "(-3,)"), GOOD.replace("(3,)", "(3,,)"), GOOD.replace("(3,)", "(9" * 70),
    GOOD.replace("(3,)", f"({10**18 - 1},{10**18 - 1})"), GOOD.replace("(3,)", f"({'1,' * 9})"),
    GOOD.replace("'<f8'", "'|O'"), GOOD.replace("'<f8'", "'<f9'"), GOOD.replace("'<f8'", "'<f'"),
    GOOD.replace("'<f8'", "'<V8'"), GOOD.replace("'<f8'", "__import__('os')"),
    GOOD.replace("'shape'", "'descr'"), GOOD + " #", "1" * 5000, GOOD.replace("'<f8'", "'f99999'"),
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_HEADERS)
def test_a_header_is_believed_where_it_matches_alone(text):
    for kinds in (npy_files.NUMBERS, LABELS):
        with pytest.raises(NotAnArray):
            read(headed(text, bytes(24)), kinds)


def test_the_header_that_is_right_is_read():
    assert np.array_equal(read(headed(GOOD, bytes(24))), np.zeros(3))
    other = "{'shape': (3,), 'descr': '<f8', 'fortran_order': False}"
    assert np.array_equal(read(headed(other, bytes(24))), np.zeros(3))


@pytest.mark.parametrize("body", [b"", bytes(23), bytes(25)])
def test_bytes_that_are_not_what_the_header_says(body):
    with pytest.raises(NotAnArray, match="cut short"):
        read(headed(GOOD, body))


def test_changed_bytes_are_an_array_or_refused():
    """Whatever a byte is changed to, and wherever the file ends."""
    rng, whole = np.random.default_rng(0), written(np.arange(6.0).reshape(2, 3))
    for _ in range(4000):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] = rng.integers(256)
        content = bytes(
            content[: rng.integers(len(content) + 1)] if rng.random() < 0.3 else content
        )
        with contextlib.suppress(NotAnArray):
            assert read(content).dtype.kind in npy_files.NUMBERS


def test_changed_archives_are_read_or_refused(tmp_path):
    sink = io.BytesIO()
    np.savez_compressed(sink, x=np.arange(6.0), y=np.array(["a"]))
    whole, rng = sink.getvalue(), np.random.default_rng(1)
    for _ in range(1500):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=rng.integers(1, 3)):
            content[place] = rng.integers(256)
        (tmp_path / "a.npz").write_bytes(content)
        with contextlib.suppress(NotAnArray, OSError):
            npy_files.read_archive(tmp_path / "a.npz", kinds=LABELS, most=1 << 16)


def test_members_larger_than_allowed_are_not_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(1 << 17))
    with pytest.raises(NotAnArray, match="more than"):
        npy_files.read_archive(path, most=1 << 19)
    found = npy_files.read_archive(path, most=1 << 21)
    assert found["x"].shape == (1 << 17,)


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr("x.npy", written(np.ones(2)))
    with pytest.raises(NotAnArray, match="twice"):
        npy_files.read_archive(path)


def test_a_mapped_array_is_the_file(tmp_path):
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.empty((0, 2))):
        np.save(tmp_path / "a.npy", array)
        with open(tmp_path / "a.npy", "rb") as file:
            assert np.array_equal(npy_files.map_array(file, "c"), array)
    (tmp_path / "b.npy").write_bytes(headed(GOOD, bytes(23)))
    with open(tmp_path / "b.npy", "rb") as file, pytest.raises(NotAnArray, match="cut short"):
        npy_files.map_array(file)


def others_that_read(source: str) -> list[str]:
    """Calls by which a file reads arrays other than through ``core.npy_files``."""
    calls = (ast.unparse(n.func) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call))
    return [
        call for call in calls if call in FORBIDDEN or "format.read_" in call or "npyio" in call
    ]


def test_nothing_else_reads_arrays():
    found = {str(path.relative_to(ROOM)): others_that_read(path.read_text())
             for path in ROOM.rglob("*.py")}  # fmt: skip
    assert len(found) > 500
    # a peer runs in an environment without dperm, on a problem that dperm has just written
    assert found.pop("runner/peers/adapter_main.py") == ["np.load"]
    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "line", ["np.load(f)", "np.lib.format.read_array(f)", "format.read_array_header_1_0(f)",
             "np.lib.format.read_magic(f)", "numpy.load(f, allow_pickle=False)"],
)  # fmt: skip
def test_the_source_test_sees_other_readers(line):
    assert others_that_read(line)
