"""Judge a claim on records: confirmed, refuted or undecided. Pure functions of rows.

The rules are in docs/experiments.md, the intervals in ``intervals.py`` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.curve_points import (
    NotComparable,
    Point,
    points,
    select_rows,
)
from dperm_cli.results.claims import intervals
from dperm_cli.results.claims.claims import (
    CONFIRMED,
    NO_DATA,
    NOT_JUDGED,
    REFUSED,
    REFUTED,
    SENSES,
    UNDECIDED,
    Claim,
    Finding,
    Verdict,
)
from dperm_cli.results.claims.intervals import Interval, draw_statistics, interval
from dperm_cli.results.records.row_facts import Row, number

MIN_FIT_PLACES = 4  # places on the axis that a slope is fitted on
TWICE = math.log(2.0)  # of a half-line: its end, doubled or halved
KIND = "at most the rate, on data that are no worst case: this confirms no rate"
IsTuned = Callable[[Row], str | None]


def judge(
    claim: Claim,
    rows: Sequence[Row],
    size: str,
    absent: Mapping[str, str] | None = None,
    find_tuned: IsTuned | None = None,
) -> Verdict:
    """The verdict on a claim from records of all its parts.

    Args:
        claim: what is judged.
        rows: extended rows of the experiment.
        size: the size that was run.
        absent: by part, why its records are not there (``data: ...`` where it lacks a file).
        find_tuned: which default of a row's mechanism is tuned where a theorem sets it; None where
            none is.

    Returns:
        The verdict, with a finding for each curve or place.
    """
    missing = {p: why for p, why in (absent or {}).items() if p in claim.part or not claim.part}
    if missing:
        why = next(iter(missing.values()))
        return Verdict(claim, NO_DATA if why.startswith("data:") else NOT_JUDGED, note=why)
    if size not in claim.sizes:
        return Verdict(claim, NOT_JUDGED, note=f"is judged at size={claim.sizes[0]}")
    tuned = None if find_tuned is None else _find_refusal(claim, rows, find_tuned)
    if tuned is not None:
        return Verdict(claim, REFUSED, note=f"is about a theorem, and ran with {tuned}")
    try:
        findings = tuple(_JUDGES[claim.kind](claim, rows))
        power = _find_power(claim, rows) if size == "small" else 1.0
    except NotComparable as error:
        raise InputError(f"claims.{claim.id}", claim.kind, str(error)) from None
    if not findings:
        return Verdict(claim, NOT_JUDGED, note="no cell of it ran")
    findings = tuple(_weigh_doubt(finding, len(findings)) for finding in findings)
    power = min(power, *(finding.power for finding in findings))
    if size == "small" and power < intervals.NEEDED_POWER:
        note = f"power {power:.2f} at this size, {intervals.NEEDED_POWER:g} needed"
        return Verdict(claim, NOT_JUDGED, findings, note)
    return _combine(claim, findings)


def _weigh_doubt(finding: Finding, count: int) -> Finding:
    """One contradiction among many decides only where it would be rare among as many."""
    if finding.holds is False and finding.doubt * count > 1.0 - intervals.CONFIDENCE:
        return replace(finding, holds=None)
    return finding


def _combine(claim: Claim, findings: tuple[Finding, ...]) -> Verdict:
    """A claim must hold on every curve; one contradiction decides."""
    said = [finding.holds for finding in findings]
    verdict = REFUTED if False in said else UNDECIDED if None in said else CONFIRMED
    is_rate = claim.kind == "slope" and claim.sense == "at_most"
    if verdict == CONFIRMED and claim.instance == "kind" and is_rate:
        return Verdict(claim, UNDECIDED, findings, KIND)
    found = Verdict(claim, verdict, findings)
    if claim.expected == "holds" or verdict == UNDECIDED:
        return found
    note = "does not hold, as filed" if found.is_as_filed else "holds, though filed as failing"
    return Verdict(claim, verdict, findings, note)


def _find_refusal(claim: Claim, rows: Sequence[Row], find_tuned: IsTuned) -> str | None:
    """A tuned default among the rows of a claim about a theorem, or None."""
    if claim.parameters != "theorem":
        return None
    sides = [claim.select(), *([claim.select(claim.against)] if claim.against else [])]
    for side in sides:
        for row in select_rows(rows, side):
            tuned = find_tuned(row)
            if tuned is not None:
                return tuned
    return None


def _slope(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    assert claim.expect is not None
    band = _band(claim.sense, claim.expect, claim.tolerance)
    for label, curve in points(rows, claim.select()).items():
        kept = [p for p in intervals.choose_fitted(curve) if _is_within(claim, p)]
        line = intervals.fit_points(kept)
        if line is None or line.count < MIN_FIT_PLACES:
            places = 0 if line is None else line.count
            words = f"{places} of {len(curve)} points not saturated and resolved"
            yield Finding(label, None, words, power=0.0)
            continue
        holds = intervals.decide((line.slope - line.half, line.slope + line.half), band)
        if holds and line.is_curved and any(not band[0] <= x <= band[1] for x in line.local):
            holds = None
        yield Finding(label, holds, line.describe(), doubt=line.doubt(band))


def _find_power(claim: Claim, rows: Sequence[Row]) -> float:
    """The least power of a slope's curves; 1 for other kinds, whose findings have their own."""
    if claim.kind != "slope" or claim.expect is None:
        return 1.0
    found = [
        intervals.slope_power(
            [p for p in intervals.choose_fitted(curve) if _is_within(claim, p)],
            claim.expect,
            claim.tolerance,
        )
        for curve in points(rows, claim.select()).values()
    ]
    return min(found, default=1.0)


def _is_within(claim: Claim, point: Point) -> bool:
    return claim.within is None or claim.within[0] <= (point.x or 0.0) <= claim.within[1]


def _band(sense: str, expect: float, room: float) -> Interval:
    low = -math.inf if sense == "at_most" else expect - room
    return low, math.inf if sense == "at_least" else expect + room


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
        drawn = _divide(draw_statistics(mine), draw_statistics(other))
        where = _label_point(label, claim, mine)
        found = _compare_value(claim, where, ratio, drawn, claim.expect)
        yield _require_resolved(found, mine, other)


def _order(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    for label, mine, other in _pairs(claim, rows):
        found = _compare(
            _label_point(label, claim, mine),
            draw_statistics(mine),
            draw_statistics(other) * (1.0 + claim.tolerance),
            f"{number(mine.value)} against {number(other.value)}",
        )
        # whatever the one optimum of both may be, it leaves their order as it is
        is_exact = mine.gap == other.gap and claim.tolerance == 0.0
        yield found if is_exact else _require_resolved(found, mine, other)


def _require_resolved(finding: Finding, *given: Point) -> Finding:
    """The finding, undecided where an optimum's gap may move a value by more than a hundredth."""
    widest = max(given, key=lambda point: point.gap)
    if all(point.is_resolved for point in given):
        return finding
    words = f"{finding.measured}, the optimum is known to {number(widest.gap, 3)} only"
    return replace(finding, holds=None, measured=words)


def _judge_below_floor(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    """No worse than the point that is chosen without any data."""
    for label, curve in points(rows, claim.select()).items():
        for point in curve:
            where = _label_point(label, claim, point)
            if point.floor is None:
                yield Finding(where, None, f"{number(point.value)}, floor none")
                continue
            limit = np.full(intervals.DRAWS, point.floor * (1.0 + claim.tolerance))
            words = f"{number(point.value)}, floor {number(point.floor)}"
            yield _compare(where, draw_statistics(point), limit, words)


def _compare(
    label: str, drawn: np.ndarray, limit: np.ndarray, words: str, above: bool = False
) -> Finding:
    """Whether drawn values stay at most (or at least, ``above``) their limits.

    The difference of each draw is looked at, which has the sign of the ratio's logarithm and is
    defined where a risk is 0.
    """
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(limit - drawn if above else drawn - limit, nan=0.0, posinf=math.inf)
    band = -math.inf, 0.0
    holds, doubt = intervals.decide(interval(off), band), intervals.find_doubt(off, band)
    ratios = _divide(drawn, limit)
    low, high = interval(ratios)
    if low < high:
        words += f", ratio {number(low, 3)} to {number(high, 3)}"
    return Finding(label, holds, words, intervals.ratio_power(ratios, TWICE), doubt)


def _divide(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Ratios; 0 over 0 is 1, and anything else over 0 infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            (below == 0.0) | (above == below), np.where(above == below, 1.0, np.inf), above / below
        )


def _value(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    asked = claim.values or ({"at": {}, "expect": claim.expect},)
    for entry in asked:
        for label, curve in points(rows, claim.select(entry["at"])).items():
            words = ", ".join(f"{k.rpartition('.')[2]} {v}" for k, v in entry["at"].items())
            for point in curve:
                where = _label_point(", ".join(filter(None, (label, words))), claim, point)
                drawn = draw_statistics(point)
                found = _compare_value(claim, where, point.value, drawn, entry["expect"])
                yield _require_resolved(found, point)


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
    words = f"{number(point.value)} +- {number(point.error, 2)}, bound {number(point.bound)}"
    limit = np.full(intervals.DRAWS, point.bound)
    above = claim.kind == "above_bound"
    drawn = draw_statistics(point) + (0.0 if above else point.gap)
    return _compare(_label_point(label, claim, point), drawn, limit, words, above)


def _order_bound(claim: Claim, label: str, curve: Sequence[Point]) -> Finding:
    curve = [p for p in curve if p.x and p.bound and p in intervals.choose_fitted(curve)]
    places = sorted({p.x for p in curve if p.x is not None})
    if len(places) < 3:
        words = f"{len(places)} places on the axis are too few to hold any out"
        return Finding(label, None, words, power=0.0)
    last = places[math.ceil(len(places) / 3) - 1]
    above = claim.kind == "above_bound"
    drawn = {p: draw_statistics(p) / float(p.bound or 1.0) for p in curve}
    take = np.min if above else np.max
    fitted = take([values for p, values in drawn.items() if (p.x or 0.0) <= last], axis=0)
    held = take([values for p, values in drawn.items() if (p.x or 0.0) > last], axis=0)
    factor = 1.0 + claim.tolerance
    words = f"constant {number(float(np.median(fitted)), 3)} fitted up to {number(last)}"
    words += f", beyond it {float(np.median(held)):.3g}"
    return _compare(label, held, fitted / factor if above else fitted * factor, words, above)


def _collapse(claim: Claim, rows: Sequence[Row]) -> Iterator[Finding]:
    """Every curve on one line c x^expect, up to the tolerance; c is laid through all points.

    ln c is halfway between the highest and the lowest point: no other line is as near to all.
    """
    assert claim.expect is not None
    curves = {
        label: [p for p in curve if p.value > 0 and p.x and p.is_resolved]
        for label, curve in points(rows, claim.select()).items()
    }
    if len(curves) < 2 or not any(curves.values()):
        yield from (Finding(label, None, "there are no two curves", 0.0) for label in curves)
        return
    offs = {label: _offsets(claim.expect, curve) for label, curve in curves.items() if curve}
    every = np.concatenate(list(offs.values()))
    middle = (np.max(every, axis=0) + np.min(every, axis=0)) / 2.0
    scale = math.exp(float(np.median(middle)))
    for label, curve in curves.items():
        if not curve:
            yield Finding(label, None, "no point is above 0", 0.0)
            continue
        low, high = (np.exp(take(offs[label], axis=0) - middle) for take in (np.min, np.max))
        factor = np.maximum(high, 1.0 / low)
        words = f"{number(float(np.median(low)), 3)} to {number(float(np.median(high)), 3)} times "
        words += f"{number(scale, 3)} x^{number(claim.expect)}"
        yield _compare(label, factor, np.full(len(factor), 1.0 + claim.tolerance), words)


def _offsets(expect: float, curve: Sequence[Point]) -> np.ndarray:
    """ln value - expect ln x of each draw; shape [points, draws]."""
    drawn = np.array([draw_statistics(p) for p in curve])
    places = np.log([float(p.x or 1.0) for p in curve])
    return np.log(np.maximum(drawn, 1e-300)) - expect * places[:, None]


def _compare_value(
    claim: Claim, label: str, value: float, drawn: np.ndarray, expect: float | None
) -> Finding:
    assert expect is not None
    room = claim.tolerance * (abs(expect) or 1.0)
    band = _band(claim.sense, expect, room)
    low, high = interval(drawn)
    holds = intervals.decide((low, high), band)
    words = f"{number(value, 6)}, {SENSES[claim.sense]}{number(expect, 6)} expected"
    if low < high:
        words = (
            f"{number(value, 6)} ({number(low, 4)} to {number(high, 4)})"
            + words[len(number(value, 6)) :]
        )
    power, doubt = (
        intervals.ratio_power(drawn, _gap(claim, expect)),
        intervals.find_doubt(drawn, band),
    )
    return Finding(label, holds, words, power, doubt)


def _gap(claim: Claim, expect: float) -> float:
    """From the band's end to twice the band, in logarithms; of a half-line to twice its end."""
    if claim.sense != "equal" or not expect:
        return TWICE
    return math.log1p(2.0 * claim.tolerance) - math.log1p(claim.tolerance)


def _label_point(label: str, claim: Claim, point: Point) -> str:
    if claim.axis is None or point.x is None:
        return label
    return f"{label} at {claim.axis.rpartition('.')[2]} {number(point.x)}".lstrip()


_JUDGES: dict[str, Callable[[Claim, Sequence[Row]], Iterator[Finding]]] = {
    "slope": _slope,
    "ratio": _ratio,
    "order": _order,
    "value": _value,
    "below_bound": _bound,
    "above_bound": _bound,
    "below_floor": _judge_below_floor,
    "collapse": _collapse,
}
