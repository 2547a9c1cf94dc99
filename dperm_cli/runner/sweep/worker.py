"""Run cells in this process or another; every back end uses this code.

A worker writes its records itself; the parent process only counts them. A running cell is locked,
so that several workers, or several runs on one folder, compute each cell once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain
from os.path import isdir
from pathlib import Path

from threadpoolctl import threadpool_limits

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.environment import collect_as_usual, follow_parent
from dperm_cli.core.errors import DpermError, StorageError
from dperm_cli.core.foreign_errors import suppress_warnings
from dperm_cli.core.memo import GIB, Memo
from dperm_cli.core.package_paths import use_cache
from dperm_cli.core.plugin_sources import PluginSource, use_sources
from dperm_cli.loops.thread_count import use_threads
from dperm_cli.problem import data_folder
from dperm_cli.problem.data import Data
from dperm_cli.results.records.cell_claims import Claims
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_worker_lease
from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.cells import run_cell as cells
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.sweep.attempts import Attempts
from dperm_cli.runner.sweep.outcomes import FINISHED, Outcome

SYNC_SECONDS = 1.0
# A cell at which so many workers died is not tried again.
MOST_DEATHS = 2
_LEFT = "left"  # to the supervisor: a cell at which workers died


class Worker:
    """Runs cells and writes their records.

    ``begun`` is told of every cell before it runs; ``has_ended`` is asked before each. ``attempts``
    is told what is begun and ended; a cell at which more than ``deaths`` workers died is left.
    """

    def __init__(
        self,
        out: Path,
        force: bool = False,
        begun: Callable[[Prepared], None] = lambda item: None,
        has_ended: Callable[[], bool] = lambda: False,
        attempts: Attempts | None = None,
        deaths: int = 0,
    ) -> None:
        self._store, self._claims, self._force = Store(out), Claims(out), force
        self._optimum_of = make_solver()
        self._begun, self._has_ended = begun, has_ended
        self._attempts, self._deaths = attempts, deaths
        self._unsynced: list[str] = []
        self._synced = time.monotonic()

    def run(self, items: Iterable[Prepared]) -> Generator[Outcome, None, None]:
        """Every cell once, those that another process is at last."""
        busy: list[Prepared] = []  # is gone through when the first round has filled it
        rounds = chain(((item, False) for item in items), ((item, True) for item in busy))
        try:
            for item, wait in rounds:
                if self._has_ended():
                    return
                outcome = self._attempt(item, wait)
                if outcome is None:
                    busy.append(item)
                elif outcome.status != _LEFT:
                    yield outcome
        finally:
            self._sync()

    def _attempt(self, item: Prepared, wait: bool) -> Outcome | None:
        """The outcome of a cell, or None when another process is at it."""
        with self._claims.claim(item.key, wait) as mine:
            if not mine:
                return None
            status = None if self._force else self._store.status(item.key)
            if status in FINISHED:
                return Outcome(item.key, status, looked_up=True)
            if self._attempts and self._attempts.count(item.key) > self._deaths:
                return Outcome(item.key, _LEFT)
            self._begun(item)
            collect_as_usual()
            with self._attempts.note(item.key) if self._attempts else contextlib.nullcontext():
                rows = cells.run(item, self._optimum_of)
                self._store.write(item.key, rows, sync=False, code=item.code)
            self._unsynced.append(item.key)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()
        return Outcome(item.key, rows[0]["status"], rows[0].get("reason"))

    def _sync(self) -> None:
        """Records go to the disk for good in groups: a sync each may cost more than the cell."""
        if self._unsynced:
            self._store.sync(self._unsynced)
        self._unsynced, self._synced = [], time.monotonic()


@dataclass(frozen=True)
class Setup:
    """What all chunks of a study share.

    ``parent`` is the process to end with, if any. ``alone`` is True for a cell that runs by
    itself because a worker died at it. ``plugins`` are those from outside that cells may name.
    ``threads`` is how many a worker may use at once.
    """

    out: Path
    spool: Path
    folder: str
    cache: Path | None
    force: bool
    stop_early: bool
    parent: int | None
    alone: bool = False
    plugins: tuple[PluginSource, ...] = ()
    threads: int = 1


@dataclass(frozen=True)
class Task:
    """A cell on its way to a worker: the record's name and the name of its data set."""

    cell: cell_schema.Cell
    key: str
    data: str


@dataclass(frozen=True)
class Chunk:
    """Tasks on their way to a worker, which reads them when it has loaded the plug-ins."""

    pickled: bytes

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Chunk:
        """The tasks, pickled."""
        return cls(pickle.dumps(list(tasks)))

    def open(self) -> list[Task]:
        """The tasks."""
        return pickle.loads(self.pickled)


@dataclass(frozen=True)
class Report:
    """What came of a chunk: its outcomes, and the storage or other error that ended it."""

    outcomes: tuple[Outcome, ...]
    fault: DpermError | None = None


_one_at_a_time = threading.Lock()
# Data sets that are mapped from files: pages are shared, but each keeps its files open.
_data: Memo[Path, Data] = Memo(8 * GIB, most=8)


def run_chunk(setup: Setup, chunk: Chunk) -> Report:
    """Run a chunk of cells in a worker process; never raises what can be reported."""
    # threads of one worker share its BLAS, its working folder and the listeners of progress
    with _one_at_a_time, suppress_warnings():
        if setup.parent is not None:
            follow_parent(setup.parent)
        outcomes: list[Outcome] = []
        # the planner's working folder and cache, where this process can have them
        folder = setup.folder if isdir(setup.folder) else os.getcwd()
        attempts = Attempts(setup.spool)

        def has_ended() -> bool:
            """The planner takes the folder of data away when nothing more is wanted."""
            return not isdir(setup.spool)

        try:
            with (
                hold_worker_lease(setup.out, may_tidy=has_ended),
                threadpool_limits(1),
                use_cache(setup.cache),
                contextlib.chdir(folder),
                use_sources(setup.plugins),
                use_threads(setup.threads),
            ):
                if has_ended():
                    return Report(())
                attempts.watch_memory()
                worker = Worker(setup.out, setup.force, has_ended=has_ended, attempts=attempts,
                                deaths=MOST_DEATHS - 1 if setup.alone else 0)  # fmt: skip
                with attempts.note_work():
                    for outcome in worker.run(_prepare_task(setup, task) for task in chunk.open()):
                        outcomes.append(outcome)
                        if setup.stop_early and outcome.status == "failed":
                            break
        except DpermError as error:
            # a plain one: errors with several arguments do not survive the way between processes
            kind = StorageError if isinstance(error, StorageError) else DpermError
            return Report(tuple(outcomes), kind(str(error)))
        return Report(tuple(outcomes))


def _prepare_task(setup: Setup, task: Task) -> Prepared:
    """The cell with its data; DpermError when this process would not make the record asked for."""
    folder = setup.spool / task.data
    data = _data.recall(folder, lambda: data_folder.read_folder(folder))
    item = prepared_cell.prepare(task.cell, data)
    if item.key != task.key:
        raise DpermError("a worker runs another version of dperm or of a library, or sees other "
                         "files, than the process that planned the study")  # fmt: skip
    return item
