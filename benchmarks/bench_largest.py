"""The largest problem that each mechanism has run here, and what ended its growth.

    python -m benchmarks.bench_largest [--most 1e7] [--limit 20] [--stop 300] [--keep]

For each mechanism the number of records grows by factors of 10, with one trial at epsilon 1 and few
columns, until a release takes more than ``--limit`` seconds, is refused, or has ``--most`` records.
Where the ``--first`` size is too large, it shrinks instead. Each run is a process of its own, which
is stopped after ``--stop`` seconds. Seconds are those of the release on the clock, with all threads
of the machine; loading and the optimum, which is kept in a cache, are not in them. ``--keep``
writes ``largest.csv`` and its table in docs/scale.md. With ``--only NAME,...`` the lines of other
mechanisms stay.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.watched_runs import (
    Watched,
    format_table,
    keep_machine,
    read_kept,
    run_watched,
    write_kept,
    write_page,
)
from dperm_cli.core import registry
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run

KEPT = Path(__file__).parent / "largest.csv"
HEAD = (
    "mechanism", "problem", "records", "columns", "seconds_release", "anonymous_gib",
    "growth_ended",
)  # fmt: skip
SHOWN = ("mechanism", "problem", "n", "p", "release (s)", "memory (GiB)", "growth ended")
MARKS = "largest"
LEAST = 100  # records
USUAL = "dataset=synthetic_logistic"
KERNEL = f"{USUAL} dataset.n_test=100 ridge=0.1 kernel="
# what a mechanism asks for beyond the usual problem
WORDS = {
    "frank_wolfe": f"{USUAL} constraint=l1_ball",
    "huberized": f"{USUAL} loss=hinge",
    "kernel_interactive": f"{KERNEL}rbf",
    "kernel_non_interactive": f"{KERNEL}linear dataset.p=2",
    "kernel_release": f"{KERNEL}rbf",
    "kernel_semi_interactive": f"{KERNEL}rbf",
    "local_mirror_descent": f"{USUAL} constraint=l1_ball privacy=local",
    "local_sgd": f"{USUAL} privacy=local",
    "localization": f"{USUAL} ridge=0.1",
    "mirror_descent": f"{USUAL} constraint=l1_ball",
    "output_perturbation": f"{USUAL} ridge=0.1",
    "random_features": f"{KERNEL}rbf",
    "sufficient_statistics": "dataset=sparse_regression dataset.p=10 loss=squared",
}  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    """One run: its seconds and memory, or the reason why it has none."""

    records: int
    columns: int = 0
    seconds: float = 0.0
    anonymous_gib: float = 0.0
    reason: str = ""


def list_mechanisms() -> list[str]:
    """The names of all mechanisms that come with dperm."""
    return sorted(registry.list_shipped("mechanism"))


def name_problem(name: str) -> str:
    """The words of a mechanism's problem, as the table has them."""
    words = WORDS.get(name, USUAL).replace(f"{USUAL} ", "").replace(USUAL, "")
    return words or "the usual one"


def run_one(words: list[str]) -> None:
    """Run one cell in this process, and print its row."""
    study = study_plan.plan_study(parse(words))
    with run.hold_machine(study):
        [item] = run.prepare(study.cells)
        row = run_cell.run(item, make_solver())[0]
    names = "status", "reason", "seconds"
    print(json.dumps({name: row.get(name) for name in names} | {"p": item.data.p}))


def shorten(reason: str) -> str:
    """The first words of a refusal, without what would break a table."""
    line = " ".join(reason.split()).replace("|", "/")
    line = re.sub(r"^(dperm|[\w.]+Error): ", "", line)
    return line if len(line) <= 110 else f"{line[:107].rsplit(' ', 1)[0]} ..."


def judge(n: int, watched: Watched, stop: float) -> Attempt:
    """What a run has shown."""
    if watched.code is None:
        return Attempt(n, reason=f"not at its end after {stop:g} s")
    lines = watched.text.splitlines()
    if not lines or not lines[-1].startswith("{"):
        said = watched.errors.strip().splitlines()
        return Attempt(n, reason=f"refused: {shorten(said[-1] if said else 'without a word')}")
    row = json.loads(lines[-1])
    if row["status"] != "ok":
        return Attempt(n, reason=f"{row['status']}: {shorten(str(row['reason']))}")
    return Attempt(n, row["p"], row["seconds"], watched.anonymous_gib)


def attempt(name: str, n: int, stop: float, folder: Path) -> Attempt:
    """Run a mechanism on n records in a process of its own."""
    words = ["dataset.n_test=0", *WORDS.get(name, USUAL).split(), f"mechanism={name}", "trials=1"]
    if any(word == "dataset.n_test=100" for word in words):
        words.remove("dataset.n_test=0")
    command = [sys.executable, "-m", "benchmarks.bench_largest", "--cell", *words, f"dataset.n={n}"]
    cache = {"DPERM_CACHE_DIR": str(folder / "cache")}
    return judge(n, run_watched(command, folder, stop, **cache), stop)


def find_largest(name: str, asked: argparse.Namespace, folder: Path) -> tuple[str, ...]:
    """A mechanism's line of the table."""
    n, best, ended = int(min(asked.first, asked.most)), None, ""
    while True:
        found = attempt(name, n, asked.stop, folder)
        print(f"  {name} {found}", file=sys.stderr, flush=True)
        if found.reason:
            ended = f"{n:.0e}: {found.reason}"
            if best is not None or n <= LEAST:
                break
            n //= 10  # smaller, until one runs
            continue
        shrunk, best = bool(ended), found
        if found.seconds > asked.limit:
            ended = f"more than {asked.limit:g} s"
        elif not shrunk and n >= asked.most:
            ended = "the most that was asked"
        if ended:
            break
        n *= 10
    if best is None:
        return name, name_problem(name), "-", "-", "-", "-", ended
    return (
        name, name_problem(name), f"{best.records:.0e}", str(best.columns), f"{best.seconds:.3g}",
        f"{best.anonymous_gib:.2f}", ended,
    )  # fmt: skip


def keep(lines: list[tuple[str, ...]]) -> None:
    """Write the lines of these mechanisms, beside those that were kept of others."""
    before = read_kept(KEPT)[1:] if KEPT.exists() else []
    found = {line[0]: tuple(line) for line in before} | {line[0]: line for line in lines}
    rows = [found[name] for name in sorted(found)]
    write_kept(KEPT, [HEAD, *rows])
    write_page(MARKS, format_table(SHOWN, rows))
    keep_machine(MARKS)


def main() -> None:
    if sys.argv[1:2] == ["--cell"]:
        run_one(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--first", type=float, default=1e5)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a release")
    parser.add_argument("--stop", type=float, default=300.0, help="seconds of a whole process")
    parser.add_argument("--only", default="", help="names of mechanisms, with commas between")
    parser.add_argument("--compiled", action="store_true", help="loops were compiled before")
    parser.add_argument("--keep", action="store_true", help="write largest.csv")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list_mechanisms()
    print(",".join(HEAD))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if not asked.compiled:  # the first run compiles, and its time is no one's
                attempt(name, LEAST, asked.stop, Path(folder))
            line = find_largest(name, asked, Path(folder))
            print(",".join(line), flush=True)
            if asked.keep:
                keep([line])


if __name__ == "__main__":
    main()
