"""Registered data sets: how their files are found, checked, cached and refused."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import os
import tarfile
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import archives, content_digest, parsed_cache, published_file

FOLDER = os.environ.get("DPERM_DATA_DIR", "")
REGISTERED = [n for n in registry.names("dataset") if registry.load("dataset", n).where ==
              "registered"]  # fmt: skip

TEXT = "1 1:0.5 3:2\n2 2:-1\n1 1:4\n2 3:0.25 1:1\n"
X = sparse.csr_array(np.array([[0.5, 0, 2], [0, -1, 0], [4, 0, 0], [1, 0, 0.25]]))
LABELS = np.array([1.0, 2.0, 1.0, 2.0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toy(published_file.WithClasses):
    """A registered set of four records."""

    name: ClassVar[str] = "toy"
    upstream: ClassVar[str] = "nowhere"
    signs: ClassVar = {1.0: 1.0, 2.0: -1.0}
    class_labels: ClassVar = (1.0, 2.0)
    train: ClassVar = published_file.Source(
        names=("toy", "toy.data"), n=4, p=3, limit=1 << 16, nnz=6, labels={1: 2, 2: 2},
        digest=content_digest.of_records(X, LABELS), member="toy.txt",
    )  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    # One parse of each large file for the whole session.
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def put(folder, content=TEXT, name="toy", pack=lambda b: b):
    (folder / name).write_bytes(pack(content.encode()))


def refused(folder, dataset=None):
    with pytest.raises(InputError) as caught:
        (dataset or Toy()).load(folder)
    assert caught.value.key == "dataset"
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- declarations


@pytest.mark.parametrize("name", REGISTERED)
def test_declarations_are_complete(name):
    kind = registry.load("dataset", name)
    assert kind.name == name
    for source in kind.sources():
        assert source.n > 0
        assert source.limit < 1 << 40
        assert source.url is None or source.url.startswith("https://")
        assert (
            source.names[0] in source.download_name
            or source.download_name.split(".")[0] in source.names
        )
        counts = source.labels
        assert counts is None or sum(counts.values()) == source.n
        if source.labels is not None:
            assert set(source.labels) <= set(kind.signs)
    assert kind().task in ("binary", "regression", "multiclass")
    if kind.class_labels:
        assert set(kind.class_labels) == set(kind.signs)


@pytest.mark.parametrize("name", REGISTERED)
def test_an_absent_set_says_what_to_do_in_one_line(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("DPERM_OFFLINE", raising=False)
    kind = registry.load("dataset", name)
    message = refused(tmp_path, kind())
    assert message.startswith(f"dataset={name}: is not here")
    assert kind.train.names[0] in message
    assert (f"dperm data fetch {name}" in message) == (kind.train.url is not None)


# --- the digest


def test_digest_does_not_see_order_or_spelling():
    base = content_digest.of_records(X, LABELS)
    assert content_digest.of_records(X[[2, 0, 3, 1]], LABELS[[2, 0, 3, 1]]) == base
    assert content_digest.of_records(X.toarray(), LABELS) == base
    stored_zero = sparse.csr_array(
        (np.append(X.data, -0.0), np.append(X.indices, 1), np.append(X.indptr[:-1], 7)),
        shape=X.shape,
    )
    assert stored_zero.nnz == X.nnz + 1
    assert content_digest.of_records(stored_zero, LABELS) == base


def test_digest_sees_every_change():
    def changed(**edits):
        x, y = X.toarray(), LABELS.copy()
        for place, value in edits.get("x", {}).items():
            x[place] = value
        for place, value in edits.get("y", {}).items():
            y[place] = value
        return content_digest.of_records(x, y)

    seen = {
        content_digest.of_records(X, LABELS),
        changed(x={(0, 0): np.nextafter(0.5, 1)}),
        changed(x={(1, 0): 1e-300}),
        changed(x={(2, 0): 0.0, (2, 1): 4.0}),
        changed(y={0: 2.0, 1: 1.0}),
        content_digest.of_records(X[:3], LABELS[:3]),
        content_digest.of_records(X[[0, 0, 1, 2, 3]], LABELS[[0, 0, 1, 2, 3]]),
        content_digest.of_records(
            sparse.csr_array((X.data, X.indices, X.indptr), shape=(4, 9)), LABELS
        ),
    }
    assert len(seen) == 8


# --- finding the file


def test_names_endings_and_folders(tmp_path, monkeypatch):
    cache, folder = tmp_path / "cache", tmp_path / "data"
    monkeypatch.setenv("DPERM_CACHE_DIR", str(cache))
    (cache / "downloads").mkdir(parents=True)
    folder.mkdir()
    put(cache / "downloads", name="toy.data")
    assert Toy().locate(folder) == cache / "downloads" / "toy.data"
    put(folder, name="toy.data.bz2", pack=bz2.compress)
    assert Toy().locate(folder) == folder / "toy.data.bz2"
    put(folder, name="toy.gz", pack=gzip.compress)
    assert Toy().locate(folder) == folder / "toy.gz"
    data = Toy(test_fraction=0).load(folder)
    assert (data.n, data.p, data.y.tolist()) == (4, 3, [1, -1, 1, -1])


def zipped(text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/toy.txt", text)
        archive.writestr("folder/readme", "other")
    return out.getvalue()


def tarred(text, kind=tarfile.REGTYPE):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in (("d/readme", b"other"), ("d/toy.txt", text)):
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), tarfile.REGTYPE, ""
            if name.endswith("toy.txt"):
                info.type, info.linkname = kind, "/etc/passwd" if kind != tarfile.REGTYPE else ""
                info.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_member_of_an_archive(pack, tmp_path):
    put(tmp_path, pack=pack)
    assert Toy().load(tmp_path).p == 3
    assert sorted(os.listdir(tmp_path)) == ["toy"]


def test_a_tar_link_is_not_followed(tmp_path):
    put(tmp_path, pack=lambda b: tarred(b, tarfile.SYMTYPE))
    assert "no file called toy.txt" in refused(tmp_path)


def test_reordered_mirror_is_accepted_and_both_tasks_load(tmp_path):
    lines = TEXT.splitlines()
    put(tmp_path, "\n".join(lines[::-1]))
    data = Toy(test_fraction=0, classes="all").load(tmp_path)
    assert (data.task, data.classes, data.y.tolist()) == ("multiclass", 2, [1, 0, 1, 0])
    assert Toy(classes="all").default_loss == "multinomial"
    with pytest.raises(InputError, match=r"dataset\.classes"):
        Toy(classes="both")


# --- a file that is not the published one


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:0.5 3:2\n2 2:-1\n1 1:4\n", "3 records; published: 4"),
        (TEXT + "1 1:1\n", "5 records; published: 4"),
        (TEXT.replace("2 2:-1", "2 2:-1 3:1"), "7 non-zero entries; published: 6"),
        (TEXT.replace("2 2:-1", "1 2:-1"), "3 records of label 1; published: 2"),
        (TEXT.replace("2 2:-1", "7 2:-1"), "1 records of label 2; published: 2"),
        (TEXT.replace("1:4", "1:5"), "its records have digest"),
        (TEXT.replace("2 2:-1", "1 2:-1").replace("1 1:4", "2 1:4"), "digest"),
        (TEXT.replace("1:4", "1:nan"), "record 3, column 1 is missing, nan or infinite"),
        (TEXT.replace("1:4", "4:4"), "n_features=3"),
        (TEXT.replace("1:4", "x"), "line 3"),
        ("", "0 records"),
    ],
)
def test_a_changed_file_is_refused_in_one_line(text, words, tmp_path):
    put(tmp_path, text)
    assert words in refused(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["toy"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zipped, tarred])
def test_a_bomb_stops_at_the_declared_size(pack, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("DPERM_CACHE_DIR", str(cache))
    folder = tmp_path / "data"
    folder.mkdir()
    handed = []
    whole = archives._Capped.readinto
    monkeypatch.setattr(
        archives._Capped, "readinto", lambda s, b: handed.append(len(b)) or whole(s, b)
    )
    put(folder, TEXT + " " * 30_000_000, pack=pack)
    assert "declared limit of" in refused(folder)
    assert len(handed) < 50
    assert not cache.exists()


def test_a_truncated_or_foreign_archive_is_one_line(tmp_path):
    for content in (zipped(TEXT)[:-40], tarred(TEXT.encode())[:60], bz2.compress(b"x" * 99)[:-9]):
        (tmp_path / "toy").write_bytes(content)
        assert "dataset=toy: " in refused(tmp_path)


# --- the parsed cache


def test_parsed_arrays_are_mapped_and_never_written_to(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    put(tmp_path)
    first = Toy().load(tmp_path)
    monkeypatch.setattr(Toy, "parse", lambda *_: pytest.fail("not cached"))
    (entry,) = (tmp_path / "cache").iterdir()
    content = entry.read_bytes()
    parts = parsed_cache._load(entry)
    assert parts is not None
    assert not parts["data"].flags.writeable
    assert parts["data"].flags.aligned
    for fields in ({}, {"rows": "clip"}, {"rows": "none", "row_bound": 9.0}, {"intercept": True},
                   {"norm": "inf"}):  # fmt: skip
        data = Toy(**fields).load(tmp_path)
        for part in (data.x.data, data.x.indices, data.x.indptr, data.y):
            assert part.flags.writeable
    assert first.fingerprint == Toy().load(tmp_path).fingerprint
    assert entry.read_bytes() == content


def test_a_cached_parse_is_checked_again(tmp_path, monkeypatch):
    put(tmp_path)
    Toy().load(tmp_path)
    stricter = dataclasses.replace(Toy.train, nnz=5)
    monkeypatch.setattr(Toy, "train", stricter)
    assert "6 non-zero entries; published: 5" in refused(tmp_path)


# --- the published layouts, on files made here


def test_layouts_of_the_tables(tmp_path):
    year = registry.load("dataset", "yearpredictionmsd")
    line = ",".join(["2001", *(str(v / 4) for v in range(90))])
    with zipfile.ZipFile(tmp_path / "yearpredictionmsd.zip", "w") as archive:
        archive.writestr("YearPredictionMSD.txt", f"{line}\n{line}\n")
    x, y = year.parse(tmp_path / "yearpredictionmsd.zip", year.train)
    assert (x.shape, y.tolist(), x[1, 89]) == ((2, 90), [2001, 2001], 22.25)
    housing = registry.load("dataset", "cal_housing")
    row, header = "-122.2,37.9,41.0,880.0,129.0,322.0,126.0,8.3,452600.0\n", "a,b,c,d,e,f,g,h,i\n"
    for content in (row, header + row):
        (tmp_path / "h").write_text(content)
        x, y = housing.parse(tmp_path / "h", housing.train)
        assert (x.shape, y.tolist()) == ((1, 8), [452600.0])
    (tmp_path / "h").write_text("1,2\n")
    with pytest.raises(InputError, match="must have 9 columns, not 2"):
        housing.parse(tmp_path / "h", housing.train)
    (tmp_path / "h").write_text(row + row.replace("880.0", "many"))
    with pytest.raises(InputError, match="is not a regular table"):
        housing.parse(tmp_path / "h", housing.train)


def test_connections_have_declared_words_only(tmp_path):
    kind = registry.load("dataset", "kddcup99")
    line = "0,tcp,http,SF,181,5450" + ",0" * 35 + ",normal.\n"
    (tmp_path / "k").write_text(line)
    x, y = kind.parse(tmp_path / "k", kind.train)
    assert x.shape == (1, 122)
    assert kind().targets(y).tolist() == [-1.0]
    assert x.toarray()[0, 38:].sum() == 3
    (tmp_path / "k").write_text(line.replace("http", "gopher2"))
    with pytest.raises(InputError, match="record 1 holds 'gopher2', which is not a documented"):
        kind.parse(tmp_path / "k", kind.train)
