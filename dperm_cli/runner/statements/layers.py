"""The layers of NIST SP 800-226, from the parameters down to the data, answered or left open.

Source: NIST SP 800-226 (Guidelines for evaluating differential privacy guarantees, 2025).
"""

from __future__ import annotations

from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.statements import release_words as words
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.lines import Line, Section, declare

NAMES = (
    "Parameters and unit",
    "Algorithm and its implementation",
    "Trust model",
    "Access and side channels",
    "Data collection and bias",
)
HEADING = "The layers of NIST SP 800-226"


def describe_layers(
    found: Publishable, answers: Answers, has_evaluation: bool = False
) -> tuple[Section, ...]:
    """Each layer with what follows from the release and what a person declares."""
    return tuple(
        Section(name, lines)
        for name, lines in zip(
            NAMES,
            (
                _describe_parameters(found, answers),
                _describe_algorithm(found),
                _describe_trust(found, answers),
                _describe_access(found, answers, has_evaluation),
                _describe_collection(answers),
            ),
            strict=True,
        )
    )


def _describe_parameters(found: Publishable, answers: Answers) -> tuple[Line, ...]:
    level = words.capitalise(words.describe_level(found))
    unit = f"{level}, for {words.name_unit(found)} ({found.relation})"
    lines = [Line("Level and unit", unit)]
    if not words.has_person_unit(found) and answers.text("records_per_person") is None:
        lines.append(declare("Unit and person", answers, "records_per_person"))
    return tuple(lines)


def _describe_algorithm(found: Publishable) -> tuple[Line, ...]:
    rounding = "covered (noise=secure)" if found.noise == "secure" else "NOT covered (research)"
    tests = "dperm's tests replay the mechanism on neighbouring tables, and its audit attacks it"
    if words.find_outside(found) is not None:
        tests = "a plug-in from outside, which dperm's own tests and audit have not seen"
    return (
        Line("Algorithm", f"{found.mechanism}; proof: {words.find_proof(found)}"),
        Line("Implementation", f"{tests}; floating point: {rounding}"),
    )


def _describe_trust(found: Publishable, answers: Answers) -> tuple[Line, ...]:
    model = "central: whoever runs dperm sees the records, and is trusted with them"
    if words.is_local(found):
        model = "local: each user's own device adds the noise, and nobody else sees the record"
    return (Line("Model", model), declare("Actors", answers, "actors"))


def _describe_access(
    found: Publishable, answers: Answers, has_evaluation: bool
) -> tuple[Line, ...]:
    what = "the answers of one session" if words.is_session(found) else "the model file alone"
    who = "it holds"
    if has_evaluation:
        what, who = "the model file, and the figures of evaluation.json", "they hold"
    return (
        Line("What leaves", f"{what}; {who} no record, path, time, host or user"),
        declare("Access", answers, "access_control"),
        declare("Side channels", answers, "side_channels"),
    )


def _describe_collection(answers: Answers) -> tuple[Line, ...]:
    return (declare("Collection", answers, "collection"), declare("Bias", answers, "bias"))
