"""``tune={...}``: the mechanism asked for becomes the inner one of ``private_selection``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.candidate_lists import RADIUS, check_candidates
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import keys_of

NAME, AUTO, FREE = "private_selection", "auto", "sufficient_statistics"


def check_tune(key: str, value: Any) -> dict[str, list[float]]:
    """Lists of candidates by key, one key at least; InputError for anything else."""
    found = check_candidates(key, value)
    if not found:
        raise InputError(key, value, "names nothing to choose, as in {constraint.radius: [1, 10]}")
    return found


def put_in_force(
    config: Mapping[str, Any], tune: Mapping[str, list[float]], quadratic: bool
) -> dict[str, Any]:
    """A cell's configuration in which its mechanism chooses among candidates.

    The set is that of the largest candidate for its radius. In the place of ``auto`` stands the
    mechanism that shares its statistics where the loss is ``quadratic``; elsewhere it is left to
    the selection, which knows what its runs may spend.
    """
    mechanism, constraint = config["mechanism"], config["constraint"]
    if mechanism.get("name") == AUTO and quadratic:
        mechanism = {"name": FREE}
    if mechanism.get("name") != NAME:
        defaults = keys_of(registry.load("mechanism", NAME)).items()
        wrapped = {key: declared.default for key, declared in defaults}
        mechanism = {"name": NAME, **wrapped, "inner": mechanism}
    if RADIUS in tune:
        constraint = {**constraint, "radius": max(tune[RADIUS])}
    own = {"mechanism": {**mechanism, "candidates": dict(tune)}, "constraint": constraint}
    return {**config, **own, "tune": None}
