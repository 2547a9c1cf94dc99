"""The claims of an experiment and the form of their verdicts.

The form of ``claims.yaml`` and the rules of judgement are in docs/experiments.md; claims are judged
in ``judge.py`` beside this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.curve_points import PointSelection
from dperm_cli.results.records.row_facts import number

KINDS = (
    "slope", "ratio", "order", "below_bound", "above_bound", "below_floor", "value", "collapse",
)  # fmt: skip
SENSES = {"equal": "", "at_most": "at most ", "at_least": "at least "}
STATISTICS = ("median", "mean", "q05", "q95", "min", "max")
SIZES = ("small", "full")
TOLERANCE = {"slope": 0.15, "value": 1e-3, "collapse": 0.2}
CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
REFUSED, NOT_JUDGED, NO_DATA = "refused (tuned)", "not judged", "skipped (data)"
VERDICTS = (CONFIRMED, REFUTED, UNDECIDED, REFUSED, NOT_JUDGED, NO_DATA)
KNOWN = ("nothing", "pilot", "all")  # what was known of the result when a claim was filed
PARAMETERS = ("theorem", "tuned")
INSTANCES = ("worst", "kind")
_DATE, _COMMIT = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, kw_only=True)
class Claim(PointSelection):
    """One checkable sentence about the records of an experiment.

    ``quantity`` is a column of the records and ``statistic`` what is taken of its trials. ``where``
    picks rows by columns or configuration keys, ``against`` the rows they are compared with.
    ``group`` names what sets curves apart (the claim is about each), ``worst`` the families over
    which the largest and then ``best`` those over which the smallest value counts, ``pool`` the
    repetitions whose trials are put together. ``expected: fails`` marks a claim of a paper that
    does not hold as measured; ``reason`` says why.

    ``filed`` is the date and the commit from which the claim stands as it is, ``known`` what was
    known of the result then; ``refiled`` marks one whose judgement was changed after a run had been
    seen. ``parameters`` is ``theorem`` where the claim is about a theorem: it
    is refused where a mechanism runs with defaults that are tuned. ``instance`` is ``kind`` where
    the data are no worst case, on which being at most a rate confirms no rate. ``within`` holds
    the places of the axis that a slope is fitted on, set before the run.
    """

    id: str
    text: str
    theorem: str
    kind: str
    against: Mapping[str, Any] = field(default_factory=dict)
    expect: float | None = None
    values: tuple[Mapping[str, Any], ...] = ()
    sense: str = "equal"
    tolerance: float = 0.0
    sizes: tuple[str, ...] = SIZES
    expected: str = "holds"
    reason: str = ""
    filed: Mapping[str, str] = field(default_factory=dict)
    known: str = "all"
    refiled: bool = False
    parameters: str = "tuned"
    instance: str = "worst"
    within: tuple[float, float] | None = None

    @property
    def tolerance_text(self) -> str:
        """What ``tolerance`` leaves room for, as the judges take it; empty where nothing."""
        amount = number(self.tolerance)
        if not self.tolerance or (self.bound and not self.bound.startswith("order_")):
            return ""
        if self.kind in ("value", "ratio"):
            # relative to what is expected, but absolute where that is 0
            asked = any([self.expect, *(entry["expect"] for entry in self.values)])
            return f"tolerance {amount}{' of what is expected' if asked else ''}"
        return f"tolerance {amount}" if self.kind == "slope" else f"up to a factor 1 + {amount}"

    def select(self, rows: Mapping[str, Any] | None = None) -> PointSelection:
        """Which points of the records this claim is about.

        ``rows`` are those it compares with: they differ from its own in what is named. A part that
        they replace, such as the mechanism, takes its settings along (``mechanism.steps``).
        """
        chosen: dict[str, Any] = {
            part.name: getattr(self, part.name) for part in fields(PointSelection)
        }
        other = rows or {}
        replaced = {name for name in other if other[name] != self.where.get(name)}
        kept = {k: v for k, v in self.where.items() if k.partition(".")[0] not in replaced}
        chosen["where"] = {**kept, **other}
        return PointSelection(**chosen)


@dataclass(frozen=True)
class Finding:
    """What one curve says: does the claim hold there (None: undecided), and the number.

    ``power`` is the chance to refute the claim there if it were wrong by twice its band, ``doubt``
    that of a contradiction as strong as this one where the claim just holds.
    """

    label: str
    holds: bool | None
    measured: str
    power: float = 1.0
    doubt: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim: whether what it says is confirmed or refuted, and why not."""

    claim: Claim
    verdict: str
    findings: tuple[Finding, ...] = ()
    note: str = ""

    @property
    def is_as_filed(self) -> bool:
        """Whether it came out as filed: a claim that is expected to fail has to be refuted."""
        return self.verdict == (CONFIRMED if self.claim.expected == "holds" else REFUTED)

    @property
    def fault(self) -> bool:
        """Whether it makes the reproduction fail: it came out against what is filed."""
        return self.verdict in (CONFIRMED, REFUTED) and not self.is_as_filed

    def plain(self) -> dict[str, Any]:
        """JSON-able: what ``claims.json`` holds."""
        found = [{"curve": f.label, "holds": f.holds, "measured": f.measured}
                 for f in self.findings]  # fmt: skip
        claim, before = self.claim, ("id", "text", "theorem", "kind", "quantity")
        said = {name: getattr(claim, name) for name in before}
        said |= {"allowed": claim.tolerance_text, "expected": claim.expected}
        said |= {
            "filed": dict(claim.filed),
            "known": claim.known,
            "refiled": claim.refiled,
            "parameters": claim.parameters,
        }
        said["reason"] = claim.reason
        return {**said, "sizes": list(self.claim.sizes), "verdict": self.verdict,
                "findings": found, "note": self.note}  # fmt: skip


def parse(entries: Any, key: str = "claims") -> tuple[Claim, ...]:
    """The claims of a file, every field checked; InputError names the claim and the field."""
    if not isinstance(entries, list):
        raise InputError(key, entries, "must be a list of claims")
    found = tuple(_parse_claim(entry, f"{key}.{place}") for place, entry in enumerate(entries))
    names = [claim.id for claim in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{key}.id", name, "is there twice")
    return found


def _parse_claim(entry: Any, place: str) -> Claim:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise InputError(f"{place}.id", None, "every claim needs an id")
    key = f"claims.{entry['id']}"
    checks.known_keys(entry, (item.name for item in fields(Claim)), f"{key}.")
    for name in ("text", "theorem", "kind"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            raise InputError(f"{key}.{name}", entry.get(name), "is required")
    checks.choice(f"{key}.kind", entry["kind"], KINDS)
    given = dict(entry)
    given.setdefault("tolerance", TOLERANCE.get(entry["kind"], 0.0))
    given["tolerance"] = checks.nonnegative(f"{key}.tolerance", given["tolerance"])
    for name in ("part", "group", "worst", "best", "pool", "sizes"):
        given[name] = read_words(f"{key}.{name}", given.get(name, list(SIZES) * (name == "sizes")))
    for name in ("where", "against"):
        given[name] = _mapping(f"{key}.{name}", given.get(name, {}))
    for name, allowed in (("sense", tuple(SENSES)), ("statistic", STATISTICS),
                          ("expected", ("holds", "fails")), ("known", KNOWN),
                          ("parameters", PARAMETERS), ("instance", INSTANCES)):  # fmt: skip
        if name in given:
            checks.choice(f"{key}.{name}", given[name], allowed)
    for name in given["sizes"]:
        checks.choice(f"{key}.sizes", name, SIZES)
    for name in ("quantity", "axis", "bound", "reason"):
        if name in given and not isinstance(given[name], str):
            raise InputError(f"{key}.{name}", given[name], "must be a word")
    if "expect" in given:
        given["expect"] = checks.number(f"{key}.expect", given["expect"])
    given["filed"] = _read_filed(f"{key}.filed", given.get("filed"))
    if not isinstance(given.get("refiled", False), bool):
        raise InputError(f"{key}.refiled", given["refiled"], "must be true or false")
    if "within" in given:
        given["within"] = _read_range(f"{key}.within", given["within"])
    given["values"] = tuple(_entries(f"{key}.values", given.get("values", [])))
    claim = Claim(**given)
    _check_together(key, claim)
    return claim


def _read_filed(key: str, value: Any) -> dict[str, str]:
    """Date and commit from which a claim stands as it is; empty for a claim that is new."""
    if value is None:
        return {}
    form = "must read {date: YYYY-MM-DD, commit: hexadecimal}"
    if not isinstance(value, dict) or set(value) != {"date", "commit"}:
        raise InputError(key, value, form)
    found = {name: str(word) for name, word in value.items()}
    if not _DATE.fullmatch(found["date"]) or not _COMMIT.fullmatch(found["commit"]):
        raise InputError(key, value, form)
    return found


def _read_range(key: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(key, value, "must be a list of two places")
    low, high = (checks.number(key, place) for place in value)
    if not low < high:
        raise InputError(key, value, "must rise")
    return low, high


def _check_together(key: str, claim: Claim) -> None:
    needs = {
        "slope": ("axis", "expect"),
        "ratio": ("against", "expect"),
        "order": ("against",),
        "below_bound": ("bound",),
        "above_bound": ("bound",),
        "collapse": ("axis", "expect"),
    }
    for name in needs.get(claim.kind, ()):
        if getattr(claim, name) in (None, {}):
            raise InputError(f"{key}.{name}", None, f"is required for kind {claim.kind}")
    if claim.kind == "value" and claim.expect is None and not claim.values:
        raise InputError(f"{key}.expect", None, "is required for kind value (or values)")
    if str(claim.bound).startswith("order_") and claim.axis is None:
        raise InputError(f"{key}.axis", None, "is required to fit an order bound")
    if claim.expected == "fails" and not claim.reason:
        raise InputError(f"{key}.reason", None, "is required where a claim is expected to fail")


def _entries(key: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise InputError(key, value, "must be a list of {at: {...}, expect: number}")
    for entry in value:
        if not isinstance(entry, dict) or set(entry) != {"at", "expect"}:
            raise InputError(key, entry, "must read {at: {...}, expect: number}")
        _mapping(f"{key}.at", entry["at"])
        checks.number(f"{key}.expect", entry["expect"])
    return value


def read_words(key: str, value: Any) -> tuple[str, ...]:
    """A word or a list of words of a file; InputError for anything else."""
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str) and word for word in listed):
        raise InputError(key, value, "must be a word or a list of words")
    return tuple(listed)


def _mapping(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value):
        raise InputError(key, value, "must be a map of columns to values")
    return value
