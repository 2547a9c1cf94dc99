"""Weights of least sum: against another solver's program, and where atoms coincide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from dperm_cli.solvers.least_weights import find_weights


def a_program(m, count, signed, noise, seed=0):
    """Atoms [count, m] and a target that three of them nearly make."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((count, m)) / np.sqrt(m)
    target = 0.5 * atoms[0] + 0.25 * atoms[7] + 0.125 * atoms[9]
    target = target + noise * rng.standard_normal(m)
    if not signed:  # 0 has to be inside, as it is in a hull about its own mean
        atoms = atoms - atoms.mean(axis=0)
        target = target - target.mean()
    return atoms, target


@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("m", "count"), [(1, 20), (5, 40), (30, 400), (60, 90)])
def test_the_sum_is_that_of_another_solver(m, count, signed, noise):
    atoms, target = a_program(m, count, signed, noise)
    rows = np.vstack([atoms, -atoms]) if signed else atoms
    other = linprog(np.ones(len(rows)), A_eq=rows.T, b_eq=target, bounds=(0, None))
    found = find_weights(atoms, target, signed)
    if other.x is None:  # in a cone that does not hold the target
        assert found is None or not np.allclose(found.weights @ rows[found.labels], target)
        return
    assert found is not None
    assert np.sum(found.weights) == pytest.approx(other.fun, rel=1e-7)
    np.testing.assert_allclose(found.weights @ rows[found.labels], target, atol=1e-7)
    # the prices prove it: no weights that make the target have a smaller sum
    reach = float(np.max(rows @ found.prices))
    assert float(found.prices @ target) / max(1.0, reach) >= (1 - 1e-8) * np.sum(found.weights)


def test_atoms_that_coincide_share_their_weight():
    atoms, target = a_program(8, 30, True, 0.1)
    once = find_weights(atoms, target, True)
    twice = find_weights(np.vstack([atoms, atoms]), target, True)
    assert once is not None
    assert twice is not None
    assert np.sum(twice.weights) == pytest.approx(np.sum(once.weights), rel=1e-8)


def test_atoms_in_a_plane_make_a_point_of_the_plane():
    atoms, target = a_program(6, 40, True, 0.1)
    flat = np.hstack([atoms, np.zeros((40, 2))])
    found = find_weights(flat, np.append(target, [0.0, 0.0]), True)
    assert found is not None
    within = find_weights(atoms, target, True)
    assert within is not None
    assert np.sum(found.weights) == pytest.approx(np.sum(within.weights), rel=1e-7)
