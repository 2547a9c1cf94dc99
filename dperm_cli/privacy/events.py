"""Privacy events: what a mechanism does to the data, stated in accountable terms.

An event carries the norm of one record's contribution, so that an accountant never has to know
the mechanism: the sensitivity under a relation follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dperm_cli.core import checks

SAMPLINGS = ("fixed", "poisson")


@dataclass(frozen=True)
class Gaussian:
    """``count`` adaptive releases of a sum over all records plus N(0, scale^2 I).

    ``record_norm`` bounds the L2 norm of one record's contribution to the sum; the sensitivity
    is ``2 * record_norm`` under replace_one and ``record_norm`` under add_remove, unless
    ``gap`` gives a smaller bound on the difference of two records' contributions.
    """

    scale: float
    record_norm: float
    count: int = 1
    gap: float | None = None

    def __post_init__(self) -> None:
        if self.gap is not None:
            checks.nonnegative("gap", self.gap)

    def sensitivity(self, relation: str) -> float:
        if relation == "add_remove":
            return self.record_norm
        return 2.0 * self.record_norm if self.gap is None else min(self.gap, 2.0 * self.record_norm)


@dataclass(frozen=True)
class SampledGaussian:
    """``count`` adaptive releases of a sum over a random batch plus N(0, scale^2 I).

    ``fixed``: ``batch`` of the ``population`` records, uniformly without replacement, anew at each
    release. ``poisson``: each record independently with probability ``batch / population``.
    ``record_norm`` bounds the L2 norm of one sampled record's contribution (any rescaling by
    population / batch included).
    """

    scale: float
    record_norm: float
    batch: int
    population: int
    sampling: str
    count: int = 1

    @property
    def rate(self) -> float:
        return self.batch / self.population

    def sensitivity(self, relation: str) -> float:
        return self.record_norm if relation == "add_remove" else 2.0 * self.record_norm


Event = Gaussian | SampledGaussian
