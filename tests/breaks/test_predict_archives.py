"""Break 7: a model's archive may come from anybody; see test_predict_files.py for what is in it."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from tests.breaks._files import assert_refused, write_model, write_new_rows


def header(shape, kind="<f8"):
    """The head of a .npy file of this shape."""
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        sink, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return sink.getvalue()


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_zip(path, members, repeat=(), method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in [*members.items(), *repeat]:
            file.writestr(name, content)


def bomb(path, name, members, megabytes):
    """An archive with a member that unpacks to so many megabytes of zeros."""
    kept = {key: value for key, value in members.items() if key != name}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for key, content in kept.items():
            file.writestr(key, content)
        packed = zipfile.ZipInfo(name)
        packed.compress_type = zipfile.ZIP_DEFLATED
        with file.open(packed, "w", force_zip64=True) as member:
            member.write(header((megabytes << 17,)))
            for _ in range(megabytes):
                member.write(bytes(1 << 20))


def assert_small(predict):
    tracemalloc.start()
    try:
        done = predict()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_refused(done)
    assert peak < 32 << 20


@pytest.mark.parametrize("name", ["theta.npy", "facts.npy", "more.npy"])
def test_a_small_file_that_unpacks_to_much_is_refused(name, saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    members = members_of(path)
    zipped = tmp_path / "forged.npz"
    # packed: a member that is not cannot be larger than the file
    bomb(zipped, name, members, 128)
    assert zipped.stat().st_size < 1 << 18
    assert_small(predict)


@pytest.mark.slow
def test_a_megabyte_that_unpacks_to_a_gigabyte_is_refused(saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    bomb(path, "theta.npy", members_of(path), 1024)
    assert path.stat().st_size < 1.1 * (1 << 20)
    assert_small(predict)


def lying(members):
    """A head that promises more numbers than memory has."""
    return {**members, "theta.npy": header((10**13,)) + bytes(24)}


ARCHIVES = {
    "a promise of too much": lying,
    "a negative shape": lambda m: {**m, "theta.npy": header((-3,)) + bytes(24)},
    "a shape of truth": lambda m: {**m, "theta.npy": header((True, 3)) + bytes(24)},
    "cut short": lambda m: {**m, "theta.npy": m["theta.npy"][:-8]},
    "objects": lambda m: {**m, "theta.npy": header((3,), "|O") + b"cos\nsystem\n."},
    "a file of another kind": lambda m: {**m, "readme.txt": b"hello"},
    "a path that leads out": lambda m: {**m, "../../more.npy": m["theta.npy"]},
    "an array nobody knows": lambda m: {**m, "records.npy": m["theta.npy"]},
}


def test_the_archive_is_written_again_as_it_was(saved, predict, tmp_path):
    """So that what is refused below is refused for what was changed; packed members are none."""
    path = write_model(tmp_path / "forged.npz", *saved())
    members = members_of(path)
    write_zip(path, members)
    assert predict().code == 0
    write_zip(path, members, method=zipfile.ZIP_DEFLATED)
    assert_refused(predict())


@pytest.mark.parametrize("what", ARCHIVES)
def test_an_archive_that_is_none_is_refused(what, saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    write_zip(path, ARCHIVES[what](members_of(path)))
    assert_refused(predict())


def test_an_encrypted_member_is_refused(saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")  # the first entry of the central directory
    content[at + 8] |= 1
    path.write_bytes(bytes(content))
    assert_refused(predict())


def test_two_members_of_one_name_are_refused(saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    members = members_of(path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_zip(path, members, repeat=[("theta.npy", members["theta.npy"])])
    assert_refused(predict())


BYTES = {
    "nothing": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "no end": lambda content: content[:-30],
    "one byte changed": lambda content: content.replace(b"fortran_order", b"fortran-order", 1),
    "a plain array": lambda content: header((3,)) + bytes(24),
    "text": lambda content: b"theta,1,2,3\n",
}


@pytest.mark.parametrize("what", BYTES)
def test_a_file_that_is_no_archive_is_refused(what, saved, predict, tmp_path):
    path = write_model(tmp_path / "forged.npz", *saved())
    path.write_bytes(BYTES[what](path.read_bytes()))
    assert_refused(predict())


def test_a_folder_and_an_empty_table_are_refused(saved, predict, tmp_path):
    (tmp_path / "forged.npz").mkdir()
    assert_refused(predict())
    (tmp_path / "forged.npz").rmdir()
    write_model(tmp_path / "forged.npz", *saved())
    assert_refused(predict(write_new_rows(tmp_path / "none.csv", np.zeros((0, 3)))))
