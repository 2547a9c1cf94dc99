"""``dperm audit``: what can be shown about a run's epsilon, or every mechanism's, from outside."""

from __future__ import annotations

import csv
import io
import json
import math
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.audit import mechanism_audit as audits
from dperm_cli.audit.case_report import Report
from dperm_cli.audit.mechanism_audit import Verdict, examine
from dperm_cli.core import checks, registry
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError, UnknownKey, Unsupported
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.results.records.store import atomic_write
from dperm_cli.runner.audits import audit_grid, audit_tables, bad_input, fuzz, one_run
from dperm_cli.runner.audits.audit_grid import GridWalk
from dperm_cli.runner.audits.pool import Job, run_jobs
from dperm_cli.runner.compose import cell_schema, study_plan

DELTA = 1e-5
# Keys of the audit itself; all others are those of a run, and make a configuration.
AUDIT_KEYS = ("seed", "format", "out", "pair", "case", "part", "workers", "stop")
GRID_KEYS = ("mechanism", "epsilon", "delta")  # alone, they choose among mechanisms and make none
FORMATS = ("table", "json")
PARTS = ("all", "adversary", "grid")
STOPS = ("never", "first")
QUICK_ROUNDS = 40
SLOW_MECHANISMS = (
    "noisy_sgd",
    "high_probability",
    "localization",
    "frank_wolfe",
)  # walks that take longest


@dataclass(frozen=True)
class AuditRequest:
    """A command line: the audit's own keys, and the words that a run would take."""

    words: tuple[str, ...]
    settings: dict[str, str]
    quick: bool
    seed: int
    format: str
    out: Path | None
    workers: Any

    @property
    def has_configuration(self) -> bool:
        """Whether a run is described, and not mechanisms alone."""
        keys = [word.partition("=")[0] for word in self.words]
        return "pair" in self.settings or any(key not in GRID_KEYS for key in keys)

    def read_word(self, key: str, default: str) -> str:
        """The last value typed for one of the keys in ``GRID_KEYS``."""
        found = [word.partition("=")[2] for word in self.words if word.partition("=")[0] == key]
        return found[-1] if found else default


@dataclass
class Findings:
    """All that an audit found, in the order of the mechanisms."""

    verdicts: list[Verdict]
    reports: list[Report]
    walks: list[GridWalk]

    @property
    def faults(self) -> list[str]:
        """What is wrong, a line each."""
        found = [
            f"{v.name}, {v.budget.relation}: {fault}" for v in self.verdicts for fault in v.faults
        ]
        for report in self.reports:
            found += [f"{report.head}: {fault}" for fault in report.faults]
        for walk in self.walks:
            found += [
                f"{walk.name}, {what}: a plan is above its budget: {reason}"
                for what, reason in walk.missing
                if reason.startswith("refused to release")
            ]
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was attacked."""
        return not self.verdicts and not any(report.is_attacked for report in self.reports)


def audit(arguments: list[str]) -> int:
    """Audit and print; 1 on a violation, and where nothing could be audited."""
    if fuzz.is_asked(arguments):
        return fuzz.fuzz(arguments)
    asked = parse(arguments)
    with threadpool_limits(1):
        found = one_run.audit_study(asked) if asked.has_configuration else _audit_all(asked)
    rows = [verdict.row() | {"kind": "adversary"} for verdict in found.verdicts]
    rows += [report.row() | {"kind": "case"} for report in found.reports]
    rows += audit_tables.missing_rows(found.walks)
    rows = [row | {"seed": asked.seed} for row in rows]
    print(_json(rows) if asked.format == "json" else audit_tables.format_findings(found))
    for fault in found.faults:
        print(fault, file=sys.stderr)
    if asked.out is not None:
        _write(asked.out, rows)
    return EXIT_FAILED if found.faults or found.is_empty else EXIT_OK


def parse(arguments: list[str]) -> AuditRequest:
    """The command line; InputError for what the audit itself cannot read."""
    own, words = {}, []
    _check_keys(arguments)
    for word in arguments:
        key, equals, value = word.partition("=")
        if word == "--quick":
            continue
        if key not in AUDIT_KEYS:
            words.append(word)
            continue
        if not equals or (not value and key != "out"):
            raise InputError(key, value, "needs a value: write KEY=VALUE")
        own[key] = value
    checks.choice("part", own.get("part", "all"), PARTS)
    checks.choice("stop", own.get("stop", "never"), STOPS)
    return AuditRequest(
        words=tuple(words),
        settings=own,
        quick="--quick" in arguments,
        seed=_seed(own.get("seed", "0")),
        format=checks.choice("format", own.get("format", "table"), FORMATS),
        out=_folder(own.get("out", "")),
        workers=_workers(own.get("workers", "auto")),
    )


def _check_keys(arguments: list[str]) -> None:
    """UnknownKey for a word that neither the audit nor a run reads, with the keys of both."""
    run = cell_schema.known_top_level()
    for word in arguments:
        key, equals, value = word.partition("=")
        if equals and key == "draw":
            raise InputError(key, value, "repeats a draw of fuzz=: give both")
        # what is no plain key is for the grammar of a run to refuse
        if equals and key.isidentifier() and key not in (*AUDIT_KEYS, *run):
            values = dict(word.split("=", 1) for word in arguments if "=" in word)
            guess = study_plan.suggest_nested_key(key, values)
            raise UnknownKey(key, {*AUDIT_KEYS, *fuzz.KEYS, *run}, guess)


def _audit_all(asked: AuditRequest) -> Findings:
    """Every mechanism's own adversary, and the declared grid."""
    names = _names(asked.read_word("mechanism", "all"))
    levels = [_epsilon(word) for word in asked.read_word("epsilon", "1").split(",")]
    delta = _number(asked.read_word("delta", repr(DELTA)))
    delta = cell_schema.check_delta("delta", delta)
    part, case = asked.settings.get("part", "all"), _case(asked)
    jobs: list[Job] = []
    if part != "grid" and case is None:
        jobs += _adversaries(names, levels, delta, asked)
    if part != "adversary" or case is not None:
        walks = [Job((name,), audit_grid.walk, (name, asked.quick)) for name in names]
        # what takes longest comes first
        walks.sort(key=lambda job: job.arguments[0] not in SLOW_MECHANISMS)
        jobs = [*walks, *jobs]
        if case is None:
            jobs.append(Job((bad_input.NAME,), bad_input.examine_inputs, ()))
    found = Findings([], [], [])

    def more(job: Job, result: Any) -> list[Job]:
        """The cases of a walk follow from its design."""
        if not isinstance(result, GridWalk):
            return []
        chunks = result.chunks() if case is None else [result.only(case)]
        return [
            Job((result.name, f"cases from {stops[0].number}"), audit_grid.examine_stops,
                (result.name, stops, asked.seed))
            for stops in chunks
        ]  # fmt: skip

    results = run_jobs(jobs, more, asked.workers)
    for result in results:
        if isinstance(result, GridWalk):
            found.walks.append(result)
            if not result.stops:
                found.reports.append(_no_case(result))
        elif isinstance(result, Report):
            found.reports.append(result)
        elif isinstance(result, list):
            found.reports += result
        elif result is not None:
            found.verdicts.append(result)
        if asked.settings.get("stop") == "first" and found.faults:
            results.close()
            break
    order = [*names, bad_input.NAME]
    found.reports.sort(key=lambda report: (order.index(report.name), report.number))
    found.walks.sort(key=lambda walk: names.index(walk.name))
    found.verdicts.sort(key=lambda v: (names.index(v.name), levels.index(v.budget.epsilon),
                                       RELATIONS.index(v.budget.relation)))  # fmt: skip
    return found


def _no_case(walk: GridWalk) -> Report:
    """The report on a mechanism of which nothing on the grid can be run."""
    reason = walk.missing[0][1] if walk.missing else "it has no settings"
    return Report(walk.name, "no settings", faults=[f"no case of the grid can be run: {reason}"])


def _adversaries(
    names: Sequence[str], levels: Sequence[float], delta: float, asked: AuditRequest
) -> list[Job]:
    return [
        Job((name, f"epsilon={epsilon:g}", relation), attack_as_shipped,
            (name, _make_budget(name, epsilon, delta, relation), asked.seed, asked.quick))
        for name in names
        for epsilon in levels
        for relation in RELATIONS
        if relation in registry.load("mechanism", name).relations
    ]  # fmt: skip


def attack_as_shipped(name: str, budget: Budget, seed: int, quick: bool) -> Verdict | None:
    """A mechanism's own adversary against it; None where it has no plan."""
    return attack_instance(name, registry.load("mechanism", name)(), budget, seed, quick)


def attack_instance(
    name: str, mechanism: Any, budget: Budget, seed: int, quick: bool
) -> Verdict | None:
    """The adversary of an instance; None where there is no plan to attack."""
    rounds = (QUICK_ROUNDS if quick else audits.ROUNDS) // 2  # the two relations share them
    try:
        return examine(name, mechanism, budget, seed=seed, quick=quick, rounds=rounds)
    except Unsupported:
        return None
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return audits.make_refused_verdict(name, budget, f"raised {text}")


def _make_budget(name: str, epsilon: float, delta: float, relation: str) -> Budget:
    """Local channels have no delta."""
    if registry.load("mechanism", name).guarantees == ("local",):
        return Budget(epsilon, 0.0, relation, "local")
    return Budget(epsilon, delta, relation)


def _names(given: str) -> list[str]:
    if given == "all":
        return list(registry.list_protective())
    names = given.split(",")
    one_run.check_protective(names)
    return names


def _epsilon(word: str) -> float:
    return cell_schema.check_epsilon(_number(word))


def _number(word: str) -> Any:
    try:
        return float(word)
    except ValueError:
        return word


def _case(asked: AuditRequest) -> int | None:
    word = asked.settings.get("case")
    return None if word is None else checks.integer("case", _number(word), low=0)


def _workers(word: str) -> Any:
    return word if word == "auto" else checks.integer("workers", _number(word), low=1, high=256)


def _seed(word: str) -> int:
    if word == "fresh":
        return secrets.randbits(32)
    try:
        return cell_schema.check_seed(int(word))
    except ValueError:
        raise InputError("seed", word, "must be an integer >= 0, or fresh", ["fresh"]) from None


def _folder(word: str) -> Path | None:
    if not word:
        return None
    out = Path(checks.path("out", word))
    if out.exists() and not out.is_dir():
        raise InputError("out", word, "is a file; it must be a folder")
    return out


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    written = []
    for kind, name in (("adversary", "audit.csv"), ("case", "cases.csv")):
        chosen = [row for row in rows if row["kind"] == kind]
        if chosen:
            atomic_write(out / name, _csv(chosen).encode())
            written.append(name)
    atomic_write(out / "audit.json", (_json(rows) + "\n").encode())
    print(f"wrote {out}: {', '.join([*written, 'audit.json'])}", file=sys.stderr)


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        writer.writerow(["; ".join(v) if isinstance(v, list) else v for v in row.values()])
    return text.getvalue()


def _json(rows: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps({k: _finite(v) for k, v in row.items()}) for row in rows)


def _finite(value: Any) -> Any:
    """JSON has no nan and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
