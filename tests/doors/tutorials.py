"""The tutorials: their files are written, their commands run, their output compared or filled in.

    python -m tests.doors.tutorials docs/tutorials/1_first_comparison.md     fill in the output

A page's blocks run in order, in one empty folder. ``# NAME`` in the first line of a block of Python
or YAML makes it a file. A block ``text`` after a block ``sh`` is what its commands print on stdout.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
NEAR = 0.02  # of a number, beside one unit of its last digit where both have as many digits
_BLOCK = re.compile(r"(<!-- drawn anew -->\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([\w.]+\.(?:py|yaml|csv))\n")
_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Step:
    """A block of a page.

    Attributes:
        kind: ``file``, ``sh`` or ``text``.
        content: What stands in it.
        name: Of a file.
        drawn: Whether numbers of the output are drawn anew each time.
        place: Where the content begins and ends in the page.
    """

    kind: str
    content: str
    name: str
    drawn: bool
    place: tuple[int, int]


def list_pages() -> list[Path]:
    """The tutorials in their order."""
    return sorted(FOLDER.glob("[0-9]_*.md"))


def read_steps(text: str) -> Iterator[Step]:
    """The blocks of a page that are run or compared."""
    for match in _BLOCK.finditer(text):
        language, content = match[2], match[3]
        named = _NAME.match(content)
        place = match.span(3)
        if language in ("python", "yaml") and named:
            yield Step("file", content, named[1], False, place)
        elif language in ("sh", "text"):
            yield Step(language, content, "", bool(match[1]), place)


def make_environment(folder: Path) -> dict[str, str]:
    """What a reader has: ``dperm`` and ``python`` on the path, no network, no known data sets."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in (("dperm", " -m dperm_cli"), ("python", "")):
        shim = programs / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        shim.chmod(0o755)
    kept = {key: word for key, word in os.environ.items() if not key.startswith("DPERM_")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    root = str(FOLDER.parents[1])
    return {**kept, "PATH": path, "PYTHONPATH": root, "DPERM_OFFLINE": "1", "MPLBACKEND": "agg"}


def run_page(text: str, folder: Path) -> Iterator[tuple[Step, str]]:
    """Run a page in a folder.

    Args:
        text: The page.
        folder: An empty folder.

    Yields:
        Each block of output, with what its commands printed.

    Raises:
        RuntimeError: A command failed.
    """
    given = make_environment(folder)
    work = folder / "work"
    work.mkdir()
    printed = ""
    for step in read_steps(text):
        if step.kind == "file":
            (work / step.name).write_text(step.content)
        elif step.kind == "sh":
            words = ["sh", "-e", "-c", step.content]
            done = subprocess.run(
                words, cwd=work, env=given, capture_output=True, text=True, timeout=600
            )
            if done.returncode:
                raise RuntimeError(f"{step.content}{done.stdout[-1000:]}{done.stderr[-2000:]}")
            printed = done.stdout
        else:
            yield step, printed


def find_difference(shown: str, printed: str, drawn: bool) -> str | None:
    """The first line of a page that is not what was printed; None where there is none.

    Words have to be equal, and numbers near: their last digits hang on the processor. A line that
    is ``...`` stands for any lines.

    Args:
        shown: The page's block.
        printed: What its commands printed.
        drawn: Whether numbers may be any.
    """
    rest = [line.rstrip() for line in printed.strip("\n").splitlines()]
    skipping = False
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            skipping = True
            continue
        while skipping and rest and not _is_near(line, rest[0], drawn):
            rest.pop(0)
        if not rest or not _is_near(line, rest[0], drawn):
            return f"{line!r} is not {rest[:1]}"
        rest.pop(0)
        skipping = False
    return None if skipping or not rest else f"{rest[0]!r} is not shown"


def _is_near(shown: str, printed: str, drawn: bool) -> bool:
    words = [_NUMBER.sub("0", re.sub(r"[-\s]+", " ", line)).strip() for line in (shown, printed)]
    if words[0] != words[1]:
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=False)
    return drawn or all(_are_near(one, other) for one, other in pairs)


def _are_near(one: str, other: str) -> bool:
    units = [_find_unit(word) for word in (one, other)]
    values = [float(word.replace(",", "")) for word in (one, other)]
    rounded = 1.001 * units[0] if units[0] == units[1] else 0.0
    return math.isclose(*values, rel_tol=NEAR, abs_tol=rounded)


def _find_unit(word: str) -> float:
    """One unit of the last digit of a number."""
    digits, _, power = word.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def fill_in(path: Path, folder: Path) -> None:
    """Write what a page's commands print into it; blocks with a line ``...`` stay."""
    text = path.read_text()
    new, at = [], 0
    for step, printed in run_page(text, folder):
        if "..." not in step.content.split("\n"):
            lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
            new += [text[at : step.place[0]], "".join(f"{line}\n" for line in lines)]
            at = step.place[1]
    path.write_text("".join([*new, text[at:]]))


if __name__ == "__main__":
    import tempfile

    for word in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            fill_in(Path(word), Path(place))
