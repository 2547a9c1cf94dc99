"""One event of each class, and the forms in which a class differs."""

from __future__ import annotations

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    DisjointBatches,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    GaussianMoments,
    Laplace,
    ListChoice,
    NegativeBinomialSelection,
    PerturbedObjective,
    PoissonSelection,
    Pure,
    RegularizedExponential,
    SampledGaussian,
    SamplerError,
    SparseAnswers,
    WishartDifference,
)

REPLACE, REMOVE = "replace_one", "add_remove"
EVENTS = {
    "Gaussian": Gaussian(8.0, 3.0, 2),
    "GaussianMatrix": GaussianMatrix(8.0, 3.0, 2),
    "GaussianMoments": GaussianMoments(8.0, 3.0, 2),
    "Laplace": Laplace(80.0, 3.0, 2),
    "GammaNorm": GammaNorm(80.0, 3.0, 2),
    "WishartDifference": WishartDifference(80.0, 3.0, 2),
    "SampledGaussian": SampledGaussian(8.0, 3.0, 2, 80, "poisson", 7),
    "SampledGaussian fixed": SampledGaussian(8.0, 3.0, 2, 80, "fixed", 7),
    "DisjointBatches": DisjointBatches(8.0, 3.0, 5, "gaussian", 2),
    "DisjointBatches content": DisjointBatches(8.0, 3.0, 5, "gamma_norm", partition="content"),
    "Exponential": Exponential(0.02, 3.0, 2),
    "ListChoice": ListChoice(0.02, 3.0, 2),
    "ListChoice flip": ListChoice(0.02, 3.0, 2, rule="permute_and_flip"),
    "RegularizedExponential": RegularizedExponential(8.0, 3.0, 2),
    "SparseAnswers": SparseAnswers(80.0, 3.0, 900.0, 3, 40),
    "PerturbedObjective": PerturbedObjective("gamma_norm", 80.0, 3.0, 0.25, 8.0, rank=2),
    "PerturbedObjective gaussian": PerturbedObjective("gaussian", 80.0, 3.0, 0.25, 8.0, 1e-7),
    "NegativeBinomialSelection": NegativeBinomialSelection([[Laplace(80.0, 3.0)]], 1.0, 0.1),
    "NegativeBinomialSelection gaussian": NegativeBinomialSelection(
        [[Gaussian(80.0, 3.0, 2)], [Gaussian(90.0, 3.0), Gaussian(90.0, 1.0)]], 0.0, 0.02
    ),
    "PoissonSelection": PoissonSelection([[Gaussian(80.0, 3.0)]], 3.0),
    "Pure": Pure(0.1, 4),
    "Approx": Approx(0.1, 1e-8, 2),
    "Channel": Channel(0.1, 3, "l_2", 4),
    "SamplerError": SamplerError("tv", 1e-9, 5),
    "SamplerError inf": SamplerError("inf", 1e-3, 5),
    "Disclosure": Disclosure(),
}
NAMES = list(EVENTS)


def proved(event):
    """The relations under which it spends something known."""
    found = []
    for relation in RELATIONS:
        try:
            event.loss(relation)
        except Unsupported:
            continue
        found.append(relation)
    return found
