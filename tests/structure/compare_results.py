"""Say whether two commits compute the same tables.

    python -m tests.structure.compare_results OLD NEW    every job: a few minutes a commit
    python -m tests.structure.compare_results OLD NEW --only run leak
    python -m tests.structure.compare_results OLD "$(git stash create)"    changes not committed yet

A job is the main job of ``make run`` (named ``run``) or an experiment at small size. Both commits
are checked out beside each other for the time of the comparison and run by this Python. What the
jobs file (tables, verdicts, privacy statement, what they print) is compared byte by byte; only the
names of records, which hang on the sources, are replaced by their places in the study. What a
commit filed is kept in a folder, so that the next comparison with that commit is quick.

Exit code: 0 all equal, 1 something differs, 2 nothing could be compared.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = "manifest.json"
TABLE = "table.csv"
PRINTED = "printed.txt"
FILED = (TABLE, "table.md", "table.tex", "claims.json", "ledger.json", PRINTED)
NOTE = "job.json"
MAIN = "run"
SHOWN = 5  # differences shown of one file
WIDTH = 100  # characters shown of a value or a line
PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "clarabel")


class CannotCompare(Exception):
    """A commit, a job or a folder is not what a comparison needs."""


@dataclass(frozen=True)
class Difference:
    """A place where two sides differ.

    Attributes:
        place: File, or file and line, or file, line and column.
        old: What the old side has there; None where it has nothing.
        new: The same of the new side.
    """

    place: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        pairs = enumerate(zip_longest(self.old or "", self.new or ""))
        differ = next((place for place, (old, new) in pairs if old != new), 0)
        start = max(0, differ - WIDTH // 3)
        sides = (f"    {name}: {_cut(text, start)}"
                 for name, text in (("old", self.old), ("new", self.new)))  # fmt: skip
        return "\n".join((self.place, *sides))


def compare_folders(old: Path, new: Path, jobs: Sequence[str]) -> list[Difference]:
    """Compare what two commits filed.

    Args:
        old: A folder with one folder a job, as ``collect_results`` leaves it.
        new: The same of the other commit.
        jobs: The names of the jobs.

    Returns:
        The differences, in the order of jobs and files; at most SHOWN of one file.

    Raises:
        CannotCompare: A job left no ``table.csv`` at the old commit.
    """
    found = []
    for job in jobs:
        if not (old / job / TABLE).is_file():
            raise CannotCompare(f"{job}: the old commit left no {TABLE}")
        found += _compare_values(f"{job}: exit code", _read_code(old / job), _read_code(new / job))
        for name in FILED:
            found += compare_files(f"{job}/{name}", old / job / name, new / job / name)
    return found


def compare_files(place: str, old: Path, new: Path) -> list[Difference]:
    """Compare two files of a job; a file that is missing on both sides is equal."""
    texts = [mask_records(file) for file in (old, new)]
    if texts[0] == texts[1]:
        return []
    if texts[0] is None or texts[1] is None:
        here = ["missing" if text is None else f"{len(text.splitlines())} lines" for text in texts]
        return [Difference(place, *here)]
    found = _compare_columns(place, *texts) if place.endswith(".csv") else []
    return (found or _compare_lines(place, *texts))[:SHOWN]


def mask_records(file: Path) -> str | None:
    """Read a job's file, every record's name replaced by its place in the manifest beside it."""
    if not file.is_file():
        return None
    text = file.read_bytes().decode(errors="backslashreplace")
    manifest = file.with_name(MANIFEST)
    cells = json.loads(manifest.read_text())["cells"] if manifest.is_file() else []
    places = {cell: f"record {place}" for place, cell in enumerate(cells, 1)}
    if not places:
        return text
    names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    return re.sub(rf"\b({names})\b", lambda match: places[match[0]], text)


def _compare_columns(place: str, old: str, new: str) -> list[Difference]:
    """Name the columns of CSV rows that differ; nothing where the columns themselves do."""
    rows = [list(csv.reader(text.splitlines())) for text in (old, new)]
    if rows[0][:1] != rows[1][:1] or len(rows[0]) != len(rows[1]):
        return []
    return [
        Difference(f"{place}, line {line}, {column}", before, after)
        for line, pair in enumerate(zip(*rows, strict=True), 1)
        for column, before, after in zip_longest(rows[0][0], *pair)
        if before != after
    ]


def _compare_lines(place: str, old: str, new: str) -> list[Difference]:
    # not splitlines: files that differ in the ends of lines alone differ
    pairs = zip_longest(old.split("\n"), new.split("\n"))
    return [
        Difference(f"{place}, line {line}", before, after)
        for line, (before, after) in enumerate(pairs, 1)
        if before != after
    ]


def _compare_values(place: str, old: Any, new: Any) -> list[Difference]:
    return [] if old == new else [Difference(place, str(old), str(new))]


def _cut(text: str | None, start: int) -> str:
    """What a screen holds of a text, from a place shortly before the first difference."""
    if text is None:
        return "nothing"
    shown = repr(text[start : start + WIDTH])
    return f"{'...' if start else ''}{shown}{'...' if text[start + WIDTH :] else ''}"


def _read_code(folder: Path) -> int | None:
    note = folder / NOTE
    return json.loads(note.read_text())["exit code"] if note.is_file() else None


def collect_results(ref: str, keep: Path, only: Sequence[str]) -> tuple[Path, list[str]]:
    """Run the jobs of a commit that have no kept results.

    Args:
        ref: The commit, by any name that git knows.
        keep: Where results are kept, a folder a commit.
        only: Names of jobs; none for all.

    Returns:
        The commit's folder, and the names of its jobs.

    Raises:
        CannotCompare: There is no such commit or job, or a job was ended from outside.
    """
    commit = run_git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    commands = list_commands(commit)
    unknown = sorted(set(only) - set(commands))
    if unknown:
        raise CannotCompare(f"{ref} has no job {unknown[0]}; it has {', '.join(commands)}")
    jobs = [job for job in commands if job in only or not only]
    folder = keep / commit
    missing = [job for job in jobs if not _is_kept(folder / job)]
    if missing:
        with check_out(commit) as tree:
            for job in missing:
                print(f"{ref}: {job}", file=sys.stderr, flush=True)
                run_job(commands[job], tree, folder / job)
    return folder, jobs


def list_commands(commit: str) -> dict[str, list[str]]:
    """The words after ``dperm`` of every job of a commit, by the job's name."""
    makefile = run_git("show", f"{commit}:Makefile")
    main = re.search(r"^run:.*\n\t\S*dperm (run .*)$", makefile, re.MULTILINE)
    if main is None:
        raise CannotCompare(f"{commit}: the Makefile's target run runs no `dperm run`")
    words = [word for word in main[1].split() if not word.startswith("out=")]
    names = run_git("ls-tree", "--name-only", commit, "conf/experiment/").split()
    experiments = [Path(name).stem for name in names if name.endswith(".yaml")]
    return {MAIN: words} | {name: ["reproduce", name, "size=small"] for name in experiments}


@contextmanager
def check_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, which goes when the block ends."""
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        tree = Path(name) / "tree"
        run_git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            run_git("worktree", "remove", "--force", str(tree))


def run_job(words: Sequence[str], tree: Path, folder: Path) -> None:
    """Run one job with the sources in a folder, and keep what it files in another.

    Optima that other commits cached are not used, and no figure is kept.
    """
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        cache = tree / ".compare-cache"  # optima are shared by the jobs of one commit
        environment = os.environ | {"PYTHONPATH": str(tree), "DPERM_CACHE_DIR": str(cache)}
        python = [sys.executable, "-P"]
        _check_sources(python, tree, environment)
        done = subprocess.run(
            [*python, "-m", "dperm_cli", *words, "out=study"],
            cwd=name, env=environment, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode < 0 or done.returncode in (130, 143):
            raise CannotCompare(f"{' '.join(words)}: was ended from outside")
        if done.returncode not in (0, 1):
            print(done.stderr.decode(errors="replace")[-2000:], file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in Path(name, "study").glob("*"):
            if file.name in (MANIFEST, *FILED):
                shutil.copyfile(file, folder / file.name)
        (folder / PRINTED).write_bytes(done.stdout)
        note = {
            "command": list(words),
            "exit code": done.returncode,
            "with": describe_surroundings(),
        }
        (folder / NOTE).write_text(json.dumps(note, indent=1) + "\n")


def _check_sources(python: list[str], tree: Path, environment: dict[str, str]) -> None:
    """CannotCompare unless it is the commit's package that Python finds."""
    words = [*python, "-c", "import dperm_cli; print(dperm_cli.__file__)"]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if not Path(found.stdout.strip()).resolve().is_relative_to(tree.resolve()):
        raise CannotCompare(f"Python imports {found.stdout.strip()}, not the package in {tree}")


def describe_surroundings() -> dict[str, Any]:
    """What results hang on besides the sources."""
    versions = {name: metadata.version(name) for name in PACKAGES}
    data = os.environ.get("DPERM_DATA_DIR")
    return {
        "python": platform.python_version(),
        "machine": platform.node(),
        "data": data,
        **versions,
    }


def _is_kept(folder: Path) -> bool:
    note = folder / NOTE
    return note.is_file() and json.loads(note.read_text())["with"] == describe_surroundings()


def run_git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if done.returncode:
        raise CannotCompare(f"git {' '.join(words)}: {done.stderr.strip() or 'not found'}")
    return done.stdout.strip()


def main(words: Sequence[str] | None = None) -> int:
    """Compare two commits, and print where they differ; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure.compare_results")
    parser.add_argument("old", metavar="OLD", help="the commit whose results are right")
    parser.add_argument("new", metavar="NEW", help="the commit to compare; OLD to run OLD alone")
    parser.add_argument("--keep", type=Path, default=ROOT / "outputs" / "compared", metavar="DIR",
                        help="where results are kept (outputs/compared)")  # fmt: skip
    parser.add_argument("--only", nargs="+", default=[], metavar="JOB", help="run, or experiments")
    given = parser.parse_args(words)
    try:
        old, jobs = collect_results(given.old, given.keep.resolve(), given.only)
        new, others = collect_results(given.new, given.keep.resolve(), given.only)
        found = compare_folders(old, new, jobs)
    except CannotCompare as error:
        print(f"cannot compare: {error}", file=sys.stderr)
        return 2
    found += [Difference(job, None, "a new job") for job in others if job not in jobs]
    for difference in found:
        print(difference)
    places = {difference.place.partition(",")[0] for difference in found}
    print(f"{len(jobs)} jobs, record names left out: "
          + (f"{len(places)} files differ" if found else "all equal"))  # fmt: skip
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
