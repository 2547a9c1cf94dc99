"""The finite net: covering, exact probabilities, exact privacy loss, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.samplers.net import Net, net
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.samplers.shared.tangent_boxes import Frame
from dperm_cli.samplers.shared.uniform import draw_uniform
from tests.samplers.laws import Numbers, case, draw

SETS = [("l2_ball", 1), ("l2_ball", 2), ("l1_ball", 3), ("simplex", 3), ("simplex", 4), ("box", 2)]


@pytest.mark.parametrize(("constraint", "p"), SETS)
def test_every_point_has_a_near_one(constraint, p):
    """Within ``covering``, as the certificate says; at half of it some point has none."""
    _, target, _ = case("hinge", constraint, p, f=12.0)
    sampler = Net(covering=0.15)
    certificate = sampler.plan(target, 0.0)
    covering = certificate.facts["covering"]
    points = net(Frame.of(target.constraint), sampler._counts(target)[0])
    assert np.all(target.constraint.contains(points))
    assert len(points) <= certificate.facts["points_at_most"]
    source = Numbers(1)
    theta = np.array([draw_uniform(target.constraint, source) for _ in range(500)])
    nearest = np.min(np.linalg.norm(theta[:, None] - points, axis=2), axis=1)
    assert 0.5 * covering < np.max(nearest) <= covering <= 0.15


def test_discretisation_risk_bounds_the_best_point_of_the_net():
    problem, target, _ = case("logistic", "l2_ball", 2, n=50, f=40.0, ridge=0.05)
    sampler = Net(covering=0.2)
    facts = sampler.plan(target, 0.0).facts
    points = net(Frame.of(target.constraint), sampler._counts(target)[0])
    axis = np.linspace(-1, 1, 201)
    fine = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    fine = fine[target.constraint.contains(fine)]
    lost = np.min(problem.objective(points)) - np.min(problem.objective(fine))
    assert 0 < lost <= facts["discretisation_risk"]
    expected = problem.spec().n * problem.spec().lipschitz_total * facts["covering"]
    assert facts["discretisation_risk"] == pytest.approx(expected)
    # the default: f changes by a quarter at most
    default = Net().plan(target, 0.0).facts
    assert target.lipschitz * default["covering"] <= 0.25
    assert target.exponent * default["discretisation_risk"] <= 0.25


def law(potential, points):
    f = potential.value(points)
    weight = np.exp(f.min() - f)
    return weight / weight.sum()


@pytest.mark.stat
def test_frequencies():
    """Chi-square over the points themselves, false-alarm rate 1e-5; a flat law fails."""
    _, target, potential = case("logistic", "l2_ball", 2, f=10.0)
    sampler = Net(covering=0.4)
    theta = draw(sampler, target, potential, 4000)
    points = net(Frame.of(target.constraint), sampler._counts(target)[0])
    number = np.argmin(np.linalg.norm(theta[:, None] - points, axis=2), axis=1)
    assert np.array_equal(points[number], theta)
    seen = np.bincount(number, minlength=len(points))
    for share, right in (
        (law(potential, points), True),
        (np.full(len(points), 1 / len(points)), False),
    ):
        statistic = np.sum((seen - 4000 * share) ** 2 / (4000 * share))
        assert (stats.chi2.sf(statistic, len(points) - 1) > 1e-5) == right


def test_exact_privacy_loss():
    """epsilon = exponent times oscillation, at worst: all records equal, one turned round."""
    problem, _, _ = case("linear", "l2_ball", 1)
    from dperm_cli.samplers.base import Target

    spec, n = problem.spec(), problem.data.n
    target = Target(spec, 1.0 / spec.oscillation)
    points = net(Frame.of(target.constraint), Net()._counts(target)[0])
    x = np.ones((n, 1))
    y = np.ones(n)
    turned = y.copy()
    turned[0] = -1.0
    logs = [
        np.log(law(Records(problem.loss, problem.data.with_records(x, labels), target), points))
        for labels in (y, turned)
    ]
    loss = float(np.max(np.abs(logs[0] - logs[1])))
    assert 0.4 <= loss <= 1.0 + 1e-9


def test_refusals():
    _, target, _ = case("logistic", "l2_ball", 3, n=100, f=100.0)
    with pytest.raises(Unsupported, match=r"has \d\.?\d*e\+\d+ points.*tangent_cells"):
        Net(covering=1e-3).plan(target, 0.0)
    with pytest.raises(Unsupported, match="4 dimensions"):
        Net().plan(case("logistic", "l2_ball", 4)[1], 0.0)
    with pytest.raises(Unsupported, match="points"):
        Net(most_points=10).plan(target, 0.0)
    with pytest.raises(InputError, match=r"sampler\.covering"):
        Net(covering=0.0)
    assert math.isclose(Net(covering=0.5).plan(target, 0.0).dist_inf, 0.0)
