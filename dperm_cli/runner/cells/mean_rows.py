"""Rows about the mean of n users' vectors, by whom the users trust. No data are read.

All rows of an epsilon promise the same to those who see what is published: epsilon at delta, under
replace_one. They differ in who is trusted: nobody (``local``), one who asks the users in a random
order (``shuffled``), or one who sees the records (``central``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dperm_cli import __version__
from dperm_cli.core import checks
from dperm_cli.privacy import channels
from dperm_cli.privacy.accounting import gaussian_profile, shuffling

KEYS = ("n", "trust", "channel", "p", "epsilon", "delta")
TRUST = ("local", "shuffled", "central")
BALL_CHANNELS = ("l_2", "privunit", "privunit_g")


def make_rows(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The one row of a mean; InputError names the key that makes no sense.

    Args:
        settings: ``n`` users with unit vectors of ``p`` coordinates, ``trust``, ``epsilon``,
            ``delta`` (1/n^2 where it is not given), and the ``channel`` of answers (l_2, privunit,
            privunit_g), which is ``gaussian`` for ``trust=central``.

    Returns:
        In the record's settings: ``local_epsilon``, that of an answer; ``mean_error``, E |M - m|^2
        of the published mean M; ``clones_per_log``, the expected number of clones of an answer over
        ln(1/delta).
    """
    checks.known_keys(settings, KEYS)
    n = checks.integer("n", settings.get("n"), low=2, high=shuffling.MOST_USERS)
    p = checks.integer("p", settings.get("p"), low=1)
    trust = checks.choice("trust", settings.get("trust"), TRUST)
    epsilon = checks.number(
        "epsilon", settings.get("epsilon"), low=0.0, high=shuffling.MOST_LOCAL, low_open=True
    )
    delta = checks.number(
        "delta", settings.get("delta", 1.0 / n**2), low=shuffling.LEAST_DELTA, high=1.0,
        high_open=True,
    )  # fmt: skip
    known = ("gaussian",) if trust == "central" else BALL_CHANNELS
    shape = checks.choice("channel", settings.get("channel"), known)
    local, multiplier = None, None
    if trust == "central":
        error = p * (2.0 / (n * gaussian_profile.mu(epsilon, delta))) ** 2
    else:
        shuffled = trust == "shuffled"
        local = shuffling.find_local_epsilon(epsilon, delta, n) if shuffled else epsilon
        found = channels.by_epsilon(shape, p, local)
        error, multiplier = (found.second_moment - 1.0) / n, float(found.multiplier)
    clones = None if local is None else (n - 1) * math.exp(-local) / math.log(1.0 / delta)
    one = {
        "status": "planned",
        "mechanism": "mean",
        "relation": "replace_one",
        "n": n,
        "p": p,
        "channel": None if trust == "central" else shape,
        "channel_multiplier": multiplier,
        "epsilon": epsilon,
        "epsilon_accounted": epsilon,
        "delta": 0.0 if trust == "local" else delta,
        "delta_accounted": 0.0 if trust == "local" else delta,
        "guarantee": "local" if trust == "local" else "approx",
        "settings": {
            "trust": trust,
            "local_epsilon": local,
            "mean_error": error,
            "clones_per_log": clones,
        },
        "version": __version__,
        "overrides": dict(settings),
    }
    return [one]
