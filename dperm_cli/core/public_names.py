"""The public names that a plug-in imports, and the module that each is taken from.

``from dperm_cli.api import Mechanism`` imports the one module, when it is asked for. The names of
records follow the same table (``runner/cells/source_tree.py``).
"""

from __future__ import annotations

PLACES = {
    # base classes
    "Mechanism": "dperm_cli.mechanisms.base",
    "Release": "dperm_cli.mechanisms.base",
    "Plan": "dperm_cli.mechanisms.base",
    "Design": "dperm_cli.mechanisms.base",
    "Loss": "dperm_cli.losses.base:PerRecord",
    "MarginLoss": "dperm_cli.losses.shared.margin_loss:Glm",
    "ConvexSet": "dperm_cli.sets.base",
    "DataSet": "dperm_cli.datasets.base",
    "Kernel": "dperm_cli.kernels.base",
    "ShiftKernel": "dperm_cli.kernels.base",
    "Sampler": "dperm_cli.samplers.base",
    "Certificate": "dperm_cli.samplers.base",
    "Target": "dperm_cli.samplers.base",
    # what data sets return, and mechanisms see
    "Data": "dperm_cli.problem.data",
    "Bounds": "dperm_cli.problem.data",
    "ProblemSpec": "dperm_cli.problem.problem",
    "CentralView": "dperm_cli.views.central",
    "LocalView": "dperm_cli.views.local",
    "Gate": "dperm_cli.privacy.gate",
    "Budget": "dperm_cli.privacy.budget",
    "Unsupported": "dperm_cli.core.errors",
    # what is done to the records
    "Event": "dperm_cli.privacy.events",
    "NoiseEvent": "dperm_cli.privacy.events",
    "PrivacyLoss": "dperm_cli.privacy.events",
    "Gaussian": "dperm_cli.privacy.events",
    "Laplace": "dperm_cli.privacy.events",
    "GammaNorm": "dperm_cli.privacy.events",
    "SampledGaussian": "dperm_cli.privacy.events",
    "DisjointBatches": "dperm_cli.privacy.events",
    "Pure": "dperm_cli.privacy.events",
    "Approx": "dperm_cli.privacy.events",
    "Channel": "dperm_cli.privacy.events",
    "OneSum": "dperm_cli.privacy.events.base",
    # how an audit attacks
    "Adversary": "dperm_cli.mechanisms.adversary",
    "linear_pair": "dperm_cli.mechanisms.adversary",
    # bounds on the risk
    "Bound": "dperm_cli.bounds.base",
    "Setting": "dperm_cli.bounds.base",
    "upper_bound": "dperm_cli.bounds.base",
    "lower_bound": "dperm_cli.bounds.base",
    "check_mechanism": "dperm_cli.bounds.base",
    # fields
    "Allowed": "dperm_cli.core.fields",
    "Auto": "dperm_cli.core.fields",
    "Check": "dperm_cli.core.fields",
    "Choices": "dperm_cli.core.fields",
    "Count": "dperm_cli.core.fields",
    "FromRun": "dperm_cli.core.fields",
    "Help": "dperm_cli.core.fields",
    "Key": "dperm_cli.core.fields",
    "NonNegative": "dperm_cli.core.fields",
    "Positive": "dperm_cli.core.fields",
    "Probability": "dperm_cli.core.fields",
    "Range": "dperm_cli.core.fields",
    "Required": "dperm_cli.core.fields",
    "Seed": "dperm_cli.core.fields",
    "Unit": "dperm_cli.core.fields",
    # of sets: keys, and capabilities
    "Radius": "dperm_cli.sets.base",
    "AnyDimension": "dperm_cli.sets.base",
    "add_ball": "dperm_cli.problem.cone_program",
    "add_nonnegative": "dperm_cli.problem.cone_program",
}


def find_module(name: str) -> str | None:
    """The module that a public name is taken from; None for a name that is not in the table."""
    place = PLACES.get(name)
    return None if place is None else place.partition(":")[0]
