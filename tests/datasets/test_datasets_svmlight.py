"""svmlight text: what is read, and every way a line can be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.shared import svmlight_reader
from tests.datasets.files_data import SVM, SVM_X, SVM_Y, made, plain, read_whole, refused


def test_svmlight_reads(tmp_path):
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf" + SVM)
    raw = plain(Svmlight, tmp_path / "f")
    assert isinstance(raw.x, sparse.csr_array)
    assert raw.x.has_sorted_indices
    assert np.array_equal(raw.x.toarray(), SVM_X)
    assert raw.y.tolist() == SVM_Y
    wide = plain(Svmlight, tmp_path / "f", n_features=9, storage="dense")
    assert isinstance(wide.x, np.ndarray)
    assert wide.x.shape == (4, 9)
    assert np.array_equal(wide.x[:, :3], SVM_X)


def test_svmlight_width_is_declared_never_measured(tmp_path):
    (tmp_path / "f").write_bytes(SVM)
    with pytest.raises(InputError, match=r"dataset\.n_features=None: must be declared"):
        Svmlight(path=str(tmp_path / "f"))
    # Replacing a record may change the largest index, but not p.
    (tmp_path / "g").write_bytes(SVM.replace(b" 3:2", b" 2:2").replace(b"3:.25 ", b""))
    wide, narrow = (made(Svmlight, tmp_path / name).load() for name in "fg")
    assert (wide.p, narrow.p) == (3, 3)


def test_svmlight_zero_rows_and_stored_zeros(tmp_path):
    (tmp_path / "f").write_bytes(b"1 1:0 2:3\n-1\n")
    data = made(Svmlight, tmp_path / "f", test_fraction=0).load()
    assert data.x.nnz == 1
    assert data.x.toarray().tolist() == [[0, pytest.approx(1), 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 0:1", "index 0"),
        ("1 4:1", "n_features=3"),
        ("1 1:1 1:2", "index 1 twice"),
        ("1 2:1 1:2 2:0", "index 2 twice"),
        ("1 1:nan", "record 2, column 1"),
        ("1 1:1 3:inf", "record 2, column 3"),
        ("1 2:1e999", "record 2, column 2"),
        ("1 1", "line 3"),
        ("1 1:", "line 3"),
        ("1 :1", "line 3"),
        ("1 1:2:3", "line 3"),
        ("1 1 2:3:4", "line 3"),
        ("1 1: 2", "line 3"),
        ("1 1.5:1", "line 3"),
        ("1 -1:1", "line 3"),
        ("1 1:a", "line 3"),
        ("1 1:0x1", "line 3"),
        ("1 a:1", "line 3"),
        ("1 qid:3 1:1", "line 3"),
        ("1:1", "line 3"),
        ("yes 1:1", "line 3"),
        ("1,2 1:1", "line 3"),
        ("1 1:1\x00", "line 3"),
        ("1 99999999999999999999:1", "line 3"),
        ("1 9999999999:1", "index 9999999999"),
    ],
)
def test_svmlight_bad_lines(line, words, tmp_path):
    (tmp_path / "f").write_text(f"1 1:1\n\n{line}\n-1 2:1\n")
    assert words in refused(Svmlight, tmp_path / "f", n_features=3)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only\n# comments\n"])
def test_svmlight_without_records(content, tmp_path):
    (tmp_path / "f").write_bytes(content)
    assert "holds no records" in refused(Svmlight, tmp_path / "f")
    assert "holds no records" in refused(Svmlight, tmp_path / "f", n_features=9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1, 1]),
            st.dictionaries(
                st.integers(1, 30),
                st.floats(allow_nan=False, allow_infinity=False).filter(bool),
                max_size=5,
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_svmlight_round_trip_across_block_borders(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("svm") / "f"
    lines = [" ".join([str(y), *(f"{j}:{v!r}" for j, v in x.items())]) for y, x in rows]
    path.write_text("\n".join(lines))
    expected = np.zeros((len(rows), 30))
    for i, (_, x) in enumerate(rows):
        for j, v in x.items():
            expected[i, j - 1] = v
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight_reader, "BLOCK", 7)
        x, labels = read_whole("dataset.path", path, 30)
    assert np.array_equal(x.toarray(), expected)
    assert labels.tolist() == [y for y, _ in rows]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="1-+.:e#ax \n\t", max_size=40))
def test_svmlight_any_text_is_read_or_refused_in_one_line(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.svm"
    path.write_text(text)
    try:
        x, labels = read_whole("dataset.path", path, 2000)
    except InputError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
    if message:
        return
    lines = [s for s in (line.partition("#")[0].split() for line in text.split("\n")) if s]
    assert labels.tolist() == [float(s[0]) for s in lines]
    pairs = [[token.split(":") for token in s[1:]] for s in lines]
    dense = np.zeros(x.shape)
    for i, row in enumerate(pairs):
        for index, value in row:
            dense[i, int(index) - 1] = float(value)
    assert np.array_equal(x.toarray(), dense)


def test_svmlight_test_file_has_the_declared_width(tmp_path):
    (tmp_path / "train").write_bytes(b"1 1:1 3:1\n-1 2:1\n")
    (tmp_path / "test").write_bytes(b"1 1:1\n")
    data = made(Svmlight, tmp_path / "train", test_path=str(tmp_path / "test")).load()
    assert (data.n, data.x_test.shape) == (2, (1, 3))
    (tmp_path / "test").write_bytes(b"1 4:1\n")
    message = refused(
        Svmlight, tmp_path / "train", "dataset.test_path", test_path=str(tmp_path / "test")
    )
    assert "index 4" in message
