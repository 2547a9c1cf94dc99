"""The only place where these tests touch names inside the package.

Everything else goes through the command line, ``results.records.store``, and the fields of events.
When a signature below moves, this file is re-pointed and no test changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm_cli.audit import replay as audit_replay
from dperm_cli.audit.error_rates import lower, upper
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared import feature_maps
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem import random_projection
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.record_names import name_records
from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.compose import study_plan as study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run
from dperm_cli.solvers import perturbed_minimiser
from dperm_cli.views.choose import open_view

__all__ = ["Budget", "Mechanism", "Plan", "Problem", "Release"]


# --- mechanisms and their releases -------------------------------------------------------------


def mechanism_class(name: str) -> Any:
    """The class of a mechanism by its name on the command line."""
    return registry.load("mechanism", name)


def make_mechanism(name: str, **keys: Any) -> Any:
    """A mechanism with its keys."""
    return mechanism_class(name)(**keys)


def release(
    mechanism: Any, problem: Any, budget: Budget, trials: int, seed: int = 0
) -> tuple[Plan, np.ndarray]:
    """The plan from public facts, and points [trials, p] of independent releases."""
    view = open_view(mechanism, problem)
    plan = mechanism.plan(view.spec, budget)
    seeds = [seed_sequence(seed, "breaks", trial) for trial in range(trials)]
    gate = Gate(seeds, None, (plan.events, budget.relation))
    return plan, np.asarray(mechanism.release(view, plan, gate).theta)


def freeze_release(monkeypatch, name: str, first: float) -> None:
    """Every release of the mechanism gives one fixed point, whatever the records and the noise."""
    made = mechanism_class(name)
    original = made.release

    def release(self, view, plan, gate):
        found = original(self, view, plan, gate)
        theta = np.full(np.shape(found.theta), 0.01)
        theta[:, 0] = first
        return replace(found, theta=theta)

    monkeypatch.setattr(made, "release", release)


def make_problem(
    x: np.ndarray, y: np.ndarray, loss: str, radius: float, ridge: float, constraint="l2_ball"
) -> Problem:
    """A problem whose rows are bounded by 1 in norm."""
    name = f"breaks {x.shape} {x.tobytes().hex()[:64]} {y.tobytes().hex()[:64]}"
    data = Data.of_records(name, "binary", x, y, 1.0, 1.0, name)
    body = registry.load("constraint", constraint)(radius, x.shape[1])
    return Problem(data, registry.load("loss", loss)(), body, ridge)


# --- from the command line's words to the problem that a mechanism sees ------------------------


@dataclass(frozen=True)
class Prepared:
    """A cell as the runner would run it."""

    mechanism: Any
    problem: Any
    budget: Budget

    @property
    def plan(self) -> Plan:
        return self.mechanism.plan(self.problem.spec(), self.budget)


def prepare(words: Sequence[str]) -> Prepared:
    """The mechanism, the problem with its mapped rows, and the budget of one cell."""
    (item,) = run.prepare(study_plan.plan_study(parse(list(words))).cells)
    item = prepared_cell.make_feature_rows(item)
    budget, _ = prepared_cell.find_budget(item)
    return Prepared(item.cell.mechanism, item.padded_problem, budget)


def batches_of_records(problem: Any, batches: int) -> list[np.ndarray]:
    """The record indices of each batch by content."""
    mechanism = make_mechanism("one_pass_sgd")
    return open_view(mechanism, problem).parts(batches, by_content=True)


def record_names(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The 64-bit name [n] that ingest gives to each record."""
    return name_records(x, y)


def disturb_products(monkeypatch) -> None:
    """Library products whose last bits depend on the other rows, as those of a BLAS may.

    Feature maps and projections keep each value to a relative 1e-13.
    """

    def disturbed(original):
        def apply(self, x, *more, **keys):
            found = original(self, x, *more, **keys)
            if found is x:  # a map that does nothing
                return found
            return found * (1.0 + 2.0**-44 * (x.shape[0] % 7))

        return apply

    for made in (feature_maps.Features, random_projection.Stored, random_projection.Cosines):
        monkeypatch.setattr(made, "apply", disturbed(made.apply))


# --- replay ------------------------------------------------------------------------------------


def replay(mechanism: Any, plan: Plan, first: Any, second: Any) -> audit_replay.Replay:
    """Run on ``first``, freeze the outputs, run on ``second``: ``worst`` and ``faults``."""
    return audit_replay.replay(mechanism, plan, first, second)


def neighbour(problem: Any, index: int, row: np.ndarray, target: float) -> Any:
    """The problem with one record replaced."""
    return audit_replay.replace_record(problem, index, row, target)


def open_batches(gate: Gate, event: Any, parts: Sequence[np.ndarray], dim: int):
    """The stream of one event ``DisjointBatches``; it offers ``release(total, step)``."""
    return gate.stream(event, dim, parts=parts)


def open_sums(gate: Gate, event: Any, dim: int):
    """The stream of one event ``Gaussian``; it offers ``add(value, step)``."""
    return gate.stream(event, dim)


def open_coordinates(gate: Gate, event: Any, dim: int):
    """The stream of one event ``Gaussian`` of count 1, asked for coordinate by coordinate."""
    return gate.stream(event, dim, one_by_one=True)


# --- minimisers --------------------------------------------------------------------------------


def distance_of(plan: Plan) -> float:
    """How far from the exact minimiser the plan lets a solver stop, in the unit of theta."""
    facts: Any = plan.settings
    while "distance" not in facts:
        facts = facts["inner"]
    return float(facts["distance"])


def use_stub_solver(monkeypatch, away: Callable[[Problem], np.ndarray]) -> None:
    """A solver that stops at the distance it was allowed, in the direction ``away(problem)`` [p].

    Its certificate is true: the point is within the distance of the exact minimiser.
    """
    original = perturbed_minimiser.locate

    def locate(problem, tilts, modulus, distance):
        points, _ = original(problem, tilts, modulus, 1e-3 * distance)
        direction = away(problem)
        length = float(np.linalg.norm(direction))
        step = direction * (0.99 * distance / length) if length > 0 else 0.0 * direction
        return points + step, np.full(len(tilts), distance)

    monkeypatch.setattr(perturbed_minimiser, "locate", locate)


# --- statistics --------------------------------------------------------------------------------


def epsilon_shown(first: np.ndarray, second: np.ndarray, delta: float = 0.0) -> float:
    """A lower bound on epsilon at ``delta`` from a statistic of both sides, [trials] each.

    The threshold is chosen on the first half of the trials and judged on the second, by
    Clopper-Pearson bounds at the audit's own level.
    """
    half = len(first) // 2
    best: tuple[float, Any] = (-np.inf, None)
    sides = ((first, second), (second, first))
    for turned, (yes, no) in enumerate(sides):
        for sign in (1.0, -1.0):
            for cut in np.quantile(sign * yes[:half], np.linspace(0.0, 0.95, 40)):
                rates = _rates(sign * yes[:half] > cut, sign * no[:half] > cut, delta)
                best = max(best, (rates, (turned, sign, cut)), key=lambda pair: pair[0])
    turned, sign, cut = best[1]
    yes, no = sides[turned]
    return max(0.0, _rates(sign * yes[half:] > cut, sign * no[half:] > cut, delta))


def _rates(yes: np.ndarray, no: np.ndarray, delta: float) -> float:
    true = float(lower(int(np.sum(yes)), len(yes)))
    false = float(upper(int(np.sum(no)), len(no)))
    return float(np.log(max(true - delta, 1e-300) / max(false, 1e-300)))


# --- accounting --------------------------------------------------------------------------------


def rebuild_events(entries: Sequence[Any]) -> list[Any]:
    """The events of a record or a model, from the plain values it holds."""
    return [ledger_totals.rebuild_event(entry) for entry in entries]


def recompute(events: Sequence[Any], delta: float, relation: str) -> float:
    """The epsilon of these events at ``delta`` under a relation; Unsupported without a proof."""
    return float(account(events, delta=delta, relation=relation).epsilon)


def parts_by_place(view: Any, batches: int) -> list[np.ndarray]:
    """The record indices of each batch by place."""
    return view.parts(batches, by_content=False)
