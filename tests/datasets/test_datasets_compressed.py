"""The compressed setting: records that came projected by a Phi that is given."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.shared import projected_records
from dperm_cli.losses.logistic import Logistic
from dperm_cli.mechanisms.compression.projected import Projected
from dperm_cli.mechanisms.compression.standard_projection import StandardProjection
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.views.central import CentralView

M, D, N = 6, 30, 50
BUDGET = Budget(1.0, 0.0, "replace_one")


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(4)
    phi = rng.standard_normal((M, D)) / np.sqrt(M)
    x = rng.standard_normal((N, M))
    x /= 1.2 * np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    np.savez(tmp_path / "phi.npz", phi=phi)
    return tmp_path, x, phi


def loaded(folder, **keys):
    given = {"rows": "clip", "row_bound": 1.0, "test_fraction": 0.0, "phi": folder / "phi.npz",
             "intercept": False}  # fmt: skip
    given |= keys
    phi = None if given["phi"] is None else str(given["phi"])
    return Npz(path=str(folder / "data.npz"), **{**given, "phi": phi}).load()


def test_losses_are_those_of_the_projected_problem(files):
    folder, _, phi = files
    data, plain = loaded(folder), loaded(folder, phi=None)
    assert (data.n, data.p, plain.p) == (N, D, M)
    theta = np.random.default_rng(0).standard_normal((3, D))
    np.testing.assert_allclose(
        Logistic().values(theta, data), Logistic().values(theta @ phi.T, plain), rtol=1e-9
    )
    assert np.all(np.linalg.norm(data.x, axis=1) <= data.row_bound)
    assert data.phi_row_bound == 1.0
    assert data.fingerprint != plain.fingerprint


def test_projected_uses_the_matrix_and_lifts(files):
    folder, x, _ = files
    body = L1Ball(2.0, D)
    problem = Problem(loaded(folder), Logistic(), body)  # type: ignore[arg-type]
    mechanism = Projected(inner="objective_perturbation")
    plan = mechanism.plan(problem.spec(), BUDGET)
    assert plan.settings["m"] == M
    assert plan.settings["phi"] == "given"
    assert plan.settings["row_bound"] == 1.0
    seen = plan.space.phi.apply(problem.data.x)
    np.testing.assert_allclose(seen, x, rtol=1e-9, atol=1e-12)
    seeds = [seed_sequence(0, "noise", trial) for trial in range(4)]
    found = mechanism.release(CentralView(problem), plan, Gate(seeds))
    assert found.theta.shape == (4, D)
    assert np.all(body.gauge(found.theta) <= 1.0 + 1e-8)
    assert np.ptp(found.theta, axis=0).max() > 0.0


def test_a_row_is_the_same_to_the_last_bit_whoever_else_is_there(files):
    """A record is projected alone: nobody else may change its last bits."""
    rng = np.random.default_rng(0)
    plain = loaded(files[0], phi=None)
    x, phi = rng.standard_normal((101, 57)) / 8.0, rng.standard_normal((57, 60))
    most = plain.with_records(x, np.ones(101), row_bound=9.0)
    whole = projected_records.backwards(most, phi).x
    for gone in (0, 50, 100):
        left = most.with_records(np.delete(x, gone, 0), np.ones(100))
        np.testing.assert_array_equal(
            projected_records.backwards(left, phi).x, np.delete(whole, gone, 0)
        )


def test_what_is_refused(files):
    folder, _, phi = files
    problem = Problem(loaded(folder), Logistic(), L1Ball(2.0, D))  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="projected to 6"):
        Projected(m=7).plan(problem.spec(), BUDGET)
    with pytest.raises(Unsupported, match="mechanism=projected"):
        StandardProjection().plan(problem.spec(), BUDGET)
    np.savez(folder / "wide.npz", phi=phi[:4])
    np.savez(folder / "flat.npz", phi=np.ones((M, D)))
    np.savez(folder / "other.npz", psi=phi)
    for name in ("wide", "flat", "other", "absent"):
        with pytest.raises(InputError, match=r"dataset\.phi"):
            loaded(folder, phi=folder / f"{name}.npz")
