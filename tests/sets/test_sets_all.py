"""Every constraint set, as configured by default and with data of its own: the same promises."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit.contracts import set_contract
from dperm_cli.audit.contracts.promises import list_promises, try_promise
from dperm_cli.core import registry
from dperm_cli.core.fields import configure


def build(name, p, radius=1.7, **fields):
    cls = registry.load("constraint", name)
    return configure(cls, "constraint", {"radius": radius, **fields}, p=p)


def cases():
    rng = np.random.default_rng(5)
    square, tall = rng.standard_normal((4, 4)), rng.standard_normal((5, 3))
    wide = rng.standard_normal((2, 4))
    rows = rng.standard_normal((20, 4))
    found = {}
    for name in registry.names("constraint"):
        for p in (1, 2, 6):
            found[f"{name} p={p}"] = build(name, p)
    for power in (1, 1.05, 1.3, 3, 40, float("inf")):
        found[f"power {power}"] = build("lp_ball", 5, power=power)
    found["axes"] = build("ellipsoid", 3, axes=[2, 1, 1e-3])
    found["condition"] = build("ellipsoid", 4, condition=100)
    found["shape"] = build("ellipsoid", 4, matrix=(square @ square.T).tolist())
    found["points"] = build("polytope", 4, vertices=(rows + 1.5).tolist())
    flat = rng.standard_normal((7, 2)) @ rng.standard_normal((2, 4)) + 1.0
    found["flat points"] = build("polytope", 4, vertices=flat.tolist())
    found["one point"] = build("polytope", 2, vertices=[[1.0, -2.0]])
    halves = np.vstack([rows, -rows])
    found["half-spaces"] = build("polytope", 4, matrix=halves.tolist(), offset=[1.0] * 40)
    shifted = np.ones(40) + halves @ np.array([2.0, 0.0, -1.0, 0.5])
    found["shifted"] = build("polytope", 4, matrix=halves.tolist(), offset=shifted.tolist())
    cube = np.vstack([np.eye(7), -np.eye(7)])
    found["cube of 7"] = build("polytope", 7, matrix=cube.tolist(), offset=[1.0] * 14)
    sides = np.vstack([-np.eye(3), np.ones((1, 3)), -np.ones((1, 3))])
    found["flat half-spaces"] = build("polytope", 3, matrix=sides.tolist(), offset=[0, 0, 0, 1, -1])
    for inner in ({"name": "box"}, {"name": "l2_ball"}, {"name": "simplex"}):
        found[f"square of {inner['name']}"] = build("image", 4, inner=inner, matrix=square.tolist())
        found[f"wide of {inner['name']}"] = build("image", 2, inner=inner, matrix=wide.tolist())
        found[f"tall of {inner['name']}"] = build("image", 5, inner=inner, matrix=tall.tolist())
    for radius in (1.02, 1.3, 5.0):
        inner = {"name": "simplex", "radius": 2.0}
        found[f"simplex within {radius}"] = build("intersection", 4, radius, inner=inner)
    for inner in ({"name": "box", "radius": 1.0}, {"name": "ellipsoid", "axes": [3, 1, 0.2, 0.1]}):
        found[f"{inner['name']} within"] = build("intersection", 4, 1.4, inner=inner)
    return found


CASES = cases()
every = pytest.mark.parametrize("case", CASES)


@pytest.mark.in_turn
@every
def test_what_every_set_promises(case):
    """The checks of ``dperm check``."""
    subject = set_contract.Subject((CASES[case],))
    for promise in list_promises(set_contract):
        finding = try_promise(promise, subject, "constraint", case)
        assert not finding.is_broken, finding.seen


@every
def test_isotropic_map_holds_a_unit_ball(case):
    c, rng = CASES[case], np.random.default_rng(4)
    root, shift = c.isotropic()
    assert root.shape == (c.p, c.p)
    assert shift.shape == (c.p,)
    d = c.directions().shape[1]
    assert np.linalg.matrix_rank(root, 1e-12 * np.linalg.norm(root)) == c.p
    if d == 0:
        return
    basis = np.linalg.svd(np.linalg.solve(root, c.directions()), full_matrices=False)[0]
    phi = rng.standard_normal((40, d)) @ basis.T
    phi /= np.linalg.norm(phi, axis=1)[:, None]
    assert np.all(c.contains(shift + (1 - 1e-9) * phi @ root.T, 1e-9))
    reach = np.linalg.solve(root, (c.lmo(rng.standard_normal((60, c.p))) - shift).T)
    rounded = "within" not in case and "intersection" not in case and "wide" not in case
    if rounded:
        limit = np.sqrt(d) if c.symmetric else max(d, 1)
        assert np.max(np.linalg.norm(reach, axis=0)) <= limit * (1 + 1e-4)


@every
def test_width_agrees_with_simulation(case):
    """Within 4 standard errors of a simulation of its own seed: fixed, so never a false alarm."""
    c, rng = CASES[case], np.random.default_rng(6)
    value, error = c.width(np.random.default_rng(7), 200)
    g = rng.standard_normal((100, c.p))
    sample = 0.5 * (c.support(g) + c.support(-g))
    spread = np.hypot(sample.std(ddof=1) / 10.0, error)
    assert abs(sample.mean() - value) <= 4 * spread + 1e-12
    if error == 0 and spread > 0:
        assert value > 0


@pytest.mark.parametrize("name", registry.names("constraint"))
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_everything_scales_with_the_radius(name, factor):
    unit, scaled = build(name, 4, 1.0), build(name, 4, factor)
    theta = 2.0 * np.random.default_rng(9).standard_normal((5, 4))
    np.testing.assert_allclose(
        scaled.project(factor * theta) / factor, unit.project(theta), rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(scaled.support(theta), factor * unit.support(theta), rtol=1e-10)
    for size in ("radius", "diameter", "inner_radius", "outer_radius", "size"):
        assert getattr(scaled, size) == pytest.approx(factor * getattr(unit, size), rel=1e-9)
    np.testing.assert_allclose(scaled.isotropic()[0] / factor, unit.isotropic()[0], atol=1e-7)


@pytest.mark.parametrize("name", registry.names("constraint"))
def test_sets_are_values(name):
    one, other = build(name, 3), build(name, 3)
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert one != build(name, 3, 1.8)
    assert one.p == 3
    assert build(name, 0).p == 1


@every
def test_two_points_are_as_far_apart_as_the_least_diameter(case):
    """What a lower bound on a risk is built on must not exceed a distance inside the set."""
    c = CASES[case]
    least = c.least_diameter
    assert 0.0 <= least <= c.diameter * (1 + 1e-9)
    rng = np.random.default_rng(3)
    ends = c.lmo(np.vstack([np.eye(c.p), -np.eye(c.p), rng.standard_normal((40, c.p))]))
    corners = c.vertices()
    ends = ends if corners is None or len(corners) > 500 else np.vstack([ends, corners])
    reached = max(float(np.max(np.linalg.norm(ends - end, axis=1))) for end in ends)
    if c.symmetric:  # a farthest point and its opposite are both in the set
        far = c.project(np.full(c.p, 1e9))
        reached = max(reached, 2.0 * float(np.linalg.norm(far)), 2.0 * _farthest(c, rng))
    assert least <= reached * (1 + 1e-6)


def _farthest(c, rng):
    """The largest norm that repeated linear maximisation from random starts comes to."""
    theta = rng.standard_normal((8, c.p))
    for _ in range(40):
        before, theta = theta, c.lmo(-theta)
        if np.allclose(theta, before, rtol=0.0, atol=1e-12 * c.radius):
            break
    return float(np.max(np.linalg.norm(theta, axis=1)))
