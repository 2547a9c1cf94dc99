"""Check the public constants of a plan on records within their bounds.

Gradients, losses and points are computed and compared with the constants that the plan declares:

- every record's gradient has norm at most ``lipschitz``;
- the gradients of two records are at most ``gradient_gap`` apart;
- the difference of two records' losses varies by at most ``oscillation`` over the set;
- the gradient of a smooth loss changes by at most ``smoothness`` times the distance.

Rows and targets must keep their bounds, and points of the set its radius and diameter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.losses.base import to_dense
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem

WITHIN = 1e-9  # relative, for rounding
_POINTS = 24  # random directions in which points of the set are taken
_MOST_HESSIAN = 24  # Hessians are examined up to this many coordinates


def find_faults(problem: Problem, events: Sequence[Any] = (), seed: int = 0) -> list[str]:
    """The constants of a problem, and those named by events, that do not hold, as sentences.

    Args:
        problem: the problem whose constants are checked.
        events: the events of its plan.
        seed: the root of the random points and records.
    """
    spec = problem.spec()
    found = [*_check_records(problem.data), *_check_set(problem.constraint, seed)]
    theta = _points(problem.constraint, seed)
    extreme = _extreme_records(problem, seed)
    one = [extreme.take(np.array([i])) for i in range(extreme.n)]
    gradients = np.stack([problem.loss.gradient(theta, record) for record in one])
    losses = np.stack([problem.loss.values(theta, record)[..., 0] for record in one])
    if not (np.all(np.isfinite(gradients)) and np.all(np.isfinite(losses))):
        return found  # an overflow of float64: nothing can be compared
    lengths = np.linalg.norm(gradients, axis=-1)
    found += _compare_with_declared("lipschitz", float(np.max(lengths)), spec.lipschitz)
    pairs = list(itertools.combinations(range(extreme.n), 2))
    apart = [float(np.max(np.linalg.norm(gradients[a] - gradients[b], axis=-1))) for a, b in pairs]
    found += _compare_with_declared("gradient_gap", max(apart, default=0.0), spec.gradient_gap)
    # Differences of large losses lose digits. There the checks of the released law must do.
    if float(np.max(np.abs(losses))) < 1e9:
        ranges = [float(np.ptp(losses[a] - losses[b])) for a, b in pairs]
        found += _compare_with_declared("oscillation", max(ranges, default=0.0), spec.oscillation)
        found += _compare_with_declared(
            "variation", float(np.max(np.ptp(losses, axis=1))), spec.variation
        )
    if spec.smoothness is not None:
        found += _compare_with_declared(
            "smoothness", _largest_gradient_change(problem, one, theta), spec.smoothness
        )
        found += _check_hessians(problem, one, events)
    return found


def _check_hessians(problem: Problem, records: list[Data], events: Sequence[Any]) -> list[str]:
    """One record's Hessian must not have a larger rank or eigenvalue than an event declares."""
    named = [event for event in events if event.law == "perturbed_objective"]
    p = problem.p
    if not named or p > _MOST_HESSIAN:
        return []
    step = 1e-4 / max(problem.data.row_bound, 1e-300)
    near = problem.constraint.project(np.full((1, p), 3.0 * step))
    moved = near + step * np.concatenate([np.eye(p), -np.eye(p)])
    rank, largest = 0, 0.0
    for record in records:
        slopes = problem.loss.gradient(moved, record)
        sizes = np.linalg.svd((slopes[:p] - slopes[p:]) / (2.0 * step), compute_uv=False)
        largest = max(largest, float(sizes[0]))
        if sizes[0] > 1e-6 * (problem.spec().smoothness or 0.0):
            rank = max(rank, int(np.sum(sizes > 1e-3 * sizes[0])))
    found = _compare_with_declared(
        "curvature", largest * (1.0 - 1e-5), min(event.curvature for event in named)
    )
    return found + _compare_with_declared(
        "the rank of a Hessian", rank, min(event.rank for event in named)
    )


def _compare_with_declared(name: str, seen: float, declared: float) -> list[str]:
    """A fault if ``seen`` exceeds the constant ``declared``, else an empty list."""
    if seen <= declared * (1.0 + WITHIN) + 1e-12:
        return []
    return [f"{name} is declared to be {declared:.6g}, and is at least {seen:.6g}"]


def _check_records(data: Data) -> list[str]:
    """Rows and targets must be within their declared bounds."""
    found = []
    longest = float(np.max(np.linalg.norm(to_dense(data.x[:]), axis=1), initial=0.0))
    if not longest <= data.row_bound * (1.0 + WITHIN):
        found.append(f"a row of norm {longest:.6g} is above the bound {data.row_bound:.6g}")
    largest = float(np.max(np.abs(data.y), initial=0.0))
    most = data.classes - 1.0 if data.task == "multiclass" else data.target_bound
    if not largest <= most * (1.0 + WITHIN):
        found.append(f"a target of size {largest:.6g} is above the bound {most:.6g}")
    return found


def _check_set(body: Any, seed: int) -> list[str]:
    """Projections must lie in the set, within its declared radius and diameter."""
    theta = _points(body, seed)
    found = []
    if not np.all(body.contains(theta, tolerance=1e-6)):
        found.append(f"a projection on {body.name} lies outside of it")
    found += _compare_with_declared(
        "radius", float(np.max(np.linalg.norm(theta, axis=1))), body.radius
    )
    apart = np.linalg.norm(theta[:, None] - theta[None], axis=-1)
    return found + _compare_with_declared("diameter", float(np.max(apart)), body.diameter)


def _points(body: Any, seed: int) -> np.ndarray:
    """Points [m, p] of a set: its centre, points of the boundary, and points between."""
    p = body.p
    rng = generator(seed_sequence(seed, "audit", "points", body.name, p))
    away = rng.standard_normal((_POINTS, p))
    away[: min(p, 8)] = np.eye(p)[: min(p, 8)]
    away = np.concatenate([away, -away])
    away *= body.radius / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
    between = away * 10.0 ** -rng.uniform(0.0, 13.0, (len(away), 1))
    centre = np.asarray(body.centre())
    return body.project(np.concatenate([centre[None], centre + away, centre + between]))


def _extreme_records(problem: Problem, seed: int) -> Data:
    """Records with rows as long as the bound allows, with every label."""
    data, p = problem.data, problem.data.p
    rng = generator(seed_sequence(seed, "audit", "extreme", p))
    rows = rng.standard_normal((4, p))
    rows[0] = np.eye(p)[0]
    rows *= data.row_bound / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.concatenate([rows, -rows[:2], np.zeros((1, p))])
    labels = [0.0] if data.task == "location" else [data.target_bound, -data.target_bound]
    if data.task == "multiclass":
        labels = [float(k) for k in range(data.classes)]
    x = np.tile(rows, (len(labels), 1))
    y = np.repeat(labels, len(rows))
    return data.with_records(
        x, y, x_test=None, y_test=None, fingerprint="extreme records", minimiser=None
    )


def _largest_gradient_change(problem: Problem, records: list[Data], theta: np.ndarray) -> float:
    """The largest change of one record's gradient between near points, over their distance."""
    rng = generator(seed_sequence(0, "audit", "turns", problem.p))
    worst = 0.0
    size = 1.0 / max(problem.data.row_bound, 1e-300)
    for step in (1e-2 * size, size):
        near = theta * min(1.0, 10.0 * size / max(problem.constraint.radius, 1e-300))
        move = rng.standard_normal(near.shape)
        move *= step / np.linalg.norm(move, axis=1, keepdims=True)
        for record in records:
            turned = problem.loss.gradient(near + move, record)
            turned = turned - problem.loss.gradient(near, record)
            worst = max(worst, float(np.max(np.linalg.norm(turned, axis=-1))) / step)
    return worst * (1.0 - 1e-7) if math.isfinite(worst) else worst
