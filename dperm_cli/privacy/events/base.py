"""The base class of privacy events, which mechanism, accountant and gate all use."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.fields import CheckedFields, Choices, Count, NonNegative, Positive
from dperm_cli.privacy.accounting import bounded_laws, generator_range
from dperm_cli.privacy.accounting.bounded_laws import BoundedStep
from dperm_cli.privacy.accounting.random_stopping import SelectionLoss
from dperm_cli.privacy.accounting.sparse_vector import UpdatesLoss
from dperm_cli.privacy.accounting.subsampled_laws import SampledStep
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.gate_protocol import NoiseSource
from dperm_cli.privacy.meters import Meter, PerCall

PURE_LAWS = ("laplace", "gamma_norm", "wishart")
NOISE_LAWS = ("gaussian", *PURE_LAWS)


# The relation of an event, and the one that its numbers are proved for; empty: both.
Relation = Annotated[str, Choices(*RELATIONS)]
ProvedRelation = Relation | Literal[""]


@dataclass(frozen=True)
class PrivacyLoss:
    """What an event spends, all its repetitions together, in the accountant's terms.

    Attributes
    ----------
    mu2 : squared distance of two unit normals that dominate the Gaussian part.
    sampled : the law of Gaussian releases over random batches, its form that of replace_one.
    bounded : the law of steps of bounded loss.
    updates : a Renyi bound that may stand in the place of ``bounded``.
    selection : a Renyi bound that nothing may stand in the place of.
    log_failure : sum of log(1 - delta) of black-box steps, at most 0.
    ratio, distance : how far draws are from their laws, as sup |log ratio| and in variation.
    exposed : whether something is shown without protection.
    local : whether each user is charged for his own messages only.
    """

    mu2: float = 0.0
    sampled: SampledStep | None = None
    bounded: BoundedStep | None = None
    updates: UpdatesLoss | None = None
    selection: SelectionLoss | None = None
    log_failure: float = 0.0
    ratio: float = 0.0
    distance: float = 0.0
    exposed: bool = False
    local: bool = False


class Event(CheckedFields, ABC):
    """Something that a mechanism does to the records, ``count`` times in a row.

    A subclass is a frozen dataclass of JSON-able fields. It owns everything that depends on what
    is done: how far one record moves it under a relation, what it spends, the stream of noise that
    carries it out, what an audit compares, its form on a grid, and its description in words.

    Attributes
    ----------
    count : how often it is done.
    law : the name of what one step draws; others may keep tables of facts by this name.
    draws_from_law : whether a sampler draws from a law made of the loss.
    samples_records : whether its stream draws at random which records are used.
    discrete : whether what a secure gate releases is discrete as it is, so that it needs no grid.
    own_grid : with secure noise: the exponent of the step of its noise's own grid; None for the
        grid of the plan.
    stream : the class of ``privacy.streams`` that carries it out; empty where nothing is drawn.
    alternatives : of a selection, the events of one run for each candidate.
    by_record_names : whether records are divided by the names that they got when they were read.
    sizes : the fields that the sensitivity follows from; a plan may have other values of them.
    summed : of a sum over records, what is added up: gradients, moments or curvature.
    phrase : what it does, in words, with {names} of fields and of ``word_facts`` in braces.

    >>> from dperm_cli.privacy.events import Gaussian
    >>> event = Gaussian(scale=5.0, record_norm=1.0)
    >>> isinstance(event, Event), event.sensitivity("replace_one")
    (True, 2.0)
    """

    count: int
    plugin_kind: ClassVar[str] = "event"
    phrase: ClassVar[str]
    stream: ClassVar[str] = ""
    sizes: ClassVar[tuple[str, ...]] = ()
    law = ""
    summed = "gradients"
    draws_from_law = False
    samples_records = False
    discrete = False
    own_grid: Any = None
    alternatives: Any = ()
    by_record_names: Any = False
    gap_survives_rounding: ClassVar[bool] = False

    @abstractmethod
    def kind(self) -> str:
        """The strongest guarantee it can give: pure, approx, local or none."""

    @abstractmethod
    def loss(self, relation: str) -> PrivacyLoss:
        """What it spends under a relation; ``Unsupported`` where no proof covers that."""

    def sensitivity(self, relation: str) -> float | None:
        """How far a neighbour moves what is protected, in the event's own norm.

        None where an event has no such number; ``Unsupported`` under a relation without a proof.
        """
        return None

    def ratio(self, relation: str) -> float:
        """Sensitivity over noise: falls as the noise scale rises; 0 where there is no noise."""
        return 0.0

    def central_limit(self, ratio: float) -> float:
        """Approximate share of mu^2 at this ratio, a starting point for calibration."""
        return self.count * ratio**2

    @property
    def pure_steps(self) -> int:
        """Of how many pure steps it consists."""
        return self.count

    @property
    def draws(self) -> int:
        """How often it touches the data."""
        return self.count

    @property
    def noise_law(self) -> str:
        """The noise that its stream adds to a value, one of ``NOISE_LAWS``, else ''."""
        return self.law if self.law in NOISE_LAWS else ""

    @property
    def noise_scale(self) -> float | None:
        """The scale of its noise, or of its law; None where it has none."""
        return None

    def gradients(self, records: int) -> int | None:
        """How many gradients of single records it takes where its sums are of gradients.

        Args:
            records: The number of records.

        Returns:
            The number, the mean one of random batches; None for what is no sum of gradients.
        """
        return None

    def fit_size(self, dim: int) -> int:
        """The least number of coordinates, ``dim`` or more, that one of its draws can have."""
        return dim

    def range_delta(self, relation: str, dim: int) -> float:
        """What the bounded range of the seeded generator can add to delta, in ``dim`` coordinates
        (see ``privacy.accounting.generator_range``)."""
        return 0.0

    def grid_diagonal(self, dim: int) -> float:
        """The norm of one grid cell's diagonal, in steps; ``Unsupported`` without a secure form."""
        name = type(self).__name__
        raise Unsupported(f"{name}: only Gaussian, Laplace and Gamma-norm noise have a secure form")

    def open(self, gate: NoiseSource, dim: int, **public: Any) -> Any:
        """The stream that carries the event out; called by ``Gate.stream`` alone."""
        from dperm_cli.privacy import streams  # numba: not where events alone are read

        if not self.stream:
            raise PrivacyError(f"there is nothing to draw for {type(self).__name__}")
        return getattr(streams, self.stream)(gate, self, dim, **public)

    def meter(self, relation: str) -> Meter:
        """A new meter that measures how far neighbouring runs move one stream of this event."""
        raise PrivacyError(f"there is nothing to measure for {type(self).__name__}")

    def change_fields(self, **fields: Any) -> Any:
        """The same event with other values of some fields."""
        return replace(self, **fields)  # type: ignore[type-var]

    def repeat(self, times: int) -> Event:
        """The event of so many independent runs."""
        return self.change_fields(count=self.count * times)

    def as_one_sum(self, relation: str) -> Event:
        """A release of one sum over all records that spends as much, where there is one."""
        return self

    def fits(self, planned: Any, relation: str) -> bool:
        """Whether ``planned`` pays for this event: equal but for rounding of the sensitivity."""
        if type(self) is not type(planned):
            return False
        own = self.change_fields(**{name: getattr(planned, name) for name in self.sizes})
        if not self.sizes or own != planned:
            return own == planned
        asked: Any = self.sensitivity(relation)
        return math.isclose(asked, planned.sensitivity(relation), rel_tol=1e-12)

    def word_facts(self) -> Mapping[str, Any]:
        """What ``phrase`` names beside the fields, the sensitivity and the number of draws."""
        return {}

    def words(self, relation: str) -> str:
        """What it did, in words."""
        values = {
            **dataclasses.asdict(self),  # type: ignore[call-overload]
            "sensitivity": self.sensitivity(relation),
            "count": self.draws,
            **self.word_facts(),
        }
        values = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in values.items()}
        text = self.phrase if self.draws == 1 else f"{self.draws} x {self.phrase}"
        return text.format(**values)


MOVES = "; a neighbouring data set moves it by at most {sensitivity}"


class NoiseEvent(Event):
    """Noise of a ``scale`` on what one record moves by ``record_norm`` and, where more is known,
    two records differ in by ``gap``.

    ``relation`` names the one relation under which these numbers are proved; empty: both. A draw
    costs what Laplace noise of that scale does where ``noise_law`` is one of ``PURE_LAWS``, and
    what Gaussian noise does elsewhere: other events have a ``kind`` and a ``loss`` of their own.
    ``norm_order`` is the order of the norm that ``record_norm`` and ``gap`` are in; "nuc" is the
    nuclear norm of a packed symmetric matrix. ``gap_survives_rounding`` says that what is computed
    of two records differs by no more than ``gap``, but for the rounding that a grid charges for.
    """

    sizes = ("record_norm", "gap")
    norm_order: ClassVar[int | Literal["nuc"]] = 2
    gap_survives_rounding: ClassVar[bool] = False

    scale: float
    record_norm: float
    gap: float | None = None
    relation: str = ""

    def sensitivity(self, relation: str) -> float:
        """How far a neighbour moves what is noised, at most."""
        require_proof(self, relation)
        return largest_move(self.record_norm, self.gap, relation)

    def ratio(self, relation: str) -> float:
        return self.sensitivity(relation) / self.scale

    @property
    def noise_scale(self) -> float:
        return self.scale

    def noise_radius(self, dim: int, failure: float, room: float = 1.0) -> float:
        """A 2-norm that one draw of Gaussian or Gamma-norm noise exceeds with a small chance.

        Args:
            dim: Coordinates of one draw.
            failure: That chance, exactly.
            room: A factor on the norm.
        """
        from scipy.special import chdtri, gammainccinv

        if self.noise_law == "gamma_norm":
            return room * self.scale * float(gammainccinv(dim, failure))
        if self.noise_law != "gaussian":
            raise ValueError(f"no radius is known of {type(self).__name__}")
        return room * self.scale * math.sqrt(float(chdtri(dim, failure)))

    def kind(self) -> str:
        return "approx" if self.noise_law not in PURE_LAWS and self.record_norm > 0.0 else "pure"

    def loss(self, relation: str) -> PrivacyLoss:
        ratio = self.ratio(relation)
        if self.noise_law in PURE_LAWS:
            return PrivacyLoss(bounded=bounded_laws.laplace(ratio, self.count))
        return PrivacyLoss(mu2=self.count * ratio**2)

    def range_delta(self, relation: str, dim: int) -> float:
        ratio = self.ratio(relation)
        if self.noise_law == "gaussian":
            return self.count * generator_range.normal_range_delta(ratio, dim)
        return self.count * generator_range.exponential_range_delta(ratio)

    def meter(self, relation: str) -> Meter:
        return PerCall(self.norm_order, self.sensitivity(relation))


@dataclass(frozen=True)
class OneSum(NoiseEvent):
    """``count`` adaptive releases of which each has the same norm, gap and scale."""

    scale: Positive
    record_norm: NonNegative
    count: Count = 1
    gap: NonNegative | None = None
    relation: ProvedRelation = ""


def require_proof(event: Any, relation: str) -> None:
    """``Unsupported`` where the event is proved under another relation alone."""
    if event.relation and event.relation != relation:
        raise Unsupported(
            f"{type(event).__name__} is proved under {event.relation} and not under {relation}"
        )


def largest_move(record: float, gap: float | None, relation: str) -> float:
    """How far a neighbour can be, from the size of one record's contribution."""
    if relation == "add_remove":
        return record
    return 2.0 * record if gap is None else min(gap, 2.0 * record)
