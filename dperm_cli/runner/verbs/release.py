"""``dperm release``: one release of a model from one's own table, with what belongs to it."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.core import checks
from dperm_cli.core.data_files import locate
from dperm_cli.core.errors import (
    EXIT_FAILED,
    EXIT_OK,
    NOTHING,
    InputError,
    Unsupported,
)
from dperm_cli.core.foreign_errors import suppress_warnings
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands, refuse_repeated
from dperm_cli.datasets.shared.table_schema import TableSchema, read_schema_file
from dperm_cli.privacy.accounting.budget_filter import spend_of
from dperm_cli.results.records.schema import json_lines
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.cells.single_release import SingleRelease, name_mechanism
from dperm_cli.runner.compose import cell_schema, command_line, study_plan
from dperm_cli.runner.compose.command_line import Request, Setting
from dperm_cli.runner.models import (
    budget_ledger,
    evaluated_release,
    model_card,
    model_file,
    release_evaluation,
    release_folder,
    save_model,
)
from dperm_cli.runner.models.evaluated_release import EvaluatedRelease
from dperm_cli.runner.models.metric_choice import MetricChoice
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.models.release_evaluation import evaluate_release
from dperm_cli.runner.models.release_model import release_model
from dperm_cli.runner.statements import answers as answers_file
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.facts import build_statement
from dperm_cli.runner.statements.html_page import write_html
from dperm_cli.runner.statements.number_words import format_number
from dperm_cli.runner.statements.pdf_pages import write_pdf
from dperm_cli.runner.statements.registry_entry import format_entry
from dperm_cli.runner.sweep import preflight
from dperm_cli.runner.sweep.data_storage import MAPPED, MEMORY
from dperm_cli.runner.verbs.release_diagnostics import find_diagnostics
from dperm_cli.runner.verbs.run import prepare

OWN_KEYS = ("out", "again", "format", "diagnostics", "delimiter", "budget", "answers",
            "evaluate", "metrics", "groups")  # fmt: skip
TRUTHS = ("false", "true")
_LARGE = 0.01  # of n delta, the expected number of records that delta alone may give away
STATEMENTS = {"html": write_html, "pdf": write_pdf}
# keys of a run that a release settles itself
SETTLED = ("dataset", "noise", "trials", "seed", "save", "workers", "backend", "force", "tune")


def release(arguments: list[str]) -> int:
    """``dperm release TABLE SCHEMA [epsilon=1] [KEY=VALUE ...]``."""
    # a file may be named like KEY=VALUE
    named = list(itertools.takewhile(lambda word: Path(word).is_file(), arguments[:2]))
    words = Syntax(keys=OWN_KEYS, passes_on=True).split(arguments[len(named) :])
    operands = [*named, *words.operands]
    if len(operands) != 2:
        allowed = "must be a table and its schema: `dperm schema TABLE > schema.yaml` drafts one"
        raise refuse_operands("release", operands, allowed)
    refuse_repeated(arguments[len(named) :])  # of two epsilons none is spent
    again = words.choose("again", TRUTHS) == "true"
    diagnosed = words.choose("diagnostics", TRUTHS[::-1]) == "true"
    form = words.choose("format", FORMATS)
    table = locate("TABLE", operands[0], None)
    schema = read_schema_file("SCHEMA", operands[1], locate("SCHEMA", operands[1], None))
    place = words.settings.get("out", f"outputs/releases/{table.stem}")
    folder = Path(checks.folder("out", place))
    number = release_folder.check_folder(folder, again=True)
    budget = words.settings.get("budget")
    if budget is not None:
        budget_ledger.read_budget(budget)  # refused before the table is read
    answers = answers_file.read(words.settings.get("answers"))
    share = read_share(words.settings.get("evaluate"))
    choice = read_metrics(words.settings, share)
    asked = ask_for(operands, words.passed_on, words.settings.get("delimiter"), share)
    with threadpool_limits(1), suppress_warnings():
        try:
            made = make_release(asked, schema, folder, (number, again), budget, choice)
        except Unsupported as reason:
            print(f"dperm: unsupported: {reason}", file=sys.stderr)
            return EXIT_FAILED
        prepared, single, found, entry, evaluated = made
        files = dict(list_files(found, answers, evaluated))
        to = release_folder.write_release(folder, number, files)
        if budget is not None:
            budget_ledger.finish(budget, entry, str(to))
        if diagnosed:
            release_folder.write_diagnostics(folder, number, find_diagnostics(prepared, single))
    told = {"release": str(to), "number": number, **summarise(found, files)}
    if evaluated is not None:
        told |= evaluated.summarise()
    if budget is not None:
        told |= {"budget": budget, "rest": budget_ledger.read_budget(budget).describe_rest()}
    if form == "json":
        print(json_lines([told]))
    else:
        width = max(map(len, told))
        level = {key: format_number(told[key]) for key in ("epsilon", "delta")}
        print("\n".join(f"{key:<{width}}  {value}" for key, value in (told | level).items()))
    print(
        f"dperm: next: dperm predict {to / model_card.MODEL} rows.csv; what lies in "
        f"{folder / release_folder.PRIVATE} is for the holder of the records alone",
        file=sys.stderr,
    )
    return EXIT_OK


def read_share(word: str | None) -> float:
    """The share of the records that the model is evaluated on; 0 where it is not."""
    if word is None:
        return 0.0
    value = number_in(word)
    return checks.number(
        "evaluate", word if value is None else value, low=0.0, high=0.9,
        allowed="must be the share of the records to evaluate on, from 0 to 0.9",
    )  # fmt: skip


def read_metrics(settings: Mapping[str, str], share: float) -> MetricChoice:
    """The metrics that were asked for; InputError where no record is held out for them."""
    for key in ("metrics", "groups"):
        if key in settings and not share:
            raise InputError(key, settings[key], "needs a share of the records: evaluate=0.2")
    return MetricChoice.parse(settings.get("metrics"), settings.get("groups"))


def ask_for(
    operands: list[str], words: tuple[str, ...], delimiter: str | None, share: float
) -> Request:
    """The request of one cell: the table, secure noise, one trial, and the keys that were typed.

    Raises:
        InputError: a key is one that a release settles itself.
    """
    request = command_line.parse(list(words))
    known = sorted({*OWN_KEYS, *cell_schema.known_top_level()} - {*SETTLED})
    for setting in request.settings:
        if setting.key.partition(".")[0] not in (*known, *SETTLED):
            checks.known_keys([setting.key], known)
        if setting.key.partition(".")[0] in SETTLED:
            shown = ", ".join(str(value) for value in setting.values)
            allowed = "is settled by a release: it is made once, of all records, with secure noise"
            raise InputError(setting.key, shown, allowed)
    own: dict[str, Any] = {
        "dataset": "table", "dataset.path": operands[0], "dataset.schema": operands[1],
        "dataset.test_fraction": share, "noise": "secure", "trials": 1,
    }  # fmt: skip
    if delimiter is not None:
        own["dataset.delimiter"] = delimiter
    added = tuple(Setting(key, (value,), False) for key, value in own.items())
    return replace(request, settings=(*request.settings, *added))


def make_release(
    request: Request,
    schema: TableSchema,
    folder: Path,
    asked: tuple[int, bool],
    budget_name: str | None,
    choice: MetricChoice,
) -> tuple[Prepared, SingleRelease, Publishable, str, EvaluatedRelease | None]:
    """Plan from public facts, count the release, and only then draw.

    Args:
        request: The release, and what it is made of.
        schema: What the table declares.
        folder: Where it goes.
        asked: Its number in the folder, and whether it may follow another one there.
        budget_name: The file of the budget that it is counted in, if any.
        choice: What is measured on held-out records.

    Returns:
        The cell, its release, what of it may leave, the id of its entry in the budget, and its
        evaluation on held-out records, where some were held out.

    Raises:
        PrivacyError: the release does not fit into the budget.
        InputError: the request makes no sense, or the table does not fit the schema.
        Unsupported: no mechanism has a secure form for it.
    """
    study = study_plan.plan_release([request])
    if len(study.cells) != 1:
        raise InputError("release", f"{len(study.cells)} cells", "is one release: give one value")
    save_model.check_cell(study.cells[0])
    # a copy of private records, and the line that tells of it, only where it is asked for
    storage = MAPPED if study.keys.data_storage == MAPPED else MEMORY
    prepared = prepare(study.cells, storage)[0]
    preflight.check_loaded([prepared], study.keys, folder)
    evaluated = prepared.data.x_test is not None
    if evaluated or any(s.key == "dataset.test_fraction" and s.values[0] for s in request.settings):
        release_evaluation.check_evaluation(prepared, choice, schema)
    check_epsilon(request)
    number, again = asked
    release_folder.check_folder(folder, again)  # the last check: nothing else is wrong with it
    entry, plan = "", None

    def count(planned: run_cell.Planned) -> None:
        nonlocal entry, plan
        if evaluated:
            plan = release_evaluation.plan_evaluation(prepared, planned, choice, schema)
        if budget_name is not None:
            spend = spend_of(planned.plan.events, planned.guarantee, schema.unit.at_most)
            what = f"{schema.target.column}: release {number} in {folder}"
            chosen = name_mechanism(prepared, planned.plan)
            entry = budget_ledger.reserve(budget_name, spend, prepared.cell.relation, chosen, what)
        record = planned.budget
        warn_of_delta(record.delta, prepared.population)
        facts = {
            "epsilon_of_one_record": record.epsilon,
            "delta_of_one_record": record.delta,
            "relation": record.relation,
        }
        release_folder.begin_release(folder, number, facts)

    single, found = release_model(prepared, count)
    if plan is None:
        return prepared, single, found, entry, None
    counted = evaluate_release(prepared, plan, single, choice, schema)
    return prepared, single, found, entry, counted


def check_epsilon(request: Request) -> None:
    """InputError where nobody said how much is spent: what left cannot be called back."""
    if not {"epsilon", "information"} & {setting.key for setting in request.settings}:
        allowed = "is not given: say how much this release may spend, as in epsilon=1"
        raise InputError("epsilon", NOTHING, allowed)


def warn_of_delta(delta: float, n: int) -> None:
    """Say on stderr that a delta lets a whole record out with a chance that is not negligible.

    Args:
        delta: Of one record.
        n: The number of records: public, or the declared population.
    """
    if delta * n > _LARGE:
        enough = min(1e-6, 10.0 ** math.floor(math.log10(_LARGE / n)))
        print(
            f"dperm: delta={delta:.3g} is large for {n} records: publishing each record with "
            f"that chance would keep the promise; say delta={enough:.0e} or less",
            file=sys.stderr,
        )


def list_files(
    found: Publishable, answers: Answers, evaluated: EvaluatedRelease | None
) -> Mapping[str, bytes]:
    """What leaves, by file name: functions of the ``Publishable`` and of what a person declared,
    and of what an evaluation released.

    The registry's entry is among it where the answers suffice.
    """
    files = {
        model_card.MODEL: model_file.bytes_of(found),
        model_card.LEDGER: model_card.write_ledger(found),
        model_card.CARD: model_card.write_card(found),
    }
    if evaluated is not None:
        files[evaluated_release.FILE] = evaluated.write(files[model_card.MODEL])
    if not STATEMENTS:
        return files
    built = build_statement(found, answers, evaluated)
    files |= {f"statement.{form}": STATEMENTS[form](built) for form in STATEMENTS}
    with contextlib.suppress(InputError):
        files["registry.yaml"] = format_entry(found, answers, built.risk).encode()
    return files


def summarise(found: Publishable, files: Iterable[str]) -> dict[str, Any]:
    """What is printed of a release: nothing that its documents do not say."""
    promise = found.person_guarantee
    return {
        "mechanism": found.mechanism,
        "guarantee": promise.kind,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "relation": found.relation,
        "unit": model_card.describe_unit(found),
        "noise": found.noise,
        "files": ", ".join(files),
    }
