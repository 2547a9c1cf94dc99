"""Simulate how noise on the gradients becomes excess risk, on public or synthetic records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec

SPECTRA = (0.0, 1.0, 2.0)  # eigenvalues fall as j^-power
MARGINS = (0.5, 2.0, 8.0)  # standard deviations of margins, where labels are drawn by them
SHARES = (0.2, 0.6, 0.95)  # of the variance of targets that is explained
TARGET_SPREAD = 0.4  # standard deviation of targets over their bound
# noise: length over that of one record's gradient bound
NOISES = np.logspace(-4.0, 1.0, 11)
LEAST_RECORDS, RECORDS_PER_COLUMN, MOST_RECORDS = 200, 3, 2000
MOST_NUMBERS = 5 * 10**6  # records times columns of sparse rows: 40 MB
MOST_COLUMNS = 120  # with more, the length of the noise is kept
FEW_COLUMNS = 40
DRAWS = {True: 6, False: 3}  # of a synthetic problem, with few columns or many
PUBLIC_DRAWS = 24
STEPS, OPTIMUM_STEPS = 300, 2000
STILL = 1e-11  # of the largest coordinate: a point that changes by no more is finished
KINK_WIDTH = 0.05  # of a kink that is rounded off for the simulation
LEAST_EXCESS = 1e-13


@dataclass(frozen=True)
class RiskCurves:
    """Excess risk per record by noise, a curve for each problem and draw.

    Attributes:
        noises: lengths of the noise on the mean gradient, ascending, [u].
        risks: excess risk per record, ascending in u, [curves, u].
        floors: that of the centre of the set, which needs no data, with the problem's own ridge,
            [curves].
        problems: the number of the problem that a curve is of, [curves].
        optima: the judged objective per record at the minimiser without noise, [curves].
        starts: the judged objective per record at the centre of the set, [curves].
    """

    noises: np.ndarray
    risks: np.ndarray
    floors: np.ndarray
    problems: np.ndarray
    optima: np.ndarray
    starts: np.ndarray

    def at(self, noise: float) -> np.ndarray:
        """The risk of each curve at a noise, [curves]; below the least noise it is quadratic."""
        place = math.log(noise)
        known = np.log(self.noises)
        logs = np.log(self.risks)
        found = np.array([np.interp(place, known, one) for one in logs])
        return np.exp(found + 2.0 * min(0.0, place - known[0]))


def simulate_synthetic(
    spec: ProblemSpec, seed: int = 0, judged_ridge: float | None = None
) -> RiskCurves:
    """Curves of generated problems with three spectra and three strengths of the signal.

    Args:
        spec: the public facts of the problem that they stand for.
        seed: of records and noise.
        judged_ridge: that of the objective which judges what is found; None for that of ``spec``.

    Raises:
        Unsupported: the loss has no form that can be minimised here.
    """
    columns = min(spec.bounds.columns, MOST_COLUMNS)
    records = max(LEAST_RECORDS, RECORDS_PER_COLUMN * columns)
    constraint = _resize(spec, columns)
    draws = DRAWS[constraint.p <= FEW_COLUMNS]
    found = []
    for place, (power, strength) in enumerate(itertools.product(SPECTRA, range(3))):
        rng = generator(seed_sequence(seed, "plan", str(place)))
        data = _generate(spec, records, columns, power, strength, rng)
        problem = _make_problem(spec, data, constraint)
        judge = _judge_by(problem, judged_ridge)
        found.append(_simulate(problem, judge, spec.lipschitz, draws, rng))
    return _join(found)


def simulate_public(
    spec: ProblemSpec, data: Data, seed: int = 0, judged_ridge: float | None = None
) -> RiskCurves:
    """Curves of public records, a sample of them where there are many."""
    rng = generator(seed_sequence(seed, "plan", "like"))
    if data.n > MOST_RECORDS:
        data = data.take(np.sort(rng.choice(data.n, MOST_RECORDS, replace=False)))
    if not isinstance(data.x, np.ndarray):
        if data.n * data.p > MOST_NUMBERS:
            words = f"{data.p} columns are too many to simulate {data.n} records of"
            raise Unsupported(f"like={data.name} is sparse, and its {words}")
        data = data.with_rows(data.x.toarray(), x_test=None, y_test=None)
    problem = _make_problem(spec, data, spec.constraint)
    judge = _judge_by(problem, judged_ridge)
    return _join([_simulate(problem, judge, spec.lipschitz, PUBLIC_DRAWS, rng)])


def _judge_by(problem: Problem, ridge: float | None) -> Problem:
    """The same problem with another ridge."""
    if ridge is None or ridge == problem.ridge:
        return problem
    return Problem(problem.data, problem.loss, problem.constraint, ridge, problem.lasso)


def _join(found: Sequence[RiskCurves]) -> RiskCurves:
    names = ("risks", "floors", "optima", "starts")
    joined = {name: np.concatenate([getattr(one, name) for one in found]) for name in names}
    problems = np.repeat(np.arange(len(found)), [len(one.floors) for one in found])
    return RiskCurves(noises=found[0].noises, problems=problems, **joined)


def _resize(spec: ProblemSpec, columns: int) -> Any:
    """The set in as many dimensions as are simulated."""
    if columns == spec.bounds.columns:
        return spec.constraint
    size = spec.p // spec.bounds.columns * columns
    try:
        return type(spec.constraint)(p=size, radius=spec.constraint.size)
    except (TypeError, AttributeError):
        name = spec.constraint.name
        raise Unsupported(f"constraint={name} is simulated up to {MOST_COLUMNS} columns") from None


def _make_problem(spec: ProblemSpec, data: Data, constraint: Any) -> Problem:
    loss: Any = spec.form
    if loss.smoothness is None:
        if loss.round_kink is None:
            raise Unsupported(f"loss={loss.name} has kinks and no rounded form to simulate")
        unit = spec.target_bound if spec.task == "regression" else 1.0
        loss = loss.round_kink(KINK_WIDTH * unit)
    return Problem(data, loss, constraint, spec.ridge, spec.lasso)


def _generate(
    spec: ProblemSpec, records: int, columns: int, power: float, strength: int, rng: Any
) -> Data:
    """Rows of the norm of their bound, whose labels or targets follow them."""
    x = rng.standard_normal((records, columns)) * np.arange(1, columns + 1) ** (-0.5 * power)
    x *= spec.row_bound / np.linalg.norm(x, axis=1, keepdims=True)
    classes = spec.bounds.classes if spec.task == "multiclass" else 1
    margins = x @ rng.standard_normal((columns, classes))
    margins *= MARGINS[strength] / np.std(margins, axis=0)
    if spec.task == "binary":
        y = np.where(rng.logistic(size=records) < margins[:, 0], 1.0, -1.0)
    elif spec.task == "multiclass":
        y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1).astype(float)
    elif spec.task == "regression":
        share, signal = SHARES[strength], margins[:, 0] / MARGINS[strength]
        noise = rng.standard_normal(records)
        y = math.sqrt(share) * signal + math.sqrt(1.0 - share) * noise
        y = spec.target_bound * np.clip(TARGET_SPREAD * y, -1.0, 1.0)
    else:
        middle = rng.standard_normal(columns)
        x = x + spec.row_bound * (strength + 1.0) * middle / np.linalg.norm(middle)
        x *= spec.row_bound / np.linalg.norm(x, axis=1, keepdims=True)
        y = np.zeros(records)
    bound = spec.target_bound
    return Data.of_records("forecast", spec.task, x, y, spec.row_bound, bound, fingerprint="",
                           classes=spec.bounds.classes)  # fmt: skip


def _simulate(
    problem: Problem, judge: Problem, gradient: float, draws: int, rng: Any
) -> RiskCurves:
    """Minimise ``problem`` with a linear term of noise; ``judge`` says how good the points are.

    The direction of the noise is shared by all lengths. Where the judge has another ridge, a point
    that noise has moved can be better than the one without noise. So the mean of the noise and of
    its opposite counts there.
    """
    directions = rng.standard_normal((draws, problem.p)) / math.sqrt(problem.p)
    noises = NOISES * gradient
    terms = (directions[:, None] * noises[:, None]).reshape(-1, problem.p)
    centre = np.atleast_2d(problem.constraint.centre())
    best = _minimise(problem, np.zeros_like(centre), centre, OPTIMUM_STEPS)
    starts = np.repeat(best, len(terms), axis=0)
    values = _mean_objective(judge, _minimise(problem, terms, starts, STEPS))
    least, start = (float(_mean_objective(judge, one)[0]) for one in (best, centre))
    if judge is problem:
        least = min(least, float(values.min()))
        floor = start - least
    else:
        opposite = _minimise(problem, -terms, starts, STEPS)
        values = 0.5 * (values + _mean_objective(judge, opposite))
        own = _mean_objective(problem, np.concatenate([centre, best]))
        floor = float(own[0] - own[1])
    risks = np.maximum(values - least, LEAST_EXCESS).reshape(draws, -1)
    return RiskCurves(
        noises, np.maximum.accumulate(risks, axis=1), np.full(draws, max(floor, LEAST_EXCESS)),
        np.zeros(draws, dtype=int), np.full(draws, least), np.full(draws, start),
    )  # fmt: skip


def _mean_objective(problem: Problem, points: np.ndarray) -> np.ndarray:
    """The objective per record at each point, [points]."""
    return problem.objective(points) / problem.data.n


def _minimise(problem: Problem, terms: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    """Accelerated descent of mean loss plus <term, theta> from each row, restarted as it turns.

    A row that no longer moves is finished.
    """
    loss, data, n = problem.loss, problem.data, problem.data.n
    bend = loss.smoothness * loss.curvature_factor(data) / n + problem.ridge
    step = 1.0 / max(bend, 1e-300)
    found, left = np.array(start), np.arange(len(start))
    here = moved = found.copy()
    momentum = np.ones(len(here))
    for _ in range(steps):
        slope = loss.gradient(moved, data) / n + problem.ridge * moved + terms
        raw = moved - step * slope
        if problem.lasso:
            raw = np.sign(raw) * np.maximum(np.abs(raw) - step * problem.lasso, 0.0)
        there = problem.constraint.project(raw)
        change = np.maximum(np.abs(there - moved), np.abs(there - here)).max(axis=1)
        moves = change > STILL * np.abs(there).max(axis=1)
        turned = np.sum((moved - there) * (there - here), axis=1) > 0.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        share = np.where(turned, 0.0, (momentum - 1.0) / following)
        momentum = np.where(turned, 1.0, following)
        moved = there + share[:, None] * (there - here)
        here = found[left] = there
        if not moves.all():
            left, terms = left[moves], terms[moves]
            here, moved, momentum = here[moves], moved[moves], momentum[moves]
        if not left.size:
            break
    return found
