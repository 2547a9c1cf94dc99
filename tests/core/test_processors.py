"""The processors that a process may use: bound to, and within the limits of its control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dperm_cli.core import processors


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def _limits(tmp_path: Path, own: str) -> list[int]:
    (tmp_path / "own").write_text(own)
    return list(processors._list_limits(tmp_path / "own", tmp_path / "groups"))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs binding to processors")
def test_a_bound_process_counts_what_it_is_bound_to() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{one}])\n"
    code += "from dperm_cli.core import processors; print(processors.count())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "1\n"


def test_a_group_of_version_2_limits_what_is_below_it(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    _write(groups / "user" / "job", cpu__max="max 100000")
    _write(groups / "user", cpu__max="250000 100000")
    assert _limits(tmp_path, "0::/user/job\n") == [3]
    _write(groups / "user" / "job", cpu__max="50000 100000")
    assert _limits(tmp_path, "0::/user/job\n") == [1, 3]


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    _write(tmp_path / "groups", cpu__max="150000 100000")
    assert _limits(tmp_path, "0::/\n") == [2]
    assert _limits(tmp_path, "0::/outside/of/what/is/seen\n") == [2]


def test_groups_of_version_1(tmp_path: Path) -> None:
    groups = tmp_path / "groups" / "cpu"
    _write(groups, cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    own = "3:memory:/job\n2:cpu,cpuacct:/job\n"
    assert _limits(tmp_path, own) == []
    _write(groups / "job", cpu__cfs_quota_us="400000", cpu__cfs_period_us="100000")
    assert _limits(tmp_path, own) == [4]


@pytest.mark.parametrize("text", ["", "max\n", "1 2 3\n", "many 100000\n", "5 0\n", "-7 100000\n"])
def test_a_file_that_says_nothing_limits_nothing(tmp_path: Path, text: str) -> None:
    _write(tmp_path / "groups", cpu__max=text)
    assert _limits(tmp_path, "0::/\n") == []
    assert _limits(tmp_path, "not such a file\n") == []


def test_without_control_groups_nothing_is_limited(tmp_path: Path) -> None:
    assert list(processors._list_limits(tmp_path / "absent", tmp_path)) == []
    assert processors.count() >= 1
