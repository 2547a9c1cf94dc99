"""The minimiser of a kernel problem, stored on disk and shared between runs and processes."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import hold_lock, open_atomically
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelProblem
from dperm_cli.runner.cells.record_digest import code_digest
from dperm_cli.solvers.optimum import Optimum


def optimum_of(problem: KernelProblem, folder: Path | None) -> Optimum:
    """The certified minimiser, within the distance that mechanisms ask for too.

    That distance is ``spec().target_distance``.
    """
    began = time.perf_counter()
    fit = _fit(problem, folder)
    return Optimum(
        theta=fit.theta, value=fit.value, lower=fit.value - fit.gap, gap=fit.gap,
        seconds=time.perf_counter() - began, method="dual", iterations=fit.solution.epochs,
        converged=fit.distance <= problem.spec().close, dual=fit.solution.slopes,
    )  # fmt: skip


def _fit(problem: KernelProblem, folder: Path | None) -> Fit:
    if folder is None or problem.has_solution():
        return problem.solve()
    name = f"kernel-{hash_parts(problem.solution_name())}"
    with contextlib.ExitStack() as held:
        with contextlib.suppress(StorageError):
            # one process solves it, the others wait and read
            held.enter_context(hold_lock(folder / f".{name}.lock", wait=True))
        # a digest of the code that solves the problem
        code = code_digest(KernelProblem, problem.loss, problem.kernel)
        _recall(problem, folder / f"{name}.npz", code)
        found = problem.solve()
        _keep(found, folder / f"{name}.npz", code)
        return found


def _recall(problem: KernelProblem, path: Path, code: str) -> None:
    """Load a stored solution of this code, if it still proves its own gap."""
    try:
        file = npy_files.read_archive(path, kinds=npy_files.LABELS)
        slopes, weights, solver = file["slopes"], file["weights"], str(file["code"])
    except (OSError, KeyError, ValueError):  # none, or a damaged one
        return
    width = problem.data.n if problem.features is None else problem.features.dim
    if solver != code:  # another way of solving ends at another point
        return
    good = all(part.dtype == np.float64 and np.all(np.isfinite(part)) for part in (slopes, weights))
    if good and slopes.shape == (problem.data.n,) and weights.shape == (width,):
        found = problem.verify_dual(slopes, weights)
        if found.distance <= problem.spec().target_distance:
            problem.remember(found)


def _keep(found: Fit, path: Path, code: str) -> None:
    """Store a solution atomically; where the folder cannot be written, it is solved again."""
    slopes, weights = found.solution.slopes, found.solution.weights
    with (
        contextlib.suppress(StorageError),
        open_atomically(path, sync=False, private=True) as file,
    ):
        np.savez(file, slopes=slopes, weights=weights, code=np.array(code))
