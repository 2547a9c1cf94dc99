"""What an evaluation released: noisy sums and the public facts that they are read with.

Like ``Publishable`` it cannot reach records: this module does not import them, and all that it says
follows from what left.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import read_bytes
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.attack_risk import find_attack_risk
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.metrics.base import is_idle
from dperm_cli.privacy.metrics.joint_plan import PrivateMetrics

FILE = "evaluation.json"
LEVEL = 0.95
IDLE = "the figure says nothing: the noise is too large for so few records"
_MODEL = "model_sha256"
_KEYS = {"level_of_intervals", "metrics", "event"}  # of every evaluation that dperm wrote
_MOST_BYTES = 10**7  # of a file that is read
_MOST_LETTERS = 300  # of a figure in such a file
NOTE = (
    "Counted on records that the model was not fitted to. Fit and evaluation are about different "
    "records: together they cost the larger of the two epsilons, and not their sum. All metrics "
    "come from one release of noisy sums. Intervals for the population count noise and sampling, "
    "those for these records noise alone; each holds by itself."
)


@dataclass(frozen=True)
class EvaluatedRelease:
    """What an evaluation found.

    Attributes:
        found: the noisy sums, with their plan.
        guarantee: of the fit, which the evaluation keeps to as well.
        facts: public facts that the sums are read with (``Reading``).
    """

    found: PrivateMetrics
    guarantee: Guarantee
    facts: dict[str, Any]

    @cached_property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """What each metric says."""
        return self.found.describe(1.0 - LEVEL, **self.facts)

    @property
    def figures(self) -> dict[str, tuple[Any, Any]]:
        """The main figures: (estimate, interval for the population) by name, either may be None."""
        figures: dict[str, tuple[Any, Any]] = {}
        for metric in self.found.plan.metrics:
            for name, figure in metric.summarise(self.metrics[metric.name]).items():
                figures.setdefault(name, figure)
        return figures

    @property
    def idle_names(self) -> frozenset[str]:
        """The figures whose interval is all that a share can be, or nearly."""
        return frozenset(
            name
            for metric in self.found.plan.metrics
            if metric.gives_shares
            for name, (_, interval) in metric.summarise(self.metrics[metric.name]).items()
            if interval is not None and is_idle(interval)
        )

    def summarise(self) -> dict[str, Any]:
        """What is printed."""
        told: dict[str, Any] = {}
        for name, (estimate, interval) in self.figures.items():
            key = name.replace(" ", "_")
            told[key] = round(estimate, 6) if isinstance(estimate, float) else estimate
            if interval is not None:
                told[f"{key}_interval"] = format_interval(interval)
            if name in self.idle_names:
                told[f"{key}_remark"] = IDLE
        return told

    def list_words(self) -> list[tuple[str, str]]:
        """The main figures in words, for the statement."""
        found = []
        for name, (estimate, interval) in self.figures.items():
            shown = format_figure(estimate)
            if interval is not None:
                low, high = (format_figure(end) for end in interval)
                shown += f" ({LEVEL:.0%} interval for the population: {low} to {high})"
            if name in self.idle_names:
                shown += f"; {IDLE}"
            found.append((name[0].upper() + name[1:], shown))
        return found

    def write(self, model: bytes) -> bytes:
        """The file beside the model, whose own file is ``model``."""
        plan = self.found.plan
        facts = {
            "note": NOTE,
            "level_of_intervals": LEVEL,
            _MODEL: hash_sha256(model),
            "records": plan.records,
            "relation": plan.relation,
            "metrics": self.metrics,
            "in_words": dict(self.list_words()),
            "membership_advantage": find_attack_risk([plan.event], self.guarantee).advantage,
            "event": ledger_totals.to_dict(plan.event),
        }
        return (json.dumps(facts, indent=2, allow_nan=False) + "\n").encode()


@dataclass(frozen=True)
class StoredEvaluation:
    """The figures of an evaluation as its file has them in words.

    Attributes:
        told: name and figure, in their order.
    """

    told: tuple[tuple[str, str], ...]

    def list_words(self) -> list[tuple[str, str]]:
        """As those of ``EvaluatedRelease``."""
        return list(self.told)


def read_beside(model: str) -> StoredEvaluation | None:
    """The evaluation that lies beside a model file as ``evaluation.json``; None without one.

    One that an earlier dperm wrote does not name its model, and is taken for the model's.

    Raises:
        InputError: it is no such file, or that of another model.
        StorageError: it cannot be read.
    """
    path = Path(model).parent / FILE
    data = read_bytes(path) if path.is_file() else None
    if data is None:
        return None
    move = "move it, or the model, to another folder"
    try:
        if len(data) > _MOST_BYTES:
            raise ValueError("too large")
        found = json.loads(data)
        if not isinstance(found, dict) or not found.keys() >= _KEYS:
            raise ValueError("of another program")
        told = tuple((str(name), str(text)) for name, text in found.get("in_words", {}).items())
    except (ValueError, AttributeError, RecursionError):
        raise InputError(FILE, str(path), f"is no evaluation that dperm wrote: {move}") from None
    if _MODEL in found and found[_MODEL] != hash_sha256(read_bytes(Path(model)) or b""):
        raise InputError(FILE, str(path), f"is the evaluation of another model: {move}")
    return StoredEvaluation(tuple((n[:_MOST_LETTERS], t[:_MOST_LETTERS]) for n, t in told))


def format_figure(value: Any) -> str:
    """A figure for a page; one that has no bound says so."""
    if value is None:
        return "unknown"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def format_interval(interval: tuple[Any, Any]) -> str:
    """An interval in brackets, its ends to four digits.

    >>> format_interval((None, 0.25))
    '[unknown, 0.2500]'
    """
    low, high = ("unknown" if end is None else f"{end:.4f}" for end in interval)
    return f"[{low}, {high}]"
