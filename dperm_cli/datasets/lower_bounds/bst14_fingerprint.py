"""The fingerprinting instance of the (epsilon, delta) lower bound [BST14, Lemma 5.1, part 2]."""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.datasets.shared.generated_rows import leaf
from dperm_cli.datasets.shared.lower_bound_rows import LowerBoundInstance

_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Bst14Fingerprint(LowerBoundInstance):
    """Rows of a fingerprinting code, as many as bring their sum to norm ``signal``, then padding.

    Column j of the code is +1 with a probability sin^2(t_j), t_j uniform on [0, pi/2] (Tardos'
    arcsine law, without its cut-off): m rows add up to a norm near m / sqrt(2). Rows are taken
    until the norm M of their sum is nearest to ``signal``, within 1/2; all records add up to a
    norm in [M - 1, M + 1] [BST14, App. C.2]. The hard choice is M of the order sqrt(p) / epsilon.
    The rows do not depend on n.

    A release theta is traced by its score, the mean over the m rows X_i of
    <theta, X_i - P> / |theta|, P the columns' expected signs: 0 on average where theta knows
    nothing of the rows, and at most ``tracing_limit`` for every (epsilon, delta) mechanism under
    replace_one (docs/proofs/_lower_bounds.md).

    >>> rows = Bst14Fingerprint(n=500, p=20, signal=10).load().x
    >>> rows.shape, bool(abs(np.linalg.norm(rows.sum(axis=0)) - 10) <= 1.5)
    ((500, 20), True)
    """

    def likely(self) -> np.ndarray:
        """Each column's probability of a +1, [p]."""
        angles = leaf(self.seed, self.name, "biases").random(int(self.p)) * np.pi / 2
        return np.sin(angles) ** 2

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """<theta, X_i - P> / |theta| of each row of the code at theta [p], shape [m].

        For a row that theta knows nothing of: mean 0, standard deviation at most 1, and above
        ``accusation(b)`` with probability at most b.
        """
        length = float(np.linalg.norm(theta))
        code = _code(self)
        if length == 0.0:
            return np.zeros(len(code))
        unit = np.asarray(theta, dtype=float) / length
        return code @ unit - float((2.0 * self.likely() - 1.0) @ unit)

    def diagnose(self, theta: np.ndarray, epsilon: float, delta: float) -> dict[str, float | None]:
        """``tracing_score`` and ``tracing_limit`` of a released theta; null where it is no [p]."""
        if np.shape(theta) != (int(self.p),) or not len(_code(self)):
            return {"tracing_score": None, "tracing_limit": None}
        score = float(np.mean(self.scores(theta)))
        return {"tracing_score": score, "tracing_limit": tracing_limit(self.p, epsilon, delta)}

    def informative(self) -> np.ndarray:
        p = int(self.p)
        likely = self.likely()
        rng = leaf(self.seed, self.name, "rows")
        rows, total = [np.zeros((0, p))], np.zeros(p)
        taken, block = 0, max(1, _BLOCK // p)
        while taken < self.n:
            signs = np.where(rng.random((min(block, int(self.n) - taken), p)) < likely, 1.0, -1.0)
            sums = total + np.cumsum(signs, axis=0)
            norms = np.linalg.norm(sums, axis=1) / np.sqrt(p)
            beyond = np.flatnonzero(norms >= self.signal)
            if beyond.size:
                before = norms[beyond[0] - 1] if beyond[0] else np.linalg.norm(total) / np.sqrt(p)
                nearer_before = self.signal - before < norms[beyond[0]] - self.signal
                rows.append(signs[: beyond[0] + (0 if nearer_before else 1)])
                return np.vstack(rows)
            rows.append(signs)
            total = sums[-1]
            taken += len(signs)
        reached = np.linalg.norm(total) / np.sqrt(p)
        allowed = f"n={self.n} rows of the code add up to norm {reached:.4g} only"
        raise InputError("dataset.signal", self.signal, allowed)


def accusation(chance: float) -> float:
    """sqrt(2 ln(1 / chance)): a row outside the data scores more with probability <= chance."""
    return math.sqrt(2.0 * math.log(1.0 / chance))


def tracing_limit(p: int, epsilon: float, delta: float) -> float:
    """sinh(epsilon) + 2 sqrt(p) (1 + e^-epsilon) delta, or 2 sqrt(p) if that is less.

    The expected score, over code and release, of every (epsilon, delta) mechanism is at most this:
    a row's score has mean absolute value 1 at most once the row is replaced, and is never more than
    2 sqrt(p).
    """
    most = 2.0 * math.sqrt(p)
    if epsilon > 700.0:
        return most
    return min(most, math.sinh(epsilon) + most * (1.0 + math.exp(-epsilon)) * delta)


@memoise(budget=256 * MIB)
def _code(instance: Bst14Fingerprint) -> np.ndarray:
    return instance.informative()
