"""``split=rows``: which runs can have their rows passed over by others, and how they are run."""

from __future__ import annotations

import socket
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.loops.thread_count import use_threads
from dperm_cli.problem.split_rows import SplitRows
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose.cell_schema import Cell
from dperm_cli.runner.models import machine_file
from dperm_cli.runner.sweep import shared_data
from dperm_cli.runner.sweep.backends import Backend, Dask, Options
from dperm_cli.runner.sweep.outcomes import Outcome
from dperm_cli.runner.sweep.progress import SweepMeter
from dperm_cli.runner.sweep.row_cluster import RowCluster, open_row_cluster
from dperm_cli.runner.sweep.worker import Worker
from dperm_cli.solvers import optimum


def check_cells(study_cells: Iterable[Cell]) -> None:
    """InputError for a cell that needs the whole rows in one process, before data are loaded."""
    for cell in study_cells:
        reason = _find_reason(cell)
        if reason is not None:
            raise InputError("split", "rows", reason)


def check_loaded(prepared: Iterable[Prepared]) -> None:
    """The same for what its data have to be."""
    for item in prepared:
        data = item.data
        if data.n < data.p:
            reason = f"needs at least as many records as columns: {data.n} and {data.p} here"
            raise InputError("split", "rows", reason)
        if optimum.needs_whole_rows(item.problem):
            constraint, loss = item.problem.constraint.name, item.problem.loss.name
            reason = f"needs the whole rows for the optimum of loss={loss} on this set"
            raise InputError("split", "rows", f"{reason} ({constraint}): leave split= out")


def _find_reason(cell: Cell) -> str | None:
    """Why the rows of a cell cannot be split, if they cannot."""
    name = cell.mechanism_name
    if cell.dataset.find_folder() is None:
        source = cell.name_of("dataset")
        return f"is for dataset=stored (`dperm data store`), and {source} is no such folder"
    if cell.kernel is not None:
        return f"kernel={cell.kernel.name} needs the whole rows in one process"
    if not cell.mechanism.by_sums:
        known = registry.list_shipped("mechanism")
        others = ", ".join(one for one in known if registry.load("mechanism", one).by_sums)
        return f"{name} needs the whole rows in one process; these do not: {others}"
    if cell.noise == "secure":
        return "noise=secure needs the whole rows in one process"
    if cell.population is not None:
        return "privacy.population= fills up the rows, which needs them in one process"
    if not cell.loss.by_parts:
        return f"loss={cell.loss.name} has no sums over parts: its rows are needed in one process"
    return None


def run_split(
    items: Sequence[Prepared],
    store: Store,
    force: bool,
    backend: Backend,
    options: Options,
    shown: SweepMeter,
) -> Generator[Outcome, None, None]:
    """Run cells one after the other in this process, the rows of each split among workers."""
    assert isinstance(backend, Dask)
    with (
        shared_data.use_spool(store.out) as folder,
        open_row_cluster(backend, options.count_threads(backend), folder, shown.note) as cluster,
        use_threads(options.count_own_threads()),
    ):
        shown.note(f"{cluster.count_workers()} pass over the rows")
        for item in items:
            cluster.seen.clear()
            yield from Worker(store.out, force).run([hand_out(item, cluster)])
            if cluster.seen:
                noted = _describe_machines(item, cluster)
                machine_file.note_cell(store.out, item.key, noted)


def hand_out(item: Prepared, cluster: RowCluster) -> Prepared:
    """The cell with rows that the cluster passes over; whoever else asks for them is refused."""
    data = item.data
    folder = item.cell.dataset.find_folder()
    rows: Any = SplitRows(folder, data.fingerprint, data.x, data.y, cluster.run)
    split = data.with_rows(rows)
    return replace(item, data=split, problem=replace(item.problem, data=split))


def _describe_machines(item: Prepared, cluster: RowCluster) -> dict[str, Any]:
    """Which machine was given which records."""
    here = {"machine": socket.gethostname(), "holds": "names, labels, held-out records and sums"}
    return {
        "data": item.data.fingerprint, "records": item.data.n, "noise drawn by": here,
        "rows read by": cluster.list_seen(),
    }  # fmt: skip
