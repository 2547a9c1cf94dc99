"""Parse the command line of ``dperm audit``: its own keys, and the words of a run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import FORMATS, Syntax, settings_in
from dperm_cli.runner.audits import fuzz
from dperm_cli.runner.compose import cell_schema, study_plan

# Keys of the audit itself; all others are those of a run, and make a configuration.
OWN = ("seed", "format", "out", "pair", "case", "part", "workers", "stop")
GRID = ("mechanism", "epsilon", "delta")  # alone, they choose among mechanisms and make none
PARTS = ("all", "adversary", "grid")
STOPS = ("never", "first")
SYNTAX = Syntax(
    keys=OWN, switches={"--quick": "--quick"}, operands=False, passes_on=True, empty=("out",)
)


@dataclass(frozen=True)
class Asked:
    """A command line: the audit's own keys, and the words that a run would take."""

    words: tuple[str, ...]
    settings: Mapping[str, str]
    quick: bool
    seed: int
    format: str
    out: Path | None
    workers: Any

    @property
    def has_configuration(self) -> bool:
        """Whether a run is described, and not mechanisms alone."""
        settings = [word for word in self.words if word.partition("=")[0] in GRID]
        return "pair" in self.settings or len(settings) < len(self.words)

    def read_word(self, key: str, default: str) -> str:
        """The last value typed for one of the keys in ``GRID``."""
        return settings_in(self.words).get(key, default)


def parse(arguments: list[str]) -> Asked:
    """The command line; InputError for what the audit itself cannot read."""
    _check_keys(arguments)
    words = SYNTAX.split(arguments)
    own = words.settings
    words.choose("part", PARTS)
    words.choose("stop", STOPS)
    return Asked(
        words=words.passed_on,
        settings=own,
        quick="--quick" in words.switches,
        seed=_seed(own.get("seed", "0")),
        format=words.choose("format", FORMATS),
        out=_folder(own.get("out", "")),
        workers=_workers(own.get("workers", "auto")),
    )


def _check_keys(arguments: list[str]) -> None:
    """UnknownKey for a word that neither the audit nor a run reads, with the keys of both."""
    run = cell_schema.known_top_level()
    settings = settings_in(arguments)
    if "draw" in settings:
        raise InputError("draw", settings["draw"], "repeats a draw of fuzz=: give both")
    # what is no plain key is for the grammar of a run to refuse; keys of fuzz= alone are refused
    plain = [key for key in settings if key.isidentifier() and key not in (*OWN, *run)]
    known = {*OWN, *fuzz.KEYS, *run} - set(plain)
    checks.known_keys(plain, known, guess=lambda key: study_plan.suggest_nested_key(key, settings))


def read_number(word: str) -> Any:
    """The number that is typed, or the word itself, which a check then refuses."""
    try:
        return float(word)
    except ValueError:
        return word


def _workers(word: str) -> Any:
    return word if word == "auto" else checks.integer("workers", read_number(word), low=1, high=256)


def _seed(word: str) -> int:
    if word == "fresh":
        return secrets.randbits(32)
    try:
        return cell_schema.check_key("seed", int(word))
    except ValueError:
        raise InputError("seed", word, "must be an integer >= 0, or fresh", ["fresh"]) from None


def _folder(word: str) -> Path | None:
    return Path(checks.folder("out", word)) if word else None
