"""Certified optima, solved once per problem: in memory, between runs, and among processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from dperm_cli.core import progress
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import hold_lock
from dperm_cli.core.memo import MIB, Memo
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.cells import kernel_optima
from dperm_cli.solvers import optimum
from dperm_cli.solvers.optimum import Optimum

OPTIMA = "optima"  # the folder of the cache
# What a process remembers of optima: each has a dual as long as its data.
_BUDGET = 256 * MIB


def make_solver() -> Callable[[Problem | KernelProblem], Optimum]:
    """The optimum of a problem, found once, also among processes that share a cache."""
    solved: Memo[str, Optimum] = Memo(_BUDGET)
    # cached optima are not private: only the owner can read the cache folder
    cache = cache_dir()
    folder = None if cache is None else cache / OPTIMA

    def optimum_of(problem: Problem | KernelProblem) -> Optimum:
        if isinstance(problem, KernelProblem):
            return kernel_optima.optimum_of(problem, folder)
        return solved.recall(problem.fingerprint(), lambda: _solve(problem, folder))

    return optimum_of


def _solve(problem: Problem, folder: Path | None) -> Optimum:
    """A cache that cannot be used costs time, not the run."""
    if folder is not None:
        try:
            # one process solves it, the others wait and read
            with hold_lock(folder / f".{problem.fingerprint()}.lock", wait=True):
                return optimum.solve_or_load(problem, folder, progress=_tell)
        except StorageError as error:
            print(f"the cache is not used: {error}", file=sys.stderr)
    return optimum.canonical_optimum(problem, optimum.solve(problem, progress=_tell))


def _tell(iteration: int, gap: float) -> None:
    progress.report(f"optimum, iteration {iteration}, gap {gap:.2g}", 0.0, 0.0)
