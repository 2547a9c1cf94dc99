"""Choose the sampler of a law and its exponent, from public facts alone.

An approximate sampler's distance is paid from the same epsilon as the exponent, so the two are
fixed together. ``at(t)`` is the target whose exponent leaves room for a distance t: 2 t of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import Check, FromRun, Help
from dperm_cli.samplers.base import Certificate, Sampler, Target

# distance / epsilon of the approximate samplers: cost grows as log 1/t, or as 1/t^2
SHARES = {"proximal": 0.01, "grid_walk": 0.05}
FIXED_TRIES_SHARE = 0.01  # of rejection, where a uniform point may stand in
PAPER_SHARE = 1.0 / 3.0  # [BST14, Alg. 7]: a third to the law, two thirds to its sampler


@dataclass(frozen=True)
class SamplerPlan:
    """A sampler with the law it is to draw from and what it proves about its draws."""

    sampler: Any
    target: Target
    certificate: Certificate


def choose_sampler(
    sampler: Any, at: Callable[[float], Target], epsilon: float, *, paper: bool = False
) -> SamplerPlan:
    """The sampler's plan, or that of the first of ``sampler.candidates()`` that has one.

    ``Unsupported`` where there is none, and for a draw without a guarantee that was not asked for.
    """
    if sampler.candidates is not None:
        return _first(sampler, at, epsilon, paper)
    distance = distance_share(sampler, paper) * epsilon
    target = at(distance)
    found = SamplerPlan(sampler, target, sampler.plan(target, distance))
    if is_heuristic(found.certificate) and not sampler.allow_heuristic:
        words = "draws from an unknown law; set sampler.allow_heuristic=true for a row without"
        raise Unsupported(f"{name_of(sampler)} {words} a guarantee, or use sampler=auto")
    return found


def is_heuristic(certificate: Certificate) -> bool:
    """Whether the certificate bounds no distance from the law."""
    return not certificate.dist_inf < math.inf


def distance_share(sampler: Any, paper: bool = False) -> float:
    """The distance a sampler is planned for, as a share of epsilon; 0 for exact ones."""
    name = name_of(sampler)
    if paper and name == "grid_walk":
        return PAPER_SHARE
    if name == "rejection" and sampler.fixed_tries is not None:
        return FIXED_TRIES_SHARE
    return SHARES.get(name, 0.0)


def name_of(sampler: Any) -> str:
    """The name on the command line."""
    return registry.find_name(type(sampler))


def check_sampler(key: str, value: Any) -> Any:
    """A sampler, from one or from its name; InputError for anything else."""
    if isinstance(value, str):
        return registry.load("sampler", value)()
    if isinstance(value, Sampler):
        return value
    names = registry.names("sampler")
    raise InputError(key, value, f"must be one of {', '.join(names)}", names)


LawSampler = Annotated[Any, Check(check_sampler), FromRun(), Help("what draws from the law")]


def _first(sampler: Any, at: Callable[[float], Target], epsilon: float, paper: bool) -> SamplerPlan:
    reasons: dict[str, Unsupported] = {}
    for candidate in sampler.candidates():
        try:
            found = choose_sampler(candidate, at, epsilon, paper=paper)
            sampler.accept(found.target, found.certificate)
            return found
        except Unsupported as reason:
            reasons[name_of(candidate)] = reason
    *others, last = reasons
    more = f" (sampler={' or '.join(others)} says why that one does not either)" if others else ""
    raise Unsupported(f"no sampler suits this law: {last}: {reasons[last]}{more}")
