"""``dperm reproduce``: one experiment, every one in turn, or the page of their claims."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.core import catalogue
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, DpermError, InputError, StorageError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.loops.thread_count import cores
from dperm_cli.results.claims import claims_page, experiment_tables
from dperm_cli.results.claims.claims import VERDICTS
from dperm_cli.results.records.schema import json_lines
from dperm_cli.runner.job_pool import Job, count_workers, run_jobs
from dperm_cli.runner.studies import experiment_file as experiments
from dperm_cli.runner.studies import verdict_files
from dperm_cli.runner.verbs import reproduce

CANNOT = "cannot run here"


def reproduce_experiments(arguments: list[str]) -> int:
    """``dperm reproduce``: one experiment, all of them, or the page of their claims."""
    with threadpool_limits(1):
        asked = reproduce.request(arguments)
        verbs = {"all": run_all, "claims": print_claims}
        return verbs.get(asked.name, reproduce.reproduce_one)(asked, arguments)


@dataclass(frozen=True)
class ExperimentResult:
    """What came of one experiment; ``why`` where it did not come to verdicts."""

    name: str
    done: reproduce.ReproduceResult | None
    why: str = ""
    code: int = EXIT_OK

    def plain(self) -> dict[str, Any]:
        """JSON-able."""
        counts = Counter(v.verdict for v in self.done.verdicts) if self.done else Counter()
        return {
            "experiment": self.name, "code": self.code, "why": self.why or None,
            "failed_cells": self.done.failed if self.done else None,
            "wrong": self.done.failing_claims if self.done else [],
            **{name: counts[name] for name in VERDICTS},
        }  # fmt: skip


def run_all(asked: reproduce.ReproduceRequest, arguments: Sequence[str]) -> int:
    """Every shipped experiment, whatever the verdict on another one; 1 where any of them fails."""
    lines = []
    for line in _run_each(asked, arguments):
        lines.append(line)
        if asked.format == "table":
            print(_text(line), flush=True)
    if asked.format == "json":
        print(json_lines(line.plain() for line in lines))
    else:
        print(summary(lines))
    return EXIT_FAILED if any(line.code for line in lines) else EXIT_OK


def _run_each(
    asked: reproduce.ReproduceRequest, arguments: Sequence[str]
) -> Iterator[ExperimentResult]:
    """The results in the order of the names.

    At small size most of the time goes to tables and figures, which one process makes: workers of
    this machine share the experiments there, and the cells of each one at full size.
    """
    names = sorted(catalogue.choices("experiment"))
    each = [replace(asked, name=name, out=asked.out / name) for name in names]
    count = count_workers(asked.options.workers)
    if asked.size == "small" and asked.options.backend == "local" and count > 1:
        threads = asked.options.threads
        threads = max(1, cores() // count) if threads == "auto" else threads
        options = replace(asked.options, workers=1, threads=threads)
        each = [replace(one, options=options) for one in each]
        jobs = [Job((one.name,), _one, (one, arguments)) for one in each]
        found: dict[str, ExperimentResult] = {}
        for result in run_jobs(jobs, lambda job, done: (), count):
            found[result.name] = result
            while names and names[0] in found:
                yield found.pop(names.pop(0))
        return
    for place, one in enumerate(each, 1):
        print(f"{one.name} ({place} of {len(each)}, size={asked.size})", file=sys.stderr)
        yield _one(one, arguments)


def _one(asked: reproduce.ReproduceRequest, arguments: Sequence[str]) -> ExperimentResult:
    try:
        done = reproduce.carry_out(asked, arguments, shown=False)
    except StorageError:
        # a full disk is full for the others too
        raise
    except InputError as error:
        # without its data an experiment is skipped; any other word is a fault
        absent = error.allowed.startswith(f"{CANNOT}: data")
        print(f"dperm: {error}", file=sys.stderr)
        return ExperimentResult(asked.name, None, error.allowed, EXIT_OK if absent else EXIT_FAILED)
    except DpermError as error:
        print(f"dperm: {error}", file=sys.stderr)
        return ExperimentResult(asked.name, None, str(error), EXIT_FAILED)
    return ExperimentResult(asked.name, done, code=done.tell())


def _text(line: ExperimentResult) -> str:
    if line.done is None:
        return f"== {line.name}\n{line.why}\n"
    return f"== {line.name}\n{experiment_tables.verdicts_text(line.done.verdicts)}"


def summary(lines: Sequence[ExperimentResult]) -> str:
    """One line an experiment: how many claims of each verdict, and which fail."""
    heads = ("experiment", *VERDICTS, "failed cells")
    body = []
    for line in lines:
        found = line.plain()
        counts = [str(found[name]) if line.done else "-" for name in VERDICTS]
        cells = "-" if line.done is None else str(found["failed_cells"])
        body.append((line.name, *counts, cells, line.why or ", ".join(found["wrong"])))
    widths = [max(len(row[i]) for row in (heads, *body)) for i in range(len(heads))]
    text = []
    for row in ((*heads, ""), *body):
        numbers = (word.rjust(width) for word, width in zip(row[1:-1], widths[1:], strict=True))
        text.append("  ".join((row[0].ljust(widths[0]), *numbers, row[-1])).rstrip())
    return "\n".join(text)


def print_claims(asked: reproduce.ReproduceRequest, arguments: Sequence[str]) -> int:
    """The page of all claims, from the files kept in the sources: to out=FILE, or printed."""
    folder = Path(asked.verdicts or find_shipped("experiments"))
    to = None if str(asked.out) == "-" else OutputFile.of("out", str(asked.out))
    text = claims_page.page(read_entries(folder))
    if to is None:
        print(text, end="")
        return EXIT_OK
    to.write(text.encode())
    print(f"wrote {asked.out}", file=sys.stderr)
    return EXIT_OK


def read_entries(folder: Path) -> list[claims_page.Entry]:
    """Every shipped experiment with the verdicts that are kept of it in the folder."""
    found = []
    for name in sorted(catalogue.choices("experiment")):
        about = experiments.load(name, "small")
        kept = verdict_files.read(folder, name)
        found.append(claims_page.Entry(name, about.paper, about.text, about.claims, kept))
    return found
