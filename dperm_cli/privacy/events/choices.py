"""Events of exact choices from finite lists (``privacy.secure_choice``)."""

from __future__ import annotations

from typing import Annotated, Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Choices, Count, NonNegative
from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.events.base import (
    Event,
    PrivacyLoss,
    ProvedRelation,
    largest_move,
    require_proof,
)
from dperm_cli.privacy.gate_protocol import NoiseSource
from dperm_cli.privacy.meters import Meter, ScoreRange

CHOICE_RULES = ("exponential", "permute_and_flip")


@dataclass(frozen=True)
class ListChoice(Event):
    """``count`` adaptive choices from public finite lists by scores that are whole units.

    ``record_oscillation`` bounds max - min over the list of what one record adds to the scores,
    in the unit of the summed loss and with its rounding; ``gap`` (optional) bounds that of the
    difference of two records' contributions. ``rule``:

    ``exponential``       an entry has chance proportional to exp(-exponent score). The log ratio
                          lies in an interval of length exponent * oscillation.
    ``permute_and_flip``  entries in random order, taken with chance exp(-exponent (score - least))
                          [McKenna and Sheldon 2020]. Its loss is at most exponent * oscillation,
                          and in no shorter interval than twice that.

    >>> ListChoice(exponent=0.5, record_oscillation=2.0, gap=3.0).ratio("replace_one")
    1.5
    """

    exponent: NonNegative
    record_oscillation: NonNegative
    count: Count = 1
    gap: NonNegative | None = None
    relation: ProvedRelation = ""
    rule: Annotated[str, Choices(*CHOICE_RULES)] = "exponential"

    law = "list_choice"
    sizes = ("record_oscillation", "gap")
    phrase = (
        "a choice from a public list by the {rule} rule at exponent {exponent}; a neighbouring "
        "data set changes the scores by a function of oscillation at most {sensitivity}"
    )

    def kind(self) -> str:
        return "pure"

    def sensitivity(self, relation: str) -> float:
        """The oscillation over the list of the difference of two neighbouring scores."""
        require_proof(self, relation)
        return largest_move(self.record_oscillation, self.gap, relation)

    def ratio(self, relation: str) -> float:
        return self.exponent * self.sensitivity(relation)

    def loss(self, relation: str) -> PrivacyLoss:
        of_rule = bounded_laws.pure if self.rule != "exponential" else bounded_laws.bounded_range
        return PrivacyLoss(bounded=of_rule(self.ratio(relation), self.count))

    def grid_diagonal(self, dim: int) -> float:
        """0: its rounding is in its oscillation."""
        return 0.0

    def open(self, gate: NoiseSource, dim: int, **public: Any) -> Any:
        from dperm_cli.privacy import choice_stream

        return choice_stream.ChoiceStream(gate, self, dim, **public)

    def meter(self, relation: str) -> Meter:
        return ScoreRange(self.sensitivity(relation))
