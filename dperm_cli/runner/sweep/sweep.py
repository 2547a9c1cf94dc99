"""Run the cells of a study, here or by a back end, each once, and count them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType

from dperm_cli.core import cache_contents, plugin_sources
from dperm_cli.core.files import remove_abandoned
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.loops.thread_count import use_threads
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.sweep.backends import Backend, Options
from dperm_cli.runner.sweep.outcomes import FINISHED, Outcome
from dperm_cli.runner.sweep.progress import SweepMeter, Tally, duration, tell

_LISTED = 20


def run_cells(
    prepared: Sequence[Prepared],
    store: Store,
    force: bool = False,
    options: Options | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> Tally:
    """Run what has no record yet; what is finished stays, whatever happens to this process.

    ``states`` are those of records that have just been looked at.
    """
    options = options or Options()
    by_key = {item.key: item for item in prepared}
    _tidy_cache()
    with hold_lease(store.out), SweepMeter.open(len(by_key)) as shown:
        todo = []
        for item in by_key.values():
            status = None if force else states.get(item.key) or store.status(item.key)
            if status in FINISHED:
                shown.finish_cell(Outcome(item.key, status, looked_up=True), label(item))
            else:
                todo.append(item)
        if todo:
            _run(todo, store, force, options, shown)
    _tell_end(shown.tally, by_key)
    return shown.tally


def _tidy_cache() -> None:
    """Take away what killed runs left half-written in the folder for caches."""
    cache = cache_dir()
    if cache is not None:
        for room in sorted({kind.room for kind in cache_contents.KINDS if kind.remake is None}):
            remove_abandoned(cache / room)


def label(item: Prepared) -> str:
    """A cell in a few words."""
    c = item.cell
    level = f"epsilon={c.epsilon:g}" if c.information is None else f"information={c.information:g}"
    data = c.names.get("dataset", item.data.name)
    return f"{c.name_of('mechanism')} {level} {c.calibration} on {data}"


def _run(
    todo: list[Prepared],
    store: Store,
    force: bool,
    options: Options,
    shown: SweepMeter,
) -> None:
    # by need: a study whose cells are all looked up runs none
    from dperm_cli.runner.sweep.split_run import run_split
    from dperm_cli.runner.sweep.worker import Worker

    by_key = {item.key: item for item in todo}
    backend = options.choose_backend(len(todo))
    if options.split == "rows" and backend is not None:
        outcomes = run_split(todo, store, force, backend, options, shown)
    elif backend is None:
        worker = Worker(store.out, force, begun=lambda item: shown.show_cell(label(item)))
        outcomes = worker.run(todo)
    else:
        shown.note(f"{len(todo)} cells for {backend.workers} workers")
        outcomes = _run_on_backend(backend, todo, store, force, options, shown)
    with use_threads(options.count_own_threads()), contextlib.closing(outcomes):
        for outcome in outcomes:
            shown.finish_cell(outcome, label(by_key[outcome.key]))
            if outcome.status == "failed" and options.on_error == "stop":
                shown.note("stopped at the first failure (on_error=stop)")
                return


def _run_on_backend(
    backend: Backend,
    todo: Sequence[Prepared],
    store: Store,
    force: bool,
    options: Options,
    shown: SweepMeter,
) -> Generator[Outcome, None, None]:
    """Outcomes from the workers of a back end, which get the data sets in a folder."""
    from dperm_cli.problem import data_folder
    from dperm_cli.runner.sweep import shared_data
    from dperm_cli.runner.sweep.supervisor import Supervisor
    from dperm_cli.runner.sweep.worker import Setup

    with shared_data.use_spool(store.out) as folder:
        for name, data in {item.data.identity: item.data for item in todo}.items():
            data_folder.write_folder(folder / name, data)
        setup = Setup(
            out=store.out.resolve(),
            spool=folder.resolve(),
            folder=os.getcwd(),
            cache=cache_dir(),
            force=force,
            stop_early=options.on_error == "stop",
            parent=os.getpid() if backend.owned else None,
            plugins=plugin_sources.list_sources(),
            threads=options.count_threads(backend),
        )
        yield from Supervisor(backend, setup, shown.note).run(todo)


def _tell_end(tally: Tally, by_key: dict[str, Prepared]) -> None:
    """One line for the whole, and the cells that failed."""
    if tally.total > 1 or tally.looked_up:  # a single cell that was not run says so
        cells = "1 cell" if tally.total == 1 else f"{tally.total} cells"
        tell(f"{cells}: {tally.counts()}, {duration(tally.seconds)}")
    if tally.failed_count < 2:
        return
    for outcome in tally.failures[:_LISTED]:
        tell(f"  failed: {label(by_key[outcome.key])}: {outcome.reason}")
    if tally.failed_count > _LISTED:
        more = tally.failed_count - _LISTED
        tell(f"  and {more} more: `dperm status` lists them")
