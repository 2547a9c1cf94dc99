"""Run the cells of a study, here or by a back end, each once, and count them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import DpermError
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.results.records.cell_claims import WORK, Claims
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells import run_cell as cells
from dperm_cli.runner.sweep import shared_data
from dperm_cli.runner.sweep.backends import Backend, Options, WorkerDied
from dperm_cli.runner.sweep.progress import SweepMeter, Tally, duration
from dperm_cli.runner.sweep.worker import FINISHED, Outcome, Setup, Task, Worker, run_chunk

_LISTED = 20


def run_cells(
    prepared: Sequence[cells.Prepared],
    store: Store,
    force: bool = False,
    options: Options | None = None,
) -> Tally:
    """Run what has no record yet; what is finished stays, whatever happens to this process."""
    options = options or Options()
    by_key = {item.key: item for item in prepared}
    with SweepMeter.open(len(by_key)) as shown:
        todo = []
        for item in by_key.values():
            status = None if force else store.status(item.key)
            if status in FINISHED:
                shown.finish_cell(Outcome(item.key, status, looked_up=True), label(item))
            else:
                todo.append(item)
        if todo:
            _run(todo, store, force, options, shown)
        elif (store.out / WORK).exists():
            _tidy(store.out)  # of a process that was killed after its last cell
    _tell_end(shown.tally, by_key)
    return shown.tally


def label(item: cells.Prepared) -> str:
    """A cell in a few words."""
    c = item.cell
    level = f"epsilon={c.epsilon:g}" if c.information is None else f"information={c.information:g}"
    return f"{c.mechanism_name} {level} {c.calibration} on {item.data.name}"


def _run(
    todo: list[cells.Prepared], store: Store, force: bool, options: Options, shown: SweepMeter
) -> None:
    by_key = {item.key: item for item in todo}
    backend = options.choose_backend(len(todo))
    if backend is None:
        worker = Worker(store.out, force, begun=lambda item: shown.show_cell(label(item)))
        outcomes = worker.run(todo)
    else:
        shown.note(f"{len(todo)} cells for {backend.workers} workers")
        outcomes = _run_on_backend(backend, todo, store, force, options)
    try:
        _tidy(store.out)
        with contextlib.closing(outcomes):
            for outcome in outcomes:
                shown.finish_cell(outcome, label(by_key[outcome.key]))
                if outcome.status == "failed" and options.on_error == "stop":
                    shown.note("stopped at the first failure (on_error=stop)")
                    return
    finally:
        _tidy(store.out)


def _tidy(out: Path) -> None:
    """Take away what killed processes left, and nothing that a living one needs."""
    shared_data.clear(out)
    Claims(out).tidy()


def _run_on_backend(
    backend: Backend, todo: Sequence[cells.Prepared], store: Store, force: bool, options: Options
) -> Generator[Outcome, None, None]:
    """Outcomes from the workers of a back end; what a dead one was at is tried once more, alone."""
    pending = {item.key: item for item in todo}
    with shared_data.use_spool(store.out) as folder:
        for name, data in {item.data.identity: item.data for item in todo}.items():
            shared_data.share(folder / name, data)
        setup = Setup(
            out=store.out.resolve(),
            spool=folder.resolve(),
            folder=os.getcwd(),
            cache=cache_dir(),
            force=force,
            stop_early=options.on_error == "stop",
            parent=os.getpid() if backend.owned else None,
        )
        while pending:
            before = len(pending)
            try:
                chunks = _cut(list(pending.values()), backend.chunks(before))
                for outcome in _run_chunks(backend, setup, chunks):
                    pending.pop(outcome.key, None)
                    yield outcome
                return
            except WorkerDied as why:
                suspects = [key for key in Claims(store.out).list_abandoned() if key in pending]
                if not suspects and len(pending) == before:
                    raise DpermError(f"the workers of the sweep end without a word: {why}") from why
                for key in suspects:
                    yield _run_alone(backend, setup, pending.pop(key))


def _run_alone(backend: Backend, setup: Setup, item: cells.Prepared) -> Outcome:
    """A cell by itself; if its worker dies again, it has failed."""
    try:
        return next(_run_chunks(backend, setup, [[item]]))
    except WorkerDied as why:
        reason = f"its worker died twice ({why}): out of memory, perhaps"
        Store(setup.out).write(item.key, cells.make_failed_rows(item, reason), code=item.code)
        return Outcome(item.key, "failed", reason)


def _run_chunks(
    backend: Backend, setup: Setup, chunks: Sequence[Sequence[cells.Prepared]]
) -> Iterator[Outcome]:
    """The outcomes of chunks of cells as they come."""
    tasks = [[Task(one.cell, one.key, one.data.identity) for one in chunk] for chunk in chunks]
    for report in backend.run(partial(run_chunk, setup), tasks, setup.spool):
        yield from report.outcomes
        if report.fault is not None:
            raise report.fault


def _cut(items: list[Any], pieces: int) -> list[list[Any]]:
    """Chunks of equal size that each have a bit of every part of the study."""
    return [items[start::pieces] for start in range(pieces)]


def _tell_end(tally: Tally, by_key: dict[str, cells.Prepared]) -> None:
    """One line for the whole, and the cells that failed."""
    if tally.total > 1:
        print(f"{tally.total} cells: {tally.counts()}, {duration(tally.seconds)}", file=sys.stderr)
    if tally.failed_count < 2:
        return
    for outcome in tally.failures[:_LISTED]:
        print(f"  failed: {label(by_key[outcome.key])}: {outcome.reason}", file=sys.stderr)
    if tally.failed_count > _LISTED:
        more = tally.failed_count - _LISTED
        print(f"  and {more} more: `dperm status` lists them", file=sys.stderr)
