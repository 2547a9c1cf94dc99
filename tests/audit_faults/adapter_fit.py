"""Peers of the leaderboard as mechanisms to be audited, on logistic loss and the ball of radius 1.

The packages of the peer have to be found beside dperm's own, which its environment has; both need
the same version of Python:

    PYTHONPATH=PEERS/opacus/lib/python3.11/site-packages dperm audit
        tests/audit_faults/adapter_fit.py:opacus_at_1 claim.epsilon=1 claim.delta=1e-6
        "records=numeric:p=1,norm=1,labels=-1|1,n=4" without=low_bits,values

A record is a row of norm 1 at most and a label of -1 or 1.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ADAPTERS = Path(__file__).resolve().parents[2] / "dperm_cli" / "runner" / "peers" / "adapters"
DELTA = 1e-6


class Refused(Exception):
    """The method does not do this problem."""


@cache
def load_fit(name: str) -> Callable[..., Any]:
    """What an adapter defines, loaded once."""
    return runpy.run_path(str(ADAPTERS / f"{name}.py"), init_globals={"Refused": Refused})["fit"]


def make_mechanism(
    name: str, epsilon: float, delta: float, relation: str = "replace_one"
) -> Callable[..., Any]:
    """The mechanism of a peer at one claim, which is a part of it and not told to it.

    Args:
        name: Of the adapter.
        epsilon, delta, relation: The claim.
    """

    def fit(X: Any, y: Any, rng: np.random.Generator) -> np.ndarray:
        problem = {
            "x": np.asarray(X, dtype=float), "y": np.asarray(y, dtype=float), "loss": "logistic",
            "constraint": "l2_ball", "radius": 1.0, "epsilon": epsilon, "delta": delta,
            "relation": relation, "row_bound": 1.0, "target_bound": 1.0, "lipschitz": 1.0,
            "smoothness": 0.25, "width": 0.0,
        }  # fmt: skip
        return np.asarray(load_fit(name)(problem, rng), dtype=float).ravel()

    return fit


opacus_at_1 = make_mechanism("opacus", 1.0, DELTA)
jax_privacy_at_1 = make_mechanism("jax_privacy", 1.0, DELTA)
zcdp_gd_at_1 = make_mechanism("zcdp_gd", 1.0, DELTA)
permutation_sgd_at_1 = make_mechanism("permutation_sgd", 1.0, DELTA)
# no number is claimed: whoever checks epsilon refuses this
opacus_at_nan = make_mechanism("opacus", float("nan"), DELTA)
