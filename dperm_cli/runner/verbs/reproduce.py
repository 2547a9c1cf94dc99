"""``dperm reproduce``: run an experiment's cells, show them, and judge what it claims."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError
from dperm_cli.core.files import write_atomically
from dperm_cli.core.operands import CONFIG_DIR, FORMATS, Syntax, refuse_operands
from dperm_cli.results.claims import claims, experiment_tables
from dperm_cli.results.claims import judge as judging
from dperm_cli.results.leaderboard.site import write_site
from dperm_cli.results.record_format import CodeIdentity
from dperm_cli.results.records import manifest
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.results.report import write_report
from dperm_cli.results.study_files import CLAIMS
from dperm_cli.runner.cells import channel_rows, gap_rows, geometry_rows, last_iterate_rows
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.record_digest import identify_code, name_record
from dperm_cli.runner.compose import cell_schema, study_plan
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.compose.same_cells import canonical
from dperm_cli.runner.peers import peer_runs
from dperm_cli.runner.peers.catalogue import find_peer
from dperm_cli.runner.studies import experiment_file as experiments
from dperm_cli.runner.studies import freshness, verdict_files
from dperm_cli.runner.studies.experiment_file import Experiment, Part, Settings
from dperm_cli.runner.studies.tuned_defaults import find_tuned
from dperm_cli.runner.sweep import preflight
from dperm_cli.runner.sweep.backends import Options
from dperm_cli.runner.sweep.progress import open_meter
from dperm_cli.runner.sweep.sweep import run_cells
from dperm_cli.runner.verbs import account
from dperm_cli.runner.verbs import run as app
from dperm_cli.runner.verbs.account_request import parse_request

KEYS = ("size", "out", "format", "force", "workers", "backend", "address", "on_error",
        "verdicts")  # fmt: skip
ABSENT = "is not here"


@dataclass(frozen=True)
class ReproduceRequest:
    """What was typed: an experiment's id, and how to run it."""

    name: str
    size: str
    out: Path
    format: str
    force: bool
    config_dir: str | None
    options: Options
    verdicts: str | None = None


def reproduce_one(asked: ReproduceRequest, arguments: list[str]) -> int:
    """Run and judge one experiment; 1 where a cell failed or a claim did not come out as filed."""
    done = carry_out(asked, arguments)
    if asked.format == "json":
        print(json_lines(verdict.plain() for verdict in done.verdicts))
    else:
        print(done.text)
        print(experiment_tables.verdicts_text(done.verdicts).rstrip("\n"))
    return done.tell()


@dataclass(frozen=True)
class ReproduceResult:
    """One experiment, carried out: verdicts, failed cells, faults of its ledger."""

    verdicts: tuple[claims.Verdict, ...]
    failed: int
    faults: tuple[str, ...]
    text: str

    @property
    def failing_claims(self) -> list[str]:
        """The claims that fail."""
        return [verdict.claim.id for verdict in self.verdicts if verdict.fault]

    @property
    def code(self) -> int:
        return EXIT_FAILED if self.failed or self.failing_claims or self.faults else EXIT_OK

    def tell(self) -> int:
        """Say on stderr what went wrong; the exit code."""
        for fault in self.faults[:1]:
            print(f"dperm: the privacy ledger does not hold: {fault}", file=sys.stderr)
        if self.failing_claims:
            words = f"{len(self.failing_claims)} claims fail: {', '.join(self.failing_claims)}"
            print(f"dperm: {words}", file=sys.stderr)
        return self.code


def carry_out(
    asked: ReproduceRequest, arguments: Sequence[str], shown: bool = True
) -> ReproduceResult:
    """Run what has no record yet, judge, and write everything the experiment has to show.

    Without ``shown`` nobody reads the table now: it is not made again where nothing has changed.
    """
    found = experiments.load(asked.name, asked.size, asked.config_dir)
    app.check_folder(asked.out)
    store, parts, cells = _begin(found, asked, arguments)
    with hold_lease(asked.out):
        return _run_and_judge(found, asked, store, parts, cells, shown)


def _run_and_judge(
    found: experiments.Experiment,
    asked: ReproduceRequest,
    store: Store,
    parts: Parts,
    cells: Mapping[str, Any],
    shown: bool,
) -> ReproduceResult:
    failed = _run_cells(found.verb, store, asked, cells)
    if found.peers:
        peer_runs.update_table(found.peers, cells.values(), asked.out, found.name, _tell)
    about = describe(found, parts)
    verdicts = judge(found, Store(asked.out), about)
    if asked.verdicts is not None:
        verdict_files.write(Path(asked.verdicts), found.name, found.size, verdicts)
    judged = experiment_tables.verdicts_json(verdicts, about)
    if not shown and freshness.is_fresh(asked.out, judged):
        return ReproduceResult(verdicts, failed, (), "")
    # before the report, whose page shows them
    write_atomically(asked.out / CLAIMS, judged)
    made = write_report(asked.out, accountant=Accounting(), trust=True)
    if found.peers:
        write_site(asked.out)
    if not made.faults and not made.gaps:
        freshness.note(asked.out, judged, made.files)
    names = ", ".join(os.path.basename(path) for path in made.files)
    print(f"wrote {asked.out}{os.sep}: {names}, {CLAIMS}", file=sys.stderr)
    lost = tuple(f"releases may be missing: {gap}" for gap in made.gaps)
    return ReproduceResult(verdicts, failed, (*made.faults, *lost), made.text)


def _tell(words: str) -> None:
    print(f"peer {words}", file=sys.stderr)


def request(arguments: list[str]) -> ReproduceRequest:
    """The command line, every word checked."""
    words = Syntax(keys=KEYS, options=CONFIG_DIR).split(arguments)
    names, given = words.operands, words.settings
    if len(names) != 1:
        listed = ", ".join(catalogue.choices("experiment"))
        raise refuse_operands("experiment", names, f"must be one of {listed}")
    place = {"all": "outputs", "claims": "-"}.get(names[0], f"outputs/{names[0]}")
    out = given.get("out", place)
    checks.path("out", out, "must be a folder name")
    if "verdicts" in given:
        checks.folder("verdicts", given["verdicts"])
    return ReproduceRequest(
        name=names[0],
        size=words.choose("size", claims.SIZES),
        out=Path(out),
        format=words.choose("format", FORMATS),
        force=words.choose("force", ("false", "true")) == "true",
        config_dir=words.options.get("--config-dir"),
        options=options(given),
        verdicts=given.get("verdicts"),
    )


def options(given: Mapping[str, str]) -> Options:
    """How the cells are run, from the words of the command line."""
    workers = given.get("workers", "1")
    number = workers.isascii() and workers.isdigit()
    return Options.parse({**given, "workers": int(workers) if number else workers})


Parts = list[dict[str, Any]]


def describe(found: Experiment, parts: Parts) -> dict[str, Any]:
    """What the manifest says of the experiment: all that ``results`` needs to show it again."""
    return {
        "id": found.name,
        "paper": found.paper,
        "text": found.text,
        "size": found.size,
        "parts": parts,
        "table": list(found.table),
        "plot": list(found.plot),
        **({"peers": {name: find_peer(name).about for name in found.peers}} if found.peers else {}),
    }


def judge(found: Experiment, store: Store, about: Mapping[str, Any]) -> tuple[claims.Verdict, ...]:
    """The verdict on every claim, from the records in the store."""
    cells = [cell for part in about["parts"] for cell in part["cells"]]
    rows = experiment_tables.rows_of(store.read_all(cells), about)
    absent = {part["name"]: part["absent"] for part in about["parts"] if part["absent"]}
    return tuple(
        judging.judge(claim, rows, found.size, absent, find_tuned) for claim in found.claims
    )


def cells_of(part: Part, composer: Composer) -> tuple[cell_schema.Cell, ...]:
    """The typed cells of a part, as `dperm run` with the same settings would have them."""
    return study_plan.distinct(
        [cell_schema.build_cell(_configure_cell(s, composer)) for s in part.cells()]
    )


def _configure_cell(settings: Settings, composer: Composer) -> dict[str, Any]:
    study_plan.check_keys(settings)
    for key in study_plan.STUDY_KEYS:
        if key in settings:
            raise InputError(f"experiment.{key}", settings[key], "belongs to the command line")
    return study_plan.configure(settings, composer)


def _begin(
    found: Experiment, asked: ReproduceRequest, arguments: Sequence[str]
) -> tuple[Store, Parts, dict[str, Any]]:
    """The store with its manifest, the parts, and by record name what each cell is made of."""
    composer = Composer(asked.config_dir)
    parts: Parts = []
    cells: dict[str, Any] = {}
    for part in found.parts:
        entry = {"name": part.name, "text": part.text, "cells": [], "absent": part.find_reason()}
        parts.append(entry)
        if entry["absent"]:
            continue
        try:
            mine = _list_cells(found.verb, part, composer)
        except InputError as error:
            if ABSENT not in error.allowed:
                raise
            entry["absent"] = f"data: {error.value} {error.allowed.partition(':')[0]}"
            continue
        entry["cells"] = list(mine)
        cells |= mine
    if not cells:  # no part can run: nothing is left behind
        raise InputError("experiment", found.name, f"cannot run here: {parts[0]['absent']}")
    if found.verb == "run":
        todo = [item for key, item in cells.items() if asked.force or not Store(asked.out).has(key)]
        preflight.check_loaded(todo, asked.options, asked.out)
    store = Store(asked.out)
    keys = [key for part in parts for key in part["cells"]]
    extra = {"study": found.name, "experiment": describe(found, parts)}
    words = study_plan.drop_study_keys(arguments, set(KEYS) - {"size"})
    with hold_lease(asked.out):
        store.write_manifest(manifest.build(keys, ["reproduce", *words], extra))
    return store, parts, cells


def _run_cells(verb: str, store: Store, asked: ReproduceRequest, cells: Mapping[str, Any]) -> int:
    """Write the records that are not there yet; how many cells failed."""
    if verb == "run":
        return run_cells(list(cells.values()), store, asked.force, asked.options).failed_count
    with open_meter(len(cells)) as shown:
        for done, (key, cell) in enumerate(cells.items()):
            shown.cell(done, cell.label)
            if asked.force or not store.has(key):
                store.write(key, cell.make_rows(), code=cell.code)
    return 0


@dataclass(frozen=True)
class DerivedCell:
    """A cell whose rows follow from its settings alone: there are no records to release from."""

    label: str
    code: CodeIdentity
    make_rows: Callable[[], list[dict[str, Any]]]


def _list_cells(verb: str, part: Part, composer: Composer) -> dict[str, Any]:
    """The cells of a part by record name: prepared ones of a run, else derived ones."""
    if verb == "run":
        return {item.key: item for item in app.prepare(cells_of(part, composer))}
    if verb == "account":
        return list_plans(part, composer)
    makers = {
        "channel": channel_rows.make_rows,
        "gap": gap_rows.make_rows,
        "geometry": geometry_rows.make_rows,
        "last_iterate": last_iterate_rows.make_rows,
    }
    make_rows = makers[verb]
    known = registry.names("constraint")
    found = {}
    for settings in part.cells():
        sets = [registry.load("constraint", name) for name in settings.values() if name in known]
        key = name_record([verb, canonical(settings)], make_rows, *sets)
        code = identify_code(make_rows, *sets)
        label = " ".join(f"{word}={value}" for word, value in settings.items())
        found[key] = DerivedCell(label, code, partial(make_rows, settings))
    return found


def list_plans(part: Part, composer: Composer) -> dict[str, DerivedCell]:
    """What `dperm account` answers: plans, of which nothing is released."""
    found = {}
    for settings in part.cells():
        words = [f"{key}={_format_word(value)}" for key, value in settings.items()]
        config = canonical(settings)
        for ask in parse_request([*words, "figure=false"], composer).asks:
            facts = ["account", config, ask.name]
            makers = account.make_records, ask.mechanism, ask.spec
            key, code = name_record(facts, *makers), identify_code(*makers)
            label = f"{ask.name} n={ask.spec.n} {ask.calibration}"
            overrides = {**config, "mechanism": ask.name}
            found[key] = DerivedCell(label, code, partial(account.make_records, ask, overrides))
    return found


def _format_word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
