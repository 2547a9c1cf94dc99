"""The sections of a statement. A new public fact is one more ``Line`` in the list that it fits."""

from __future__ import annotations

import math

from dperm_cli.privacy.accounting.attack_risk import TradeOff
from dperm_cli.privacy.accounting.group_privacy import guarantee_for_person
from dperm_cli.results.ledger.remarks import list_remarks
from dperm_cli.results.ledger.statement import describe_plugins
from dperm_cli.results.records.row_facts import format_count, number
from dperm_cli.runner.models.evaluated_release import EvaluatedRelease, StoredEvaluation
from dperm_cli.runner.models.publishable import DECLARED as POPULATION_DECLARED
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.statements import release_words as words
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.lines import DECLARED, Line, Section, declare
from dperm_cli.runner.statements.number_words import format_number, format_percent

_MOST_FIGURES = 6  # of an evaluation, on a page
_LARGEST_FACTOR = 20.0  # epsilons above it have no factor that says anything


def summarise(found: Publishable) -> str:
    """The guarantee in one sentence."""
    whose = words.name_unit(found)
    what = "the answers" if words.is_session(found) else "the model"
    return (
        f"{words.capitalise(words.describe_level(found))}: what {what} can reveal about {whose} is "
        "bounded, whatever an attacker knows besides."
    )


def describe_release(found: Publishable, answers: Answers) -> Section:
    """What was released about whom."""
    lines = [
        Line("Release", words.describe_product(found)),
        declare("Description", answers, "description"),
        declare("Published by", answers, "data_curators"),
        declare("People", answers, "people"),
        Line("Data set", found.schema.dataset),
        Line("Records", words.describe_count(found)),
        Line("Columns", words.list_columns(found)),
        Line("Predicts", words.describe_target(found)),
        declare("Signed by", answers, "signed_by"),
    ]
    return Section("What was released, about whom", tuple(lines))


def describe_level(found: Publishable, answers: Answers) -> Section:
    """Unit, relation, epsilon and delta."""
    level = words.capitalise(words.describe_level(found))
    meaning = _explain_level(found)
    lines = [
        Line("Unit", describe_unit(found)),
        describe_person(found, answers),
        Line("Relation", words.describe_relation(found)),
        Line("Level", f"{level}. {meaning}"),
        Line("Computed by", f"{found.person_guarantee.source}, from the events in the model file"),
        *(Line("Remark", remark) for remark in _list_remarks(found)),
        declare("Why this level", answers, "reason_for_epsilon"),
        declare("Other releases", answers, "other_releases"),
    ]
    return Section("The guarantee", tuple(lines))


def describe_evaluation(
    evaluated: EvaluatedRelease | StoredEvaluation | None,
) -> tuple[Section, ...]:
    """How well the model predicts, as a private evaluation found; none where none was made."""
    if evaluated is None:
        return ()
    how = (
        "Noisy counts on records that the model was not fitted to. They keep to the same epsilon, "
        "about other records. evaluation.json has all figures."
    )
    if isinstance(evaluated, StoredEvaluation):
        how += " It lies beside the model; nothing in the model file proves that it is of this one."
    lines = [Line(name, words) for name, words in evaluated.list_words()[:_MOST_FIGURES]]
    return (Section("How well it predicts", (*lines, Line("How it was found", how))),)


def describe_public(found: Publishable) -> Section:
    """What may be known to everybody."""
    model = "the answers" if words.is_session(found) else "the numbers of the model"
    facts = "mechanism, noise scales, number of steps, epsilon and delta, loss, set and weights of "
    facts += "penalties, names and number of columns, declared bounds, labels and the rule for rows"
    lines = [
        Line("Released", f"{words.capitalise(model)}; the guarantee covers them."),
        Line("Public by declaration", f"{words.capitalise(facts)}: none was measured."),
    ]
    table = found.schema.table
    if table is not None and table.prepared is not None:
        what = (
            f"Bounds and words {table.prepared.describe()}. It is not in the epsilon of this page."
        )
        lines.append(Line("Released before", what))
    if found.facts.population_source == POPULATION_DECLARED:
        lines.append(Line("Number of records", "Protected; a declared number stands in its place."))
    else:
        lines.append(Line("Number of records", f"Public: {found.facts.population}."))
    if found.published_inputs is not None:
        lines.append(Line("Held-out people", found.published_inputs))
    return Section("What is public", tuple(lines))


def describe_unprotected(
    found: Publishable, answers: Answers, has_evaluation: bool = False
) -> Section:
    """What the guarantee does not cover."""
    metrics = "Metrics other than those of evaluation.json" if has_evaluation else "Metrics"
    lines = [
        Line("Facts about groups", "What holds of a group can be learnt from the model, and holds "
             "of its members too, whether their records were used or not."),
        Line("More than one release", "Each further release from the same records, also by others, "
             "weakens the guarantee: epsilons add up."),
        Line("What stands elsewhere", f"{metrics}, optima, figures, logs and seeds of the run are "
             "the holder's. Nobody counted what publishing them would cost."),
        Line("Time and memory", "How long the computation took may depend on the records."),
    ]  # fmt: skip
    if not words.has_person_unit(found):
        lines.append(Line("More than one record", "A person with several records is protected less "
                          "than with one (group privacy)."))  # fmt: skip
    if found.facts.population_source != POPULATION_DECLARED and not words.is_local(found):
        lines.append(Line("Number of records", "It is public, so being counted is not protected."))
    lines.append(declare("Before dperm", answers, "outside_work"))
    return Section("What is not protected", tuple(lines))


def describe_making(found: Publishable, machines: str | None = None) -> Section:
    """Mechanism, proof, audit, noise, software, and the machines where there were several."""
    lines = [
        Line("Mechanism", f"{found.mechanism}: {words.list_events(found)}"),
        Line("Proof", words.find_proof(found)),
        Line("Audit", words.describe_audit(found)),
        Line("Noise", words.describe_noise(found)),
        Line("Preparation", words.describe_preparation(found)),
        Line("Software", f"dperm {found.version}"),
    ]
    outside = describe_plugins(found.plugins)
    if outside is not None:
        lines.append(Line("Plug-ins", outside))
    if machines is not None:
        lines.append(Line("Machines", machines))
    return Section("How it was made", tuple(lines))


def describe_unit(found: Publishable) -> str:
    """Whose data the guarantee is about."""
    if words.is_local(found):
        return "One user: all answers of the user's device together."
    table = found.schema.table
    if table is not None and table.unit.column is not None:
        column, most = words.cut_name(table.unit.column), format_count(table.unit.at_most, "record")
        return f"One person, whom the column {column} names: at most {most} of a person count."
    return "One record: one row of the table, with its label or target."


def describe_person(found: Publishable, answers: Answers) -> Line:
    """What the guarantee for a record is worth for a person."""
    name = "Person"
    if words.has_person_unit(found):
        return Line(name, f"The level holds for a person. {_describe_record(found)}")
    count = answers.given.get("records_per_person")
    if count is None:
        line = declare(name, answers, "records_per_person")
        return Line(name, f"{line.text}: how many records a person may have", is_open=True)
    if count == 1:
        return Line(name, f"One record is one person {DECLARED}")
    whole = guarantee_for_person(found.guarantee, count)
    level = f"epsilon {format_number(whole.epsilon)}"
    level += f", delta {format_number(whole.delta, 3)}" if whole.delta > 0.0 else ""
    advantage = TradeOff(found.events, found.guarantee, count).find_advantage()
    return Line(name, (
        f"A person has at most {count} records {DECLARED}: for a person the level is {level}, and "
        f"the membership advantage at most {format_percent(advantage)} (group privacy)."
    ))  # fmt: skip


def _describe_record(found: Publishable) -> str:
    """What a guarantee for a person with several records is for one of them."""
    if found.records_per_person == 1:
        return "One record is one person."
    level = f"For one record it is epsilon {format_number(found.guarantee.epsilon)}"
    return f"{level}, delta {format_number(found.delta, 3)}." if found.delta > 0.0 else f"{level}."


def _explain_level(found: Publishable) -> str:
    epsilon, delta = found.person_guarantee.epsilon, found.person_guarantee.delta
    factor = f"a factor of e^{format_number(epsilon, 4)}"
    if epsilon <= _LARGEST_FACTOR:
        factor = f"a factor of {format_number(math.exp(epsilon), 3)}"
    whose = words.capitalise(words.name_unit(found))
    text = f"{whose} changes the chance of any outcome by at most {factor}"
    if delta == 0.0:
        return f"{text}."
    return f"{text}, and {format_number(delta, 3)} beyond that."


def _list_remarks(found: Publishable) -> list[str]:
    """Remarks on a weak level."""
    return list_remarks({
        "status": "ok", "guarantee": found.guarantee.kind, "population": found.facts.population,
        "delta_accounted": found.person_guarantee.delta,
        "epsilon_accounted": found.person_guarantee.epsilon,
    })  # fmt: skip


def describe_settings(found: Publishable) -> str:
    """Steps, ridge and lasso, for the registry."""
    told = [f"noisy steps: {number(found.steps)}"] if found.steps else []
    told += [
        f"{name} {number(weight)}"
        for name, weight in (("ridge", found.facts.ridge), ("lasso", found.facts.lasso))
        if weight > 0.0
    ]
    return ", ".join(told)
