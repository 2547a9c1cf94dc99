"""What core has one of is not written by hand elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dperm_cli

HERE = Path(dperm_cli.__file__).parent
SOURCES = {path: path.read_text() for path in sorted(HERE.rglob("*.py"))}


def users(pattern):
    found = re.compile(pattern)
    return [path.relative_to(HERE).as_posix() for path, text in SOURCES.items()
            if found.search(text)]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "most", "instead"),
    [
        # the writer; a download goes on in its own file and is renamed when it is whole
        (r"\bos\.(replace|rename)\(", 2, "core.files.write_atomically or open_atomically"),
        (r"\b(mkstemp|NamedTemporaryFile)\b", 0, "core.files.open_atomically"),
        # only whether a lock is held is asked of the system itself
        (r"\bimport fcntl\b", 1, "core.files.hold_lock"),
        (r"\bfilelock import\b", 1, "core.files.hold_lock"),
        # digests; records one by one, rows in a loop, draws as they come
        (r"(?m:^import hashlib$)", 4, "core.digests"),
        # bounded caches: one of numbers, of which a plan asks thousands, and core.memo
        (r"(?m:^@(functools\.)?lru_cache)", 1, "core.memo.memoise"),
        (r"\bOrderedDict\b|\.pop\(next\(iter\(", 1, "core.memo.Memo"),
        # the program that runs in a peer's environment has nothing of dperm, and the first page of
        # help is shown before anything is imported
        (r"\bsys\.argv\b", 3, "core.operands.Syntax"),
        (r"\bcsv\.writer\(", 1, "row_facts.csv_lines"),
        (r"\braise UnknownKey\b", 1, "core.checks.known_keys"),
        (r"\bcpu_count\(|\bsched_getaffinity\(", 1, "core.processors.count"),
        (r"(?m:^from dataclasses import .*\bdataclass\b)", 0, "core.dataclass"),
        # modules that other threads see half of
        (r"\bLazyLoader\(", 0, "core.late_imports"),
    ],
)
def test_what_there_is_one_of_is_used(pattern, most, instead):
    found = users(pattern)
    assert len(found) <= most, f"use {instead} in place of what one of these does: {found}"
