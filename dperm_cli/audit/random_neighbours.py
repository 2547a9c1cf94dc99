"""Replay on random neighbouring data sets, dense and sparse, over several losses."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.audit import declared_grid
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.audit.replay import Replay, replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.losses.base import to_dense
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem

SETS = declared_grid.SETS[:2]  # the second where a mechanism knows nothing of the first
LOSSES = tuple(
    name for name in declared_grid.PLAIN if registry.load("loss", name).slope is not None
)
STEPS = 12  # of a mechanism that has steps: the gate sees every one of them
LOUD = 100.0  # times the epsilon: hardly any noise
_N, _P = 5, 3
KERNEL = "kernel"  # in place of a set, for mechanisms whose space is that
KERNELS = ("linear", "rbf", "polynomial")
_QUERIES = 4


def search(candidates: Sequence[Any], budget: Budget, rounds: int, seed: int = 0) -> Replay:
    """Replay ``rounds`` random neighbours; the faults of all and the largest move.

    Each is replayed with the first of the candidates (instances of one mechanism) that has a plan
    for its loss, every other four with next to no noise: a choice that follows the records is
    then not drowned. Losses that none supports are left out; none supported is a fault.
    """
    of_kernel = all(one.space == KERNEL for one in candidates)
    for shape in (KERNEL,) if of_kernel else SETS:
        found = _search(candidates, budget, rounds, seed, shape)
        if found.calls:
            return found
    return dataclasses.replace(found, faults=("no loss is supported: nothing was replayed",))


def _search(
    candidates: Sequence[Any], budget: Budget, rounds: int, seed: int, shape: str
) -> Replay:
    levels = (budget, dataclasses.replace(budget, epsilon=LOUD * budget.epsilon))
    plans: dict[tuple[str, str, bool], tuple[Any, Plan] | None] = {}
    found = Replay(0, 0.0)
    for first, second, number in make_pairs(budget.relation, rounds, seed, shape):
        if list_differences(first.spec(), second.spec()):
            found = found.join(Replay(0, 0.0, ("the public facts follow the records",)))
        loud = bool(number // len(LOSSES) % 2)
        # public facts are those of the loss, and of the kernel if there is one
        key = (first.loss.name, first.kernel.name if isinstance(first, KernelProblem) else "", loud)
        if key not in plans:
            plans[key] = _find_plan(candidates, first, levels[loud])
        if (chosen := plans[key]) is not None:
            found = found.join(replay(*chosen, first, second, number))
    return dataclasses.replace(found, faults=tuple(dict.fromkeys(found.faults)))


def _find_plan(candidates: Sequence[Any], problem: Any, budget: Budget):
    for mechanism in candidates:
        mechanism = shorten_steps(mechanism, STEPS)
        with contextlib.suppress(Unsupported):
            return mechanism, mechanism.plan(problem.spec(), budget)
    return None


def shorten_steps(mechanism: Any, steps: int) -> Any:
    """The mechanism with so many steps, or the one inside it; as it is where it has none."""
    names = {field.name for field in dataclasses.fields(mechanism)}
    if "steps" in names:
        return dataclasses.replace(mechanism, steps=steps)
    if "inner" in names:
        return dataclasses.replace(mechanism, inner=shorten_steps(mechanism.inner, steps))
    return mechanism


def make_pairs(
    relation: str, rounds: int, seed: int, shape: str = SETS[0]
) -> Iterator[tuple[Any, Any, int]]:
    """Random neighbours, numbered: dense and sparse, all ``LOSSES`` in turn.

    ``shape=KERNEL`` makes kernel problems, with all ``declared_grid.KERNEL_LOSSES`` and
    ``KERNELS``.
    """
    rng = generator(seed_sequence(seed, "audit", "neighbours", relation))
    for number in range(rounds):
        losses = declared_grid.KERNEL_LOSSES if shape == KERNEL else LOSSES
        loss = losses[number % len(losses)]
        first = _random(rng, loss, shape, sparse_rows=number % 3 == 2)
        if shape == KERNEL:
            first = _on_kernel(first, KERNELS[number // len(losses) % len(KERNELS)], seed, number)
        index = int(rng.integers(_N))
        row, target = _unit_rows(rng, 1)[0], float(rng.choice([-1.0, 1.0]))
        if relation == "add_remove":
            row = np.zeros(_P)  # nothing in place of the record
        elif number % 2:  # the farthest a record can go
            row, target = -to_dense(first.data.x)[index], float(first.data.y[index])
        yield first, replace_record(first, index, row, target), number


def _random(rng: np.random.Generator, loss: str, shape: str, sparse_rows: bool) -> Problem:
    x, y = _unit_rows(rng, _N), rng.choice([-1.0, 1.0], _N)
    task = registry.load("loss", loss).tasks[0]
    rows = sparse.csr_array(np.where(np.abs(x) > 0.3, x, 0.0)) if sparse_rows else x
    data = Data.of_records(
        "random", task, rows, y, row_bound=1.0, target_bound=1.0, fingerprint="random"
    )
    body = registry.load("constraint", SETS[0] if shape == KERNEL else shape)(1.5, _P)
    return Problem(data, registry.load("loss", loss)(), body, ridge=0.1)


def _on_kernel(problem: Problem, kernel: str, seed: int, number: int) -> KernelProblem:
    """The records of a problem under a kernel, with public queries; named by a number."""
    data = dataclasses.replace(problem.data, fingerprint=f"random {seed} {number}")
    queries = _unit_rows(generator(seed_sequence(0, "audit", "queries")), _QUERIES)
    return KernelProblem(data, problem.loss, registry.load("kernel", kernel)(), 0.5, queries)


def _unit_rows(rng: np.random.Generator, count: int) -> np.ndarray:
    x = rng.standard_normal((count, _P))
    return x / np.linalg.norm(x, axis=1, keepdims=True)
