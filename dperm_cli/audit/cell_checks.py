"""All checks of one configuration on neighbouring data sets, prepared as a run does.

``examine`` takes neighbours that the runner opened as a run does (``opened_cell.OpenedCell``) and
returns what it found. Every check is on its own: one that cannot be made is left out and named, and
none of them trusts what another part of the package says of itself where it can be computed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit import (
    cell_attack,
    channel_answers,
    composed_delta,
    constant_checks,
    exact_loss,
    noise_laws,
    objective_loss,
    refusal_checks,
    release_checks,
    sampler_laws,
    solver_errors,
)
from dperm_cli.audit.case_report import Case, Neighbours, Report
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.audit.hard_pairs import ALONE
from dperm_cli.audit.opened_cell import OK, OpenedCell
from dperm_cli.audit.replay import Replay, replay, replay_runs, replay_session
from dperm_cli.core.errors import DpermError, Unsupported, describe_error
from dperm_cli.losses.base import to_dense
from dperm_cli.mechanisms.perturbation.sufficient_statistics import TARGET_SHARE, bound_targets
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView

OUTCOME = "nothing is released"  # in the words of a solver or a sampler that fails
_ROUNDING = 1e-9
_QUERIES = 3  # of a session, and as many next to them
_QUADRATURE = 1e-5  # relative error granted to the exact loss, whose kinks are narrow


def examine(case: Case, seed: int = 0, known: set[Any] | None = None) -> Report:
    """Every check of a case. ``known`` are laws of noise that were looked at already."""
    known = set() if known is None else known
    report = Report(case.name, case.words, relation=case.asked[2], effort=case.effort)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for each in case.neighbours:
            _check_alike(report, each)
        one = case.neighbours[0].first
        report.status, report.reason = one.status, one.reason
        if one.status != OK:
            return report
        report.claim, report.delta = one.guarantee.epsilon, one.guarantee.delta
        _check_claim(report, case, one)
        _run_check(report, "release", lambda: release_checks.measure(report, one, seed))
        steps: list[tuple[str, Callable[[], None]]] = [
            ("exact loss", lambda: _check_exact(report, one)),
            ("constants", lambda: _check_constants(report, one)),
            ("noise", lambda: _check_noise(report, one, seed, known)),
            ("refusals", lambda: _check_refusals(report, one)),
            ("replay", lambda: _check_replays(report, case, seed)),
            ("seeds", lambda: release_checks.check_seeds(report, one, seed)),
            ("paths", lambda: release_checks.check_paths(report, case, seed)),
            ("attack", lambda: _check_attack(report, case, seed)),
            ("sampler", lambda: _check_sampler(report, one, seed)),
        ]
        for name, step in steps:
            _run_check(report, name, step)
    report.faults = list(dict.fromkeys(report.faults))
    return report


def _run_check(report: Report, name: str, step: Callable[[], None]) -> None:
    """Run one check. A refusal of the package leaves it out; any other error is a fault."""
    try:
        step()
    except (DpermError, Unsupported) as reason:
        _note_refusal(report, name, str(reason))
    except MemoryError:
        report.not_attacked.append(f"{name}: it needs more memory than there is")
    except Exception as error:
        text = describe_error(error)[:200]
        report.faults.append(f"{name}: a release raised {text}")


def _note_refusal(report: Report, name: str, reason: str) -> None:
    """Note a refusal: a solver or sampler that failed leaves a check out, any other is a fault."""
    if OUTCOME in reason:
        report.not_attacked.append(f"{name}: {reason}")
    else:
        report.faults.append(f"{name}: a planned release is refused: {reason}")


def _check_alike(report: Report, each: Neighbours) -> None:
    """Status, plan, public facts and the records that both have are the same on neighbours."""
    one, other, kind = each.first, each.second, each.pair.kind
    report.pairs.append(kind)
    if (one.status, one.reason) != (other.status, other.reason):
        words = [f"{side.status} {side.reason}".strip() for side in (one, other)]
        report.faults.append(f"{kind}: {words[0]!r} and {words[1]!r} on neighbours")
        return
    if one.status != OK:
        return
    for what in ("plan", "spec", "public", "guarantee"):
        found = list_differences(getattr(one, what), getattr(other, what), what)
        if found:
            report.faults.append(f"{kind}: {', '.join(found[:3])} differ on neighbours")
    _check_kept(report, each)


def _check_kept(report: Report, each: Neighbours) -> None:
    """The records that neighbours share come out as the same rows, in the same batches."""
    mine, theirs = each.pair.list_shared()
    rows = [to_dense(side.data.x[:]) for side in (each.first, each.second)]
    if rows[0].shape[1] != rows[1].shape[1]:
        report.faults.append(f"{each.pair.kind}: rows have another number of columns")
        return
    one, other = rows[0][mine], rows[1][theirs]
    size = max(float(np.max(np.abs(one), initial=0.0)), 1e-300)
    if not np.all(np.abs(one - other) <= _ROUNDING * size):
        report.faults.append(f"{each.pair.kind}: the rows of other records follow the record")
    labels = (each.first.data.y[mine], each.second.data.y[theirs])
    if not np.array_equal(*labels):
        report.faults.append(f"{each.pair.kind}: the labels of other records follow the record")
    if len(mine) < 2 or not isinstance(each.first.view(), CentralView):
        return  # no other view has batches
    for batches in (2, 5):
        try:
            named = [
                _batch_of(side.view().parts(batches, by_content=True))
                for side in (each.first, each.second)
            ]
        except DpermError:  # a view on a grid has none
            return
        if not np.array_equal(named[0][mine], named[1][theirs]):
            report.faults.append(f"{each.pair.kind}: another record changes its batch")


def _batch_of(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The number of each record's batch; a population that is filled up has more records."""
    found = np.full(sum(len(part) for part in parts), -1)
    for number, part in enumerate(parts):
        found[np.asarray(part, dtype=int)] = number
    return found


def _check_claim(report: Report, case: Case, one: OpenedCell) -> None:
    """What the events certify is within what was asked for; nan is never within anything."""
    epsilon, delta, relation = case.asked
    claim = one.guarantee
    allowed = one.budget.delta if delta is None else delta
    if delta is None and claim.delta > 0.0:
        n = one.spec.n
        if not claim.delta <= max(1.0 / n**2, 1e-14) * (1.0 + _ROUNDING) and n > 1:
            report.faults.append(f"delta=auto is {claim.delta:.4g}, more than 1/n^2 with n = {n}")
    if claim.kind == "none" or not claim.epsilon <= epsilon * (1.0 + 1e-12):
        report.faults.append(f"epsilon {claim.epsilon:.6g} is claimed and {epsilon:.6g} was asked")
    if not claim.delta <= allowed:
        report.faults.append(f"delta {claim.delta:.4g} is claimed and {allowed:.4g} was asked")
    if claim.relation != relation:
        report.faults.append(f"the claim is for {claim.relation} and {relation} was asked")
    if claim.kind == "pure" and claim.delta != 0.0:
        report.faults.append(f"a pure claim has delta {claim.delta:.4g}")


def _check_exact(report: Report, one: OpenedCell) -> None:
    """The exact loss of the plan's noise, and of its perturbed objective at its own curvature."""
    claim, relation = one.guarantee, one.guarantee.relation
    loss = exact_loss.plan_loss(one.plan.events, claim.epsilon, claim.delta, relation)
    if loss is not None:
        report.exact = loss[0]
        if not loss[0] <= 1.0 + _QUADRATURE:
            report.faults.append(f"the exact loss is {loss[0]:.6g} times the claim")
    report.faults += composed_delta.find_faults(
        one.plan.events, claim.epsilon, claim.delta, relation
    )
    if isinstance(one.problem, Problem):
        report.faults += objective_loss.plan_faults(one.plan.events, one.problem, relation)


def _check_constants(report: Report, one: OpenedCell) -> None:
    if isinstance(one.problem, Problem):
        found = constant_checks.find_faults(one.problem, one.plan.events)
        report.faults += [f"constants: {words}" for words in found]


def _check_noise(report: Report, one: OpenedCell, seed: int, known: set[Any]) -> None:
    """The law of every event's noise, unless noise like it was looked at already."""
    dim = one.coordinates

    def is_new(key: Any) -> bool:
        seen = key in known
        known.add(key)
        return not seen

    for event in one.plan.events:
        if is_new(event):
            report.faults += channel_answers.find_faults(event, report.relation, seed)
        if not event.noise_law or not dim:
            continue
        size = round(math.log10(event.noise_scale) / 3)
        if is_new((type(event).__name__, event.noise_law, size, dim, one.secure)):
            grid = one.planned[1] if one.secure else None
            report.faults += noise_laws.find_faults(event, dim, report.relation, seed, grid)
        if event.samples_records and is_new((event.population, event.batch, event.sampling)):
            report.faults += noise_laws.batch_faults(event, report.relation, seed)


def _check_refusals(report: Report, one: OpenedCell) -> None:
    if report.seconds <= release_checks.SLOW:
        report.faults += refusal_checks.find_faults(one)


def _check_replays(report: Report, case: Case, seed: int) -> None:
    for each in case.neighbours:
        one, other = each.first, each.second
        if one.status != OK or other.status != OK or _has_moved_record(each):
            continue
        if release_checks.count_numbers(one) * 2 > release_checks.MOST_REPLAYED:
            steps = one.plan.steps
            report.not_attacked.append(f"replay: {steps} steps are too many for the plain loop")
            return
        if report.replay_calls and report.seconds > release_checks.SLOW:
            report.not_attacked.append("more pairs: a release takes too long")
            return
        try:
            found = replay(one.mechanism, one.plan, one.problem, other.problem, seed)
        except DpermError as error:
            _check_both_refuse(report, each, seed, str(error))
            continue
        if each is case.neighbours[0]:
            found = found.join(_replay_far_points(one, other, seed))
        report.faults += _session_faults(each, seed)
        if not one.secure and (each is case.neighbours[0] or each.pair.removed):
            runs = replay_runs(one.plan, one.release, other.release, seed)
            report.faults += [f"a run, {each.pair.kind}: {words}" for words in runs.faults[:3]]
        report.replay_calls += found.calls
        report.replay_worst = max(report.replay_worst, found.worst)
        report.faults += [f"{each.pair.kind}: {words}" for words in found.faults[:3]]
        if one.secure and one.step is not None and _releases_sums(one):
            _check_grid(report, each, seed)


def _session_faults(each: Neighbours, seed: int) -> list[str]:
    """A session that answers queries one by one, some of them nearly equal, on both sides."""
    one, other = each.first, each.second
    held = None if one.data is None else one.data.x_test
    if held is None or one.mechanism.session is None:
        return []
    rows = to_dense(held[:_QUERIES])
    rows = np.concatenate([rows, rows * (1.0 - 1e-6), rows[:1]])
    found = replay_session(one.mechanism, one.plan, one.problem, other.problem, rows, seed)
    return [f"a session, {each.pair.kind}: {words}" for words in found.faults[:3]]


def _replay_far_points(one: OpenedCell, other: OpenedCell, seed: int) -> Replay:
    """The same replay with minimisers as far apart as their certificates allow."""
    found = solver_errors.replay_far_points(
        one.mechanism, one.plan, one.problem, other.problem, seed, seed
    )
    words = "with minimisers as far apart as may be"
    return replace(found, faults=tuple(f"{words}: {fault}" for fault in found.faults))


def _has_moved_record(each: Neighbours) -> bool:
    """Whether batches are drawn by place and another record has taken a place: no neighbour's batch
    is then the same with the same draws."""
    sampled = any(event.samples_records for event in each.first.plan.events)
    return sampled and each.pair.removed and each.pair.index != each.pair.first.n - 1


def _check_both_refuse(report: Report, each: Neighbours, seed: int, reason: str) -> None:
    """A release that the package refuses on one data set must be refused on its neighbour."""
    said = []
    for side in (each.first, each.second):
        try:
            side.draw(1, seed, None)
            said.append("")
        except DpermError as error:
            said.append(str(error))
    if said[0] != said[1]:
        report.faults.append(f"{each.pair.kind}: {said[0]!r} and {said[1]!r} on neighbours")
    else:
        _note_refusal(report, f"replay on {each.pair.kind}", reason)


def _releases_sums(one: OpenedCell) -> bool:
    """Whether a plan releases nothing but sums over the records as they are."""
    sums = all(event.gradients(1) is not None or _is_moments(event) for event in one.plan.events)
    return sums and one.plan.space is None and not _names_distance(one.plan.settings)


def _is_moments(event: Any) -> bool:
    return event.gap_survives_rounding


def _names_distance(settings: Mapping[str, Any]) -> bool:
    """Whether a plan, or the one inside it, releases a minimiser and no sums of gradients."""
    inner = settings.get("inner")
    return "distance" in settings or (isinstance(inner, Mapping) and _names_distance(inner))


def _check_grid(report: Report, each: Neighbours, seed: int) -> None:
    """Sums on a grid are multiples of it and move by no more than their event says."""
    views = [side.view() for side in (each.first, each.second)]
    points = each.first.draw(3, seed)  # once: secure draws are others each time
    for event in each.first.plan.events:
        sums = [_find_sums(view, event, points) for view in views]
        # in the norm of the event
        moved = event.meter(report.relation).move(*sums)
        if not moved <= 1.0 + _ROUNDING:
            report.faults.append(
                f"{each.pair.kind}: a sum on the grid moved by {moved:.4g} sensitivities"
            )
        step = each.first.step
        if step and not all(np.array_equal(np.rint(total / step) * step, total) for total in sums):
            report.faults.append("a sum is no multiple of the grid")


def _find_sums(view: Any, event: Any, points: np.ndarray) -> np.ndarray:
    """What an event adds noise to: moments, curvature at the centre, or gradients at points."""
    spec = view.spec
    if event.summed == "moments":
        return np.asarray(view.packed_moments(bound_targets(spec)))
    if event.summed == "joint_moments":
        return np.asarray(view.packed_joint_moments(bound_targets(spec), TARGET_SHARE))
    if event.summed == "curvature":
        return np.asarray(view.packed_curvature(spec.constraint.centre()))
    return np.asarray(view.gradient_sum(points))


def _check_attack(report: Report, case: Case, seed: int) -> None:
    """The first pair, and others in which nothing hides the record."""
    trials = release_checks.choose_release_count(report, release_checks.MOST_RELEASES)
    if trials < cell_attack.LEAST:
        report.not_attacked.append("attack: a release takes too long to be made often")
        return
    for number, each in enumerate(case.neighbours):
        if (number and each.pair.kind not in ALONE) or each.first.status != each.second.status:
            continue
        first, second = each.first.draw(trials, seed), each.second.draw(trials, seed + 1)
        problems = (_add_plan_ridge(each.first), _add_plan_ridge(each.second))
        found = cell_attack.attack(first, second, problems, report.delta)
        if found.bound >= report.bound:
            report.bound, report.statistic, report.trials = found.bound, found.by, found.trials
        if not found.bound <= report.claim * (1.0 + _ROUNDING):
            report.faults.append(
                f"{each.pair.kind}: epsilon is at least {found.bound:.4g} by {found.by}, "
                f"above the claim {report.claim:.4g}"
            )


def _add_plan_ridge(one: OpenedCell) -> Any:
    """The problem with the regulariser that the plan adds: its gradient is then the noise."""
    added = one.plan.settings.get("added")
    if not isinstance(one.problem, Problem) or not isinstance(added, (int, float)):
        return one.problem
    return replace(one.problem, ridge=one.problem.ridge + added / one.spec.n)


def _check_sampler(report: Report, one: OpenedCell, seed: int) -> None:
    if not sampler_laws.is_applicable(one):
        return
    trials = 3 * release_checks.choose_release_count(report, sampler_laws.TRIALS / 3)
    if trials:
        report.faults += sampler_laws.find_faults(one, trials, seed)
    else:
        report.not_attacked.append("sampler: a draw takes too long to be made often")
