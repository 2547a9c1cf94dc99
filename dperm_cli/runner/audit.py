"""``dperm audit``: what can be shown about each mechanism's epsilon, from outside."""

from __future__ import annotations

import csv
import io
import json
import math
import secrets
import sys
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.audit import examine as audits
from dperm_cli.audit.examine import Verdict, examine
from dperm_cli.core import checks, registry
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError, UnknownKey, Unsupported
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.results.store import atomic_write
from dperm_cli.runner import fuzz, schema
from dperm_cli.runner.progress import meter

DELTA = 1e-5
KEYS = ("mechanism", "epsilon", "delta", "seed", "format", "out")
FORMATS = ("table", "json")
QUICK_ROUNDS = 40
HEAD = (
    "mechanism", "relation", "epsilon", "delta", "bound", "tightness", "floor", "control",
    "replay", "worst", "exact", "verdict",
)  # fmt: skip


def audit(arguments: list[str]) -> int:
    """Audit and print; 1 on a violation."""
    if fuzz.is_asked(arguments):
        return fuzz.fuzz(arguments)
    with threadpool_limits(1):
        return _audit(arguments)


def _audit(arguments: list[str]) -> int:
    quick = "--quick" in arguments
    options = _options([word for word in arguments if word != "--quick"])
    names = _names(options["mechanism"])
    levels = [_epsilon(word) for word in options["epsilon"].split(",")]
    delta = schema.delta_asked("delta", _number(options["delta"]))
    format_ = checks.choice("format", options["format"], FORMATS)
    seed, out = _seed(options["seed"]), _folder(options["out"])
    jobs = [
        (name, _budget(name, epsilon, delta, relation))
        for name in names
        for epsilon in levels
        for relation in RELATIONS
        if relation in registry.load("mechanism", name).relations
    ]
    verdicts = _examine(jobs, seed, quick)
    rows = [verdict.row() | {"seed": seed} for verdict in verdicts]
    print(_json(rows) if format_ == "json" else table(rows))
    for verdict in verdicts:
        for fault in verdict.faults:
            print(f"{verdict.name}, {verdict.budget.relation}: {fault}", file=sys.stderr)
    if out is not None:
        _write(out, rows)
    return EXIT_FAILED if any(verdict.faults for verdict in verdicts) else EXIT_OK


def _budget(name: str, epsilon: float, delta: float, relation: str) -> Budget:
    """Local channels have no delta."""
    if registry.load("mechanism", name).guarantees == ("local",):
        return Budget(epsilon, 0.0, relation, "local")
    return Budget(epsilon, delta, relation)


def _examine(jobs: list[tuple[str, Budget]], seed: int, quick: bool) -> list[Verdict]:
    found = []
    rounds = (QUICK_ROUNDS if quick else audits.ROUNDS) // 2  # the two relations share them
    with meter(len(jobs)) as shown:
        for done, (name, budget) in enumerate(jobs):
            shown.cell(done, f"{name} epsilon={budget.epsilon:g} {budget.relation}")
            mechanism = registry.load("mechanism", name)()
            try:
                found.append(
                    examine(name, mechanism, budget, seed=seed, quick=quick, rounds=rounds)
                )
            except Unsupported as reason:
                shown.note(f"{name}, {budget.relation}: not audited: {reason}")
            except OverflowError:
                words = f"e^epsilon is beyond float64 at epsilon {budget.epsilon:g}"
                shown.note(f"{name}, {budget.relation}: not audited: {words}")
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in columns."""
    lines = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    caught = "missed" if row["control_asked"] else "no room"
    caught = "caught" if row["control_caught"] else caught
    return (
        row["mechanism"],
        row["relation"],
        f"{row['claim']:.4g}",
        f"{row['delta']:.3g}",
        f"{row['bound']:.4g}",
        f"{row['tightness']:.3f}",
        "-" if row["floor"] is None else f"{row['floor']:.2f}",
        caught,
        f"{row['replay_calls']} calls",
        f"{row['replay_worst']:.4f}",
        "-" if row["exact"] is None else f"{row['exact']:.6f}",
        row["verdict"],
    )


def _options(words: list[str]) -> dict[str, str]:
    found = {
        "mechanism": "all", "epsilon": "1", "delta": repr(DELTA), "seed": "0", "format": "table",
        "out": "",
    }  # fmt: skip
    for word in words:
        key, equals, value = word.partition("=")
        if key not in KEYS:
            raise UnknownKey(key, [*KEYS, "--quick"])
        if not equals or (not value and key != "out"):
            raise InputError(key, value, "needs a value: write KEY=VALUE")
        found[key] = value
    return found


def _names(given: str) -> list[str]:
    known = registry.protective()
    if given == "all":
        return list(known)
    return [checks.choice("mechanism", name, ("all", *known)) for name in given.split(",")]


def _epsilon(word: str) -> float:
    return schema.epsilon_asked(_number(word))


def _number(word: str) -> object:
    try:
        return float(word)
    except ValueError:
        return word


def _seed(word: str) -> int:
    if word == "fresh":
        return secrets.randbits(32)
    try:
        return schema.seed_asked(int(word))
    except ValueError:
        raise InputError("seed", word, "must be an integer >= 0, or fresh", ["fresh"]) from None


def _folder(word: str) -> Path | None:
    if not word:
        return None
    out = Path(word)
    if out.exists() and not out.is_dir():
        raise InputError("out", word, "is a file; it must be a folder")
    return out


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(rows[0]) if rows else HEAD)
    for row in rows:
        writer.writerow(["; ".join(v) if isinstance(v, list) else v for v in row.values()])
    atomic_write(out / "audit.csv", text.getvalue().encode())
    atomic_write(out / "audit.json", (_json(rows) + "\n").encode())
    print(f"wrote {out}: audit.csv, audit.json", file=sys.stderr)


def _json(rows: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps({k: _finite(v) for k, v in row.items()}) for row in rows)


def _finite(value: Any) -> Any:
    """JSON has no nan and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
