"""Privacy events: what a mechanism does to the data, stated in accountable terms.

An event carries the norm (or the oscillation) of one record's contribution, so that an accountant
never has to know the mechanism: the sensitivity under a relation follows from it. A sequence of
events is an adaptive composition: each may depend on what the earlier ones released. Epsilons are
in nats, scales in the unit of what is released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.objective import PerturbedObjective

SHAPES = ("l_inf", "l_1", "l_2")  # of channels
SAMPLINGS = ("fixed", "poisson")
BATCH_NOISES = ("gaussian", "gamma_norm")
DISTANCES = ("inf", "tv")


class _Noisy:
    """Noise of a ``scale`` on what one record moves by ``record_norm`` and, where more is known,
    two records differ in by ``gap``: the checks and the sensitivity."""

    scale: float
    record_norm: float
    count: int
    gap: float | None = None

    def __post_init__(self) -> None:
        checks.positive("scale", self.scale)
        checks.nonnegative("record_norm", self.record_norm)
        checks.integer("count", self.count, low=1)
        if self.gap is not None:
            checks.nonnegative("gap", self.gap)

    def sensitivity(self, relation: str) -> float:
        """How far a neighbour moves what is noised, at most."""
        return _difference(self.record_norm, self.gap, relation)


@dataclass(frozen=True)
class _NoisySum(_Noisy):
    """The fields, for events that need no others."""

    scale: float
    record_norm: float
    count: int = 1
    gap: float | None = None


@dataclass(frozen=True)
class Gaussian(_NoisySum):
    """``count`` adaptive releases of a sum over all records plus N(0, scale^2 I).

    ``record_norm`` bounds the L2 norm of one record's contribution to the sum; the sensitivity
    is ``2 * record_norm`` under replace_one and ``record_norm`` under add_remove, unless
    ``gap`` gives a smaller bound on the difference of two records' contributions.
    """


@dataclass(frozen=True)
class GaussianMatrix(Gaussian):
    """``count`` adaptive releases of a sum of symmetric matrices [p, p] plus Gaussian noise.

    What is released is the upper triangle, its off-diagonal entries times sqrt(2), plus
    N(0, scale^2 I): L2 norms there are Frobenius norms, those of ``record_norm`` and ``gap``.
    """


@dataclass(frozen=True)
class SampledGaussian(_Noisy):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("population", self.population, low=1)
        checks.integer("batch", self.batch, low=1, high=self.population)
        checks.choice("sampling", self.sampling, SAMPLINGS)

    @property
    def rate(self) -> float:
        return self.batch / self.population


@dataclass(frozen=True)
class Laplace(_NoisySum):
    """``count`` adaptive releases of a sum over all records plus Laplace noise.

    Every coordinate gets independent noise of density proportional to exp(-|b| / scale).
    ``record_norm`` bounds the L1 norm of one record's contribution, ``gap`` (optional) the L1
    norm of the difference of two records' contributions.
    """


@dataclass(frozen=True)
class GammaNorm(_NoisySum):
    """``count`` adaptive releases of a sum over all records plus noise of a Gamma norm.

    The noise has density proportional to exp(-|b|_2 / scale): a uniform direction and a norm
    Gamma(dimension, scale). ``record_norm`` bounds the L2 norm of one record's contribution,
    ``gap`` (optional) the L2 norm of the difference of two records' contributions. One release
    is sensitivity / scale pure.
    """


@dataclass(frozen=True)
class DisjointBatches(_Noisy):
    """``count`` passes over the data, each the sums over ``batches`` disjoint batches plus noise.

    ``noise`` is N(0, scale^2 I), or of a Gamma norm. Within a pass each sum may depend on what was
    released before it; a record enters one batch at most, which is fixed by its place or by its
    content alone. So whatever neighbour there is, the L2 distances by which it moves the sums of
    one pass add up to at most the sensitivity: that of one sum over all records, with
    ``record_norm`` and ``gap`` as there. A pass costs no more than one such release (``alone``).
    """

    scale: float
    record_norm: float
    batches: int
    noise: str = "gaussian"
    count: int = 1
    gap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("batches", self.batches, low=1)
        checks.choice("noise", self.noise, BATCH_NOISES)

    def alone(self) -> Gaussian | GammaNorm:
        """The event of one batch that holds all records: what a pass costs."""
        kind = Gaussian if self.noise == "gaussian" else GammaNorm
        return kind(self.scale, self.record_norm, self.count, self.gap)


@dataclass(frozen=True)
class Exponential:
    """``count`` adaptive draws from the density proportional to exp(-exponent L(theta; D)) on C.

    L is a sum of losses and C is fixed. ``record_oscillation`` bounds max - min over C of one
    record's loss, ``gap`` (optional) that of the difference of two records' losses. The log
    ratio of neighbouring densities lies in an interval of length exponent * oscillation that
    holds 0: its epsilon, with no factor 2 [McSherry-Talwar 2007; Dong-Durfee-Rogers 2020].
    """

    exponent: float
    record_oscillation: float
    count: int = 1
    gap: float | None = None

    def __post_init__(self) -> None:
        checks.nonnegative("exponent", self.exponent)
        checks.nonnegative("record_oscillation", self.record_oscillation)
        checks.integer("count", self.count, low=1)
        if self.gap is not None:
            checks.nonnegative("gap", self.gap)

    def sensitivity(self, relation: str) -> float:
        """The oscillation over C of the difference of two neighbouring objectives."""
        return _difference(self.record_oscillation, self.gap, relation)


@dataclass(frozen=True)
class RegularizedExponential(_NoisySum):
    """``count`` adaptive draws from the density exp(-c L(theta; D) - (kappa / 2) |theta|^2) on C.

    ``scale`` is sqrt(m) / c where that density's negative logarithm is m-strongly convex.
    ``record_norm`` bounds the L2 norm of the gradient of one record's loss on C, ``gap`` (optional)
    that of the difference of two records' gradients. A draw is (sensitivity / scale)-GDP [GLL22]:
    it costs what one release with Gaussian noise of this scale does (``alone``), though no noise is
    added to anything.
    """

    def alone(self) -> Gaussian:
        """The Gaussian release that tells neighbours apart at least as well."""
        return Gaussian(self.scale, self.record_norm, self.count, self.gap)


@dataclass(frozen=True)
class SparseAnswers(_Noisy):
    """``count`` runs that answer up to ``queries`` queries and look at the data for few of them.

    Query t has a value a_t computed from the data and an answer c_t made of what was released
    before. With b ~ Laplace(scale), a_t + b is shown where |a_t + b - c_t| > ``threshold``, an
    update; otherwise nothing is shown but that it is not so. A run ends after ``updates`` updates.
    ``record_norm`` bounds one record's share of a value, ``gap`` (optional) how far two records'
    shares are apart: a value moves by at most ``sensitivity``. The cost follows the updates
    (``_updates``), and is never more than that of ``queries`` Laplace releases.
    """

    scale: float
    record_norm: float
    threshold: float
    updates: int
    queries: int
    count: int = 1
    gap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("threshold", self.threshold)
        checks.integer("queries", self.queries, low=1)
        checks.integer("updates", self.updates, low=1)

    def all_shown(self) -> Laplace:
        """The release of every noisy value, of which this one is a function."""
        return Laplace(self.scale, self.record_norm, self.count * self.queries, self.gap)


@dataclass(frozen=True)
class Pure:
    """``count`` adaptive steps, each epsilon-DP under the relation asked about; no more is known.

    Unlike the other events it cannot translate between relations: its maker states the epsilon
    for the relation of the plan.
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        checks.nonnegative("epsilon", self.epsilon)
        checks.integer("count", self.count, low=1)


@dataclass(frozen=True)
class Approx:
    """``count`` adaptive steps, each (epsilon, delta)-DP under the relation; no more is known."""

    epsilon: float
    delta: float
    count: int = 1

    def __post_init__(self) -> None:
        checks.nonnegative("epsilon", self.epsilon)
        checks.number("delta", self.delta, low=0.0, high=1.0, high_open=True)
        checks.integer("count", self.count, low=1)


@dataclass(frozen=True)
class Channel:
    """What one user's own device sends: ``messages`` messages, each epsilon-locally private.

    The ratio of the chances of any message is at most e^epsilon whatever the user's record and
    the earlier messages, so k messages cost k epsilon. Each user is charged for his own messages
    only, however many users there are. ``shape`` and ``dim`` name the channel of
    ``privacy.channels`` that a message passes, where it is one of these.
    """

    epsilon: float
    messages: int = 1
    shape: str = ""
    dim: int = 0

    def __post_init__(self) -> None:
        checks.nonnegative("epsilon", self.epsilon)
        checks.integer("messages", self.messages, low=1)
        if self.shape or self.dim:
            checks.choice("shape", self.shape, SHAPES)
            checks.integer("dim", self.dim, low=1)

    @property
    def information(self) -> float:
        """What all messages of a user tell about the record, at most, nats: whatever its law.

        Each message's own, added up: I(X; Z_1, .., Z_k) is the sum of I(X; Z_j | Z_1, .., Z_j-1),
        and given the earlier messages each is an answer of the channel. Of an unknown channel,
        epsilon tanh(epsilon / 2), the largest divergence of two laws of that ratio.
        """
        if not self.shape:
            return self.messages * self.epsilon * math.tanh(self.epsilon / 2.0)
        from dperm_cli.privacy import channels  # numba: not where events alone are read

        return self.messages * channels.by_epsilon(self.shape, self.dim, self.epsilon).information


@dataclass(frozen=True)
class SamplerError:
    """``count`` draws of the other events come from approximate samplers.

    Every such draw, given all earlier outputs, is within ``amount`` of the law that its event
    states: ``inf``: the log of the density ratio is at most ``amount`` in absolute value;
    ``tv``: no event's probability differs by more than ``amount``.
    """

    distance: str
    amount: float
    count: int = 1

    def __post_init__(self) -> None:
        checks.choice("distance", self.distance, DISTANCES)
        checks.nonnegative("amount", self.amount)
        checks.integer("count", self.count, low=1)


@dataclass(frozen=True)
class Disclosure:
    """Something computed from the data is shown without any protection."""


Event = (
    Gaussian
    | GaussianMatrix
    | SampledGaussian
    | Laplace
    | GammaNorm
    | DisjointBatches
    | Exponential
    | RegularizedExponential
    | SparseAnswers
    | Pure
    | Approx
    | PerturbedObjective
    | Channel
    | SamplerError
    | Disclosure
)


def kind(events: Sequence[Event]) -> str:
    """The weakest kind of guarantee that events can give: pure, approx, local or none.

    ``Unsupported`` where channels stand beside other events: who is trusted differs.
    """
    if any(isinstance(event, Disclosure) for event in events):
        return "none"
    channels = [isinstance(event, Channel) for event in events]
    if any(channels):
        if not all(channels):
            raise Unsupported("local channels compose with local channels only")
        return "local"
    return "approx" if any(_approximate(event) for event in events) else "pure"


def alone(event: Event) -> Event:
    """What the event costs, as an event about all records at once."""
    known = isinstance(event, DisjointBatches | RegularizedExponential)
    return event.alone() if known else event


def _approximate(event: Event) -> bool:
    event = alone(event)
    if isinstance(event, SamplerError):
        return event.distance == "tv" and event.amount > 0.0
    if isinstance(event, Approx | PerturbedObjective):
        return event.delta > 0.0
    return isinstance(event, Gaussian | SampledGaussian) and event.record_norm > 0.0


def _difference(record: float, gap: float | None, relation: str) -> float:
    """How far a neighbour can be, from the size of one record's contribution."""
    if relation == "add_remove":
        return record
    return 2.0 * record if gap is None else min(gap, 2.0 * record)
