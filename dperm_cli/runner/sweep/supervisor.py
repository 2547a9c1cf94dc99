"""Run cells by the workers of a back end to the end, however often workers die.

A pool that breaks is started again for what is left, at half its size if it had hardly begun.
Where not even one worker begins its work, or all live and none takes up work, the rest runs in
this process. The cell that a dead worker was at is tried once more by itself, so that a cell that
kills workers fails alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.records.cell_claims import Claims
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells import run_cell as cells
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.sweep.attempts import Attempts
from dperm_cli.runner.sweep.backends import Backend, NoneWorks, WorkerDied
from dperm_cli.runner.sweep.outcomes import FINISHED, Outcome
from dperm_cli.runner.sweep.worker import (
    MOST_DEATHS,
    Chunk,
    Setup,
    Task,
    Worker,
    run_chunk,
)


@dataclass
class Supervisor:
    """The workers of one sweep: ``tell`` is a line for the user when they break."""

    backend: Backend
    setup: Setup
    tell: Callable[[str], None]
    _pending: dict[str, Prepared] = field(default_factory=dict)

    def run(self, items: Sequence[Prepared]) -> Generator[Outcome, None, None]:
        """Every cell once; those at which two workers died have failed."""
        self._pending = {item.key: item for item in items}
        workers = self.backend.workers
        while self._pending and workers:
            before, why, stuck = len(self._pending), "they left cells undone", False
            backend = replace(self.backend, workers=workers)
            try:
                chunks = cut_chunks(list(self._pending.values()), backend.chunks(before))
                yield from self._run_chunks(backend, self.setup, chunks)
            except WorkerDied as error:
                why, stuck = str(error), isinstance(error, NoneWorks)
            yield from self._look_up_finished()
            ended = before - len(self._pending)
            for key in [] if stuck else self._list_suspects():
                yield from self._run_alone(key, why)
            if stuck:
                workers = 0
            elif len(self._pending) == before:
                workers //= 2  # 0: not even one comes to its work
            elif ended < workers:
                workers = max(1, workers // 2)
            if self._pending:
                where = f"with {workers} of them" if workers else "in this process"
                self.tell(f"workers died ({why}): the sweep goes on {where}")
        if self._pending:
            here = Worker(self.setup.out, self.setup.force)
            yield from here.run(list(self._pending.values()))

    def _look_up_finished(self) -> Iterator[Outcome]:
        """What workers had finished before they died, and nobody could report."""
        store = Store(self.setup.out)
        for key in [] if self.setup.force else list(self._pending):
            status = store.status(key)
            if status in FINISHED:
                del self._pending[key]
                yield Outcome(key, status)

    def _run_chunks(
        self, backend: Backend, setup: Setup, chunks: Sequence[Sequence[Prepared]]
    ) -> Iterator[Outcome]:
        """The outcomes of chunks of cells as they come."""
        packed = [
            Chunk.of([Task(one.cell, one.key, one.data.identity) for one in chunk])
            for chunk in chunks
        ]
        for report in backend.run(partial(run_chunk, setup), packed, setup.spool):
            for outcome in report.outcomes:
                # a worker may do a cell twice, when the first report of it was lost
                if self._pending.pop(outcome.key, None) is not None:
                    yield outcome
            if report.fault is not None:
                raise report.fault

    def _list_suspects(self) -> list[str]:
        """The cells that dead workers were at."""
        claims, attempts = Claims(self.setup.out), Attempts(self.setup.spool)
        begun = [key for key in attempts.list_cells() if key in self._pending]
        return [key for key in begun if not claims.is_held(key)]

    def _run_alone(self, key: str, why: str) -> Iterator[Outcome]:
        """A cell by itself; if its worker dies again, or does not come to it, it has failed."""
        item, attempts = self._pending[key], Attempts(self.setup.spool)
        backend, setup = replace(self.backend, workers=1), replace(self.setup, alone=True)
        for _ in range(MOST_DEATHS):
            if key in self._pending and attempts.count(key) < MOST_DEATHS:
                try:
                    yield from self._run_chunks(backend, setup, [[item]])
                except WorkerDied as error:
                    why = str(error)
        if key in self._pending:
            del self._pending[key]
            peak = attempts.read_peak(key)
            memory = "" if peak is None else f"; memory of the worker: {peak / 1e9:.2g} GB"
            reason = f"its worker died twice ({why}{memory}): out of memory, perhaps"
            Store(self.setup.out).write(key, cells.make_failed_rows(item, reason), code=item.code)
            yield Outcome(key, "failed", reason)


def cut_chunks(items: list[Any], pieces: int) -> list[list[Any]]:
    """Chunks of equal size that each have a bit of every part of the study."""
    return [items[start::pieces] for start in range(pieces)]
