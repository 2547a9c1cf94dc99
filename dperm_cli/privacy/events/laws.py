"""Events of draws from a law exp(-f), and of the sparse vector technique."""

from __future__ import annotations

from dataclasses import replace

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Count, NonNegative, Positive
from dperm_cli.privacy.accounting import bounded_laws, generator_range
from dperm_cli.privacy.accounting.sparse_vector import UpdatesLoss
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
from dperm_cli.privacy.events.sums import Gaussian, Laplace
from dperm_cli.privacy.meters import LawRange, LawSlope, Meter


@dataclass(frozen=True)
class Exponential(Event):
    """``count`` adaptive draws from the density proportional to exp(-exponent L(theta; D)) on C.

    L is a sum of losses and the set C is fixed. ``record_oscillation`` bounds max - min over C of
    one record's loss; ``gap`` (optional) bounds that of the difference of two records' losses. The
    log ratio of neighbouring densities lies in an interval that contains 0 and has length
    exponent * oscillation. This length is the epsilon of a draw, without a factor 2
    [McSherry-Talwar 2007; Dong-Durfee-Rogers 2020].

    >>> Exponential(exponent=0.5, record_oscillation=2.0, gap=3.0).ratio("replace_one")
    1.5
    """

    exponent: NonNegative
    record_oscillation: NonNegative
    count: Count = 1
    gap: NonNegative | None = None
    relation: ProvedRelation = ""

    law = "exponential"
    draws_from_law = True
    stream = "LawStream"
    sizes = ("record_oscillation", "gap")
    phrase = (
        "a draw from the density proportional to exp(-{exponent} objective) over the "
        "set; a neighbouring data set changes the objective by a function of oscillation at "
        "most {sensitivity}"
    )

    def kind(self) -> str:
        return "pure"

    def sensitivity(self, relation: str) -> float:
        """The oscillation over C of the difference of two neighbouring objectives."""
        require_proof(self, relation)
        return largest_move(self.record_oscillation, self.gap, relation)

    def ratio(self, relation: str) -> float:
        return self.exponent * self.sensitivity(relation)

    def loss(self, relation: str) -> PrivacyLoss:
        return PrivacyLoss(bounded=bounded_laws.bounded_range(self.ratio(relation), self.count))

    def meter(self, relation: str) -> Meter:
        return LawRange(self.exponent, self.sensitivity(relation))


@dataclass(frozen=True)
class RegularizedExponential(OneSum):
    """``count`` adaptive draws from the density exp(-c L(theta; D) - (kappa / 2) |theta|^2) on C.

    ``scale`` is sqrt(m) / c, where the density's negative logarithm is m-strongly convex.
    ``record_norm`` bounds the L2 norm of the gradient of one record's loss on C; ``gap`` (optional)
    bounds that of the difference of two records' gradients. A draw is (sensitivity / scale)-GDP
    [GLL22]. So it costs as much as one release with Gaussian noise of this scale, although no noise
    is added.

    >>> draw = RegularizedExponential(scale=4.0, record_norm=0.5)
    >>> draw.noise_law, draw.as_one_sum("replace_one")
    ('', Gaussian(scale=4.0, record_norm=0.5, count=1, gap=None, relation=''))
    """

    law = "regularized_exponential"
    draws_from_law = True
    stream = "LawStream"
    phrase = (
        "a draw from a density whose negative logarithm is strongly convex, "
        "at strength {scale} (root of its convexity over its exponent); a neighbouring data set"
        " changes the objective's gradient by at most {sensitivity} (L2 norm): it tells no more"
        " than one Gaussian release of that scale and sensitivity"
    )

    def as_one_sum(self, relation: str) -> Event:
        return Gaussian(self.scale, self.record_norm, self.count, self.gap, self.relation)

    def range_delta(self, relation: str, dim: int) -> float:
        return self.count * generator_range.uniform_range_delta(self.ratio(relation), dim)

    def meter(self, relation: str) -> Meter:
        return LawSlope(self.scale, self.sensitivity(relation))


@dataclass(frozen=True)
class SparseAnswers(NoiseEvent):
    """``count`` runs that answer up to ``queries`` queries and look at the data for few of them.

    Query t has a value a_t, computed from the data, and an answer c_t, computed from what was
    released before. Let b ~ Laplace(scale). If |a_t + b - c_t| > ``threshold``, a_t + b is
    released: this is an update. Otherwise only the fact that it is not so is released. A run ends
    after ``updates`` updates.

    ``record_norm`` bounds one record's contribution to a value, and ``gap`` (optional) the
    difference of two records' contributions: a value moves by at most ``sensitivity``. The cost
    depends on the updates (``sparse_vector``), and is never more than that of ``queries`` Laplace
    releases.

    >>> run = SparseAnswers(scale=4.0, record_norm=0.5, threshold=8.0, updates=3, queries=100)
    >>> run.pure_steps, run.sensitivity("replace_one")
    (100, 1.0)
    """

    scale: Positive
    record_norm: NonNegative
    threshold: Positive
    updates: Count
    queries: Count
    count: Count = 1
    gap: NonNegative | None = None
    relation: ProvedRelation = ""

    law = "sparse_answers"
    stream = "SparseStream"
    norm_order = 1
    phrase = (
        "an answer, shown with Laplace noise of scale {scale} where it is more than "
        f"{{threshold}} from the answer known before, and at most {{updates}} times{MOVES}"
    )

    def kind(self) -> str:
        return "pure"

    @property
    def pure_steps(self) -> int:
        return self.count * self.queries

    @property
    def draws(self) -> int:
        return self.queries * self.count

    def full_release(self) -> Laplace:
        """The release of all noisy values. These answers are post-processing of it."""
        count = self.count * self.queries
        return Laplace(self.scale, self.record_norm, count, self.gap, self.relation)

    def loss(self, relation: str) -> PrivacyLoss:
        ratio = self.ratio(relation)
        updates = UpdatesLoss(ratio, self.threshold / self.scale, self.updates, self.count)
        return replace(self.full_release().loss(relation), updates=updates)

    def central_limit(self, ratio: float) -> float:
        return self.count * min(self.queries, 2 * self.updates) * ratio**2

    def range_delta(self, relation: str, dim: int) -> float:
        return self.full_release().range_delta(relation, dim)
