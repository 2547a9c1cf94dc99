"""Check the noise of whole releases: seeds, trials, and every way in which a run may draw it.

A release may draw its noise in several ways ("paths"): in a plain loop, in a compiled loop, from
sparse or dense rows, with seeded or secure noise. All of them must give the same release, or
releases of the same law. How many releases are compared depends on how long one takes.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from dperm_cli.audit import law_comparison
from dperm_cli.audit.case_report import Case, Report
from dperm_cli.audit.opened_cell import OK, ListeningTape, OpenedCell
from dperm_cli.privacy.events import NoiseEvent
from dperm_cli.views.choose import is_local

# a replay that draws more numbers than this, over all trials and coordinates, is left out
MOST_REPLAYED = 300_000
NUMBERS = 2e6  # about how many numbers the releases of one comparison of laws draw
SLOW = 0.5  # seconds; a release that takes longer is made as seldom as possible
_BLUR = 4.0  # times the norm of the noise that differs
_MOST_BLUR = 0.5  # of the spread of the released points
_SIZES = (100, 250, 500, 1000)  # possible numbers of releases of one attack, on each data set
MOST_RELEASES = _SIZES[-1]
_SECONDS = 0.3  # time for them
# trials where releases must be equal, where draws are taped, and where only outputs are seen
_SAME_TRIALS, _TAPED_TRIALS, _SEEN_TRIALS = 3, 8, 16
_TIMED = 64  # releases that are timed together, where they are fast


def measure(report: Report, one: OpenedCell, seed: int) -> None:
    """Set ``report.seconds`` to about how long one release takes (CPU seconds)."""
    one.draw(1, seed)  # not counted: compiling and fitting, which happen once
    trials = _SAME_TRIALS
    while True:
        started = time.process_time()
        one.draw(trials, seed)
        spent = time.process_time() - started
        report.seconds = spent / trials
        if trials >= _TIMED or spent > _SECONDS / 8.0:
            return
        trials *= 8  # work that is done once for all trials counts less


def check_seeds(report: Report, one: OpenedCell, seed: int) -> None:
    """Equal seeds must give equal releases, other seeds other ones, and trials must differ.

    Some releases are equal for any noise, such as a corner of the set. There only the draws at the
    gate can be compared. Faults are added to ``report``.
    """
    quick = report.seconds <= SLOW
    if quick and not one.secure and count_numbers(one) * _TAPED_TRIALS <= 4 * MOST_REPLAYED:
        _check_taped_seeds(report, one, seed)
    trials = _SEEN_TRIALS if report.seconds * _SEEN_TRIALS <= _SECONDS else 1
    if quick:  # a single trial does not show whether releases ever differ
        trials = max(trials, _SAME_TRIALS)
    drawn = [one.draw(trials, number) for number in (seed, seed, seed + 1)]
    if not one.secure and not np.array_equal(drawn[0], drawn[1], equal_nan=True):
        report.faults.append("one seed gave two different releases")
    distinct = [len(np.unique(side, axis=0)) for side in drawn]
    alike = np.array_equal(drawn[0], drawn[1 if one.secure else 2], equal_nan=True)
    if distinct[0] > 1 and alike:
        words = "two runs with secure noise" if one.secure else "two seeds"
        report.faults.append(f"{words} gave the same releases")
    if trials > 1 and distinct[0] == distinct[2] == 1 and not np.array_equal(drawn[0], drawn[2]):
        report.faults.append("all trials gave the same release")


def _check_taped_seeds(report: Report, one: OpenedCell, seed: int) -> None:
    """What the gate draws must differ from seed to seed and from trial to trial."""
    tapes = [ListeningTape(keep=True) for _ in range(2)]
    for place, tape in enumerate(tapes):
        one.draw(_TAPED_TRIALS, seed + place, tape)
    if not tapes[0].calls:
        report.faults.append("a release drew nothing through the gate")
        return
    if tapes[0].noise_digest and tapes[0].noise_digest == tapes[1].noise_digest:
        report.faults.append("two seeds drew the same noise")
    if tapes[0].shared:
        report.faults.append("two draws of a release share their random numbers")
    if tapes[0].trials_alike:
        report.faults.append("all trials drew the same noise")


def check_paths(report: Report, case: Case, seed: int) -> None:
    """Compare the ways in which a run can draw its noise.

    The compiled loop is compared with the plain loop, which a tape can follow. Then each of the
    case's twins, the same records stored or released in another way, is compared with the original.
    Faults, and the paths that were checked, are added to ``report``.
    """
    one = case.neighbours[0].first
    if one.secure:
        report.paths.append("secure")
    elif report.seconds > SLOW:
        report.not_attacked.append("plain loop: a release takes too long")
    elif count_numbers(one) * _SAME_TRIALS <= MOST_REPLAYED * 4:
        _compare_taped(report, case, one, seed)
    else:
        report.not_attacked.append(f"plain loop: {one.plan.steps} steps are too many for it")
        report.paths.append("compiled")
    for name, (mine, twin) in case.twins.items():
        if mine.status != OK or twin.status != mine.status:
            if (mine.status, mine.reason) != (twin.status, twin.reason) and name != "seeded":
                words = f"{mine.status} and {twin.status} for the same records"
                report.faults.append(f"{name}: {words}")
            continue
        report.paths.append(name)
        if name == "seeded":
            _compare_laws(report, "secure and seeded noise", mine, twin, seed)
        elif not law_comparison.same_numbers(
            mine.draw(_SAME_TRIALS, seed), twin.draw(_SAME_TRIALS, seed)
        ):
            # a minimiser has a numerical error, which depends on how the rows are stored
            _compare_laws(report, f"{name} and dense rows", mine, twin, seed)


def _compare_taped(report: Report, case: Case, one: OpenedCell, seed: int) -> None:
    """Compare releases of the compiled loop with those of the plain loop that a tape follows."""
    plain, drawn = one.draw(_SAME_TRIALS, seed, ListeningTape()), one.draw(_SAME_TRIALS, seed)
    report.paths.append("plain")
    if np.array_equal(plain, drawn, equal_nan=True):
        return
    silent = case.silent
    report.paths.append("few rows" if _few_rows(one) else "compiled")
    if law_comparison.same_numbers(plain, drawn):
        return
    if not _few_rows(one):
        report.faults.append("a compiled loop gives another release than the plain one")
    for name, opened in (("rows of zeros", silent), ("the records", one)):
        if opened is not None and opened.status == OK:
            _compare_laws(report, f"loops on {name}", opened, opened, seed, ListeningTape())


def _few_rows(one: OpenedCell) -> bool:
    """Whether there are so few records that the plan may work in the coordinates of their rows."""
    return one.coordinates > 2 * one.spec.n


def _compare_laws(
    report: Report, name: str, mine: OpenedCell, other: OpenedCell, seed: int, tape: Any = None
) -> None:
    """Test whether two cells release points of the same law, by independent draws of both."""
    blur = _find_blur(mine, other)
    if blur is None:
        report.not_attacked.append(f"{name}: their plans differ in noise or rule")
        return
    trials = _law_trials(report, mine)
    if not trials:
        report.not_attacked.append(f"{name}: a release takes too long to be made often")
        return
    first, second = mine.draw(trials, seed), other.draw(trials, seed + 1, tape)
    if blur > _MOST_BLUR * float(np.std(first)):
        report.not_attacked.append(f"{name}: their plans differ in noise or rule")
        return
    law = law_comparison.compare(first, second, seed, blur)
    report.law = law.worst if report.law is None else min(law.worst, report.law)
    if not law.is_alike:
        report.faults.append(f"{name} do not have one law: {law.said}, chance {law.worst:.1g}")


def _find_blur(mine: OpenedCell, other: OpenedCell) -> float | None:
    """How much noise on both sides hides by what their plans differ, or None if they differ a lot.

    Noise that pays for a solver's error is small beside the rest, and secure releases may need more
    of it. It shows where points lie on a boundary: there a law is compared only up to this size.
    """
    sides = mine.plan, other.plan
    if [type(event) for event in sides[0].events] != [type(event) for event in sides[1].events]:
        return None
    if not math.isclose(sides[0].noise_scale, sides[1].noise_scale, rel_tol=1e-3):
        return None
    first, second = (
        [event.scale for event in side.events if isinstance(event, NoiseEvent)] for side in sides
    )
    pairs = zip(first, second, strict=True)
    apart = [abs(a - b) for a, b in pairs if not math.isclose(a, b, rel_tol=1e-3)]
    return _BLUR * mine.coordinates * max(apart, default=0.0)


def count_numbers(one: OpenedCell) -> float:
    """About how many numbers one release draws."""
    draws = sum(event.count for event in one.plan.events)
    users = one.spec.n if is_local(one.mechanism) else 1
    return float(max(draws, one.plan.steps, 1) * max(one.coordinates, 1) * users)


def choose_release_count(report: Report, wanted: float) -> int:
    """The largest of ``_SIZES`` up to ``wanted`` that takes about ``_SECONDS``, or 0."""
    most = min(wanted, report.effort * _SECONDS / max(report.seconds, 1e-9))
    return max((size for size in _SIZES if size <= most), default=0)


def _law_trials(report: Report, one: OpenedCell) -> int:
    """How many releases of each side are compared; 0 where these would take too long."""
    seconds = 20.0 * report.effort * _SECONDS
    most = min(8.0 * NUMBERS / (count_numbers(one) + 200.0), seconds / max(report.seconds, 1e-9))
    return 0 if most < _SIZES[0] else int(min(max(most, 250.0), 600.0))
