"""One run on many machines: the workers of a Dask cluster pass over the records (``split=rows``).

Every worker has some of the parts of the records, maps these from the stored folder, and sends back
one sum for each. The parts are added up here, in the order of one machine. Noise is drawn here, and
workers see no more than points, weights of records and their own rows. The parts of a worker that
is lost are computed again by others.
"""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import DpermError, StorageError
from dperm_cli.core.foreign_errors import suppress_warnings
from dperm_cli.core.plugin_sources import PluginSource, list_sources, use_sources
from dperm_cli.loops.thread_count import use_threads
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.split_rows import Pass
from dperm_cli.runner.cells.record_digest import code_digest
from dperm_cli.runner.sweep.backends import Dask, WorkerDied

_LOOK_SECONDS = 1.0  # after which is looked whether workers are still there
_ABSENT_SECONDS = 60.0  # without any worker, after which a run fails
_MOST_LOSSES = 4  # in a row, without a part that was computed

Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Errand:
    """What a worker needs beside the pass itself."""

    threads: int
    plugins: tuple[PluginSource, ...]


_one_at_a_time = threading.Lock()


def compute_parts(errand: Errand, pickled: bytes) -> list[Any]:
    """What a pass comes to for each of its parts, in a worker process."""
    # threads of one worker share its BLAS
    with (
        _one_at_a_time,
        suppress_warnings(),
        _find_libraries().limit(limits=1),
        use_sources(errand.plugins),
        use_threads(errand.threads),
    ):
        try:
            return pickle.loads(pickled).compute()
        except DpermError as error:
            # a plain one: errors with several arguments do not survive the way between processes
            kind = StorageError if isinstance(error, StorageError) else DpermError
            raise kind(str(error)) from None


@cache
def _find_libraries() -> ThreadpoolController:
    # finding them takes longer than many a pass
    return ThreadpoolController()


def describe_process() -> tuple[str, str]:
    """The machine of this process, and a digest of the code that passes over records."""
    return socket.gethostname(), code_digest(Pass, Glm)


@dataclass
class RowCluster:
    """The workers that pass over the records of some runs.

    Attributes:
        client: A client of Dask's scheduler.
        errand: What each worker is told.
        tell: A line for the user when a worker is lost.
        seen: The machine of each worker, and the records that it was given, by their numbers.
    """

    client: Any
    errand: Errand
    tell: Callable[[str], None]
    seen: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    _machines: dict[str, str] = field(default_factory=dict)
    _owners: dict[Parts, list[str]] = field(default_factory=dict)
    _workers: list[str] = field(default_factory=list)
    _looked: float = 0.0

    def run(self, one: Pass) -> list[Any]:
        """What a pass comes to for each part, whatever becomes of workers.

        Raises:
            DpermError: A worker cannot read its rows, or no worker is left.
        """
        found: dict[int, Any] = {}
        lost = 0
        while len(found) < len(one.parts):
            missing = [number for number in range(len(one.parts)) if number not in found]
            before = len(found)
            found |= self._compute(one, missing)
            if len(found) < len(one.parts):
                lost = lost + 1 if len(found) == before else 0
                if lost == _MOST_LOSSES:
                    raise DpermError("split=rows: workers died at one part of the records again "
                                     "and again: out of memory, perhaps")  # fmt: skip
                self.tell("a worker was lost: others compute its parts of the records")
        return [found[number] for number in range(len(one.parts))]

    def count_workers(self) -> str:
        """How many workers there are now, in words."""
        count = len(self.client.nthreads())
        return "1 worker" if count == 1 else f"{count} workers"

    def list_seen(self) -> list[dict[str, Any]]:
        """Which machine was given which records, by their numbers in the stored folder."""
        by_machine: dict[str, set[tuple[int, int]]] = {}
        for worker, parts in self.seen.items():
            by_machine.setdefault(self._machines[worker], set()).update(parts)
        return [
            {"machine": machine, "records": join_ranges(parts)}
            for machine, parts in sorted(by_machine.items())
        ]

    def _compute(self, one: Pass, missing: list[int]) -> dict[int, Any]:
        """Those of the missing parts whose workers are not lost meanwhile."""
        owners = self._deal(one.parts)
        waiting: list[tuple[Any, str, list[int]]] = []
        for worker in dict.fromkeys(owners[number] for number in missing):
            own = [number for number in missing if owners[number] == worker]
            self.seen.setdefault(worker, set()).update(one.parts[number] for number in own)
            future = self._submit(worker, compute_parts, self.errand, pickle.dumps(one.take(own)))
            waiting.append((future, worker, own))
        found: dict[int, Any] = {}
        try:
            for future, worker, own in waiting:
                sent = self._read(future, worker)
                found |= {} if sent is None else dict(zip(own, sent, strict=True))
        finally:
            given_up = [future for future, *_ in waiting if not future.done()]
            if given_up:
                self.client.cancel(given_up)
        return found

    def _read(self, future: Any, worker: str) -> Any:
        """What a worker sends; None where it is lost."""
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                if worker in self.client.nthreads():
                    continue
            except (KilledWorker, FutureCancelledError):
                pass
            self._looked = 0.0
            return None

    def _submit(self, worker: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """One worker does it, or nobody: no other sees what it is about."""
        return self.client.submit(
            call, *arguments, workers=[worker], allow_other_workers=False, pure=False
        )

    def _deal(self, parts: Parts) -> list[str]:
        """The worker of each part. Which workers there are is looked at once a second."""
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            self._workers, self._looked = self._find_workers(), now
        self._owners[parts] = deal_parts(self._owners.get(parts), len(parts), self._workers)
        return self._owners[parts]

    def _find_workers(self) -> list[str]:
        """The workers that there are; waits where there are none.

        Raises:
            DpermError: There are none, or one has other code than this process.
        """
        alive = sorted(self.client.nthreads())
        if not alive:
            self.tell("no worker is there: waiting for one")
            try:
                self.client.wait_for_workers(1, timeout=_ABSENT_SECONDS)
            except TimeoutError:
                raise DpermError("split=rows: no worker of the cluster is left") from None
            alive = sorted(self.client.nthreads())
        for worker in [one for one in alive if one not in self._machines]:
            told = self._read(self._submit(worker, describe_process), worker)
            if told is None:
                alive.remove(worker)
                continue
            machine, code = told
            if code != describe_process()[1]:
                raise DpermError(f"split=rows: the worker on {machine} runs another version of "
                                 "dperm or of a library than this process")  # fmt: skip
            self._machines[worker] = machine
        return alive or self._find_workers()


def deal_parts(before: list[str] | None, count: int, workers: list[str]) -> list[str]:
    """Which worker has which part, each about as many; a part stays where it was if it can.

    >>> deal_parts(None, 5, ["a", "b"])
    ['a', 'a', 'a', 'b', 'b']
    >>> deal_parts(["a", "a", "b", "b", "c", "c"], 6, ["a", "c"])
    ['a', 'a', 'a', 'c', 'c', 'c']
    """
    whole, more = divmod(count, len(workers))
    rooms = dict.fromkeys(workers, whole)
    found: list[str | None] = [None] * count
    for number, worker in enumerate(before or ()):
        if rooms.get(worker, 0) > 0:
            rooms[worker] -= 1
            found[number] = worker
    for worker in workers[:more]:
        rooms[worker] += 1
    free = (worker for worker in workers for _ in range(rooms[worker]))
    return [next(free) if worker is None else worker for worker in found]


def join_ranges(parts: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Ranges of records, first and last, those that meet or overlap joined.

    >>> join_ranges([(10, 20), (0, 10), (30, 31)])
    [[0, 19], [30, 30]]
    """
    found: list[list[int]] = []
    for begin, end in sorted(parts):
        if found and begin <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], end - 1)
        else:
            found.append([begin, end - 1])
    return found


@contextmanager
def open_row_cluster(
    backend: Dask, threads: int, folder: Path, tell: Callable[[str], None]
) -> Iterator[RowCluster]:
    """The workers of a cluster, for as long as the block runs.

    Args:
        backend: Where they are.
        threads: Of one worker.
        folder: For the files of a cluster that is started here.
        tell: As of ``RowCluster``.

    Raises:
        InputError: No scheduler answers there.
        DpermError: The cluster cannot be started.
    """
    errand = Errand(threads, list_sources())
    try:
        with backend.open_client(folder) as client:
            yield RowCluster(client, errand, tell)
    except WorkerDied as error:
        raise DpermError(f"split=rows: the cluster did not start: {error}") from None
