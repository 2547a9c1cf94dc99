"""The public facts of a release, each as a phrase: page and registry entry use the same ones."""

from __future__ import annotations

from collections.abc import Iterable

from dperm_cli.core import plugin_words
from dperm_cli.core.plugin_words import PluginUse
from dperm_cli.results.records.row_facts import number
from dperm_cli.runner.models.publishable import DECLARED, Publishable
from dperm_cli.runner.statements.lines import shorten
from dperm_cli.runner.statements.number_words import format_number

_NAMES = 24  # column names that are shown
_NAME = 40  # characters of each
_LONGEST = 240  # characters of a list of names
_KINDS = {"pure": "pure", "approx": "approximate", "local": "local"}
_NORMS = {"1": "L1", "2": "L2", "inf": "maximum"}
_RULES = {
    "unit": "every row is scaled to {norm} norm {bound}",
    "clip": "rows whose {norm} norm is above {bound} are scaled down to it",
    "none": "rows are taken as they are, their {norm} norm at most {bound}",
}


def is_session(found: Publishable) -> bool:
    """Whether answers were released, and no point."""
    return found.theta is None


def is_local(found: Publishable) -> bool:
    """Whether users' own devices add the noise."""
    return found.guarantee.kind == "local"


def has_person_unit(found: Publishable) -> bool:
    """Whether the declared unit of privacy is a person, whom a column names."""
    table = found.schema.table
    return table is not None and table.unit.column is not None


def describe_level(found: Publishable) -> str:
    """Kind, epsilon and delta."""
    promise = found.person_guarantee
    level = f"epsilon {format_number(promise.epsilon)}"
    if promise.delta > 0.0:
        level += f" and delta {format_number(promise.delta, 3)}"
    return f"{_KINDS[promise.kind]} differential privacy with {level}"


def name_unit(found: Publishable) -> str:
    """Whose data the guarantee is about, as a phrase."""
    if is_local(found):
        return "the record of one user"
    if found.records_per_person > 1:
        return f"a person with at most {found.records_per_person} records"
    return "one record"


def describe_relation(found: Publishable) -> str:
    """The neighbouring relation in words."""
    if is_local(found):
        return (
            "Two users are compared who differ in their record alone: all answers that a user's "
            "device sends are protected, also from whoever collects them."
        )
    if found.records_per_person > 1:
        whose = f"all records of one person, at most {found.records_per_person}"
        how = "other values" if found.relation == "replace_one" else "records that come or go"
        count = "public" if found.relation == "replace_one" else "protected"
        return (
            f"Two tables are compared that differ in {whose}: {how} ({found.relation}, for each of "
            f"these records). How many records there are is {count}."
        )
    if found.relation == "replace_one":
        return (
            "Two tables are compared that differ in the values of one record "
            "(replace_one). How many records there are is public."
        )
    return (
        "Two tables are compared, one with a record and one without it (add_remove). Whether a "
        "record is there is protected, and so is the number of records."
    )


def describe_count(found: Publishable) -> str:
    """The number of records, or that it is not told."""
    count = found.facts.population
    if found.facts.population_source == DECLARED:
        return f"not told; at most {count}, a declared number"
    return f"{count} (public)"


def describe_product(found: Publishable) -> str:
    """What came out."""
    facts = found.facts
    where = facts.constraint if facts.constraint_size is None else (
        f"{facts.constraint} of size {number(facts.constraint_size)}"
    )  # fmt: skip
    fit = f"the minimiser of the {facts.loss} loss over {where}"
    if is_session(found):
        return f"Answers to queries about {fit}, given in one session."
    kernel = f" with the kernel {found.features.kernel.name}" if found.features else ""
    kind = "regression model" if found.schema.task == "regression" else "classifier"
    return f"A {kind} of {found.coordinates} numbers{kernel}: an approximation of {fit}."


def list_columns(found: Publishable) -> str:
    """Number and names of the columns."""
    schema = found.schema
    if schema.table is not None:
        features = schema.table.features
        kinds = join_names(f"{cut_name(name)} ({kind.kind})" for name, kind in features)
        return f"{len(features)}: {kinds}"
    if schema.columns is None:
        return f"{schema.count}, without names"
    return f"{schema.count}: {join_names(schema.columns)}"


def describe_target(found: Publishable) -> str:
    """What the model predicts, with its declared labels or bounds."""
    schema = found.schema
    name = f"column {cut_name(schema.target)}" if schema.target else "the target"
    if schema.task == "regression":
        low, high = schema.target_of_bounds()
        told = f"{name}, a number clipped to [{number(low)}, {number(high)}]"
        return told + (", by its logarithm" if schema.takes_logarithm else "")
    if schema.labels is None:
        return f"{name}, with the classes -1 and 1"
    if schema.task == "multiclass":
        return f"{name}, with the classes {join_names(label for label, _ in schema.labels)}"
    pairs = [f"{label} as {sign:+g}" for label, sign in schema.labels]
    return f"{name}, with the classes {join_names(pairs)}"


def describe_preparation(found: Publishable) -> str:
    """What dperm did to rows before the mechanism saw them: public rules, row by row."""
    schema = found.schema
    steps = []
    if schema.table is not None:
        steps.append("cells are encoded by the declared kinds of their columns")
    if found.records_per_person > 1:
        steps.append(f"of a person {found.records_per_person} records count at most")
    if schema.bounds is not None:
        steps.append("columns are clipped to declared bounds and scaled by them")
    if schema.intercept:
        steps.append("a constant is appended")
    bound, norm = number(schema.row_bound), _NORMS[schema.norm]
    steps.append(_RULES[schema.rows].format(norm=norm, bound=bound))
    if found.features is not None:
        steps.append(f"rows go through a public map of the kernel {found.features.kernel.name}")
    told = capitalise("; ".join(steps))
    return f"{told}. Each rule is a public fact."


def list_events(found: Publishable) -> str:
    """What the mechanism did to the records, in words."""
    told = "; ".join(event.words(found.relation) for event in found.events)
    return shorten(told)


def find_outside(found: Publishable) -> PluginUse | None:
    """The plug-in that the mechanism is, None for dperm's own."""
    for use in plugin_words.read_uses(found.plugins):
        if use.kind == "mechanism" and use.name == found.mechanism:
            return use
    return None


def find_proof(found: Publishable) -> str:
    """Where the proof of the mechanism is."""
    use = find_outside(found)
    if use is not None:
        return f"none of dperm: {use.name} is a plug-in of {use.source}"
    return f"docs/proofs/{found.mechanism}.md of dperm {found.version}"


def describe_audit(found: Publishable) -> str:
    """How the mechanism's claim is attacked."""
    if find_outside(found) is not None:
        return (
            f"dperm's own audit has not seen the plug-in; dperm audit mechanism={found.mechanism} "
            "--plugin FILE.py attacks it, and dperm check FILE.py tries what it promises"
        )
    return (
        f"dperm audit mechanism={found.mechanism} attacks the mechanism on neighbouring tables; "
        "what dperm's own audit found: docs/audit.md"
    )


def describe_noise(found: Publishable) -> str:
    """Where the noise came from, as the run recorded it."""
    if found.noise == "research":
        return (
            "Research noise, NOT FOR RELEASE: a seeded generator, in floating point. Whoever has "
            "the seed can take it off, and rounding is not covered."
        )
    return (
        f"Secure noise: random bits of the operating system, exact arithmetic "
        f"({found.arithmetic}), so that rounding is covered. This is the model file's word: "
        "nothing in the file can prove it."
    )


def join_names(names: Iterable[str], mark: str = "") -> str:
    """A list of names, cut where it is long; the rest is counted. ``mark`` stands around each."""
    every = [f"{mark}{cut_name(name).replace('`', chr(39))}{mark}" for name in names]
    shown: list[str] = []
    for name in every[:_NAMES]:
        if shown and len(", ".join([*shown, name])) > _LONGEST:
            break
        shown.append(name)
    rest = len(every) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def capitalise(text: str) -> str:
    """The text with its first letter large."""
    return f"{text[0].upper()}{text[1:]}"


def code_names(names: Iterable[str]) -> str:
    """Names for Markdown, each in code marks."""
    return join_names(names, mark="`")


def cut_name(name: str) -> str:
    """A name of at most so many characters."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
