"""The certified optimum at the sizes of the embedded data: a table of pair, n, p, seconds, gap.

    python benchmarks/bench_optimum.py [loss ...]

``gap`` is relative to the excess risk of the set's centre. Random rows of the data's shape stand in
for the data: labels from a noisy linear score, sets of the given radius in their own norm.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dperm_cli.core import registry
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import optimum

SHAPES = {
    "binary": (569, 30),
    "regression": (442, 10),
    "multiclass": (1797, 64),
    "location": (1797, 64),
}
# so that the set binds
RADIUS = {"binary": 10.0, "regression": 2.0, "multiclass": 10.0, "location": 0.3}
CLASSES = 10


def records(task: str) -> Data:
    """Random records of a task, rows in the unit ball."""
    n, p = SHAPES[task]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    if task == "location":
        x = 0.6 * x + 0.4 * np.eye(p)[0]
    noise = rng.standard_normal((n, CLASSES))
    scores = 4.0 * x @ rng.standard_normal((p, CLASSES)) / np.sqrt(p) + 0.3 * noise
    score = np.clip(scores[:, 0], -1.0, 1.0)
    labels = {
        "binary": np.where(score < 0, -1.0, 1.0),
        "regression": score,
        "multiclass": np.argmax(scores, axis=1).astype(float),
        "location": np.zeros(n),
    }
    return Data.of_records(
        "random", task, x, labels[task], 1.0, 1.0, f"random-{task}", classes=CLASSES
    )


def sets(p: int, size: float) -> list[tuple[str, Any]]:
    """Every set of the registry, from a radius alone."""
    found = []
    for name in registry.names("constraint"):
        cls = registry.load("constraint", name)
        key = getattr(cls, "keys", {}).get("radius", "radius")
        radius = size / np.sqrt(p) if name == "box" else size
        found.append((name, cls(**{key: radius}, p=p)))
    return found


def main(losses: list[str]) -> None:
    """Print one row of the table for every pair."""
    print("| loss | set | n | p | method | seconds | gap |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in losses or registry.names("loss"):
        loss = registry.load("loss", name)()
        data = records(loss.tasks[0])
        for shape, constraint in sets(loss.dimension(data), RADIUS[data.task]):
            problem = Problem(data, loss, constraint)
            found = optimum.solve(problem)
            excess = float(problem.objective(constraint.centre())) - found.value
            cells = (name, shape, data.n, problem.p, found.method)
            row = " | ".join(map(str, cells))
            gap = found.gap / excess if excess > 0 else found.gap
            print(f"| {row} | {found.seconds:.2f} | {gap:.1e} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
