"""The digests that name records, caches and pages: the standard ones, of parts in a row."""

from __future__ import annotations

import doctest
import hashlib

import numpy as np
import pytest

from dperm_cli.core import digests
from dperm_cli.core.digests import (
    hash_each,
    hash_facts,
    hash_file,
    hash_parts,
    hash_sha256,
    hash_sources,
)


def test_parts_are_hashed_one_behind_the_other():
    table = np.arange(6.0).reshape(2, 3)
    whole = "é".encode() + b"b" + table.tobytes()
    assert hash_parts("é", b"b", table) == hashlib.blake2b(whole, digest_size=16).hexdigest()
    assert (
        hash_parts("é", b"b", table, size=10) == hashlib.blake2b(whole, digest_size=10).hexdigest()
    )
    assert hash_each(iter(["é", b"b", table])) == hash_parts(whole)
    assert hash_sha256("é", b"b", table) == hashlib.sha256(whole).hexdigest()


@pytest.mark.parametrize("empty", [b"", "", np.zeros((0, 3)), np.zeros(0), memoryview(b"")])
def test_a_part_without_bytes_adds_nothing(empty):
    assert hash_parts(empty, "a") == hash_parts("a")


def test_an_array_with_gaps_is_refused_and_not_hashed_in_another_order():
    with pytest.raises(TypeError):
        hash_parts(np.arange(6.0).reshape(2, 3).T)


def test_facts_have_one_name_whatever_their_order():
    assert hash_facts({"a": [1, 2.5], "b": None}) == hash_facts({"b": None, "a": [1, 2.5]})
    assert hash_facts({"a": 1}) != hash_facts({"a": 1.5})
    assert len(hash_facts("é", size=16)) == 32


def test_files_are_hashed_by_content_and_sources_by_name_as_well(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_bytes(b"same")
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    assert hash_file(first) == hash_file(second) == hashlib.sha256(b"same").hexdigest()
    assert hash_sources([first], tmp_path) == hash_parts("a.py\0same")
    assert hash_sources([first], tmp_path) != hash_sources([second], tmp_path)


def test_the_examples():
    assert doctest.testmod(digests) == (0, 2)
