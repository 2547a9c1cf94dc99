"""The pass over users: order, the learner's steps, compiled loop against plain formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.loops import local_channels as wire
from dperm_cli.loops import local_learning, sgd, slopes
from dperm_cli.loops.local_learning import Device, Learner
from dperm_cli.loops.sealed_noise import SealedAnswers
from dperm_cli.privacy import channels

N, P, CHAINS = 23, 5, 3
EUCLID = Learner(local_learning.EUCLID, 0, 0.7, sgd.INV_SQRT, 0.05, 0.1, 0.02, 2.0, False)
WAYS = {
    "euclid": EUCLID,
    "box": EUCLID._replace(set_code=2, size=0.3),
    "l1": EUCLID._replace(set_code=1),
    "entropy": EUCLID._replace(map=local_learning.ENTROPY, set_code=1, eta_kind=sgd.CONSTANT),
    "power": EUCLID._replace(map=local_learning.POWER, power=1.5),
    "power on l1": EUCLID._replace(map=local_learning.POWER, set_code=1, power=1.2, within_l1=True),
}
CODES = (slopes.LOGISTIC, slopes.HINGE, slopes.L1_MEDIAN, slopes.L2_MEDIAN)


def records(csr=False, n=N, p=P):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((n, p)) * (rng.uniform(size=(n, p)) < 0.7)
    y = rng.choice([-1.0, 1.0], n)
    return sgd.rows(sparse.csr_array(x) if csr else x, y)


def keys(chains=CHAINS):
    return np.random.default_rng(9).integers(0, 2**64, (chains, 2), dtype=np.uint64)


@pytest.mark.parametrize("users", [1, 2, 3, 10, 97, 1000])
def test_every_user_once_a_pass(users):
    leap = local_learning.stride(users)
    order = [local_learning.place(step, users, leap) for step in range(2 * users)]
    assert sorted(order[:users]) == list(range(users))
    assert order[users:] == order[:users]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("shape", ["l_inf", "l_1", "l_2"])
def test_compiled_loop_is_the_plain_loop(way, code, shape):
    """Bit by bit: a loop over ``subgradient``, ``channels.send`` and ``learn``, two passes."""
    learner, coding = WAYS[way], channels.by_epsilon(shape, P, 3.0).coding(0.8)
    device, csr = Device(code, 0.0, 0.5 if code < 100 else math.inf), code == slopes.HINGE
    rows, steps, leap = records(csr), 2 * N, local_learning.stride(N)
    theta0 = np.zeros((CHAINS, P))
    mean, last = local_learning.run(
        rows, device, SealedAnswers(keys(), coding, N, 2), learner, theta0
    )
    theta, state, total = theta0.copy(), theta0.copy(), theta0.copy()
    blocks = wire.blocks(coding.shape, P)
    for step in range(steps):
        i = local_learning.place(step, N, leap)
        g = np.stack(
            [local_learning.subgradient(rows, device, coding.shape, i, at) for at in theta]
        )
        z = wire.send(coding, g, wire.draw_words(keys(), step, blocks))
        total += theta
        for at, memory, answer in zip(theta, state, z, strict=True):
            local_learning.learn(learner, step, at, memory, answer)
    assert last.tobytes() == theta.tobytes()
    assert mean.tobytes() == (total / steps).tobytes()


def test_neither_threads_nor_neighbours_matter():
    coding = channels.by_epsilon("l_inf", P, 3.0).coding()
    device = Device(slopes.LOGISTIC, 0.0, math.inf)

    def run(keys, threads):
        answers = SealedAnswers(keys, coding, N, 1)
        start = np.zeros((len(keys), P))
        return local_learning.run(records(), device, answers, EUCLID, start, threads=threads)

    many = run(keys(), 2)
    for chain in range(CHAINS):
        alone = run(keys()[chain : chain + 1], 1)
        assert alone[0].tobytes() == many[0][chain].tobytes()
        assert alone[1].tobytes() == many[1][chain].tobytes()


@pytest.mark.parametrize("name", ["logistic", "hinge", "squared", "l1_median", "l2_median"])
@pytest.mark.parametrize("csr", [False, True])
def test_subgradients_are_those_of_the_losses(name, csr):
    from dperm_cli.problem.data import Data

    loss, rows = registry.load("loss", name)(), records(csr)
    x = sparse.csr_array((rows.values, rows.columns, rows.indptr), shape=(N, P)) if csr else rows.x
    data = Data.of_records("r", loss.tasks[0], x, rows.y, 9.0, 1.0, "r")
    code = {"l1_median": slopes.L1_MEDIAN, "l2_median": slopes.L2_MEDIAN}.get(name, loss.code)
    theta = np.random.default_rng(1).standard_normal(P)
    for i in range(N):
        found = local_learning.subgradient(rows, Device(code, 0.0, math.inf), wire.L_2, i, theta)
        expected = loss.gradient(theta, data.take(np.array([i])))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("shape", "norm"), [("l_inf", np.inf), ("l_1", 1), ("l_2", 2)])
@pytest.mark.parametrize("csr", [False, True])
def test_rows_are_shortened_in_the_channels_norm(shape, norm, csr):
    rows, theta = records(csr), np.linspace(-1.0, 1.0, P)
    code = channels.by_epsilon(shape, P, 1.0).coding().shape
    dense = records().x
    for i in range(N):
        length = np.linalg.norm(dense[i], ord=norm)
        row = dense[i] * min(1.0, 0.5 / length) if length > 0 else dense[i]
        found = local_learning.subgradient(rows, Device(slopes.SQUARED, 0.0, 0.5), code, i, theta)
        np.testing.assert_allclose(found, (row @ theta - rows.y[i]) * row, rtol=1e-12, atol=1e-15)


def stepped(learner, theta, z, state=None):
    theta = np.array(theta, dtype=float)
    state = np.zeros_like(theta) if state is None else state
    local_learning.learn(learner, 0, theta, state, np.array(z, dtype=float))
    return theta, state


def test_a_euclidean_step():
    learner = EUCLID._replace(eta_kind=sgd.CONSTANT, size=0.2)
    theta, z = np.array([0.3, -0.2, 0.0]), np.array([1.0, -5.0, 2.0])
    moved = theta - 0.05 * (z + 0.1 * theta + 0.02 * np.sign(theta))
    moved *= 0.2 / np.linalg.norm(moved)
    assert stepped(learner, theta, z)[0] == pytest.approx(moved)


def test_an_entropic_step_multiplies_the_corners_weights():
    """w <- w exp(-a <corner, h>) over the 2 d corners +-r e_j, normalised."""
    learner = WAYS["entropy"]._replace(ridge=0.0, lasso=0.0, size=1.7)
    rng, theta, state = np.random.default_rng(3), np.zeros(4), np.zeros(4)
    corners = 1.7 * np.vstack([np.eye(4), -np.eye(4)])
    weights = np.full(8, 1 / 8)
    for _ in range(6):
        z = 9.0 * rng.standard_normal(4)
        theta, state = stepped(learner, theta, z, state)
        weights *= np.exp(-0.05 * corners @ z)
        weights /= weights.sum()
        assert theta == pytest.approx(weights @ corners, rel=1e-10)
    far, _ = stepped(learner, theta, np.full(4, 1e6), state)
    assert np.sum(np.abs(far)) == pytest.approx(1.7)


@pytest.mark.parametrize("within_l1", [True, False])
def test_a_power_step_is_the_least_of_its_model(within_l1):
    """No point of the set does better on eta <z, x> + B(x, theta), and the optimum is inside it."""
    q, size = 1.3, 0.6
    learner = WAYS["power"]._replace(
        power=q, size=size, within_l1=within_l1, ridge=0.0, lasso=0.0, eta_kind=sgd.CONSTANT
    )
    norm = 1 if within_l1 else q
    rng = np.random.default_rng(0)

    def mirror(x):
        return np.linalg.norm(x, ord=q) ** 2 / (2.0 * (q - 1.0))

    def slope(x):
        length = np.linalg.norm(x, ord=q)
        return np.sign(x) * np.abs(x) ** (q - 1.0) * length ** (2.0 - q) / (q - 1.0)

    for _ in range(20):
        theta = rng.standard_normal(4)
        theta *= size * rng.uniform() / np.linalg.norm(theta, ord=norm)
        z = 30.0 * rng.uniform() * rng.standard_normal(4)
        found, _ = stepped(learner, theta, z)
        assert np.linalg.norm(found, ord=norm) <= size * (1 + 1e-12)

        def model(x, theta=theta, z=z):
            return 0.05 * z @ x + mirror(x) - slope(theta) @ x

        for _ in range(200):
            other = rng.standard_normal(4)
            other *= size * rng.uniform() / np.linalg.norm(other, ord=norm)
            mixed = found + rng.choice([1.0, 0.1, 0.001]) * (other - found)
            assert model(found) <= model(mixed) + 1e-12


def test_shapes_may_not_lie():
    coding, device = channels.by_epsilon("l_1", P, 1.0).coding(), Device(0, 0.0, math.inf)

    def run(theta0, users):
        return local_learning.run(
            records(), device, SealedAnswers(keys(1), coding, users, 1), EUCLID, theta0
        )

    with pytest.raises(ValueError, match="users"):
        run(np.zeros((1, P)), 9)
    with pytest.raises(ValueError, match="users"):
        run(np.zeros((1, 2)), N)
    with pytest.raises(ValueError, match="keys"):
        run(np.zeros((2, P)), N)
