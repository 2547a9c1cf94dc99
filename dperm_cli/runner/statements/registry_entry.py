"""The entry of a release in the public registry of deployments, tier 3.

Source: opendp/deployments-registry-data, ``schemas/deployments-schema.yaml``. Its texts are shown
as Markdown with LaTeX, so names of others stand in code marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from dperm_cli.core.errors import InputError
from dperm_cli.results.ledger.statement import describe_plugins
from dperm_cli.runner.models.publishable import DECLARED, Publishable
from dperm_cli.runner.statements import release_words as words
from dperm_cli.runner.statements.answers import Answers, require_complete
from dperm_cli.runner.statements.number_words import format_number, round_up
from dperm_cli.runner.statements.risk_numbers import RiskNumbers, find_risk_numbers
from dperm_cli.runner.statements.sections import describe_person, describe_settings, describe_unit

TIER = 3
NOT_DECLARED = "Not declared."
_WITHOUT_FIELD = ("people", "collection", "bias", "signed_by")


def format_entry(found: Publishable, answers: Answers, risk: RiskNumbers | None = None) -> str:
    """The entry as YAML.

    Args:
        found: the release.
        answers: what a person declares.
        risk: its attack risk, where that is known already.

    Raises:
        InputError: an answer that the registry requires is missing, or the noise is no noise for a
            release.
    """
    if found.noise == "research":
        allowed = "is not for release, so there is no deployment to register; run again with "
        raise InputError("noise", "research", f"{allowed}noise=secure")
    require_complete(answers)
    return yaml.safe_dump(
        build_entry(found, answers, risk), sort_keys=False, allow_unicode=True, width=100
    )


def build_entry(
    found: Publishable, answers: Answers, risk: RiskNumbers | None = None
) -> dict[str, Any]:
    """The entry as plain values; what is optional and was not answered is said to be undeclared."""
    risk = risk or find_risk_numbers(found)
    return {
        "url_slug": answers.text("url_slug"),
        "status": "Draft",
        "tier": TIER,
        "deployment": {
            "basic": _describe_basics(found, answers),
            "dp_variant": _describe_variant(found),
            "privacy_loss": _describe_loss(found, answers, risk),
            "deployment_model": _describe_model(found, answers),
            "accounting": _describe_accounting(found),
            "implementation": _describe_implementation(found, answers),
            "administrative": _drop_missing({
                "sources": answers.text("sources"),
                "notes": _write_notes(answers),
                "registry_authors": list(answers.given["registry_authors"]),
            }),
        },
    }  # fmt: skip


def _describe_basics(found: Publishable, answers: Answers) -> dict[str, Any]:
    product = "Interactive API" if words.is_session(found) else "Machine learning model"
    return _drop_missing({
        "name": answers.text("name"),
        "data_curators": list(answers.given["data_curators"]),
        "intended_use": answers.text("intended_use"),
        "data_product_type": product,
        "data_product_region": answers.text("region"),
        "description": answers.text("description"),
        "publication_date": answers.text("publication_date"),
        "data_product_sector": answers.text("sector"),
    })  # fmt: skip


def _describe_variant(found: Publishable) -> dict[str, Any]:
    schema = found.schema
    names = schema.columns if schema.table is None else [n for n, _ in schema.table.features]
    columns = "without names" if names is None else words.code_names(names)
    count = schema.count if names is None else len(names)
    target = f" and the target {words.code_names([schema.target])}" if schema.target else ""
    unprotected = ["the public facts that the model file names: columns, declared bounds, labels"]
    if found.facts.population_source != DECLARED:
        unprotected.append(f"the number of records, {found.facts.population}")
    if found.published_inputs is not None:
        unprotected.append(found.published_inputs.removesuffix("."))
    return {
        "variant_name": "Approximate DP" if found.delta > 0.0 else "Pure DP",
        "data_domain": (
            f"Tables of records with {count} columns ({columns}){target}. "
            f"{words.describe_preparation(found)} Number of records: {words.describe_count(found)}."
        ),
        "unprotected_quantities": f"{words.capitalise('; '.join(unprotected))}.",
    }


def _describe_loss(found: Publishable, answers: Answers, risk: RiskNumbers) -> dict[str, Any]:
    promise = found.person_guarantee
    level = {"epsilon": round_up(promise.epsilon)}
    if promise.delta > 0.0:
        level["delta"] = round_up(promise.delta)
    told = "; ".join(f"{name}: {text}" for name, text in risk.rows())
    return {
        "privacy_unit": describe_unit(found),
        "privacy_unit_details": (
            f"{words.describe_relation(found)} {describe_person(found, answers).text}"
        ),
        "privacy_parameters": level,
        "privacy_parameters_details": (
            f"Computed by {promise.source}, from the events of the release. "
            f"Attack risk under {found.relation}: {told}."
        ),
    }


def _describe_model(found: Publishable, answers: Answers) -> dict[str, Any]:
    local, session = words.is_local(found), words.is_session(found)
    trust = "Whoever runs dperm sees the records and is trusted with them."
    if local:
        trust = "Each user's own device adds the noise; nobody else sees the record."
    access = "The released model is used as it is; nobody can query the records."
    if session:
        access = "One analyst asked queries as they came in; the level holds for all answers of "
        access += "the session together."
    further = answers.text("other_releases") or f"Further uses of the data: {NOT_DECLARED.lower()}"
    return _drop_missing({
        "model_name": "Local" if local else "Central",
        "model_name_details": trust,
        "actors": answers.text("actors") or NOT_DECLARED,
        "release_type": "One release",
        "release_type_details": f"This entry is about one release. {further}",
        "data_source_type": answers.text("data_source_type"),
        "data_source_type_details": answers.text("data_source_details") or NOT_DECLARED,
        "access_type": "Interactive" if session else "Non-interactive",
        "access_type_details": access,
    })  # fmt: skip


def _describe_accounting(found: Publishable) -> dict[str, Any]:
    after = "Predictions are functions of the released model and of public facts alone."
    if words.is_session(found):
        after = "None: the answers are what was released."
    count = sum(event.draws for event in found.events)
    steps = "1 step" if count == 1 else f"{count} steps"
    return {
        "post_processing": after,
        "composition": (
            f"Adaptive composition of {steps} that touch the data, accounted by "
            f"{found.guarantee.source}: epsilon {format_number(found.guarantee.epsilon)} at delta "
            f"{format_number(found.delta, 3)}."
        ),
    }


def _describe_implementation(found: Publishable, answers: Answers) -> dict[str, Any]:
    settings = describe_settings(found)
    outside = describe_plugins(found.plugins)
    told = [
        f"Mechanism `{found.mechanism}` of dperm {found.version}"
        + (f" ({settings})" if settings else ""),
        f"What it did: {words.list_events(found)}",
        f"Proof: {words.find_proof(found)}",
        f"Audit: {words.describe_audit(found)}",
        f"Floating point: {words.describe_noise(found)}",
        outside,
        "Timing: how long the computation took may depend on the records",
        f"Side channels: {answers.text('side_channels') or NOT_DECLARED}",
        f"Access control: {answers.text('access_control') or NOT_DECLARED}",
    ]
    before = answers.text("outside_work") or NOT_DECLARED
    return {
        "preprocessing_and_hyperparameter_tuning": (
            f"By dperm: {words.describe_preparation(found)} Outside dperm: {before}"
        ),
        "mechanisms": "".join(f"- {text.rstrip('.')}.\n" for text in told if text),
        "justification": answers.text("reason_for_epsilon") or NOT_DECLARED,
    }


def _write_notes(answers: Answers) -> str | None:
    """The notes, and the answers that the registry has no field for."""
    told = [answers.text("notes")]
    for name in _WITHOUT_FIELD:
        text = answers.text(name)
        told.append(text and f"{words.capitalise(name.replace('_', ' '))}: {text}")
    return "\n\n".join(text for text in told if text) or None


def _drop_missing(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
