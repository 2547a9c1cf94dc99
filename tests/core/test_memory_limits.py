"""What a process may take of memory: sizes in words, limits of the system, the refusal."""

from __future__ import annotations

import pytest

from dperm_cli.core import memory_limits
from dperm_cli.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [("auto", "auto"), ("4GB", 4 * 10**9), ("512 MiB", 512 << 20), ("1.5gib", 3 << 29)],
)
def test_sizes(text, size):
    assert memory_limits.check_size("limits.memory", text) == size


@pytest.mark.parametrize("text", ["", "4", "GB", "-1GB", "nanGB", "4 PB", "0GB", "1e9GB", None, 4])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match=r"limits\.memory=.*such as 4GB or 512MiB"):
        memory_limits.check_size("limits.memory", text)


@pytest.mark.parametrize(
    ("line", "files", "least"),
    [
        ("0::/job/step", {"job/step/memory.max": "max", "job/memory.max": "700"}, 700),
        ("0::/job", {"job/memory.max": "900", "memory.max": "800"}, 800),
        ("0::/host/path/not/seen/here", {"memory.max": "600"}, 600),
        ("5:cpu,memory:/job", {"memory/job/memory.limit_in_bytes": "500"}, 500),
        ("5:memory:/", {"memory/memory.limit_in_bytes": str((1 << 63) - 4096)}, None),
        ("5:cpu:/job", {"memory/job/memory.limit_in_bytes": "500"}, None),
    ],
)
def test_the_least_limit_of_the_control_groups(tmp_path, line, files, least):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{line}\n")
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    found = memory_limits.find_limits(tmp_path)
    groups = [limit.bytes for limit in found if "control group" in limit.source]
    assert groups == ([] if least is None else [least])


def test_a_refusal_has_both_numbers():
    with memory_limits.hold_memory_to(10**15) as limit:
        limit.check(10**9, "this", "do that")
        assert memory_limits.current_limit() == limit
        with pytest.raises(InputError) as caught:
            limit.check(2 * 10**15, "this", "do that")
    assert "limits.memory=1e+03TB: this needs about 2e+03 TB" in str(caught.value)
    assert "1e+03 TB are allowed (limits.memory); do that" in str(caught.value)
    assert memory_limits.current_limit() != limit
