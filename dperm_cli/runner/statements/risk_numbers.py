"""The attack risk of a release, as numbers and in sentences that name the relation."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.attack_risk import TradeOff
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.statements.number_words import format_percent

RATES, PRIORS = (0.01, 0.001), (0.1, 0.5)
MARKED = PRIORS[0]  # the false positive rate that the picture marks
_POINTS = 100  # of the curve
# the test that an attacker makes, by what the guarantee is about
_PERSON_TESTS = {
    "replace_one": "which of two sets of values the records of one person have",
    "add_remove": "whether the records of one person are in the data",
}
_TESTS = {
    "replace_one": "which of two values one record has",
    "add_remove": "whether one record is in the data",
    "local": "which of two values a user's record has, from all answers of that user",
}


@dataclass(frozen=True)
class RiskNumbers:
    """Upper bounds on what any attack achieves that knows all other records and the method.

    Attributes:
        test: what the attacker wants to know.
        size: records of a person that the numbers are about.
        relation: the relation that the numbers hold under.
        advantage: true positive rate less false positive rate, at most.
        true_positive_rates: at most, by false positive rate.
        successes: chance that a guess is right, at most, by its chance before the release.
        curve: pairs (false positive rate, largest true positive rate), in order.
    """

    test: str
    size: int
    relation: str
    advantage: float
    true_positive_rates: dict[float, float]
    successes: dict[float, float]
    curve: tuple[tuple[float, float], ...]

    def rows(self) -> list[tuple[str, str]]:
        """Each number with the question that it answers."""
        found = [("Membership advantage", f"at most {format_percent(self.advantage)}")]
        for rate, largest in self.true_positive_rates.items():
            name = f"True positives at {format_percent(rate)} false positives"
            found.append((name, f"at most {format_percent(largest)}"))
        for prior, largest in self.successes.items():
            name = f"Re-identification: a guess right in {format_percent(prior)} of cases before"
            found.append((name, f"after the release at most {format_percent(largest)}"))
        return found

    def explain(self) -> str:
        """What the numbers mean, in sentences."""
        right = format_percent((1.0 + self.advantage) / 2.0)
        whom = "one record" if self.size == 1 else f"a person with at most {self.size} records"
        return (
            f"The attacker knows all other records and the method, and wants to know {self.test}. "
            f"Of two equally likely cases such an attack names the right one in at most {right} of "
            f"tries; guessing is right in 50 %. The numbers are upper bounds for {whom} "
            f"and for this release alone, under {self.relation}. Further releases, and more "
            "records of a person, add to them."
        )


def find_risk_numbers(found: Publishable) -> RiskNumbers:
    """The attack risk that follows from the events of a release."""
    size = found.records_per_person
    known = TradeOff(found.events, found.guarantee, size)
    tests = _TESTS if size == 1 else _PERSON_TESTS
    rates = sorted({MARKED, *((k / _POINTS) ** 2 for k in range(_POINTS + 1))})
    successes = {prior: known.bound_success(prior) for prior in PRIORS}
    points = dict(zip(rates, known.bound_curve(rates), strict=True))
    return RiskNumbers(
        _TESTS["local"] if found.guarantee.kind == "local" else tests[found.relation],
        size,
        found.relation,
        known.find_advantage(),
        {rate: known.bound_success(rate) for rate in RATES},
        successes,
        tuple((points | {MARKED: successes[MARKED]}).items()),
    )
