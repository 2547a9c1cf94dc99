"""Quadratic minorants, restricted Gaussians, and a fixed number of tries."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.losses.logistic import Logistic
from dperm_cli.samplers import rejection
from dperm_cli.samplers.rejection import Rejection
from dperm_cli.samplers.shared.gaussian_envelope import OnBall, OnBox, WithinBox
from dperm_cli.samplers.shared.quadratic_minorant import (
    curvatures,
    find_minorant,
    least_ratio,
    log_uniform_acceptance,
)
from tests.samplers.laws import Bins, Numbers, case, draw, p_value


@pytest.mark.parametrize("reach", [1e-6, 1e-3, 0.1, 1.0, 5.0, 40.0])
def test_parabolas_touch_the_loss_and_stay_below(reach):
    """At the largest curvature: 1 % more and some of them would cross."""
    rng, loss = np.random.default_rng(1), Logistic()
    here = reach * rng.uniform(-1, 1, 300)
    y = np.where(rng.random(300) < 0.5, -1.0, 1.0)
    c = curvatures(loss, here, y, np.full(300, -reach), np.full(300, reach))
    m = reach * np.linspace(-1, 1, 801)[:, None]
    linear = loss.value(here, y) + loss.slope(here, y) * (m - here)
    rest = loss.value(m, y) - linear - 0.5 * c * (m - here) ** 2
    assert np.min(rest) >= -4e-16 * (1 + reach)
    assert np.all(c <= loss.curvature(here, y))
    assert np.all(c >= 0.99 * loss.curvature(np.array(reach), y))
    if reach >= 0.1:
        assert np.min(rest - 0.005 * c * (m - here) ** 2) < 0


PAIRS = [("logistic", "l2_ball"), ("logistic", "box"), ("squared", "l2_ball")]
BALLS = [("logistic", 1, 2.0), ("logistic", 3, 1.0), ("squared", 3, 1.0)]


@pytest.mark.parametrize(("loss", "constraint"), PAIRS)
@pytest.mark.parametrize("more", [{}, {"ridge": 0.1}])
def test_minorant_below_f_everywhere(loss, constraint, more):
    problem, target, potential = case(loss, constraint, 4, f=30.0, radius=3.0, **more)
    q = find_minorant(potential, target, 0.02)
    rng = np.random.default_rng(0)
    theta = problem.constraint.project(3.0 * rng.standard_normal((3000, 4)))
    gap = potential.value(theta) - q(theta)
    assert np.min(gap) >= -1e-10
    assert q(q.at) == pytest.approx(potential.value(q.at), rel=1e-14)
    assert q.slack < 0.02
    assert (np.max(gap) < 1e-9) == (loss == "squared")


def test_lasso_keeps_the_minorant_below():
    from dataclasses import replace

    from dperm_cli.samplers.base import Target
    from dperm_cli.samplers.shared.potential import Records

    problem, target, _ = case("logistic", "l2_ball", 4, f=30.0)
    problem = replace(problem, lasso=0.2)
    target = Target(problem.spec(), target.exponent)
    potential = Records(problem.loss, problem.data, target)
    q = find_minorant(potential, target, 0.02)
    theta = problem.constraint.project(2.0 * np.random.default_rng(0).standard_normal((3000, 4)))
    assert np.min(potential.value(theta) - q(theta)) >= -1e-10
    assert q.slack < 0.02
    # the l1 norm bends f away from q: the bound of the curvatures is not claimed
    assert rejection.log_acceptance(target) < math.log(least_ratio(target.spec)) * 2.0


def test_too_much_curvature_aborts(monkeypatch):
    from dperm_cli.samplers.shared import quadratic_minorant

    exact = quadratic_minorant.curvatures
    monkeypatch.setattr(quadratic_minorant, "curvatures", lambda *a: 1.3 * exact(*a))
    _, target, potential = case("logistic", "l2_ball", 2, f=30.0, radius=3.0)
    with pytest.raises(ArithmeticError, match="not a private outcome"):
        draw(Rejection(), target, potential, 300)


def disc_moments(hessian, pull, radius):
    """E u and E |u|^2 of exp(-u'Hu/2 + b'u) on the disc, by polar quadrature."""
    r, wr = np.polynomial.legendre.leggauss(80)
    r, angle = 0.5 * radius * (1 + r), 2 * np.pi * (np.arange(400) + 0.5) / 400
    u = np.stack([np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle))], axis=-1).reshape(-1, 2)
    log = -0.5 * np.sum((u @ hessian) * u, axis=1) + u @ pull
    w = np.repeat(wr * r, 400) * np.exp(log - log.max())
    return w @ u / w.sum(), w @ np.sum(u * u, axis=1) / w.sum()


@pytest.mark.stat
@pytest.mark.parametrize("pull", [(0.0, 0.0), (3.0, 1.0), (60.0, -20.0)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_gaussian_on_a_disc(pull, scale):
    """Means within 5 standard errors (false-alarm rate 1e-5 a case); a disc 5 % larger fails."""
    hessian, pull = scale * np.array([[2.0, 0.9], [0.9, 0.5]]), np.array(pull)
    envelope, source = OnBall(hessian, pull, 1.2), Numbers(4)
    u = np.array([envelope(source) for _ in range(4000)])
    square = np.sum(u * u, axis=1)
    assert np.max(square) <= 1.2**2
    mean, second = disc_moments(hessian, pull, 1.2)
    error = np.std(u, axis=0) / math.sqrt(len(u))
    assert np.all(np.abs(u.mean(axis=0) - mean) <= 5 * error)
    assert abs(square.mean() - second) <= 5 * np.std(square) / math.sqrt(len(u))
    if scale < 30.0 or pull[0] > 10:
        wrong = disc_moments(hessian, pull, 1.2 * 1.05)[1]
        assert abs(square.mean() - wrong) > 5 * np.std(square) / math.sqrt(len(u))


def test_tilt_puts_the_proposals_at_the_edge():
    tight = OnBall(np.eye(3), np.array([50.0, 0.0, 0.0]), 1.0)
    assert tight.tilt > 0
    assert tight._square(tight.tilt) == pytest.approx(1.0, rel=1e-6)
    assert OnBall(100.0 * np.eye(3), np.zeros(3), 1.0).tilt == 0.0


@pytest.mark.parametrize("slope", [-30.0, -1.0, 0.0, 4.0])
@pytest.mark.parametrize("curvature", [0.0, 1e-6, 0.5, 400.0])
def test_one_coordinate_of_a_box(slope, curvature):
    """Quantiles and mass against quadrature."""
    at, half = 0.3, 1.5
    box = OnBox(np.array([at]), np.array([slope]), np.array([curvature]), half)

    def density(t):
        return math.exp(-slope * (t - at) - 0.5 * box.curvature[0] * (t - at) ** 2)

    peak = [float(np.clip(at - slope / max(curvature, 1e-9), -half, half)), at]
    whole = integrate.quad(density, -half, half, points=peak, limit=200)[0]
    assert box.log_mass() == pytest.approx(math.log(whole), rel=1e-8, abs=1e-8)
    for level in (0.02, 0.5, 0.97):
        t = float(box.many(np.array([[level]]))[0, 0])
        inner = [p for p in peak if -half < p < t] or None
        part = integrate.quad(density, -half, t, points=inner, limit=200)[0]
        share = part / whole
        assert min(abs(share - level), abs(1.0 - share - level)) < 1e-6
    assert box.curvature[0] <= curvature


def test_whole_gaussian_in_a_box():
    hessian = np.array([[4.0, 1.0], [1.0, 3.0]])
    at, slope = np.array([0.1, -0.2]), np.array([0.5, 0.3])
    whole, source = WithinBox(at, slope, hessian, 1.0), Numbers(2)
    u = np.array([whole(source) for _ in range(3000)])
    assert np.max(np.abs(u)) <= 1.0

    def density(y, x):
        d = np.array([x, y]) - at
        return math.exp(-slope @ d - 0.5 * d @ hessian @ d)

    mass = integrate.dblquad(density, -1, 1, -1, 1)[0]
    mean = integrate.dblquad(lambda y, x: x * density(y, x), -1, 1, -1, 1)[0] / mass
    assert abs(u[:, 0].mean() - mean) < 5 * u[:, 0].std() / math.sqrt(len(u))
    assert whole.log_whole() > math.log(mass)
    assert whole.log_whole() + whole.log_share() == pytest.approx(math.log(mass), abs=0.1)


@pytest.mark.parametrize("f", [0.3, 5.0, 40.0])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_uniform_acceptance_is_a_lower_bound(f, dim):
    """A cone on the ball, f = F |u|: the mean of exp(-F |u|) with density dim r^(dim-1)."""
    mean = integrate.quad(lambda r: dim * r ** (dim - 1) * math.exp(-f * r), 0, 1)[0]
    bound = math.exp(log_uniform_acceptance(f, dim))
    assert bound <= mean
    assert bound > mean * math.exp(-dim) / math.factorial(dim)


@pytest.mark.parametrize(("loss", "p", "radius"), BALLS)
def test_measured_acceptance_is_above_its_bound(loss, p, radius):
    _, target, potential = case(loss, "l2_ball", p, f=20.0, radius=radius)
    q = find_minorant(potential, target, 0.02)
    proposal, source = rejection.make_proposal(target, q), Numbers(0)
    theta = np.array([proposal.draw(source) for _ in range(2000)])
    kept = np.exp(proposal.quadratic(theta) - potential.value(theta))
    bound = math.exp(rejection.log_acceptance(target))
    assert bound <= kept.mean() <= 1.0 + 1e-9
    assert kept.mean() > 0.8
    assert Rejection().plan(target, 0.0).facts["acceptance"] == bound


def test_least_ratio():
    spec = case("logistic", "l2_ball", 2, radius=2.0)[1].spec
    assert least_ratio(spec) == pytest.approx(4 * expit(2.0) * expit(-2.0))
    assert least_ratio(case("squared", "l2_ball", 2)[1].spec) == 1.0


@pytest.mark.parametrize("radius", [800.0, 1e12])
def test_a_set_on_which_the_curvature_is_no_number_above_0(radius):
    _, target, _ = case("logistic", "l2_ball", 2, radius=radius)
    assert least_ratio(target.spec) == 0.0
    uniform = log_uniform_acceptance(target.oscillation, target.dimension)
    assert rejection.log_acceptance(target) == uniform - rejection.SLACK
    assert Rejection().plan(target, 0.0).facts["curvature_ratio"] == 0.0


class TestFixedTries:
    def test_distance(self):
        """Against the extremes of (1 - q) + q u / pi."""
        _, target, _ = case("logistic", "l2_ball", 2, f=3.0)
        accept = math.exp(rejection.log_fixed_acceptance(target))
        for tries in (5, 50, 500):
            q = (1 - accept) ** tries
            extreme = max(-math.log(1 - q), math.log(1 + q * math.exp(3.0)))
            assert rejection.fixed_distance(target, tries) == pytest.approx(extreme, rel=1e-9)

    @pytest.mark.parametrize("dist_inf", [1e-4, 0.01, 1.0])
    @pytest.mark.parametrize("p", [1, 2])
    def test_tries_needed(self, dist_inf, p):
        _, target, _ = case("logistic", "l2_ball", p, f=6.0)
        tries = rejection.count_needed_tries(target, dist_inf)
        assert rejection.fixed_distance(target, tries) <= dist_inf
        assert tries == 1 or rejection.fixed_distance(target, tries // 2) > dist_inf
        certificate = Rejection("auto").plan(target, dist_inf)
        assert certificate.steps == tries
        assert certificate.constant_time
        assert not certificate.exact

    def test_refusals_name_the_number(self):
        _, target, _ = case("logistic", "l2_ball", 3, f=6.0)
        needed = rejection.count_needed_tries(target, 0.01)
        with pytest.raises(Unsupported, match=re.escape(f"{needed:.3g} tries are needed")):
            Rejection(needed - 1).plan(target, 0.01)
        assert Rejection(needed).plan(target, 0.01).dist_inf <= 0.01
        with pytest.raises(Unsupported, match="too many tries"):
            Rejection("auto").plan(case("logistic", "l2_ball", 30, f=400.0)[1], 0.01)
        with pytest.raises(Unsupported, match="too many tries"):
            Rejection("auto").plan(target, 0.0)

    @pytest.mark.parametrize(("constraint", "p"), [("l2_ball", 1), ("l2_ball", 2), ("box", 2)])
    def test_the_work_does_not_depend_on_the_records(self, constraint, p):
        asked, looked = set(), set()
        for seed in range(4):
            _, target, potential = case("logistic", constraint, p, f=3.0, seed=seed)
            certificate, source, count = Rejection("auto").plan(target, 0.1), Numbers(seed), [0]
            Rejection("auto").draw(potential, target, certificate, Numbers(9))  # the minimiser
            value = potential.value

            def counted(theta, value=value, count=count):
                count[0] += np.atleast_2d(theta).shape[0]
                return value(theta)

            potential.value = counted
            Rejection("auto").draw(potential, target, certificate, source)
            asked.add(source.asked)
            looked.add(count[0])
        assert len(asked) == 1
        assert len(looked - {certificate.steps}) <= 1

    @pytest.mark.stat
    @pytest.mark.parametrize("constraint", ["l2_ball", "box"])
    def test_law(self, constraint):
        """False-alarm rate 1e-5; more than half uniform draws mixed in (no try kept) fail."""
        _, target, potential = case("logistic", constraint, 2, f=5.0, radius=2.0)
        theta = draw(Rejection("auto"), target, potential, 1200, dist_inf=0.1)
        bins = Bins(target, 5)
        exact = bins.probabilities(potential)
        assert p_value(bins, exact, theta) > 1e-5
        rng = np.random.default_rng(5)
        flat = target.constraint.project(2.0 * rng.uniform(-1, 1, (700, 2)))
        assert p_value(bins, exact, np.vstack([theta[:500], flat])) < 1e-5


def test_plans():
    with pytest.raises(Unsupported, match="not for hinge"):
        Rejection().plan(case("hinge", "l2_ball", 2)[1], 0.0)
    with pytest.raises(Unsupported, match="l2_ball and box"):
        Rejection().plan(case("logistic", "l1_ball", 2)[1], 0.0)
    assert Rejection().plan(case("logistic", "l1_ball", 1)[1], 0.0).exact
    with pytest.raises(Unsupported, match="up to p=1000"):
        Rejection().plan(case("logistic", "l2_ball", 1001)[1], 0.0)
    for bad in (0, -3, "all", True, 1.5):
        with pytest.raises(InputError, match=r"sampler\.fixed_tries"):
            Rejection(bad)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_sparse_rows(form):
    from dataclasses import replace

    from scipy import sparse

    from dperm_cli.samplers.shared.potential import Records

    problem, target, potential = case("logistic", "l2_ball", 5)
    if form == "csr":
        data = replace(problem.data, x=sparse.csr_array(problem.data.x))
        potential = Records(problem.loss, data, target)
    dense = draw(Rejection(), target, case("logistic", "l2_ball", 5)[2], 2)
    np.testing.assert_allclose(draw(Rejection(), target, potential, 2), dense, atol=1e-6)


@pytest.mark.stat
@pytest.mark.parametrize(("constraint", "radius"), [("l2_ball", 1.0), ("box", 0.4), ("box", 3.0)])
def test_five_dimensions_against_another_proposal(constraint, radius, monkeypatch):
    """Kolmogorov-Smirnov of f between draws with the minorant and with half its curvature.

    False-alarm rate 1e-5; draws at a third of the exponent fail.
    """
    _, target, potential = case("squared", constraint, 5, n=200, f=400.0, radius=radius)
    first = potential.value(draw(Rejection(), target, potential, 350))
    from dperm_cli.samplers.shared import quadratic_minorant

    exact = quadratic_minorant.record_curvatures
    monkeypatch.setattr(quadratic_minorant, "record_curvatures", lambda *a: 0.5 * exact(*a))
    fresh = case("squared", constraint, 5, n=200, f=400.0, radius=radius)[2]
    second = potential.value(draw(Rejection(), target, fresh, 350, seed=2))
    assert stats.ks_2samp(first, second).pvalue > 1e-5
    _, hotter, other = case("squared", constraint, 5, n=200, f=130.0, radius=radius)
    monkeypatch.undo()
    third = potential.value(draw(Rejection(), hotter, other, 350, seed=3))
    assert stats.ks_2samp(first, third).pvalue < 1e-5


@pytest.mark.parametrize("name", ["ellipsoid", "lp_ball", "polytope", "image", "intersection"])
def test_other_sets_are_refused_by_name_or_without_one(name):
    """Whether a set has a name of its own or stands for another: a reason, no other error."""
    from tests.samplers import problem, target
    from tests.samplers.test_truncated_gaussian import PLANE

    more = {"image": dict(matrix=((1.0, 0.5), (0.0, 1.0)))}
    body = PLANE.get(name) or registry.load("constraint", name)(1.0, 2, **more[name])
    for sampler in (Rejection(), Rejection(fixed_tries="auto")):
        with pytest.raises(Unsupported, match="rejection draws on"):
            sampler.plan(target(problem("logistic", 20, body), 1.0), 0.01)
