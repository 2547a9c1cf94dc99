"""Lower bound <= measured worst case <= upper bound, on the families of the lower bounds' proof.

The families are those of docs/proofs/_hidden_directions.md: blocks of b coordinates, k records of
each block point into a secret direction, signs at b = 1, and the other records say nothing. With
them go data sets of which more records, or all, have one direction. All intervals of a run hold
together with a confidence of 99 %.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student

from dperm_cli.bounds.all_bounds import choose_best_bounds
from dperm_cli.bounds.base import Setting, find_gaussian_mu
from dperm_cli.bounds.hidden_lower import Found, Privacy, find_for
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.losses.linear import Linear
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.perturbation.approximate_minima_perturbation import (
    ApproximateMinimaPerturbation,
)
from dperm_cli.mechanisms.perturbation.objective_perturbation import ObjectivePerturbation
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView

RADIUS, SETS = 2.0, 20
DELTA = 1e-6
MECHANISMS = {
    "noisy_gd": NoisyGd(step_size="theory"),
    "objective_perturbation": ObjectivePerturbation(),
    "approximate_minima_perturbation": ApproximateMinimaPerturbation(),
}
TRIALS = {"noisy_gd": 10}  # on each of the SETS data sets, else 100
CELLS = [
    (name, n, p, epsilon, delta)
    for name in MECHANISMS
    for n, p, epsilon in ((40, 2, 1.0), (40, 16, 1.0), (300, 4, 0.3), (300, 16, 4.0))
    for delta in (DELTA, 0.0)
    if delta or name != "noisy_gd"
]
FAMILIES = 5  # of one cell, at most: two proofs, and three numbers of records with one direction
CONFIDENCE = 1.0 - 0.01 / (2 * FAMILIES * len(CELLS))  # of one end of one interval


def hide_directions(rng, n, p, b, k):
    """Rows with k records in the direction of each block of b coordinates."""
    rows = np.zeros((n, p))
    for j in range(min(p // b, n // k)):
        direction = rng.standard_normal(b)
        rows[j * k : (j + 1) * k, j * b : (j + 1) * b] = direction / np.linalg.norm(direction)
    return rows


def make_problem(rows):
    n, p = rows.shape
    data = Data.of_records("hidden", "binary", rows, np.ones(n), 1.0, 1.0, fingerprint="")
    return Problem(data, Linear(), make_ball(RADIUS, p))


def measure(name, plan, n, p, b, k):
    """Ends of the interval of the mean risk over the family: each set is drawn anew."""
    mechanism, trials = MECHANISMS[name], TRIALS.get(name, 100)
    rng, means = np.random.default_rng([n, p, b, k]), []
    for place in range(SETS):
        problem = make_problem(hide_directions(rng, n, p, b, k))
        seeds = [seed_sequence(place, "worst", trial) for trial in range(trials)]
        theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
        pull = problem.data.x.sum(axis=0)
        means.append(np.mean(RADIUS * np.linalg.norm(pull) - theta @ pull))
    reach = student.ppf(CONFIDENCE, SETS - 1) * np.std(means, ddof=1) / math.sqrt(SETS)
    return np.mean(means) - reach, np.mean(means) + reach


def study(name, n, p, epsilon, delta):
    """The bounds of a cell and the intervals of its families."""
    mechanism, budget = MECHANISMS[name], Budget(epsilon, delta)
    spec = make_problem(np.zeros((n, p))).spec()
    plan = mechanism.plan(spec, budget)
    mu = find_gaussian_mu(plan.events, budget.relation)
    kind = registry.find_name(type(mechanism))
    at = Setting(spec, budget, plan.guarantee.kind, kind, plan.noise_scale, plan.steps,
                 plan.settings, mu)  # fmt: skip
    proofs = {"bound_lower": find_for(spec, Privacy.of(budget))}
    if mu:
        gaussian = Privacy.of(budget)._replace(mu=mu)
        proofs["bound_lower_gaussian"] = find_for(spec, gaussian)
    families = {found[2:] for found in proofs.values()}
    families |= {(p, k) for k in (max(1, n // 16), n // 4, n)}
    ends = {family: measure(name, plan, n, p, *family) for family in families}
    return choose_best_bounds(at), proofs, ends


@pytest.mark.stat
@pytest.mark.parametrize(("name", "n", "p", "epsilon", "delta"), CELLS)
def test_the_worst_case_lies_between_its_bounds(name, n, p, epsilon, delta):
    row, proofs, ends = study(name, n, p, epsilon, delta)
    worst = max(low for low, _ in ends.values())
    for bound, found in proofs.items():
        assert isinstance(found, Found)
        assert found.value > 0.0
        assert ends[found[2:]][0] >= found.value  # the proof's own family
        assert worst >= row[bound] >= found.value * (1.0 - 1e-9)
    assert max(high for _, high in ends.values()) <= row["bound_upper"]


def test_the_families_have_more_than_one_kind_of_direction():
    """Signs in blocks of one coordinate, and caps of all coordinates."""
    found = set()
    for _, n, p, epsilon, delta in CELLS:
        spec = make_problem(np.zeros((n, p))).spec()
        found.add(find_for(spec, Privacy.of(Budget(epsilon, delta))).name)
    assert found >= {"signs", "cap"}
