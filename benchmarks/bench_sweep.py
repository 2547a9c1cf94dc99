"""What a sweep costs beyond the cells' own work, as a ratio inside one run.

    python benchmarks/bench_sweep.py [--full]

Blocks of tiny cells are computed bare (``run_cell.run``) and through the sweep (claims, records,
checksums, disk, progress) in turn, in processor time; the least over the blocks is what it takes
where nobody disturbs. --full also runs 2,000 cells by ``dperm run``, from the start of the process
to its end, with 1 and 2 workers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.sweep import sweep
from dperm_cli.runner.verbs import run

BLOCK, BLOCKS, FULL = 20, 6, 2000
WORDS = ["-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2",
         "mechanism=noisy_gd", "mechanism.steps=2"]  # fmt: skip


def epsilons(count: int) -> str:
    """So many values of the axis."""
    return "epsilon=" + ",".join(f"{0.5 + i / 400:g}" for i in range(count))


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def blocks(folder: Path) -> tuple[float, float]:
    """Milliseconds of processor time per cell: bare, and in a sweep."""
    items = run.prepare(study_plan.plan_study(parse([*WORDS, epsilons(BLOCK)])).cells)
    optimum_of, bare, swept = make_solver(), [], []
    for i in range(BLOCKS + 1):
        store = Store(folder / str(i))
        bare.append(cpu(lambda: [run_cell.run(item, optimum_of) for item in items]))
        swept.append(cpu(lambda store=store: sweep.run_cells(items, store)))
    # the first block warms up
    return 1e3 * min(bare[1:]) / BLOCK, 1e3 * min(swept[1:]) / BLOCK


def whole(folder: Path, workers: int) -> float:
    """Seconds of ``dperm run`` on the large study."""
    words = [*WORDS, epsilons(FULL), f"workers={workers}", f"out={folder / f'w{workers}'}"]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dperm_cli", "run", *words], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return time.perf_counter() - start


def main(full: bool) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        bare, swept = blocks(Path(name))
        print("| bare, ms a cell | in a sweep | overhead | overhead / bare |\n|---|---|---|---|")
        ratio = (swept - bare) / bare
        print(f"| {bare:.2f} | {swept:.2f} | {swept - bare:.2f} | {ratio:.2f} |", flush=True)
        for workers in (1, 2) if full else ():
            seconds = whole(Path(name), workers)
            print(f"{FULL} cells, {workers} worker(s), process and report: {seconds:.1f} s")


if __name__ == "__main__":
    main("--full" in sys.argv[1:])
