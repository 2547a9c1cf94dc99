"""Ellipsoids that round a body: the smallest around points, the largest inside half-spaces."""

from __future__ import annotations

import numpy as np

_TOLERANCE = 1e-6
_STEPS = 5000


def fit_enclosing_ellipsoid(points: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """(root A [d, d], centre c [d]) with the points [m, d] in c + A B and little room.

    Weights on the points are moved to the farthest one and away from the nearest supporting one
    [Khachiyan 1996; Todd and Yildirim 2007], until the ellipsoid shrunk by d (by sqrt(d) for
    points with their mirror images, ``centred``) lies in their hull up to a factor 1 + 1e-6.
    """
    count, d = points.shape
    lifted = points if centred else np.hstack([points, np.ones((count, 1))])
    size = lifted.shape[1]
    weights = np.full(count, 1.0 / count)
    for step in range(_STEPS):
        if step % 50 == 0:
            inverse = np.linalg.inv((lifted.T * weights) @ lifted)
            distance = np.einsum("ij,jk,ik->i", lifted, inverse, lifted)
        far = int(np.argmax(distance))
        used = np.where(weights > 1e-14, distance, np.inf)
        near = int(np.argmin(used))
        above, below = distance[far] / size - 1.0, 1.0 - used[near] / size
        if max(above, below) <= _TOLERANCE:
            break
        moved = far if above >= below else near
        distance, inverse = _shift_weight(lifted, weights, distance, inverse, moved)
    centre = np.zeros(d) if centred else weights @ points
    around = points - centre
    root = symmetric_root((around.T * weights) @ around)
    reach = np.linalg.norm(np.linalg.solve(root, around.T), axis=0)
    return root * float(np.max(reach)), centre


def _shift_weight(
    lifted: np.ndarray, weights: np.ndarray, distance: np.ndarray, inverse: np.ndarray, moved: int
) -> tuple[np.ndarray, np.ndarray]:
    """(distances, inverse) after the best change of one point's weight, made in place."""
    kappa = distance[moved]
    gain = kappa / lifted.shape[1] - 1.0
    share = gain / max(kappa - 1.0, 1e-300) if kappa > 1.0 else -np.inf
    share = max(share, -weights[moved] / (1.0 - weights[moved]))
    weights *= 1.0 - share
    weights[moved] = max(weights[moved] + share, 0.0)
    column = inverse @ lifted[moved]
    ratio = share / (1.0 - share + share * kappa)
    products = lifted @ column
    return (
        (distance - ratio * products**2) / (1.0 - share),
        (inverse - ratio * np.outer(column, column)) / (1.0 - share),
    )


def fit_inscribed_ellipsoid(matrix: np.ndarray, room: np.ndarray, inside: np.ndarray) -> tuple:
    """(root A [d, d], centre c [d]) with c + A B within matrix theta <= room, of largest volume.

    Newton steps on the optimality conditions [Zhang and Gao 2003]: with A^2 = (M^T Y M)^{-1} and
    h_i = |A m_i|, M^T (y h) = 0 and the slacks z = room - M c - h meet y z = mu -> 0. ``inside``
    is a point with every room - matrix inside > 0. The result is inside whatever was reached.
    """
    slack = room - matrix @ inside
    rows, count = matrix / slack[:, None], len(room)
    at, left, y = np.zeros(matrix.shape[1]), np.ones(count), np.ones(count)
    square = np.linalg.inv(rows.T @ rows)
    h = np.sqrt(np.einsum("ij,jk,ik->i", rows, square, rows))
    grow = float(np.min(left / h))
    y, h = y / grow**2, h * grow
    z = np.maximum(0.1, left - h)
    for _ in range(100):
        square = np.linalg.inv((rows.T * y) @ rows)
        found = _find_newton_step(rows, rows @ square @ rows.T, left, y, z)
        if found is None:
            break
        step, move, pull, dy, dz = found
        at, left = at + step * move, left - step * pull
        y, z = y * (1.0 + step * dy), z + step * dz
    root = symmetric_root(square)
    inner = np.min(left / np.linalg.norm(rows @ root, axis=1))
    return root * float(inner) * (1.0 - 1e-13), inside + at


def _find_newton_step(
    rows: np.ndarray, gram: np.ndarray, left: np.ndarray, y: np.ndarray, z: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """(length, d centre, d left, dy / y, dz) of a step that stays inside; None at the optimum."""
    h = np.sqrt(np.diag(gram))
    gap = float(y @ z) / len(left)
    mu = max(min(0.5, gap) * gap, 1e-10)
    r1, r2, r3 = -rows.T @ (y * h), left - h - z, mu - y * z
    residual = max(float(np.max(np.abs(rest))) for rest in (r1, r2, r3))
    if residual < 1e-8 and gap < 1e-8:
        return None
    # relative steps dy / y: h falls by half of (Y^{1/2} gram Y^{1/2})^2 in them
    coupling = (y[:, None] * gram) * (y[:, None] * gram).T
    weight = 2.0 * y * h
    system = coupling + np.diag(np.maximum(weight * z, 1e-14))
    half = np.linalg.solve(system, (h + z)[:, None] * (y[:, None] * rows))
    back = (weight[:, None] * half - y[:, None] * rows).T
    r23 = r2 - r3 / y
    try:
        move = np.linalg.solve(back @ rows, r1 + back @ r23)
        pull = rows @ move
        dy = np.linalg.solve(system, weight * (pull - r23))
    except np.linalg.LinAlgError:
        return None
    dz = r3 / y - z * dy
    reach = min(1.0, _reach(-pull / left), _reach(dy), _reach(dz / z))
    return max(0.75, 1.0 - residual) * reach, move, pull, dy, dz


def symmetric_root(square: np.ndarray) -> np.ndarray:
    """The positive semidefinite square root of a symmetric matrix."""
    values, vectors = np.linalg.eigh(0.5 * (square + square.T))
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def embed(root: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A root [d, d] within ``directions`` [p, d] as an invertible [p, p], isotropic across."""
    p, d = directions.shape
    if d == 0:
        return np.eye(p)
    across = float(np.exp(np.mean(np.log(np.maximum(np.linalg.svd(root)[1], 1e-300)))))
    whole = across * (np.eye(p) - directions @ directions.T)
    return whole + directions @ root @ directions.T


def _reach(ratios: np.ndarray) -> float:
    """The largest step before 1 + step * ratio reaches 0."""
    return -1.0 / min(float(np.min(ratios)), -0.5)
