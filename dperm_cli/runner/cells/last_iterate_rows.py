"""``verb: last_iterate`` of an experiment: what the last iterate tells, without any records.

A cell that names ``steps`` has the mu of noisy gradient descent with these steps. One that names
``epsilon`` compares the least risk over step sizes and numbers of steps up to n^2: with noise for
all iterates, and with noise for the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.core import checks
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.hidden_state import (
    bound_last_iterate,
    bound_varied_steps,
    compose_steps,
)

KEYS = ("steps", "eta", "etas", "sigma", "L", "diameter", "contraction", "epsilon", "delta", "p",
        "n")  # fmt: skip
SIZES = 400  # of step sizes that are tried for a number of steps
Settings = Mapping[str, float | str | Sequence[float] | None]


def make_rows(settings: Settings) -> list[dict[str, Any]]:
    """The one row of a cell, status ``planned``; InputError names the key that makes no sense.

    In the record's settings: ``mu_all`` and ``mu_last``, of all iterates and of the last; or
    ``mu``, ``risk_all`` and ``risk_last``, the least risks per L R, ``steps_last``, the number of
    steps of the latter, ``gain``, their ratio, and ``gain_over_theory``, that over
    max(1, mu / (4 sqrt p)).
    """
    checks.known_keys(settings, KEYS, "last_iterate.")
    compares = "epsilon" in settings
    facts = _compare(settings) if compares else _account(settings)
    one = {
        "status": "planned",
        "mechanism": "last_iterate",
        "relation": "replace_one",
        "p": checks.integer("last_iterate.p", settings.get("p", 1), low=1),
        "n": checks.integer("last_iterate.n", settings.get("n", 1), low=1),
        "epsilon": _read_epsilon(settings) if compares else None,
        "guarantee": "approx",
        "steps": facts.get("steps"),
        "settings": facts,
        "version": __version__,
        "overrides": dict(settings),
    }
    return [one]


def _account(settings: Settings) -> dict[str, Any]:
    """mu of all iterates and of the last one."""
    read = {
        name: checks.positive(f"last_iterate.{name}", settings.get(name, 1.0))
        for name in ("sigma", "L", "diameter")
    }
    move, sigma, diameter = 2.0 * read["L"], read["sigma"], read["diameter"]
    listed = settings.get("etas")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        etas = [checks.positive("last_iterate.etas", eta) for eta in listed]
        last, count = bound_varied_steps(etas, move, sigma, diameter), len(etas)
    else:
        count = checks.integer("last_iterate.steps", settings.get("steps"), low=1)
        eta = checks.positive("last_iterate.eta", settings.get("eta", 1.0))
        shrink = checks.number(
            "last_iterate.contraction", settings.get("contraction", 1.0), low=0.0, high=1.0,
            low_open=True,
        )  # fmt: skip
        last = bound_last_iterate(count, eta, move, sigma, diameter, shrink)
    return {"steps": count, "mu_all": compose_steps(count, move, sigma), "mu_last": last}


def _read_epsilon(settings: Settings) -> float:
    return checks.positive("last_iterate.epsilon", settings["epsilon"])


def _compare(settings: Settings) -> dict[str, Any]:
    """The least R^2 / (2 eta T) + eta p sigma^2 / 2, in units of L R, for L = R = 1."""
    epsilon = _read_epsilon(settings)
    delta = checks.number(
        "last_iterate.delta", settings.get("delta"), low=0.0, high=1.0, low_open=True
    )
    p = checks.integer("last_iterate.p", settings.get("p"), low=1)
    n = checks.integer("last_iterate.n", settings.get("n"), low=2)
    mu = gaussian_profile.mu(epsilon, delta)
    best = {"all": math.inf, "last": math.inf}
    steps = 1
    for count in np.unique(np.geomspace(1, n**2, 80).astype(int)):
        for eta in np.geomspace(1e-6, 1e2, SIZES) / math.sqrt(p * count):
            way = 0.5 / (eta * count)
            noise = 0.5 * eta * p / mu**2
            best["all"] = min(best["all"], way + noise * compose_steps(count, 2.0, 1.0) ** 2)
            risk = way + noise * bound_last_iterate(int(count), float(eta), 2.0, 1.0, 2.0) ** 2
            if risk < best["last"]:
                best["last"], steps = risk, int(count)
    gain = best["all"] / best["last"]
    return {
        "mu": mu,
        "risk_all": best["all"],
        "risk_last": best["last"],
        "steps_last": steps,
        "gain": gain,
        "gain_over_theory": gain / max(1.0, mu / (4.0 * math.sqrt(p))),
    }
