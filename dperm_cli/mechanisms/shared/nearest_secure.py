"""What to use in place of a mechanism that has no secure form."""

from __future__ import annotations

from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.fields import fields_of

# The nearest mechanisms to a draw from a law, the first the most like it, and how to ask for them.
PURE = {
    "objective_perturbation": "mechanism=objective_perturbation with mechanism.noise=gamma",
    "approximate_minima_perturbation": (
        "mechanism=approximate_minima_perturbation with mechanism.noise=gamma"
    ),
    "frank_wolfe": "mechanism=frank_wolfe on an L1 ball, a simplex or a polytope",
}
GAUSSIAN = {
    "approximate_minima_perturbation": "mechanism=approximate_minima_perturbation",
    "objective_perturbation": "mechanism=objective_perturbation",
    "noisy_gd": "mechanism=noisy_gd",
}


FEATURES = {
    "kernel_release": "mechanism=kernel_release, whose model answers any number of queries",
    "random_features": (
        "mechanism=random_features, which answers from parameters of public features"
    ),
}
_NEAREST = {
    "regularized_exponential": GAUSSIAN,
    "kernel_interactive": FEATURES,
    "kernel_non_interactive": FEATURES,
    "kernel_semi_interactive": FEATURES,
}


def name_nearest(name: str) -> str:
    """What to use in place of the mechanism of this name, as an instruction."""
    return name_mechanisms(_NEAREST.get(name, {}))


def name_mechanisms(among: dict[str, str]) -> str:
    """The first of them that has a secure form, as an instruction; else ``noise=research``."""
    for name, words in among.items():
        mechanism: Any = registry.load("mechanism", name)
        on_grid = "on_grid" in fields_of(mechanism)  # its form follows from the run's noise
        if mechanism.secure or mechanism.secure_as_inner or on_grid:
            return f"use {words}, or noise=research"
    return "use noise=research"
