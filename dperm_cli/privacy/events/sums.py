"""Noise on sums over all records, and on sums over random or disjoint batches of them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Count, NonNegative, Positive, Range
from dperm_cli.core.symmetric import triangle_size
from dperm_cli.privacy.accounting import generator_range
from dperm_cli.privacy.accounting.subsampled_laws import SampledStep
from dperm_cli.privacy.events.base import (
    MOVES,
    Event,
    NoiseEvent,
    OneSum,
    PrivacyLoss,
    ProvedRelation,
    largest_move,
    require_proof,
)
from dperm_cli.privacy.gate_protocol import NoiseSource
from dperm_cli.privacy.meters import Meter, RootOfSquares, Total

SAMPLINGS = ("fixed", "poisson")
BATCH_NOISES = ("gaussian", "gamma_norm")
PARTITIONS = ("place", "content")


@dataclass(frozen=True)
class Gaussian(OneSum):
    """``count`` adaptive releases of a sum over all records plus N(0, scale^2 I).

    ``record_norm`` bounds the L2 norm of one record's contribution to the sum; the sensitivity
    is ``2 * record_norm`` under replace_one and ``record_norm`` under add_remove, unless
    ``gap`` gives a smaller bound on the difference of two records' contributions
    (``events.base.largest_move``).

    >>> Gaussian(scale=4.0, record_norm=0.5, count=10).sensitivity("replace_one")
    1.0
    """

    law = "gaussian"
    stream = "NoiseStream"
    phrase = (
        "a sum over all records plus Gaussian noise of standard deviation {scale} in every "
        f"coordinate{MOVES} (L2 norm)"
    )

    def gradients(self, records: int) -> int:
        return self.draws * records

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(dim)

    def open(self, gate: NoiseSource, dim: int, **public: Any) -> Any:
        """Open a stream; ``one_by_one=True`` releases one vector a coordinate at a time.

        Each coordinate is along a direction orthonormal to the ones before, chosen from public
        facts and earlier answers. So the squared moves add up to the squared sensitivity at most.
        """
        from dperm_cli.privacy import streams

        if not public.pop("one_by_one", False):
            return super().open(gate, dim, **public)
        if self.count != 1:
            raise Unsupported("one vector is handed out coordinate by coordinate, not several")
        return streams.CoordinateStream(gate, self, dim, **public)


@dataclass(frozen=True)
class GaussianMatrix(Gaussian):
    """``count`` adaptive releases of a sum of symmetric matrices [p, p] plus Gaussian noise.

    What is released is the upper triangle, its off-diagonal entries times sqrt(2), plus
    N(0, scale^2 I): L2 norms there are Frobenius norms, those of ``record_norm`` and ``gap``.
    ``gap`` is about matrices of positive semidefinite records, and rounding keeps it.

    >>> GaussianMatrix(scale=4.0, record_norm=0.5).noise_law
    'gaussian'
    >>> GaussianMatrix(scale=4.0, record_norm=0.5).sensitivity("add_remove")
    0.5
    """

    gap_survives_rounding = True
    summed = "curvature"
    phrase = (
        "a sum over all records of symmetric matrices plus Gaussian noise of standard "
        f"deviation {{scale}} in every entry of the upper triangle (off it: over sqrt 2){MOVES}"
        " (Frobenius norm)"
    )

    def range_delta(self, relation: str, dim: int) -> float:
        return super().range_delta(relation, triangle_size(dim))

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(triangle_size(dim))


@dataclass(frozen=True)
class Laplace(OneSum):
    """``count`` adaptive releases of a sum over all records plus Laplace noise.

    Every coordinate gets independent noise of density proportional to exp(-|b| / scale).
    ``record_norm`` bounds the L1 norm of one record's contribution, ``gap`` (optional) the L1
    norm of the difference of two records' contributions.

    >>> Laplace(scale=4.0, record_norm=0.5).ratio("replace_one")
    0.25
    """

    law = "laplace"
    stream = "NoiseStream"
    norm_order = 1
    phrase = (
        "a sum over all records plus Laplace noise of scale {scale} in every "
        f"coordinate{MOVES} (L1 norm)"
    )

    def grid_diagonal(self, dim: int) -> float:
        return float(dim)


@dataclass(frozen=True)
class GammaNorm(OneSum):
    """``count`` adaptive releases of a sum over all records plus noise of a Gamma norm.

    The noise has density proportional to exp(-|b|_2 / scale): a uniform direction and a norm
    Gamma(dimension, scale). ``record_norm`` bounds the L2 norm of one record's contribution,
    ``gap`` (optional) the L2 norm of the difference of two records' contributions. One release
    is sensitivity / scale pure.

    >>> GammaNorm(scale=4.0, record_norm=0.5, gap=0.8).ratio("replace_one")
    0.2
    """

    law = "gamma_norm"
    stream = "NoiseStream"
    phrase = (
        "a sum over all records plus noise of a uniform direction whose norm is Gamma "
        f"with scale {{scale}}{MOVES} (L2 norm)"
    )

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(dim)


@dataclass(frozen=True)
class SampledGaussian(NoiseEvent):
    """``count`` adaptive releases of a sum over a random batch plus N(0, scale^2 I).

    ``sampling`` is ``fixed`` or ``poisson``. ``fixed``: ``batch`` of the ``population`` records,
    uniformly without replacement, anew at each release. ``poisson``: each record independently with
    probability ``batch / population``. ``record_norm`` bounds the L2 norm of one sampled record's
    contribution, including any rescaling by population / batch.

    >>> step = SampledGaussian(4.0, 0.5, batch=5, population=100, sampling="poisson")
    >>> step.rate, step.sensitivity("replace_one")
    (0.05, 1.0)
    """

    scale: Positive
    record_norm: NonNegative
    batch: Annotated[Count, Range(1, "population")]
    population: Count
    sampling: Annotated[str, Choices(*SAMPLINGS)]
    count: Count = 1
    relation: ProvedRelation = ""

    law = "sampled_gaussian"
    samples_records = True
    stream = "SampledStream"
    sizes = ("record_norm",)
    phrase = (
        "a sum over a random batch of {batch} out of {population} records "
        "({sampling} sampling) plus Gaussian noise of standard deviation {scale} in every "
        f"coordinate{MOVES} (L2 norm) when the batch holds its record"
    )

    @property
    def rate(self) -> float:
        """The probability that a record is in a batch."""
        return self.batch / self.population

    @property
    def noise_law(self) -> str:
        return "gaussian"

    def gradients(self, records: int) -> int:
        return self.draws * self.batch

    def loss(self, relation: str) -> PrivacyLoss:
        if self.sampling == "fixed" and relation == "add_remove":
            raise Unsupported(
                "fixed-size batches have no add_remove guarantee: the batch rate would follow the "
                "private number of records; use sampling=poisson or relation=replace_one"
            )
        whole = self.ratio(relation)
        if self.rate == 1.0:
            return PrivacyLoss(mu2=self.count * whole**2)
        # in units of the noise: one record's norm under Poisson, else the sensitivity
        ratio = self.record_norm / self.scale if self.sampling == "poisson" else whole
        if not ratio > 0.0:
            return PrivacyLoss()
        return PrivacyLoss(sampled=SampledStep(self.rate, ratio, self.sampling, self.count))

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(dim)

    def central_limit(self, ratio: float) -> float:
        return self.count * self.rate**2 * math.expm1(min(ratio**2, 600.0))

    def range_delta(self, relation: str, dim: int) -> float:
        one = generator_range.normal_range_delta(self.ratio(relation), dim)
        return self.count * self.rate * one


@dataclass(frozen=True)
class DisjointBatches(NoiseEvent):
    """``count`` passes over the data, each releasing noisy sums over ``batches`` disjoint batches.

    ``noise`` is N(0, scale^2 I), or of a Gamma norm. Within a pass each sum may depend on what was
    released before it. A record is in one batch at most. ``partition`` says what decides in which:

    ``place``    its position among the records. A replaced record stays in its batch. Adding or
                 removing one moves others, so there is no proof for add_remove.
    ``content``  its own content. Adding or removing a record changes one batch. A replaced one
                 leaves a batch and enters another, or the same.

    A pass costs as much as one release whose sensitivity is the total move of its sums: the sum of
    their moves for Gamma norms, the root of the sum of squares for Gaussian noise. Its stream takes
    ``parts``: the record numbers of every batch.

    >>> a_pass = DisjointBatches(scale=4.0, record_norm=0.5, batches=20)
    >>> a_pass.draws, a_pass.sensitivity("replace_one")
    (20, 1.0)
    """

    scale: Positive
    record_norm: NonNegative
    batches: Count
    noise: Annotated[str, Choices(*BATCH_NOISES)] = "gaussian"
    count: Count = 1
    gap: NonNegative | None = None
    partition: Annotated[str, Choices(*PARTITIONS)] = "place"
    relation: ProvedRelation = ""

    law = "disjoint_batches"
    stream = "BatchStream"
    phrase = (
        "the sum over one of {batches} disjoint batches plus {noise} noise of scale "
        "{scale}; a record is in one batch at most, and a neighbouring data set moves all sums "
        "of a pass by at most {sensitivity} together (L2 norm)"
    )

    def sensitivity(self, relation: str) -> float:
        """The total move of the sums of one pass."""
        require_proof(self, relation)
        if self.partition == "place":
            if relation == "add_remove":
                raise Unsupported(
                    "batches by place are not private under add_remove: a record that comes or "
                    "goes moves others to another batch"
                )
            return largest_move(self.record_norm, self.gap, relation)
        if relation == "add_remove":
            return self.record_norm
        if self.noise == "gamma_norm":
            return 2.0 * self.record_norm
        # both records in one batch, or one batch each
        together = largest_move(self.record_norm, self.gap, relation)
        return max(math.sqrt(2.0) * self.record_norm, together)

    @property
    def draws(self) -> int:
        return self.batches * self.count

    @property
    def by_record_names(self) -> bool:
        return self.partition == "content"

    @property
    def noise_law(self) -> str:
        return self.noise

    def gradients(self, records: int) -> int:
        return self.count * records

    def as_one_sum(self, relation: str) -> Event:
        moves = self.sensitivity(relation)
        kind = Gaussian if self.noise == "gaussian" else GammaNorm
        return kind(self.scale, moves, self.count, gap=moves)

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(dim)

    def range_delta(self, relation: str, dim: int) -> float:
        # at most two of its sums move, neither by more than the whole sensitivity
        return 2.0 * super().range_delta(relation, dim)

    def meter(self, relation: str) -> Meter:
        sensitivity = self.sensitivity(relation)
        return RootOfSquares(sensitivity) if self.noise == "gaussian" else Total(2, sensitivity)
