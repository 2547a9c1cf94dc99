"""Parse the command line of ``dperm audit module:object`` and ``dperm audit exec:COMMAND``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.audit.outside.records import KEY, read_kind
from dperm_cli.audit.outside.statistics import KINDS
from dperm_cli.core import checks, processors
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import NOTHING, InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.runner.audits.outside_audit import Question
from dperm_cli.runner.audits.outside_targets import PROGRAM

KEYS = (
    "claim.epsilon", "claim.delta", "relation", "records", "method", "runs", "minutes", "workers",
    "seed", "beyond", "without", "pairs", "format", "out",
)  # fmt: skip
SYNTAX = Syntax(keys=KEYS)
METHODS = ("pairs", "canaries")
# by method: the fewest runs, and how many there are unless they are given
LEAST_RUNS, DEFAULT_RUNS = {"pairs": 100, "canaries": 1}, {"pairs": 40_000, "canaries": 16}
MOST_RUNS = 10**8
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
        method=own.get("method", "pairs"), runs=_read_runs(own),
        minutes=_read(own.get("minutes", "10")), seed=_read(own.get("seed", "0")),
        without=without, pairs=pairs, beyond=words.choose("beyond", ("false", "true")) == "true",
    )  # fmt: skip
    default = min(256, processors.count()) if targets[0].startswith(PROGRAM) else 1
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
    method: Any = "pairs",
    runs: Any = None,
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
    method = checks.choice("method", method, METHODS)
    if method == "canaries":
        _check_canaries(level, beyond, without, pairs)
    least = LEAST_RUNS[method]
    return Question(
        epsilon=level,
        delta=checks.number("claim.delta", delta, low=0.0, high=1.0, high_open=True),
        relation=checks.choice("relation", relation, RELATIONS),
        kind=read_kind(records),
        runs=checks.integer(
            "runs", DEFAULT_RUNS[method] if runs is None else runs, low=least, high=MOST_RUNS
        ),
        seconds=60.0 * checks.positive("minutes", minutes),
        seed=checks.integer("seed", seed, low=0),
        beyond=beyond,
        without=tuple(without),
        pairs=tuple(pairs),
        method=method,
    )


def _check_canaries(
    epsilon: float, beyond: bool, without: Sequence[str], pairs: Sequence[str]
) -> None:
    """Refuse what only a search among pairs can do."""
    allowed = "cannot stand beside method=canaries, which has no pairs; leave it out"
    if math.isnan(epsilon):
        raise InputError("claim.epsilon", epsilon, "must be a number for method=canaries")
    for key, value in (("beyond", beyond), ("without", without), ("pairs", pairs)):
        if value:
            words = "true" if value is True else ",".join(map(str, value))
            raise InputError(key, words, allowed)


def _read_runs(own: Mapping[str, str]) -> Any:
    return _read(own["runs"]) if "runs" in own else None


def _read(word: str) -> Any:
    """The number that is typed, nan too, or the word itself, which a check then refuses."""
    if word.strip().lower() == "nan":
        return math.nan
    found = number_in(word)
    return word if found is None else found
