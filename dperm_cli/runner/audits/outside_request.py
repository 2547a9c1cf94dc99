"""Parse the command line of ``dperm audit module:object`` and ``dperm audit exec:COMMAND``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dperm_cli.audit.outside.records import KEY, read_kind
from dperm_cli.audit.outside.statistics import KINDS
from dperm_cli.core import checks
from dperm_cli.core.errors import NOTHING, InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.runner.audits.outside_audit import Question
from dperm_cli.runner.audits.outside_targets import PROGRAM

KEYS = (
    "claim.epsilon", "claim.delta", "relation", "records", "runs", "minutes", "workers", "seed",
    "beyond", "without", "pairs", "format", "out",
)  # fmt: skip
SYNTAX = Syntax(keys=KEYS)
LEAST_RUNS, MOST_RUNS = 100, 10**8
PARTS = (
    "zeros", "copies", "opposite_rows", "halves", "spread", "one_class", "alone", "empty", "beyond",
    "opposite", "zero", "orthogonal", "diagonal", "half", "flip", "record",
)  # fmt: skip
_TARGET = re.compile(r"[^=:]+:[A-Za-z_][\w.]*")
_DEFAULT_KIND = "numeric:p=1"


@dataclass(frozen=True)
class Asked:
    """A command line."""

    target: str
    question: Question
    workers: int
    format: str
    out: Path | None


def is_asked(arguments: Sequence[str]) -> bool:
    """Whether a command line of ``dperm audit`` names a mechanism that dperm did not write."""
    return any(_is_target(word) for word in arguments)


def _is_target(word: str) -> bool:
    return word.startswith(PROGRAM) or _TARGET.fullmatch(word) is not None


def parse(arguments: Sequence[str]) -> Asked:
    """The command line.

    Raises:
        InputError: A word of it makes no sense.
    """
    targets = [word for word in arguments if _is_target(word)]
    words = SYNTAX.split([word for word in arguments if not _is_target(word)])
    if len(targets) != 1 or words.operands:
        others = [*targets[1:], *words.operands]
        raise InputError("target", " ".join(others), "must be one mechanism")
    own = words.settings
    if "claim.epsilon" not in own:
        raise InputError("claim.epsilon", NOTHING, "has to be given: what is claimed")
    without, pairs = (
        tuple(word for word in own.get(key, "").split(",") if word) for key in ("without", "pairs")
    )
    question = make_question(
        epsilon=_read(own["claim.epsilon"]), delta=_read(own.get("claim.delta", "0")),
        relation=own.get("relation", "replace_one"), records=own.get("records", _DEFAULT_KIND),
        runs=_read(own.get("runs", "40000")), minutes=_read(own.get("minutes", "10")),
        seed=_read(own.get("seed", "0")), without=without, pairs=pairs,
        beyond=words.choose("beyond", ("false", "true")) == "true",
    )  # fmt: skip
    default = (os.cpu_count() or 1) if targets[0].startswith(PROGRAM) else 1
    workers = checks.integer("workers", _read(own.get("workers", str(default))), low=1, high=256)
    out = own.get("out", "")
    return Asked(
        targets[0], question, workers, words.choose("format", FORMATS),
        Path(checks.folder("out", out)) if out else None,
    )  # fmt: skip


def make_question(
    *,
    epsilon: Any,
    delta: Any = 0.0,
    relation: Any = "replace_one",
    records: Any = _DEFAULT_KIND,
    runs: Any = 40_000,
    minutes: Any = 10.0,
    seed: Any = 0,
    beyond: bool = False,
    without: Sequence[str] = (),
    pairs: Sequence[str] = (),
) -> Question:
    """The question with every value checked.

    Raises:
        InputError: A value makes no sense.
    """
    is_nan = isinstance(epsilon, float) and math.isnan(epsilon)
    allowed = "must be a finite number >= 0, or nan"
    level = epsilon if is_nan else checks.number("claim.epsilon", epsilon, low=0.0, allowed=allowed)
    if not isinstance(records, str):
        raise InputError(KEY, records, "must be a text such as 'numeric:p=3,norm=1'")
    for key, words, known in (("without", without, (*KINDS, *PARTS)), ("pairs", pairs, PARTS)):
        for word in words:
            if "/" not in word:
                checks.choice(key, word, known)
    return Question(
        epsilon=level,
        delta=checks.number("claim.delta", delta, low=0.0, high=1.0, high_open=True),
        relation=checks.choice("relation", relation, RELATIONS),
        kind=read_kind(records),
        runs=checks.integer("runs", runs, low=LEAST_RUNS, high=MOST_RUNS),
        seconds=60.0 * checks.positive("minutes", minutes),
        seed=checks.integer("seed", seed, low=0),
        beyond=beyond,
        without=tuple(without),
        pairs=tuple(pairs),
    )


def _read(word: str) -> Any:
    """The number that is typed, nan too, or the word itself, which a check then refuses."""
    if word.strip().lower() == "nan":
        return math.nan
    found = number_in(word)
    return word if found is None else found
