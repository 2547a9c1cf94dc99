"""A perturbed objective and what pays for its solver, accounted for together."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.accounting.objective_perturbation import (
    joint_delta,
    joint_epsilon,
    noise_delta,
    noise_ratio,
)
from dperm_cli.privacy.accounting.perturbed_minimisers import NAME, find_joint_bound, fold_pairs
from dperm_cli.privacy.events import (
    Approx,
    Disclosure,
    Exponential,
    GammaNorm,
    Gaussian,
    PerturbedObjective,
)

RELATIONS = ("replace_one", "add_remove")


def first(scale=9.64, strength=2.0, **facts):
    return PerturbedObjective("gaussian", scale, 1.0, 0.21, strength, 1e-6, **facts)


def second(mu=0.005, count=1):
    return Gaussian(1.0 / mu, 1.0, count, gap=1.0)


def test_the_table():
    """scale / L at (1, 1e-6) and J = .1, replace_one."""
    left = 0.9
    assert 2.0 / noise_ratio(left, 1e-6, "replace_one") == pytest.approx(9.63157, abs=5e-6)
    # the published split: (.99, .99e-6) for the first event, and (.01, 1e-8) for the second
    split = noise_ratio(0.99 - 0.1, 0.99e-6, "replace_one")
    assert 2.0 / split == pytest.approx(9.73707, abs=5e-6)
    assert 1.0 / calibrate.mu(0.01, 1e-8) == pytest.approx(412.36, abs=5e-3)
    for mu, expected in ((1.0 / 412.36, 9.63222), (0.005, 9.63436), (0.01, 9.64275)):
        ratio = noise_ratio(left, 1e-6, "replace_one", lambda _, mu=mu: mu)
        assert 2.0 / ratio == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("e", "ratio", "mu"), [(0.9, 0.2, 0.05), (0.4, 0.3, 0.1), (0.1, 0.2, 0.1)])
def test_the_joint_delta_is_the_expectation_or_more(relation, e, ratio, mu):
    """E h(e - mu^2 / 2 - mu z) by quadrature; at most a half more near the edge."""
    z = np.linspace(-9.0, 12.0, 2101)
    density = np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    losses = mu * z + mu * mu / 2.0
    h = [noise_delta(e - x, ratio, relation) if e >= x else 1.0 for x in losses]
    exact = float(np.trapezoid(density * h, z)) + float(ndtr(-12.0))
    found = joint_delta(e, ratio, mu, relation)
    assert exact * (1.0 - 1e-6) <= found <= exact * 1.5
    assert found >= noise_delta(e, ratio, relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_joint_delta_falls_with_e_and_rises_with_noise(relation):
    values = [joint_delta(e, 0.2, 0.02, relation) for e in np.linspace(0.0, 1.0, 60)]
    assert all(b <= a * (1.0 + 1e-9) for a, b in itertools.pairwise(values))
    assert joint_delta(-1e-9, 0.2, 0.02, relation) == 1.0
    assert joint_delta(0.5, 0.2, 0.0, relation) == noise_delta(0.5, 0.2, relation)
    more = [joint_delta(0.5, 0.2, mu, relation) for mu in (0.0, 0.005, 0.02, 0.1, 0.3)]
    assert more == sorted(more)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.02])
@pytest.mark.parametrize(("ratio", "mu"), [(0.2, 0.005), (0.02, 0.01), (1.5, 0.3)])
def test_inverses_are_on_the_private_side(relation, delta, ratio, mu):
    e = joint_epsilon(delta, ratio, mu, relation)
    assert joint_delta(e, ratio, mu, relation) <= delta * (1.0 + 1e-9)
    assert joint_delta(0.99 * e, ratio, mu, relation) > delta
    room = noise_ratio(e, delta, relation, lambda r: min(mu, 0.1 * r))
    assert joint_delta(e, room, min(mu, 0.1 * room), relation) <= delta


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_accountant_takes_them_together(relation):
    events = (first(), second())
    found = account(events, delta=1e-6, relation=relation)
    ratio = (2.0 if relation == "replace_one" else 1.0) / 9.64
    expected = first().jacobian + joint_epsilon(1e-6, ratio, 0.005, relation)
    assert found.epsilon == pytest.approx(expected, rel=1e-12)
    assert found.accountant == NAME
    assert delta_of(events, epsilon=found.epsilon, relation=relation) <= 1e-6 * (1.0 + 1e-9)
    # less than black boxes one beside the other
    boxes = Approx(first().epsilon(relation), 0.99e-6, relation=relation), second()
    assert found.epsilon < account(boxes, delta=1e-6, relation=relation).epsilon
    # a first Gaussian stage counts as well, and so does what may fail altogether
    more = (Gaussian(10.0, 0.5), *events)
    assert account(more, delta=1e-6, relation=relation).epsilon > found.epsilon
    held = (*events, Approx(0.0, 5e-7, relation=relation))
    again = account(held, delta=1.5e-6, relation=relation).epsilon
    assert again == pytest.approx(found.epsilon, rel=1e-5)
    assert account(held, delta=5e-7, relation=relation).epsilon == math.inf
    assert delta_of(held, epsilon=20.0, relation=relation) == pytest.approx(5e-7, rel=1e-9)


def test_what_is_not_the_pair_is_not_taken_for_it():
    pair = (first(), second())
    assert find_joint_bound(pair, "replace_one") is not None
    for others in ((first(),), (Exponential(0.1, 1.0),), (Disclosure(),), (GammaNorm(9.0, 1.0),)):
        assert find_joint_bound((*pair, *others), "replace_one") is None
    assert find_joint_bound((first(count=2), second(count=2)), "replace_one") is None
    assert find_joint_bound((second(),), "replace_one") is None
    with pytest.raises(InputError):
        account(pair, delta=1e-6, relation="replace")
    with pytest.raises(InputError):
        account(pair, delta=1e-6, relation="add or remove")


@pytest.mark.parametrize("relation", RELATIONS)
def test_several_pairs_add_up_to_their_budgets(relation):
    """Each pair becomes a black box at its own delta: k of them fit k budgets."""
    pair = (first(), second())
    one = account(pair, delta=1e-6, relation=relation).epsilon
    (box,) = fold_pairs(pair, relation)
    assert isinstance(box, Approx)
    assert (box.epsilon, box.delta) == (pytest.approx(one, rel=1e-9), 1e-6)
    many = (*pair * 3, Exponential(0.2, 1.0, gap=1.0))
    found = account(many, delta=3e-6, relation=relation).epsilon
    assert found <= 3.0 * one + 0.2 + 1e-9
    assert found > one
    # another event behind, one that counts otherwise, or a larger one stays as it is
    for other in (second(count=2), GammaNorm(5.0, 1.0), Gaussian(1.0, 1.0)):
        assert fold_pairs((first(), other), relation) == [first(), other]


def test_pure_pairs_add_up():
    event = PerturbedObjective("gamma_norm", 4.0, 1.0, 0.25, 2.0, gap=1.5)
    paid = GammaNorm(7.0, 0.007, gap=0.007)
    whole = account((event, paid), delta=0.0, relation="replace_one").epsilon
    assert whole == pytest.approx(math.log1p(0.125) + 1.5 / 4.0 + 0.001, rel=1e-12)
    one = account((event, paid), delta=0.0, relation="add_remove").epsilon
    assert one == pytest.approx(math.log1p(0.125) + 1.0 / 4.0 + 0.001, rel=1e-12)


# The exact law of what is released, in one dimension: minimiser + offset + second noise.


class Logistic:
    bend = 0.25

    def slope(self, z, y):
        return -y / (1.0 + np.exp(y * z))

    def curvature(self, z, y):
        return 1.0 / (2.0 + np.exp(z) + np.exp(-z))


class Huber:
    """max(0, 1 - z), rounded off to half-width .5."""

    bend = 1.0

    def slope(self, z, y):
        return -y * np.clip(1.5 - y * z, 0.0, 1.0)

    def curvature(self, z, y):
        return np.where(np.abs(1.0 - y * z) < 0.5, 1.0, 0.0)


GRID = np.linspace(-1.0, 1.0, 4_001)


def released(loss, event, data, offset, paid, t):
    """Density [m] at t [m] of theta_b + offset + second noise; C = [-1, 1]."""
    x, y = data
    gamma = event.noise == "gamma_norm"

    def pull(at):
        return loss.slope(np.multiply.outer(at, x), y) @ x + event.strength * at

    def density(b, scale):
        if gamma:
            return np.exp(-np.abs(b) / scale) / (2.0 * scale)
        return np.exp(-np.square(b / scale) / 2.0) / (scale * math.sqrt(2.0 * math.pi))

    def below(b):
        tail = 0.5 * np.exp(-np.abs(b) / event.scale)
        return np.where(b < 0.0, tail, 1.0 - tail) if gamma else ndtr(b / event.scale)

    bend = loss.curvature(np.multiply.outer(GRID, x), y) @ x**2 + event.strength
    inner = density(pull(GRID), event.scale) * bend
    weight = np.full(GRID.size, GRID[1] - GRID[0])
    weight[[0, -1]] /= 2.0
    low, high = pull(np.array([-1.0, 1.0]))
    # the density integrates to what the atoms leave, but for the trapezoid's error
    inner = inner * (below(high) - below(low)) / float(inner @ weight)
    found = density(t[:, None] - GRID - offset, paid.scale) @ (inner * weight)
    found = found + below(low) * density(t + 1.0 - offset, paid.scale)
    return found + (1.0 - below(high)) * density(t - 1.0 - offset, paid.scale)


def neighbours(relation):
    """Data sets of at most three records, one of them replaced or gone."""
    common = [([], []), ([1.0], [1.0]), ([1.0, -0.6], [1.0, 1.0])]
    pairs = [((1.0, 1.0), (1.0, -1.0)), ((1.0, 1.0), (0.4, -1.0))]
    if relation == "add_remove":
        pairs = [((1.0, 1.0), (0.0, 1.0)), ((-0.7, 1.0), (0.0, 1.0))]
    for x, y in common:
        for (u, v), (s, w) in pairs:
            yield (np.array([*x, u]), np.array([*y, v])), (np.array([*x, s]), np.array([*y, w]))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("loss", [Logistic(), Huber()])
def test_pure_claims_hold_for_exact_laws(loss, relation):
    """Offsets of +-rho, a second event of .001 or .3 of epsilon: at most .7 of the claim is found,
    and without paying for rho more than all of it."""
    worst, unpaid = 0.0, 0.0
    event = PerturbedObjective("gamma_norm", 3.0, 1.0, loss.bend, 3.0 * loss.bend)
    for share, rho in ((0.001, 0.01), (0.3, 0.1)):
        paid = GammaNorm(2.0 * rho / share, 2.0 * rho, gap=2.0 * rho)
        claim = account((event, paid), delta=0.0, relation=relation).epsilon
        t = np.linspace(-1.0 - 9.0 * paid.scale, 1.0 + 9.0 * paid.scale, 101)
        tiny = GammaNorm(rho / 5.0, 2.0 * rho)
        for one, other in neighbours(relation):
            for sign in (1.0, -1.0):
                sides = ((one, sign * rho), (other, -sign * rho))
                f, g = (released(loss, event, d, off, paid, t) for d, off in sides)
                worst = max(worst, float(np.max(np.abs(np.log(f / g)))) / claim)
                near = np.linspace(-1.0 - 4.0 * rho, 1.0 + 4.0 * rho, 101)
                f, g = (released(loss, event, d, off, tiny, near) for d, off in sides)
                unpaid = max(unpaid, float(np.max(np.abs(np.log(f / g)))) / claim)
    assert 0.2 < worst <= 0.7
    assert unpaid > 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("loss", [Logistic(), Huber()])
def test_joint_deltas_hold_for_exact_laws(loss, relation):
    worst = 0.0
    event = PerturbedObjective("gaussian", 6.0, 1.0, loss.bend, 3.0 * loss.bend, 1e-6)
    for mu, rho in ((0.005, 1e-3), (0.1, 0.02)):
        paid = Gaussian(2.0 * rho / mu, 2.0 * rho, gap=2.0 * rho)
        t = np.linspace(-1.0 - 9.0 * paid.scale, 1.0 + 9.0 * paid.scale, 401)
        epsilon = account((event, paid), delta=1e-4, relation=relation).epsilon
        claimed = delta_of((event, paid), epsilon=epsilon, relation=relation)
        assert claimed == pytest.approx(1e-4, rel=1e-6)
        for one, other in neighbours(relation):
            f, g = (
                released(loss, event, d, off, paid, t) for d, off in ((one, rho), (other, -rho))
            )
            for left, right in ((f, g), (g, f)):
                spent = np.maximum(left - math.exp(epsilon) * right, 0.0)
                worst = max(worst, float(np.trapezoid(spent, t)) / claimed)
    assert worst <= 0.5


def test_scale_of_the_exact_laws_is_right():
    """They integrate to 1, and a law against itself is itself."""
    event = PerturbedObjective("gamma_norm", 2.0, 1.0, 0.25, 1.0)
    paid = GammaNorm(0.05, 0.01)
    t = np.linspace(-2.0, 2.0, 1001)
    for kind, paying in ((event, paid), (replace(event, noise="gaussian", delta=1e-6), second(20))):
        density = released(Logistic(), kind, (np.array([1.0]), np.array([1.0])), 0.01, paying, t)
        assert np.trapezoid(density, t) == pytest.approx(1.0, abs=2e-3)
