"""The cache of parsed files: used, checked, private, and never in the way."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.shared import parsed_cache, svmlight_reader
from tests.datasets.files_data import SVM, SVM_X, SVM_Y, made, read_whole


def test_cache_is_used_checked_and_private(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    first, _ = read_whole("dataset.path", path, 3, cache=True)
    (entry,) = (tmp_path / "cache").iterdir()
    assert entry.stat().st_mode & 0o077 == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight_reader, "_parse", lambda *_: pytest.fail("not cached"))
        again, labels = read_whole("dataset.path", path, 3, cache=True)
    assert np.array_equal(first.toarray(), again.toarray())
    assert labels.tolist() == SVM_Y
    # The declared width is checked against a cached parse too.
    with pytest.raises(InputError, match="n_features=2"):
        read_whole("dataset.path", path, 2, cache=True)


@pytest.mark.parametrize("harm", ["truncate", "flip", "swap", "pickle"])
def test_damaged_cache_entry_is_rebuilt(harm, tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    read_whole("dataset.path", path, 3, cache=True)
    (entry,) = (tmp_path / "cache").iterdir()
    content = bytearray(entry.read_bytes())
    if harm == "truncate":
        entry.write_bytes(content[: len(content) // 2])
    elif harm == "flip":
        place = content.find(np.float64(-0.1).tobytes())
        content[place] ^= 1
        entry.write_bytes(content)
    elif harm == "swap":
        arrays = {k: v.copy() for k, v in (parsed_cache._load(entry) or {}).items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parsed_cache, "_digest", lambda _: "0" * 32)
            parsed_cache._store(entry, {**arrays, "values": arrays["values"] + 1})
    else:
        entry.write_bytes(pickle.dumps({"labels": 1}))
    x, _ = read_whole("dataset.path", path, 3, cache=True)
    assert np.array_equal(x.toarray(), SVM_X)
    assert parsed_cache._load(entry) is not None


def test_cache_follows_the_content_and_failures_store_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    read_whole("dataset.path", path, 7, cache=True)
    path.write_bytes(b"1 1:7\n")
    assert read_whole("dataset.path", path, 7, cache=True)[0].toarray()[0, 0] == 7.0
    path.write_bytes(b"1 1:x\n")
    with pytest.raises(InputError):
        read_whole("dataset.path", path, 7, cache=True)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_cache_folder_that_cannot_be_made_costs_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    (tmp_path / "f").write_bytes(SVM)
    x, _ = read_whole("dataset.path", tmp_path / "f", 3, cache=True)
    assert np.array_equal(x.toarray(), SVM_X)


def test_files_are_not_cached_unless_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "f").write_bytes(SVM)
    before = made(Svmlight, tmp_path / "f").load()
    assert not (tmp_path / "cache").exists()
    after = made(Svmlight, tmp_path / "f", cache=True).load()
    assert (tmp_path / "cache").exists()
    assert before.fingerprint == after.fingerprint
