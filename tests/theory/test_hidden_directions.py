"""Lower bounds by hidden directions: printed numbers, exact laws, and none above an upper bound."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dperm_cli import cli
from dperm_cli.bounds import hidden_directions as shares
from dperm_cli.bounds import one_shot
from dperm_cli.bounds.all_bounds import choose_best_bounds
from dperm_cli.bounds.base import Setting, find_gaussian_mu
from dperm_cli.bounds.hidden_lower import (
    Privacy,
    find_for,
    find_on_axes,
    find_on_ball,
    find_on_box,
    find_on_ellipsoid,
)
from dperm_cli.bounds.minimax_gap import LINEAR, find_gaps
from dperm_cli.core import registry
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
from dperm_cli.mechanisms.sampling.exponential import Exponential
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import Regulariser, bare_spec
from dperm_cli.sets import make_ball
from dperm_cli.sets.l1_ball import L1Ball


def privacy(epsilon, delta=1e-6, gaussian=False, relation="replace_one"):
    return Privacy.of(Budget(epsilon, delta, relation), gaussian)


def cap_mean(b, mass):
    return float(shares.cap_mean(b, np.array(mass)))


def cap_square(b, mass):
    return float(shares.cap_square(b, np.array(mass)))


@pytest.mark.parametrize(
    ("b", "means"),
    [(8, (0.37209, 0.68390, 0.96081)), (30, (0.18841, 0.37129, 0.67181)),
     (128, (0.09070, 0.18186, 0.35615))],
)  # fmt: skip
def test_cap_means(b, means):
    found = [math.exp(a) * cap_mean(b, math.exp(-a)) for a in (1.0, 3.0, 10.0)]
    assert found == pytest.approx(means, abs=1e-5)


@pytest.mark.parametrize("b", [2, 3, 8, 200])
def test_caps_against_integrals(b):
    """Of masses down to 1e-12, where 1 - h^2 from the height h would be 0."""
    log_factor = math.lgamma(b / 2) - math.lgamma((b - 1) / 2) - 0.5 * math.log(math.pi)

    def mean(function, height):
        """Over t = cos(angle), whose density is proportional to sin(angle)^(b - 2)."""
        factor = math.exp(log_factor)
        found, _ = integrate.quad(
            lambda angle: function(math.cos(angle)) * factor * math.sin(angle) ** (b - 2),
            0.0, math.acos(height),
        )  # fmt: skip
        return found

    for mass in (0.5, 0.1, 1e-4, 1e-12):
        height = 1.0 - 2.0 * float(stats.beta((b - 1) / 2, (b - 1) / 2).ppf(mass))
        if mass > 1e-9:
            first, second = (mean(lambda t, k=k: t**k, height) for k in (1, 2))
            assert cap_mean(b, mass) == pytest.approx(first, rel=1e-6)
            assert cap_square(b, mass) == pytest.approx(second, rel=1e-6)
        assert mass * height <= cap_mean(b, mass) <= mass * (1 + 1e-12)
    assert cap_mean(b, 0.9) == pytest.approx(cap_mean(b, 0.1))


def test_gaussian_shares():
    ratios = np.array([0.5, 1.0, 2.0])
    for found, expected in (
        (shares.gaussian_square_share(1, ratios), (0.058946, 0.204054, 0.550400)),
        (shares.gaussian_square_share(30, ratios), (0.03415, 0.06194, 0.15189)),
        (shares.gaussian_share(30, ratios), (0.09108, 0.18101, 0.35315)),
    ):
        assert found == pytest.approx(expected, abs=1e-5)
    assert float(shares.share_of_cap(30, np.array(1.0), np.array(1e-3))) == pytest.approx(
        0.14346, abs=1e-5
    )


@pytest.mark.parametrize("b", [1, 2, 3, 30, 500])
def test_sums_over_normal_numbers_are_exact_to_a_tenth_of_the_room(b, monkeypatch):
    ratios = np.geomspace(0.01, 8.0, 12)

    def list_shares():
        both = (shares.gaussian_square_share, shares.gaussian_share)
        return [share(b, ratios) for share in both[: 1 if b == 1 else 2]]

    found = list_shares()
    z = np.linspace(-9.0, 9.0, 961)
    weights = np.exp(-0.5 * z * z)
    nodes, legendre = np.polynomial.legendre.leggauss(640)
    monkeypatch.setattr(shares, "_normal_nodes", lambda: (z, weights / weights.sum()))
    monkeypatch.setattr(shares, "_unit_nodes", lambda: (0.5 * (nodes + 1.0), 0.5 * legendre))
    for one, other in zip(found, list_shares(), strict=True):
        assert np.max(np.abs(one / other - 1.0)) <= 0.1 * shares.ROOM


@pytest.mark.parametrize("p", [1, 2, 3, 30])
def test_noise_of_gamma_norm_is_exact_to_a_tenth_of_the_room(p, monkeypatch):
    found = one_shot.find_gamma_risk.__wrapped__(p, 100.0)
    monkeypatch.setattr(one_shot, "_NODES", 1600)
    assert found == pytest.approx(one_shot.find_gamma_risk.__wrapped__(p, 100.0), rel=1e-5)


README = [  # epsilon, caps and signs for any mechanism, for Gaussian ones, one noisy sum
    (0.1, 281.39, 304.94, 482.46, 683.15, 1070.8),
    (0.3, 99.179, 101.42, 174.94, 372.83, 388.27),
    (1.0, 31.336, 29.461, 57.618, 122.95, 127.93),
    (3.0, 10.685, 5.1952, 21.271, 45.594, 47.336),
    (10.0, 3.2822, 0.0050, 7.4084, 14.754, 16.866),
]


@pytest.mark.parametrize(("epsilon", "caps", "signs", "caps_g", "signs_g", "noisy"), README)
def test_theorem_a_on_the_readme_s_problem(epsilon, caps, signs, caps_g, signs_g, noisy):
    n, p, radius, delta = 456, 30, 10.0, 4.81e-6
    k = np.arange(1, n + 1)
    for gaussian, cap, sign in ((False, caps, signs), (True, caps_g, signs_g)):
        law = privacy(epsilon, delta, gaussian)
        one = radius * np.max(k * (1.0 - law.cap(p, k)))
        many = radius * np.max(k * np.sqrt(np.minimum(p, n // k)) * (1 - np.sqrt(law.square(1, k))))
        assert (one, many) == (pytest.approx(cap, rel=1e-4), pytest.approx(sign, rel=2e-2))
        best = find_on_ball(law, n, p, 1.0, radius)
        assert best.value >= max(one, many) * (1.0 - 2e-3)
    mu = shares.find_mu(epsilon, delta)
    upper = 2.0 * radius / mu * one_shot.find_gaussian_risk(p, n * mu / 2.0)
    assert upper == pytest.approx(noisy, rel=5e-4)
    assert max(caps, signs, caps_g, signs_g) < upper


def test_other_sets_and_ridges():
    n, delta = 1000, 1e-6
    ridge = [
        find_on_ball(privacy(1.0, delta, g), n, 8, 1.0, 1.0, 1000.0).value for g in (False, True)
    ]
    assert ridge == pytest.approx([0.0067196, 0.13662], rel=1e-4)
    assert find_on_box(privacy(1.0, delta, True), n, 32, 1.0, 1.0).value == pytest.approx(
        91.706, rel=1e-5
    )
    for p, expected in ((32, (2.0608, 4.8332, 1.5382, 4.0707)),
                        (1000, (4.7883, 8.2928, 4.2575, 7.6522))):  # fmt: skip
        found = [
            find_on_axes(privacy(1.0, delta, gaussian), n, p, 1.0, 1.0, signed).value
            for signed in (True, False)
            for gaussian in (False, True)
        ]
        assert found == pytest.approx(expected, rel=1e-4)
    ball = find_on_ball(privacy(1.0, delta, True), n, 4, 1.0, 2.0)
    same = find_on_ellipsoid(privacy(1.0, delta, True), n, 1.0, (2.0,) * 4)
    assert same.value == pytest.approx(ball.value, rel=1e-3)
    assert find_on_ellipsoid(privacy(1.0), n, 1.0, (2.0, 0.1)).value < same.value


def test_sizes():
    """For many records: .5779 LR sqrt(p)/mu, .5569 LR sqrt(p)/epsilon, .6006 LR sqrt(p)/mu."""
    mu = shares.find_mu(0.01, 1e-12)
    signs = find_on_ball(privacy(0.01, 1e-12, True), 10**7, 4, 1.0, 1.0)
    assert signs.value * mu / 2.0 == pytest.approx(0.5779, rel=1e-3)
    assert (
        find_on_ball(privacy(0.01, 1e-12), 10**7, 4, 1.0, 1.0).value * 0.01 / 2.0 >= 0.5569 * 0.999
    )
    assert 2.0 * one_shot.find_gaussian_risk(10**6, 1e9) / 1000.0 == pytest.approx(0.6006, rel=1e-4)
    assert find_on_ball(privacy(1.0), 10**5, 1000, 1.0, 1.0).value >= 19.675
    assert find_on_ball(privacy(1.0, 1e-12), 10**5, 1000, 1.0, 1.0).value >= 28.343


@pytest.mark.parametrize("p", [1, 2, 5, 30, 300])
def test_mean_cosine_against_a_mean_of_draws(p):
    z = np.random.default_rng(p).standard_normal((40_000, p))
    for x in (0.3, 2.0, 1.5 * math.sqrt(p) + 1.0):
        moved = z.copy()
        moved[:, 0] += x
        cosines = moved[:, 0] / np.linalg.norm(moved, axis=1)
        error = 5.0 * float(np.std(cosines)) / math.sqrt(len(z)) + 1e-9
        assert one_shot.mean_cosine(p, x) == pytest.approx(float(np.mean(cosines)), abs=error)


@pytest.mark.parametrize(("p", "risk"), [(2, 1.29), (8, 4.83), (32, 19.2), (128, 76.9)])
def test_pure_noise_of_one_sum(p, risk):
    assert 2.0 * one_shot.find_gamma_risk(p, 500.0) == pytest.approx(risk, rel=5e-3)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_lower_bound_is_above_an_upper_one(delta, relation):
    for n in (3, 40, 5000):
        for p in (1, 2, 7, 90):
            for epsilon in (0.02, 1.0, 9.0, 40.0):
                for body in (make_ball(2.0, p), L1Ball(2.0, p)):
                    spec = bare_spec(n, 1.5, body)
                    for found in find_gaps(spec, Budget(epsilon, delta, relation)):
                        assert 0.0 <= found.lower.value <= found.upper.value * (1.0 + 1e-9)
                        if found.lower_gaussian and found.upper_gaussian:
                            assert found.lower_gaussian.value <= found.upper_gaussian.value


@pytest.mark.stat
def test_a_gaussian_release_attains_the_share_of_one_direction():
    """Sign by sign: one noisy sum of k records shows tanh of its evidence, and no more."""
    rng, k, mu = np.random.default_rng(0), 6, 0.25
    law = privacy(1.0, 1e-6)._replace(mu=mu)
    noisy = k * mu / 2.0 + rng.standard_normal(400_000)  # of records u = 1, in units of the noise
    guess = np.tanh(0.5 * k * mu * noisy)
    share = float(law.square(1, np.array([k]))[0])
    assert np.mean(guess**2) == pytest.approx(share, abs=4e-3)
    assert np.mean(guess) == pytest.approx(share, abs=4e-3)


def bound_row(mechanism, budget, p=30):
    """The bound columns of a mechanism's plan on the README's problem."""
    spec = bare_spec(456, 1.0, make_ball(10.0, p))
    plan = mechanism.plan(spec, budget)
    mu = find_gaussian_mu(plan.events, budget.relation)
    at = Setting(spec, budget, plan.guarantee.kind, registry.find_name(type(mechanism)),
                 plan.noise_scale, plan.steps, plan.settings, mu)  # fmt: skip
    return choose_best_bounds(at), mu


def test_plans_of_gaussian_events_have_the_sharper_bound_as_well():
    budget = Budget(1.0, 4.81e-6)
    row, mu = bound_row(NoisyGd(step_size="theory"), budget)
    assert mu == pytest.approx(0.256898, rel=1e-5)
    assert row["bound_lower"] == pytest.approx(31.336, rel=1e-4)
    assert row["bound_lower_gaussian"] == pytest.approx(122.95, rel=2e-3)
    assert row["bound_lower_gaussian_id"] == "hidden directions (Gaussian)"
    assert row["bound_factor_gaussian"] == row["bound_upper"] / row["bound_lower_gaussian"]


@pytest.mark.parametrize("mechanism", [Exponential(), NoisySgd(steps=100)])
def test_plans_with_other_events_have_no_gaussian_bound(mechanism):
    budget = Budget(1.0, 0.0 if isinstance(mechanism, Exponential) else 4.81e-6)
    row, mu = bound_row(mechanism, budget, p=2)
    assert mu == 0.0
    assert row["bound_lower"] > 0.0
    assert not {"bound_lower_gaussian", "bound_factor_gaussian"} & set(row)


def test_the_bound_for_gaussian_events_is_never_the_smaller_one():
    """At one step of a large epsilon the bound for any mechanism can be the larger one."""
    for epsilon in (0.05, 1.0, 30.0):
        row, _ = bound_row(NoisyGd(step_size="theory"), Budget(epsilon, 1e-9), p=2)
        assert row["bound_lower_gaussian"] >= row["bound_lower"]


def test_what_has_no_bound_says_so():
    spec = bare_spec(100, 1.0, make_ball(1.0, 3), regulariser=Regulariser(0.0, 0.1))
    assert find_for(spec, privacy(1.0)) is None


class TestVerb:
    """``dperm gap``."""

    def test_the_page_has_what_the_command_prints(self, capsys, request):
        page = (request.config.rootpath / "docs" / "gap.md").read_text()
        assert cli.main(["gap", "p=2,8,32,128", "epsilon=.1,1,10", "format=json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(rows) == 24
        for linear, every in zip(rows[::2], rows[1::2], strict=True):
            numbers = [linear[name] for name in ("lower", "upper", "factor")]
            numbers += [every[name] for name in ("upper", "factor")]
            digits = [".4g", ".4g", ".3g", ".4g", ".3g"]
            cells = [format(x, d) for x, d in zip(numbers, digits, strict=True)]
            assert f"| {linear['p']} | {linear['epsilon']:g} | {' | '.join(cells)} |" in page

    def test_the_readme_s_problem_is_within_the_stated_factors(self, capsys):
        words = ["n=456", "p=30", "radius=10", "delta=4.81e-6", "epsilon=.1,.3,1,3,10"]
        assert cli.main(["gap", *words, "format=json"]) == 0
        for row in map(json.loads, capsys.readouterr().out.splitlines()):
            assert row["factor"] <= (5.3 if row["losses"] == LINEAR else 20.0)
            assert row["factor_gaussian"] <= 5.6

    @pytest.mark.parametrize(
        ("word", "said"),
        [("n=0", "n=0"), ("p=1.5", "p=1.5"), ("epsilon=nan", "epsilon="), ("delta=2", "delta=2"),
         ("constraint=l2_bal", "l2_ball"), ("constraint=polytope", "constraint="),
         ("radius=-1", "radius"), ("eps=1", "epsilon"),
         ("n=1,2,,3", "n=")],
    )  # fmt: skip
    def test_bad_input_is_one_line(self, word, said, capsys):
        assert cli.main(["gap", word]) == 2
        caught = capsys.readouterr()
        assert caught.out == ""
        assert caught.err.count("\n") == 1
        assert said in caught.err

    def test_the_table(self, capsys):
        assert cli.main(["gap", "constraint=box", "delta=0"]) == 0
        head, *rows = capsys.readouterr().out.splitlines()
        assert head.split()[:5] == ["constraint", "n", "p", "epsilon", "delta"]
        assert [row.split()[5] for row in rows] == ["linear", "Lipschitz"]
