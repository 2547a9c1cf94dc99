"""Closed, full and broken standard streams, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

START = "import os, sys\nfrom dperm_cli.core import standard_streams\nstandard_streams.settle()\n"
FAULT = "fault = standard_streams.find_fault()\n"


def run_shell(code: str, redirections: str, env: dict[str, str] | None = None):
    """A Python process whose streams the shell redirects."""
    command = ["sh", "-c", f'"$0" -c "$1" {redirections}', sys.executable, START + code]
    return subprocess.run(command, capture_output=True, env=os.environ | (env or {}), check=False)


def test_open_streams_are_as_they_were():
    done = run_shell("print('a'); print('b', file=sys.stderr); print(sys.stdin.read())", "")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\n\n", b"b\n")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_what_is_printed_never_goes_into_a_file_that_was_opened_since(closed, tmp_path):
    code = """
print("result")
print("progress", file=sys.stderr)
with open("written", "w") as file:
    print("result", "progress")
    print("progress", file=sys.stderr)
    sys.stdout.flush()
    os.system("echo child; echo child >&2")
    file.write("mine")
fault = standard_streams.find_fault()
with open("fault", "w") as file:
    file.write(str(fault and fault.errno))
assert sys.stdin.read() == ""
"""
    place = f"cd {tmp_path}; "
    redirections = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    command = [
        "sh",
        "-c",
        f'{place} exec "$0" -c "$1" {redirections}',
        sys.executable,
        START + code,
    ]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "written").read_text() == "mine"
    assert (tmp_path / "fault").read_text() == ("9" if 1 in closed else "None")
    assert done.stdout.decode().split() == (
        [] if 1 in closed else ["result", "result", "progress", "child"]
    )
    assert done.stderr.decode().split() == ([] if 2 in closed else ["progress"] * 2 + ["child"])


def test_a_closed_output_that_nothing_is_written_to_is_no_fault():
    done = run_shell(FAULT + "print(fault, file=sys.stderr)", ">&-")
    assert done.stderr == b"None\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_output_is_told_once_and_stops_nothing():
    code = "for _ in range(9999): print('x' * 99)\n" + FAULT
    done = run_shell(code + "print(fault.strerror, file=sys.stderr)", ">/dev/full")
    assert (done.returncode, done.stderr) == (0, b"No space left on device\n")


def test_output_that_is_worthless_unread_raises_at_once():
    code = "standard_streams.raise_at_once()\ntry:\n  print('x', flush=True)\nexcept OSError:\n"
    done = run_shell(code + "  print('raised', file=sys.stderr)", ">&-")
    assert b"raised\n" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_progress_that_nobody_hears_stops_nothing():
    done = run_shell("print('x', file=sys.stderr, flush=True)\nprint('end')", "2>/dev/full")
    assert (done.returncode, done.stdout) == (0, b"end\n")


def test_what_an_encoding_lacks_is_an_escape():
    done = run_shell("print('\\u03b5 \\xe9')", "", {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout) == (0, b"\\u03b5 \\xe9\n")
