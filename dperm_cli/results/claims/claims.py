"""The claims of an experiment and their verdicts. Pure functions of rows.

The form of ``claims.yaml`` and the rules of judgement are in docs/experiments.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.curve_points import NotComparable, Point, PointSelection, points
from dperm_cli.results.records.row_facts import Row, number

KINDS = (
    "slope", "ratio", "order", "below_bound", "above_bound", "below_floor", "value", "collapse",
)  # fmt: skip
SENSES = {"equal": "", "at_most": "at most ", "at_least": "at least "}
STATISTICS = ("median", "mean", "q05", "q95", "min", "max")
SIZES = ("small", "full")
TOLERANCE = {"slope": 0.15, "value": 1e-3, "collapse": 0.2}
CONFIDENCE = 0.95
MIN_FIT_PLACES = 4  # places on the axis that a slope is fitted on
MAX_SLOPE_HALF_WIDTH = 0.35  # half-width of an interval from which a slope decides nothing
BOUND_ERRORS = 3.0  # standard errors that a mean may lie on the wrong side of an explicit bound
PASS, FAIL, NOT_JUDGED, NO_DATA = "pass", "fail", "not judged", "skipped (data)"


@dataclass(frozen=True, kw_only=True)
class Claim(PointSelection):
    """One checkable sentence about the records of an experiment.

    ``quantity`` is a column of the records and ``statistic`` what is taken of its trials. ``where``
    picks rows by columns or configuration keys, ``against`` the rows they are compared with.
    ``group`` names what sets curves apart (the claim is about each), ``worst`` the families over
    which the largest and then ``best`` those over which the smallest value counts, ``pool`` the
    repetitions whose trials are put together. ``expected: fails`` marks a claim of a paper that
    does not hold as measured; ``reason`` says why.
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
        """Which points of the records this claim is about."""
        chosen: dict[str, Any] = {
            part.name: getattr(self, part.name) for part in fields(PointSelection)
        }
        chosen["where"] = {**self.where, **(rows or {})}
        return PointSelection(**chosen)


@dataclass(frozen=True)
class Finding:
    """What one curve says: does the claim hold there (None: cannot be said), and the number."""

    label: str
    holds: bool | None
    measured: str


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim; ``fault`` when it makes the reproduction fail."""

    claim: Claim
    verdict: str
    holds: bool | None
    findings: tuple[Finding, ...] = ()
    note: str = ""

    @property
    def fault(self) -> bool:
        return self.verdict == FAIL

    def plain(self) -> dict[str, Any]:
        """JSON-able: what ``claims.json`` holds."""
        found = [{"curve": f.label, "holds": f.holds, "measured": f.measured}
                 for f in self.findings]  # fmt: skip
        claim, before = self.claim, ("id", "text", "theorem", "kind", "quantity")
        said = {name: getattr(claim, name) for name in before}
        said |= {"allowed": claim.tolerance_text, "expected": claim.expected}
        said["reason"] = claim.reason
        return {**said, "sizes": list(self.claim.sizes), "verdict": self.verdict,
                "holds": self.holds, "findings": found, "note": self.note}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A least-squares line through (ln x, ln y): its slope and half the 95 % interval's width."""

    slope: float
    half: float
    count: int

    @property
    def text(self) -> str:
        return f"{self.slope:.3f} +- {self.half:.3f}"


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


def judge(
    claim: Claim, rows: Sequence[Row], size: str, absent: Mapping[str, str] | None = None
) -> Verdict:
    """The verdict on a claim from records of all its parts.

    ``absent`` holds, by part, why its records are not there (``data: ...`` where it lacks a file).
    """
    missing = {p: why for p, why in (absent or {}).items() if p in claim.part or not claim.part}
    if missing:
        why = next(iter(missing.values()))
        return Verdict(claim, NO_DATA if why.startswith("data:") else NOT_JUDGED, None, note=why)
    if size not in claim.sizes:
        return Verdict(claim, NOT_JUDGED, None, note=f"is judged at size={claim.sizes[0]}")
    try:
        findings = tuple(_JUDGES[claim.kind](claim, rows))
    except NotComparable as error:
        raise InputError(f"claims.{claim.id}", claim.kind, str(error)) from None
    if not findings:
        return Verdict(claim, NOT_JUDGED, None, note="no cell of it ran")
    return _verdict(claim, findings)


def _verdict(claim: Claim, findings: tuple[Finding, ...]) -> Verdict:
    """Combine the findings: a claim must hold on every curve; one contradiction decides."""
    said = [finding.holds for finding in findings]
    holds = False if False in said else None if None in said else True
    if holds is None:
        return Verdict(claim, NOT_JUDGED, None, findings, "too little can be said")
    right = holds == (claim.expected == "holds")
    note = ""
    if claim.expected == "fails":
        note = "does not hold, as expected" if right else "holds, though it is filed as failing"
    return Verdict(claim, PASS if right else FAIL, holds, findings, note)


def log_log(xs: Sequence[float], ys: Sequence[float]) -> Fit | None:
    """Least squares on logarithms with a 95 % interval by Student's t, or None below 3 points."""
    from scipy.special import stdtrit

    if len(xs) < 3 or len(set(xs)) < 3:
        return None
    u, v = [math.log(x) for x in xs], [math.log(y) for y in ys]
    count, mean_u, mean_v = len(u), math.fsum(u) / len(u), math.fsum(v) / len(v)
    spread = math.fsum((a - mean_u) ** 2 for a in u)
    slope = math.fsum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / spread
    off = math.fsum((b - mean_v - slope * (a - mean_u)) ** 2 for a, b in zip(u, v, strict=True))
    error = math.sqrt(off / (count - 2) / spread)
    return Fit(slope, float(stdtrit(count - 2, (1 + CONFIDENCE) / 2)) * error, count)


def fit(found: Sequence[Point]) -> Fit | None:
    """The slope of a curve without its saturated points."""
    kept = [
        p
        for p in found
        if not p.is_near_floor and p.value > p.resolution and p.x is not None and p.x > 0
    ]
    return log_log([float(p.x or 0) for p in kept], [p.value for p in kept])


def _slope(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    assert claim.expect is not None
    for label, curve in points(rows, claim.select()).items():
        line = fit(curve)
        if line is None or line.count < MIN_FIT_PLACES:
            places = 0 if line is None else line.count
            yield Finding(label, None, f"{places} of {len(curve)} points not saturated")
            continue
        low, high = claim.expect - claim.tolerance, claim.expect + claim.tolerance
        holds: bool | None = {
            "equal": line.slope - line.half <= high and line.slope + line.half >= low,
            "at_most": line.slope - line.half <= high,
            "at_least": line.slope + line.half >= low,
        }[claim.sense]
        # all of a wide interval on the side that is claimed decides, a part of it does not
        sure = {"equal": False, "at_most": line.slope + line.half <= high,
                "at_least": line.slope - line.half >= low}[claim.sense]  # fmt: skip
        if holds and line.half > MAX_SLOPE_HALF_WIDTH and not sure:
            holds = None
        yield Finding(label, holds, f"slope {line.text} on {line.count} points")


def _pairs(claim: Claim, rows: Sequence[Row]) -> list[tuple[str, Point, Point]]:
    """Points of ``where`` and of ``against`` at the same place of the same curve."""
    mine, theirs = points(rows, claim.select()), points(rows, claim.select(claim.against))
    return [
        (label, a, b)
        for label, curve in mine.items()
        for a in curve
        for b in theirs.get(label, ())
        if a.x == b.x
    ]


def _ratio(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    for label, mine, other in _pairs(claim, rows):
        ratio = mine.value / other.value if other.value else math.inf
        yield _compare_value(claim, _label_point(label, claim, mine), ratio, claim.expect)


def _order(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    for label, mine, other in _pairs(claim, rows):
        holds = mine.value <= other.value * (1.0 + claim.tolerance)
        measured = f"{number(mine.value)} against {number(other.value)}"
        yield Finding(_label_point(label, claim, mine), holds, measured)


def _judge_below_floor(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    """No worse than the point that is chosen without any data."""
    for label, curve in points(rows, claim.select()).items():
        for point in curve:
            holds, floor = None, "none"
            if point.floor is not None:
                holds = point.value <= point.floor * (1.0 + claim.tolerance)
                floor = number(point.floor)
            measured = f"{number(point.value)}, floor {floor}"
            yield Finding(_label_point(label, claim, point), holds, measured)


def _value(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    asked = claim.values or ({"at": {}, "expect": claim.expect},)
    for entry in asked:
        for label, curve in points(rows, claim.select(entry["at"])).items():
            words = ", ".join(f"{k.rpartition('.')[2]} {v}" for k, v in entry["at"].items())
            for point in curve:
                where = _label_point(", ".join(filter(None, (label, words))), claim, point)
                yield _compare_value(claim, where, point.value, entry["expect"])


def _bound(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    """An explicit bound with no fit; an order bound fitted on the smallest third of the axis."""
    for label, curve in points(rows, claim.select()).items():
        curve = [point for point in curve if point.bound is not None]
        if not curve:
            yield Finding(label, None, f"has no {claim.bound}")
        elif str(claim.bound).startswith("order_"):
            yield _order_bound(claim, label, curve)
        else:
            yield from (_explicit(claim, label, point) for point in curve)


def _explicit(claim: Claim, label: str, point: Point) -> Finding:
    assert point.bound is not None
    slack = BOUND_ERRORS * point.error
    above = claim.kind == "above_bound"
    holds = point.value + slack >= point.bound if above else point.value - slack <= point.bound
    measured = f"{number(point.value)} +- {number(point.error, 2)}, bound {number(point.bound)}"
    return Finding(_label_point(label, claim, point), holds, measured)


def _order_bound(claim: Claim, label: str, curve: Sequence[Point]) -> Finding:
    curve = [p for p in curve if not p.is_near_floor and p.value > p.resolution]
    places = sorted({p.x for p in curve if p.x is not None})
    if len(places) < 3:
        return Finding(label, None, f"{len(places)} places on the axis are too few to hold any out")
    last = places[math.ceil(len(places) / 3) - 1]
    above = claim.kind == "above_bound"
    slack = BOUND_ERRORS if above else -BOUND_ERRORS
    places_of = [(p.x, p.value, p.bound, slack * p.error) for p in curve if p.x and p.bound]
    fitted = [value / bound for x, value, bound, _ in places_of if x <= last]
    held = [(value + room) / bound for x, value, bound, room in places_of if x > last]
    constant, worst = (min(fitted), min(held)) if above else (max(fitted), max(held))
    room = 1.0 + claim.tolerance
    holds = worst >= constant / room if above else worst <= constant * room
    words = f"constant {number(constant, 3)} fitted up to {number(last)}, beyond it {worst:.3g}"
    words += f" ({BOUND_ERRORS:g} standard errors allowed)"
    return Finding(label, holds, words)


def _collapse(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    """Every curve on one line c x^expect, up to the tolerance; c is laid through all points.

    ln c is halfway between the highest and the lowest point: no other line is as near to all.
    """
    assert claim.expect is not None
    curves = points(rows, claim.select())
    offs = {
        label: [
            math.log(p.value) - claim.expect * math.log(p.x) for p in curve if p.value > 0 and p.x
        ]
        for label, curve in curves.items()
    }
    every = [off for curve in offs.values() for off in curve]
    if len(offs) < 2 or not every:
        yield from (Finding(label, None, "there are no two curves") for label in offs)
        return
    middle = (max(every) + min(every)) / 2.0
    for label, curve in offs.items():
        if not curve:
            yield Finding(label, None, "no point is above 0")
            continue
        low, high = (math.exp(f(curve) - middle) for f in (min, max))
        holds = max(high, 1.0 / low) <= 1.0 + claim.tolerance
        words = f"{number(low, 3)} to {number(high, 3)} times {number(math.exp(middle), 3)}"
        yield Finding(label, holds, f"{words} x^{number(claim.expect)}")


def _compare_value(claim: Claim, label: str, value: float, expect: float | None) -> Finding:
    assert expect is not None
    room = claim.tolerance * (abs(expect) or 1.0)
    holds = {
        "equal": abs(value - expect) <= room,
        "at_most": value <= expect + room,
        "at_least": value >= expect - room,
    }[claim.sense]
    words = SENSES[claim.sense]
    return Finding(label, holds, f"{number(value, 6)}, {words}{number(expect, 6)} expected")


def _label_point(label: str, claim: Claim, point: Point) -> str:
    if claim.axis is None or point.x is None:
        return label
    return f"{label} at {claim.axis.rpartition('.')[2]} {number(point.x)}".lstrip()


_JUDGES = {
    "slope": _slope,
    "ratio": _ratio,
    "order": _order,
    "value": _value,
    "below_bound": _bound,
    "above_bound": _bound,
    "below_floor": _judge_below_floor,
    "collapse": _collapse,
}


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
                          ("expected", ("holds", "fails"))):  # fmt: skip
        if name in given:
            checks.choice(f"{key}.{name}", given[name], allowed)
    for name in given["sizes"]:
        checks.choice(f"{key}.sizes", name, SIZES)
    for name in ("quantity", "axis", "bound", "reason"):
        if name in given and not isinstance(given[name], str):
            raise InputError(f"{key}.{name}", given[name], "must be a word")
    if "expect" in given:
        given["expect"] = checks.number(f"{key}.expect", given["expect"])
    given["values"] = tuple(_entries(f"{key}.values", given.get("values", [])))
    claim = Claim(**given)
    _check_together(key, claim)
    return claim


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
