"""Rows of the best proved bounds of private ERM, and of the gap between them. No data are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dperm_cli import __version__
from dperm_cli.bounds.hidden_directions import find_mu
from dperm_cli.bounds.minimax_gap import MinimaxGap, find_gaps
from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.fields import keys_of
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.problem.problem import bare_spec

RANGES: dict[str, tuple[float, float]] = {"epsilon": (1e-6, 100.0), "delta": (0.0, 0.1)}
CLASSES = ("linear", "lipschitz")  # in the order of find_gaps
MOST_SIZE = {"n": 10**9, "p": 10**6}
DEFAULTS: dict[str, Any] = {
    "n": 1000, "p": 10, "epsilon": 1.0, "delta": 1e-6, "radius": 1.0, "L": 1.0,
    "constraint": catalogue.defaults()["constraint"], "relation": "replace_one",
}  # fmt: skip


def read_setting(given: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of a gap, checked and completed by the defaults.

    Args:
        given: some of n, p, epsilon, delta, radius, L, constraint and relation.

    Returns:
        All of them.

    Raises:
        InputError: A key is unknown, or its value out of range.
    """
    checks.known_keys(given, DEFAULTS)
    read = dict(DEFAULTS) | dict(given)
    for key, most in MOST_SIZE.items():
        value = read[key]
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        read[key] = checks.integer(key, whole, low=1, high=most)
    for key, (low, high) in RANGES.items():
        read[key] = checks.number(key, read[key], low=low, high=high)
    for key in ("radius", "L"):
        read[key] = checks.positive(key, read[key])
    checks.choice("constraint", read["constraint"], registry.list_shipped("constraint"))
    checks.choice("relation", read["relation"], RELATIONS)
    return read


def find_bounds(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The bounds of one setting: of linear losses, and of all losses as Lipschitz.

    Args:
        given: some of the keys of ``DEFAULTS``.

    Returns:
        For each class of losses the setting, the bounds, what has them, and the factors between
        them. ``gaussian_size`` is p / (mu n), which has to be small for the Gaussian bounds to be
        close.

    Raises:
        InputError: A value is out of range, or the set has no bounds on both sides.
    """
    at = read_setting(given)
    cls = registry.load("constraint", at["constraint"])
    size = {keys_of(cls)["radius"].name: at["radius"]}
    spec = bare_spec(at["n"], at["L"], cls(**size, p=at["p"]))
    budget = Budget(at["epsilon"], at["delta"], at["relation"])
    mu = find_mu(at["epsilon"], at["delta"]) if at["delta"] else None
    more = {"gaussian_size": None if mu is None else at["p"] / (mu * at["n"])}
    return [{**at, **describe_gap(one), **more} for one in find_gaps(spec, budget)]


def describe_gap(found: MinimaxGap) -> dict[str, Any]:
    """The columns of a gap: bounds, what has them, and the factors between them."""
    row = {
        "losses": found.losses,
        "lower": found.lower.value,
        "lower_by": _name_lower(found.lower),
        "upper": found.upper.value,
        "upper_by": found.upper.name,
        "factor": found.factor if math.isfinite(found.factor) else None,
    }
    if found.lower_gaussian is not None:
        row["lower_gaussian"] = found.lower_gaussian.value
        row["lower_gaussian_by"] = _name_lower(found.lower_gaussian)
    if found.upper_gaussian is not None:
        row["upper_gaussian"] = found.upper_gaussian.value
        row["upper_gaussian_by"] = found.upper_gaussian.name
    factor = found.factor_gaussian
    row["factor_gaussian"] = factor if factor is not None and math.isfinite(factor) else None
    return row


def make_rows(settings: Mapping[str, float | str]) -> list[dict[str, Any]]:
    """``verb: gap`` of an experiment: the record of one class of losses.

    Args:
        settings: ``losses``, which is linear or lipschitz, and some of the keys of ``DEFAULTS``.

    Returns:
        One record of status ``planned``. Its ``settings`` hold the bounds.

    Raises:
        InputError: A value is out of range, or the set has no bounds on both sides.
    """
    given = {key: value for key, value in settings.items() if key != "losses"}
    name = checks.choice("losses", settings.get("losses"), CLASSES)
    row = find_bounds(given)[CLASSES.index(name)]
    columns = ("n", "p", "epsilon", "delta", "relation", "constraint")
    record = {
        "status": "planned",
        "mechanism": "gap",
        "loss": name,
        **{key: row[key] for key in columns},
        "settings": {key: value for key, value in row.items() if key not in columns},
        "version": __version__,
        "overrides": dict(settings),
    }
    return [record]


def _name_lower(found: Any) -> str:
    return f"{found.name} (b={found.b}, k={found.k})" if found.k else found.name
