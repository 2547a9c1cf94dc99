"""``tune={...}``: the mechanism asked for becomes the inner one of ``private_selection``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.candidate_lists import RADIUS, SCALING, check_candidates
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import fields_of, keys_of

NAME, AUTO, FREE = "private_selection", "auto", "sufficient_statistics"


def check_tune(key: str, value: Any) -> dict[str, list[Any]]:
    """Lists of candidates by key, one key at least; InputError for anything else."""
    found = check_candidates(key, value)
    if not found:
        raise InputError(key, value, "names nothing to choose, as in {constraint.radius: [1, 10]}")
    return found


def add_scalings(config: dict[str, Any], tune: Mapping[str, list[Any]] | None) -> dict[str, Any]:
    """A cell's configuration whose rows are made under each candidate for their scaling.

    Args:
        config: Of the cell. Where its choice is in force already, its mechanism has the candidates.
        tune: The candidates by key, or None.

    Raises:
        InputError: The data set has no scalings, or rows are not made of it alone.
    """
    candidates = config["mechanism"].get("candidates") if tune is None else tune
    names = candidates.get(SCALING) if isinstance(candidates, Mapping) else None
    dataset, key = config["dataset"], f"tune.{SCALING}"
    if not isinstance(names, list):
        if "scalings" in dataset:
            words = "is set by a run: name candidates by tune={dataset.scaling: [none, bounds]}"
            raise InputError("dataset.scalings", dataset["scalings"], words)
        return config
    kind = registry.load("dataset", dataset["name"])
    if "scaling" not in keys_of(kind) or "scalings" not in fields_of(kind):
        words = f"dataset={dataset['name']} has no scalings of columns to choose among"
        raise InputError(key, names, words)
    if config.get("kernel", {}).get("name", "none") != "none":
        raise InputError(key, names, "is not for a kernel, whose features are of one kind of rows")
    return {**config, "dataset": {**dataset, "scaling": names[0], "scalings": names}}


def put_in_force(
    config: Mapping[str, Any], tune: Mapping[str, list[Any]], quadratic: bool
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
