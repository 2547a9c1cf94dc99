"""The base class of samplers without a guarantee."""

from __future__ import annotations

import math
from typing import Any

from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Certificate, Target

THEOREM = "none: heuristic"


def certificate(
    name: str, target: Target, allowed: bool, steps: int, facts: dict[str, Any]
) -> Certificate:
    """dist_inf = inf: nothing is proved of the law. ``Unsupported`` unless it was allowed."""
    if not allowed:
        raise Unsupported(
            f"{name} proves nothing about its law, so that no guarantee holds for what it draws; "
            "use sampler=proximal, or sampler.allow_heuristic=true for guarantee none"
        )
    if target.dimension == 0:
        raise Unsupported("the set is a point: there is nothing to draw")
    return Certificate(name, THEOREM, math.inf, steps, constant_time=False, facts=facts)
