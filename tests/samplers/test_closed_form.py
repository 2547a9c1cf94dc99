"""Exact laws against quadrature; p-values at level 1e-4, once each, with fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Pieces
from dperm_cli.samplers.closed_form import ClosedForm, case, tilted_ball
from dperm_cli.samplers.shared.interval_pieces import find_depth, make_cells
from dperm_cli.samplers.shared.interval_pieces import law as interval_law
from dperm_cli.samplers.shared.potential import Records
from tests.samplers import Numbers, cell_p_value, problem, target
from tests.samplers.test_truncated_gaussian import build

LEVEL = 1e-4


def law(loss, n, body, epsilon, kappa=0.0, **regulariser):
    made = problem(loss, n, body, **regulariser)
    facts = target(made, epsilon, kappa)
    return facts, Records(made.loss, made.data, facts)


def draws(facts, potential, count, seed):
    sampler = ClosedForm()
    certificate, source = sampler.plan(facts, 0.01), Numbers(seed)
    assert certificate.exact
    assert certificate.dist_inf == 0.0
    return np.array([sampler.draw(potential, facts, certificate, source) for _ in range(count)])


@pytest.mark.parametrize("loss", ["hinge", "absolute", "positive_part", "l1_median", "linear"])
@pytest.mark.parametrize("regulariser", [{}, {"ridge": 0.05, "lasso": 0.02}])
def test_on_a_line(loss, regulariser):
    body = build("l2_ball", 1.7, 1)
    facts, potential = law(loss, 60, body, 4.0, **regulariser)
    found = draws(facts, potential, 3000, seed=1)
    assert cell_p_value(body, found, lambda z: -potential.value(z), cells=20) > LEVEL


@pytest.mark.parametrize("body", [build("l2_ball", 1.0, 1), build("simplex", 1.0, 2)])
def test_squared_on_a_line_and_a_segment(body):
    facts, potential = law("squared", 60, body, 8.0)
    assert case(facts) == "line"
    found = draws(facts, potential, 1500, seed=2)
    assert cell_p_value(body, found, lambda z: -potential.value(z), cells=12) > LEVEL


@pytest.mark.parametrize(
    ("loss", "name", "expected", "kappa"),
    [("linear", "l2_ball", "ball", 0.0), ("hinge", "l2_ball", "ball", 0.0),
     ("linear", "ellipsoid", "ball", 0.0), ("linear", "l2_ball", "gaussian", 3.0),
     ("linear", "l1_ball", "gaussian", 3.0), ("linear", "box", "coordinates", 0.0),
     ("l1_median", "box", "coordinates", 1.0)],
)  # fmt: skip
def test_in_the_plane(loss, name, expected, kappa):
    body = build(name, 0.9, 2)
    facts, potential = law(loss, 30, body, 2.0, kappa)
    assert case(facts) == expected
    found = draws(facts, potential, 1000 if loss == "l1_median" else 3000, seed=3)
    assert cell_p_value(body, found, lambda z: -potential.value(z), fine=50) > LEVEL


def test_the_cells_see_a_wrong_exponent():
    """Power: an exponent 1.05 times too large fails."""
    body, source = build("l2_ball", 1.0, 1), Numbers(4)
    pieces = Pieces(10.0, 0.0, np.array([-0.9, -0.2, 0.4]), np.array([1.0, 4.0, 2.0]))
    wrong = pieces._replace(slope=1.05 * pieces.slope, jump=1.05 * pieces.jump)

    def log_density(z):
        hinges = sum(j * np.maximum(z - a, 0.0) for a, j in zip(*pieces[2:], strict=True))
        return -(pieces.slope * z + hinges)[..., 0]

    for law, count, right in [(pieces, 5_000, True), (wrong, 20_000, False)]:
        found = np.array([[interval_law(law, -1.0, 1.0).draw(source)] for _ in range(count)])
        assert (cell_p_value(body, found, log_density, cells=24) > LEVEL) == right


@pytest.mark.parametrize(
    ("p", "strength"), [(3, 0.0), (3, 2.0), (10, 40.0), (50, 5.0), (4, 2000.0)]
)
def test_tilted_ball(p, strength):
    """Along the pull the density is exp(strength t) (1 - t^2)^((p - 1) / 2)."""
    pull, source = strength * np.ones(p) / math.sqrt(p), Numbers(5)
    found = np.array([tilted_ball(pull, source) for _ in range(3000)])
    assert np.max(np.linalg.norm(found, axis=1)) <= 1.0 + 1e-12
    t = 1.0 - np.linspace(0.0, 1.0, 40_001) ** 3 * 2.0
    weight = np.exp(strength * (t - 1.0)) * (1.0 - t * t) ** (0.5 * (p - 1))
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]) * -np.diff(t))])
    below = 1.0 - mass / mass[-1]
    along = np.sum(found, axis=1) / math.sqrt(p)
    assert kstest(along, lambda s: np.interp(s, t[::-1], below[::-1])).pvalue > LEVEL
    # across, directions are even
    across = found[:, 0] - found[:, 1]
    assert abs(np.mean(np.sign(across))) < 4.0 / math.sqrt(3000)


@pytest.mark.parametrize("curvature", [0.0, 1e-6, 0.5, 300.0])
def test_masses_against_quadrature(curvature):
    rng = np.random.default_rng(6)
    pieces = Pieces(-20.0, curvature, rng.uniform(-1, 1, 15), rng.uniform(0, 4, 15))
    cells = make_cells(pieces, -0.8, 0.9)

    def g(t):
        hinges = sum(j * max(t - a, 0.0) for a, j in zip(*pieces[2:], strict=True))
        return pieces.slope * t + 0.5 * curvature * t * t + hinges

    masses = [
        quad(lambda t: math.exp(g(-0.8) - g(t)), a, a + w, epsabs=0, epsrel=1e-11)[0]
        for a, w in zip(cells.start, cells.width, strict=True)
    ]
    assert np.allclose(cells.log_mass, np.log(masses), rtol=0, atol=1e-9)
    assert np.sum(cells.width) == pytest.approx(1.7)


@pytest.mark.parametrize(
    ("slope", "curvature", "width"),
    [(0.0, 0.0, 2.0), (1e-9, 0.0, 1.0), (50.0, 0.0, 3.0), (2.0, 9.0, 1.0)],
)
def test_depth_inverts(slope, curvature, width):
    def mass(t):
        return quad(lambda t: math.exp(-slope * t - 0.5 * curvature * t * t), 0.0, t)[0]

    for u in (0.01, 0.5, 0.97):
        share = mass(find_depth(slope, curvature, width, u)) / mass(width)
        # a Gaussian is drawn from its thin end
        assert share == pytest.approx(1.0 - u if curvature > 0 else u, abs=1e-9)


def test_largest_log_ratio_of_the_linear_case():
    """n = 1000 linear losses on [-.5, .5] and a neighbour, exponent 1 / osc: .997998 of eps = 1."""
    body = build("l2_ball", 0.5, 1)
    made = problem("linear", 1000, body)
    made.data.x[:], made.data.y[:] = 1.0, 1.0
    facts = target(made, 1.0)
    assert facts.exponent == pytest.approx(0.5)
    first = Records(made.loss, made.data, facts).along(np.zeros(1), np.ones(1))
    made.data.y[0] = -1.0
    second = Records(made.loss, made.data, facts).along(np.zeros(1), np.ones(1))
    assert first.slope - second.slope == pytest.approx(-1.0)

    def log_norm(pieces):
        shift = 0.5 * abs(pieces.slope)
        mass = quad(lambda t: math.exp(-pieces.slope * t - shift), -0.5, 0.5, limit=500,
                    points=[0.45, 0.49])[0]  # fmt: skip
        assert make_cells(pieces, -0.5, 0.5).log_mass[0] == pytest.approx(
            math.log(mass) + shift - 0.5 * pieces.slope, abs=1e-9
        )
        return math.log(mass) + shift

    ratio = [
        (second.slope - first.slope) * t + log_norm(second) - log_norm(first) for t in (-0.5, 0.5)
    ]
    assert max(map(abs, ratio)) == pytest.approx(0.997998, abs=1e-6)


def test_what_is_not_covered():
    cases = [("logistic", build("l2_ball", 1.0, 2)), ("hinge", build("l2_ball", 1.1, 2)),
             ("linear", build("simplex", 1.0, 3)), ("logistic", build("l2_ball", 1.0, 1)),
             ("absolute", build("box", 1.0, 2))]  # fmt: skip
    for loss, body in cases:
        with pytest.raises(Unsupported, match="proximal"):
            ClosedForm().plan(law(loss, 5, body, 1.0)[0], 0.01)


def test_the_plan_is_public():
    """Two data sets of one shape have one plan."""
    body = build("l2_ball", 1.0, 1)
    first = target(problem("hinge", 40, body, seed=1), 1.0)
    second = target(problem("hinge", 40, body, seed=2), 1.0)
    assert ClosedForm().plan(first, 0.1) == ClosedForm().plan(second, 0.1)
