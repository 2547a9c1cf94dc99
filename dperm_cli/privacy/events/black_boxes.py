"""Events with only a known guarantee: pure or approximate steps, local channels, disclosures."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Count, NonNegative, Range
from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.events.base import Event, PrivacyLoss, Relation
from dperm_cli.privacy.meters import ChannelRatio, Meter

SHAPES = ("l_inf", "l_1", "l_2", "privunit", "privunit_g")  # of channels
SECURE_SHAPES = ("l_inf", "l_1", "l_2")  # those that the operating system's words can draw exactly
DISTANCES = ("inf", "tv")


def replaced_level(epsilon: float, delta: float) -> tuple[float, float]:
    """(2 epsilon, (1 + e^epsilon) delta): what (epsilon, delta) under add_remove is worth when a
    record is replaced, which is to remove one and to add one."""
    return 2.0 * epsilon, min(1.0, (1.0 + math.exp(min(epsilon, 700.0))) * delta)


class BlackBox(Event):
    """``count`` adaptive steps, each (epsilon, delta)-DP under ``relation``; no more is known."""

    epsilon: float
    delta: float
    relation: str

    def kind(self) -> str:
        return "approx" if self.delta > 0.0 else "pure"

    def level(self, relation: str) -> tuple[float, float]:
        """(epsilon, delta) of one step under a relation; ``Unsupported`` where it has none."""
        if relation == self.relation:
            return self.epsilon, self.delta
        if relation == "replace_one":
            return replaced_level(self.epsilon, self.delta)
        raise Unsupported(
            f"a step that is private under {self.relation} promises nothing under {relation}"
        )

    def loss(self, relation: str) -> PrivacyLoss:
        epsilon, delta = self.level(relation)
        if not delta < 1.0:
            return PrivacyLoss(exposed=True)
        failure = self.count * math.log1p(-delta)
        return PrivacyLoss(bounded=bounded_laws.pure(epsilon, self.count), log_failure=failure)


@dataclass(frozen=True)
class Pure(BlackBox):
    """``count`` adaptive steps, each epsilon-DP under ``relation``; no more is known.

    A step that is private under add_remove is 2 epsilon-DP under replace_one; one that is private
    under replace_one promises nothing under add_remove.

    >>> Pure(0.5, relation="add_remove").level("replace_one")
    (1.0, 0.0)
    """

    epsilon: NonNegative
    count: Count = 1
    relation: Relation = "replace_one"

    delta = 0.0
    phrase = "a step of epsilon {epsilon}"


@dataclass(frozen=True)
class Approx(BlackBox):
    """``count`` adaptive steps, each (epsilon, delta)-DP under ``relation``; no more is known.

    Under add_remove it is worth (2 epsilon, (1 + e^epsilon) delta) under replace_one.

    >>> Approx(0.5, 1e-6, count=3).kind()
    'approx'
    """

    epsilon: NonNegative
    delta: Annotated[float, Range(0, below=1)]
    count: Count = 1
    relation: Relation = "replace_one"

    phrase = "a step of epsilon {epsilon} and delta {delta}"


@dataclass(frozen=True)
class Channel(Event):
    """What one user's own device sends: ``messages`` messages, each epsilon-locally private.

    The ratio of the chances of any message is at most e^epsilon whatever the user's record and
    the earlier messages, so k messages cost k epsilon. Each user is charged for his own messages
    only, however many users there are. ``shape`` and ``dim`` name the channel of
    ``privacy.channels`` that a message passes, where it is one of these. Its stream takes
    ``users``, how many devices there are, and ``bound``: on the norm, in the channel's own, of the
    vectors that answers stand for; longer ones are shortened.

    >>> Channel(0.5, messages=4).loss("replace_one").bounded.count
    4
    """

    epsilon: NonNegative
    messages: Count = 1
    shape: Annotated[str, Choices(*SHAPES)] | Literal[""] = ""
    dim: Annotated[int, Range(0)] = 0

    law = "channel"
    stream = "ChannelStream"
    phrase = "a message from each user's own device, of local epsilon {epsilon}{told}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape or self.dim:
            checks.choice("shape", self.shape, SHAPES)
            checks.integer("dim", self.dim, low=1)

    @property
    def count(self) -> int:  # type: ignore[override]
        """The messages of one user."""
        return self.messages

    @property
    def pure_steps(self) -> int:
        return 1

    @property
    def discrete(self) -> bool:
        return self.shape in SECURE_SHAPES

    @property
    def information(self) -> float:
        """What all messages of a user tell about the record, at most, nats: whatever its law.

        Each message's own, added up: I(X; Z_1, .., Z_k) is the sum of I(X; Z_j | Z_1, .., Z_j-1),
        and given the earlier messages each is an answer of the channel. Of an unknown channel,
        epsilon tanh(epsilon / 2), the largest divergence of two laws of that ratio.
        """
        if not self.shape:
            return self.messages * self.epsilon * math.tanh(self.epsilon / 2.0)
        return self.messages * self.channel().information

    def channel(self) -> Any:
        """The channel that a message passes."""
        from dperm_cli.privacy import channels  # numba: not where events alone are read

        return channels.by_epsilon(self.shape, self.dim, self.epsilon)

    def kind(self) -> str:
        return "local"

    def loss(self, relation: str) -> PrivacyLoss:
        if relation != "replace_one":
            raise Unsupported("a local channel protects what a user's record says: use replace_one")
        return PrivacyLoss(bounded=bounded_laws.pure(self.epsilon, self.messages), local=True)

    def meter(self, relation: str) -> Meter:
        return ChannelRatio(self.channel(), self.messages * self.epsilon)

    def repeat(self, times: int) -> Channel:
        return Channel(self.epsilon, self.messages * times, self.shape, self.dim)

    def word_facts(self) -> dict[str, str]:
        if not self.shape:
            return {"told": ""}
        each = self.information / self.messages
        words = f" ({self.shape} channel in {self.dim} dimensions, at most {each:.6g} nats)"
        return {"told": words}


@dataclass(frozen=True)
class SamplerError(Event):
    """``count`` draws of the other events come from approximate samplers.

    Every such draw, given all earlier outputs, is within ``amount`` of the law that its event
    states: ``inf``: the log of the density ratio is at most ``amount`` in absolute value;
    ``tv``: no event's probability differs by more than ``amount``.

    >>> SamplerError("tv", 1e-9, count=10).kind()
    'approx'
    """

    distance: Annotated[str, Choices(*DISTANCES)]
    amount: NonNegative
    count: Count = 1

    law = "sampler_error"
    phrase = "a draw from an approximate sampler, within {amount} ({distance}) of its law"

    def kind(self) -> str:
        return "approx" if self.distance == "tv" and self.amount > 0.0 else "pure"

    def loss(self, relation: str) -> PrivacyLoss:
        total = self.count * self.amount
        if self.distance == "inf":
            return PrivacyLoss(ratio=total)
        return PrivacyLoss(distance=total)


@dataclass(frozen=True)
class Disclosure(Event):
    """Something computed from the data is shown without any protection.

    >>> Disclosure().kind(), Disclosure().repeat(3) == Disclosure()
    ('none', True)
    """

    phrase = "something computed from the data is shown without protection"

    @property
    def count(self) -> int:  # type: ignore[override]
        """Always 1: repeating it reveals nothing more."""
        return 1

    def kind(self) -> str:
        return "none"

    def loss(self, relation: str) -> PrivacyLoss:
        return PrivacyLoss(exposed=True)

    def repeat(self, times: int) -> Disclosure:
        return self
