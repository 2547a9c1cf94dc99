"""Rows of facts about local channels, for experiments. No data are read, nothing is released.

Answers that are drawn here are answers to a public vector, the first unit vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.core import checks, seeds
from dperm_cli.core.errors import InputError
from dperm_cli.privacy import channels
from dperm_cli.privacy.channels.capacity import capacity
from dperm_cli.privacy.channels.caps import CapChannel
from dperm_cli.privacy.channels.polytope import PolytopeChannel, multiplier_for
from dperm_cli.runner.cells import mean_rows

KEYS = ("channel", "p", "multiplier", "information", "epsilon", "vertices", "draws", "seed")
LEVELS = ("multiplier", "information", "epsilon")
DRAWN_AT_ONCE = 2**22  # numbers
MOST_OUTPUTS = 128  # of a channel whose capacity is also found by iteration


def make_rows(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The one row of a channel; InputError names the key that makes no sense.

    ``settings``: ``channel`` (l_inf, l_1, l_2 or polytope), one of multiplier, information (nats)
    and epsilon, and ``p``, or the ``vertices`` of the polytope; ``draws`` is how many answers are
    drawn, from ``seed``. In the record's settings:
    ``leading``, the information's leading term; ``leading_ratio``, the information over it;
    ``low`` and ``high``, the capacity by Blahut and Arimoto where answers are few, and ``off``, how
    far the exact information is outside of that bracket; ``bias``, |E Z - x| at the corners. Of the
    channels of the l_2 ball: ``squared_error``, E |Z - x|^2 for a unit vector x; ``side_share``,
    the share of epsilon that chooses the cap; ``drawn_error``, the mean of the squared error over
    the answers that were drawn; ``drawn_ratio``, that over the exact one; ``drawn_bias``, the
    square of how far their mean is from x, over what is expected of it. A cell that names ``n``
    users is about the mean of their vectors (``mean_rows``).
    """
    if "n" in settings:
        return mean_rows.make_rows(settings)
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
        "settings": facts | _enumerate_channel(found) | _measure_error(found, settings),
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


def _measure_error(found: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The squared error of an answer to a unit vector: exact, and over answers that are drawn."""
    draws = settings.get("draws")
    if found.shape == "polytope" or found.norm != 2:
        if draws is not None:
            raise InputError("draws", draws, "is for the channels l_2, privunit and privunit_g")
        return {}
    exact = found.second_moment - 1.0
    split = found.split if isinstance(found, CapChannel) else None
    facts: dict[str, Any] = {"squared_error": exact}
    facts["side_share"] = 1.0 if split is None else split.side / found.epsilon
    if draws is None:
        return facts
    count = checks.integer("draws", draws, low=1)
    seed = checks.integer("seed", settings.get("seed", 0), low=0)
    generator = seeds.generator(seeds.seed_sequence(seed, "channel_rows", found.shape, found.dim))
    total, square, left = np.zeros(found.dim), 0.0, count
    while left > 0:
        some = min(left, max(1, DRAWN_AT_ONCE // (2 * found.blocks)))
        x = np.zeros((some, found.dim))
        x[:, 0] = 1.0
        words = generator.integers(0, 2**64, (some, 2, found.blocks), dtype=np.uint64)
        away = found.sample(x, words) - x
        total, square, left = total + np.sum(away, axis=0), square + np.sum(away**2), left - some
    measured = float(square) / count
    facts |= {"drawn_error": measured, "drawn_ratio": measured / exact}
    return facts | {"drawn_bias": float(np.sum(total**2)) / (count * exact)}


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
