"""Settings that bounds are tested at."""

from __future__ import annotations

from typing import Any

from dperm_cli.bounds.base import Setting
from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser


def bare(
    n: int = 10**6,
    p: int = 10,
    epsilon: float = 0.5,
    delta: float = 0.0,
    relation: str = "replace_one",
    ridge: float = 0.0,
    lasso: float = 0.0,
    radius: float = 1.0,
    constraint: str = "l2_ball",
    mechanism: str = "exponential",
    noise_scale: float = 1.0,
    steps: int = 1,
    smoothness: float | None = None,
    **settings: Any,
) -> Setting:
    """1-Lipschitz losses on the unit ball, without a data set or a loss."""
    cls = registry.load("constraint", constraint)
    shape = cls(**{keys_of(cls)["radius"].name: radius}, p=p)
    spec = bare_spec(n, 1.0, shape, regulariser=Regulariser(ridge, lasso), smoothness=smoothness)
    kind = "approx" if delta > 0 else "pure"
    budget = Budget(epsilon, delta, relation)
    return Setting(spec, budget, kind, mechanism, noise_scale, steps, settings)
