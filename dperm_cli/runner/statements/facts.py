"""``Statement``: everything that a statement says, before it is HTML, PDF or plain text."""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.core.dataclass import dataclass
from dperm_cli.runner.models.evaluated_release import EvaluatedRelease, StoredEvaluation
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.statements import layers, sections
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.lines import Section, shorten
from dperm_cli.runner.statements.number_words import format_number
from dperm_cli.runner.statements.risk_numbers import RiskNumbers, find_risk_numbers

_TITLE = 100  # characters of a name in the heading
NOT_FOR_RELEASE = (
    "NOT FOR RELEASE. The model was made with research noise: seeded numbers in floating point, "
    "which whoever has the seed can take off again. This page shows what a release by the same "
    "plan would say. For a release run again with noise=secure."
)


@dataclass(frozen=True)
class Statement:
    """What is said of one release, in the order of the page.

    Attributes:
        title: the heading.
        lede: the guarantee in one sentence.
        warning: why it may not be released, or None.
        risk: the attack risk.
        before: the sections above the attack risk.
        after: the sections below it.
        layers: the layers of NIST SP 800-226, each answered or to be declared.
        footer: what stands at the foot of each page.
    """

    title: str
    lede: str
    warning: str | None
    risk: RiskNumbers
    before: tuple[Section, ...]
    after: tuple[Section, ...]
    layers: tuple[Section, ...]
    footer: str

    @property
    def parts(self) -> Sequence[Section]:
        """All sections, in order, without the attack risk."""
        return (*self.before, *self.after, *self.layers)


def build_statement(
    found: Publishable,
    answers: Answers,
    evaluated: EvaluatedRelease | StoredEvaluation | None = None,
    machines: str | None = None,
) -> Statement:
    """The statement on a release.

    Args:
        found: the release; its theta is not looked at.
        answers: what the person who signs declares.
        evaluated: what a private evaluation released, where one was made; what its file has of it
            where the model was released before.
        machines: which machine was given which records, where several were.
    """
    name = shorten(answers.text("name") or f"a model of {found.schema.dataset}", _TITLE)
    promise = found.person_guarantee
    level = f"epsilon {format_number(promise.epsilon)}"
    if promise.delta > 0.0:
        level += f", delta {format_number(promise.delta, 3)}"
    return Statement(
        title=f"Privacy statement: {name}",
        lede=sections.summarise(found),
        warning=NOT_FOR_RELEASE if found.noise == "research" else None,
        risk=find_risk_numbers(found),
        before=(sections.describe_release(found, answers), sections.describe_level(found, answers)),
        after=(
            *sections.describe_evaluation(evaluated),
            sections.describe_public(found),
            sections.describe_unprotected(found, answers, evaluated is not None),
            sections.describe_making(found, machines),
        ),
        layers=layers.describe_layers(found, answers, evaluated is not None),
        footer=f"{level}, {found.relation}; dperm {found.version}",
    )
