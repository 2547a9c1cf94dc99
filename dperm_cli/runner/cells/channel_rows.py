"""Rows of facts about local channels, for experiments. No data are read, nothing is released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.privacy import channels
from dperm_cli.privacy.channels.capacity import capacity
from dperm_cli.privacy.channels.polytope import PolytopeChannel, multiplier_for

KEYS = ("channel", "p", "multiplier", "information", "epsilon", "vertices")
LEVELS = ("multiplier", "information", "epsilon")
MOST_OUTPUTS = 128  # of a channel whose capacity is also found by iteration


def make_rows(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The one row of a channel; InputError names the key that makes no sense.

    ``settings``: ``channel`` (l_inf, l_1, l_2 or polytope), one of multiplier, information (nats)
    and epsilon, and ``p``, or the ``vertices`` of the polytope. In the record's settings:
    ``leading``, the information's leading term; ``leading_ratio``, the information over it;
    ``low`` and ``high``, the capacity by Blahut and Arimoto where answers are few, and ``off``, how
    far the exact information is outside of that bracket; ``bias``, |E Z - x| at the corners.
    """
    checks.known_keys(settings, KEYS)
    found = _channel(settings)
    facts = {"leading": found.expansion, "leading_ratio": found.information / found.expansion}
    one = {
        "status": "planned",
        "mechanism": "channel",
        "relation": "replace_one",
        "p": found.dim,
        "channel": found.shape,
        "channel_multiplier": float(found.multiplier),
        "information": settings.get("information"),
        "information_accounted": found.information,
        "epsilon": found.epsilon,
        "epsilon_accounted": found.epsilon,
        "guarantee": "local",
        "settings": facts | _enumerate_channel(found),
        "version": __version__,
        "overrides": dict(settings),
    }
    return [one]


def _channel(settings: Mapping[str, Any]) -> Any:
    given = [key for key in LEVELS if settings.get(key) is not None]
    if len(given) != 1:
        allowed = "needs one of multiplier, information and epsilon"
        raise InputError("channel", settings.get("channel"), allowed)
    shape = checks.choice("channel", settings.get("channel"), (*channels.SHAPES, "polytope"))
    level = checks.positive(given[0], settings[given[0]])
    if shape != "polytope":
        dim = checks.integer("p", settings.get("p"), low=1)
        make = {"multiplier": channels.by_multiplier, "information": channels.by_information}
        return make.get(given[0], channels.by_epsilon)(shape, dim, level)
    vertices = _vertices(settings.get("vertices"))
    if given[0] == "epsilon":
        raise InputError("epsilon", level, "a polytope is set by multiplier or information")
    try:
        if given[0] == "information":
            level = multiplier_for(vertices, level)
        return PolytopeChannel(vertices, level)
    except ValueError as error:
        raise InputError(given[0], level, str(error)) from None


def _vertices(given: Any) -> np.ndarray:
    try:
        found = np.array(given, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 2:
        raise InputError("vertices", given, "must be a list of points of as many numbers each")
    return found


def _enumerate_channel(found: Any) -> dict[str, Any]:
    """What enumeration says of the channel, where its answers are few."""
    corners = _corners(found)
    if corners is None:
        return {"low": None, "high": None, "off": None, "bias": None}
    laws = found.law(corners)
    low, high = capacity(laws)
    return {
        "low": low,
        "high": high,
        "off": max(0.0, low - found.information, found.information - high) + (high - low),
        "bias": float(np.max(np.abs(laws @ found.outputs() - corners))),
    }


def _corners(found: Any) -> np.ndarray | None:
    """The extreme points of what goes in; None where they are many or a continuum."""
    if found.shape == "polytope":
        return found.vertices if len(found.vertices) <= MOST_OUTPUTS else None
    few = {"l_inf": 2.0 ** min(found.dim, 60), "l_1": 2.0 * found.dim}.get(found.shape, np.inf)
    return found.outputs() / found.multiplier if few <= MOST_OUTPUTS else None
