"""The fingerprinting instance of the (epsilon, delta) lower bound [BST14, Lemma 5.1, part 2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.problem.datasets._generated import leaf
from dperm_cli.problem.datasets._lower_bounds import LowerBoundInstance

_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Bst14Fingerprint(LowerBoundInstance):
    """Rows of a fingerprinting code, as many as bring their sum to norm ``signal``, then padding.

    Column j of the code is +1 with a probability sin^2(t_j), t_j uniform on [0, pi/2] (Tardos'
    arcsine law, without its cut-off): m rows add up to a norm near m / sqrt(2). Rows are taken
    until the norm M of their sum is nearest to ``signal``, within 1/2; all records add up to a
    norm in [M - 1, M + 1] [BST14, App. C.2]. The hard choice is M of the order sqrt(p) / epsilon.
    The rows do not depend on n.
    """

    name: ClassVar[str] = "bst14_fingerprint"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("dataset.signal", self.signal, low=0, high=float(self.n))

    def informative(self) -> np.ndarray:
        p = int(self.p)
        likely = np.sin(leaf(self.seed, self.name, "biases").random(p) * np.pi / 2) ** 2
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
