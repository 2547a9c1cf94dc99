"""The compiled loop against a plain one: the same bits, whatever runs beside it."""

import numpy as np
import pytest
from scipy import sparse, stats

from dperm_cli.loops import batch_indices, gaussian_noise, projections, sgd, slopes
from dperm_cli.loops.sealed_noise import SealedBatches

SEALED = {"noise_scale": "scale", "steps": "steps", "population": "population",
          "batch": "batch", "poisson": "poisson"}  # fmt: skip
LOSSES = (slopes.LOGISTIC, slopes.HINGE, slopes.SQUARED, slopes.ABSOLUTE)
SETS = (projections.L2_BALL, projections.L1_BALL, projections.BOX)
SAMPLINGS = ((1, False), (5, False), (5, True))
N, P, STEPS = 40, 11, 150


def keys(count, seed):
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)


def records(n=N, p=P):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.4)
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    return x, np.sign(rng.standard_normal(n))


def settings(**changes):
    rule = dict(
        loss_code=slopes.LOGISTIC, set_code=projections.L2_BALL, size=0.7, noise_scale=20.0,
        steps=STEPS, population=N, batch=1, poisson=False, eta_kind=sgd.INV_SQRT, eta0=0.003,
        ridge=0.02, lasso=0.0, average=sgd.LAST,
    )  # fmt: skip
    return {**rule, **changes}


def sealed(rule, noise_keys, index_keys):
    """What the gate would seal for a rule of ``settings``, and the rest of the rule."""
    facts = {name: rule[key] for key, name in SEALED.items()}
    rest = {key: value for key, value in rule.items() if key not in SEALED}
    return SealedBatches(noise_keys, index_keys, **facts), rest


def start(x, y, theta0, noise_keys, index_keys, **rule):
    noise, rest = sealed(rule, noise_keys, index_keys)
    return sgd.start(x, y, theta0, noise, **rest)


def run_from(x, y, theta0, noise_keys, index_keys, **rule):
    noise, rest = sealed(rule, noise_keys, index_keys)
    return sgd.run(x, y, theta0, noise, **rest)


def run(x, y, chains=3, p=P, **options):
    return run_from(x, y, np.zeros((chains, p)), keys(chains, 1), keys(chains, 2), **options)


def plain(x, y, chains, p, rule):
    """Alg. 1 step by step in Python, from the room's public pieces."""
    rows, theta, total = sgd.rows(x, y), np.zeros((chains, p)), np.zeros((chains, p))
    n, batch, count = rule["population"], rule["batch"], 0
    first = {sgd.LAST: rule["steps"], sgd.AVERAGE: 0, sgd.SUFFIX_AVERAGE: rule["steps"] // 2}
    for t in range(rule["steps"]):
        eta = sgd.learning_rate(rule["eta_kind"], rule["eta0"], float(t + 1))
        noise = gaussian_noise.normals(keys(chains, 1), t, 1, p)[:, 0]
        for c in range(chains):
            chosen = batch_indices.batch(keys(chains, 2)[c], t, n, batch, rule["poisson"])
            g = sgd.batch_gradient(rows, theta[c], chosen, rule["loss_code"])
            value = (n / batch) * g + (n * rule["ridge"]) * theta[c]
            noisy = value + rule["noise_scale"] * noise[c]
            noisy = noisy + (n * rule["lasso"]) * np.sign(theta[c])
            sgd.update(theta[c], noisy, eta, rule["set_code"], rule["size"])
        if t >= first[rule["average"]]:
            total, count = total + theta, count + 1
    return total / count if count else theta


@pytest.mark.in_turn
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize(("batch", "poisson"), SAMPLINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_same_bits_as_the_plain_loop(form, batch, poisson, loss):
    x, y = records()
    matrix = sparse.csr_array(x) if form == "csr" else x
    for place, code in enumerate(SETS):
        rule = settings(
            loss_code=loss, set_code=code, batch=batch, poisson=poisson,
            eta_kind=place, average=(place + loss) % 3,
        )  # fmt: skip
        expected = plain(matrix, y, 3, P, rule)
        assert run(matrix, y, **rule).tobytes() == expected.tobytes()
        assert np.ptp(expected) > 0


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize(("batch", "poisson"), SAMPLINGS)
@pytest.mark.parametrize("p", [1, 2, 11])
def test_same_bits_with_a_lasso(form, batch, poisson, p):
    x, y = records(p=p)
    matrix = sparse.csr_array(x) if form == "csr" else x
    for code in SETS:
        rule = settings(set_code=code, batch=batch, poisson=poisson, lasso=0.1, steps=60)
        theta = run(matrix, y, p=p, **rule)
        assert theta.tobytes() == plain(matrix, y, 3, p, rule).tobytes()
        assert np.any(theta != run(matrix, y, p=p, **{**rule, "lasso": 0.0}))


@pytest.mark.parametrize("p", [1, 2, 8, 64, 1500])
def test_same_bits_in_any_dimension(p):
    x, y = records(p=p)
    rule = settings(steps=30)
    assert run(x, y, p=p, **rule).tobytes() == plain(x, y, 3, p, rule).tobytes()


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize(("batch", "poisson"), SAMPLINGS)
def test_chunks_change_nothing(form, batch, poisson):
    x, y = records()
    matrix = sparse.csr_array(x) if form == "csr" else x
    rule = settings(steps=700, batch=batch, poisson=poisson, average=sgd.SUFFIX_AVERAGE)
    state = start(matrix, y, np.zeros((3, P)), keys(3, 1), keys(3, 2), **rule)
    for until in (1, 2, 9, 300, 351, 700):
        sgd.advance(state, until)
    assert state.done == 700
    assert state.result().tobytes() == run(matrix, y, **rule).tobytes()


def test_neighbours_and_threads_change_nothing():
    x, y = records()
    rule = settings(steps=300)
    all_chains = run(x, y, chains=19, threads=2, **rule)
    assert all_chains.tobytes() == run(x, y, chains=19, threads=1, **rule).tobytes()
    for c in (0, 7, 8, 18):
        noise, index = keys(19, 1)[c : c + 1], keys(19, 2)[c : c + 1]
        alone = run_from(x, y, np.zeros((1, P)), noise, index, **rule)
        assert alone.tobytes() == all_chains[c].tobytes()
    assert len(np.unique(all_chains, axis=0)) == 19


@pytest.mark.parametrize("loss", LOSSES)
def test_noiseless_full_batches_are_projected_gradient_descent(loss):
    """An independent numpy version of the formula, to rounding."""
    x, y = records()
    rule = settings(loss_code=loss, batch=N, noise_scale=0.0, steps=60, eta0=0.02)
    slope = {
        slopes.LOGISTIC: lambda z: -y / (1 + np.exp(y * z)),
        slopes.HINGE: lambda z: np.where(y * z < 1, -y, 0.0),
        slopes.SQUARED: lambda z: z - y,
        slopes.ABSOLUTE: lambda z: np.sign(z - y),
    }[loss]
    theta = np.zeros(P)
    for t in range(1, 61):
        g = x.T @ slope(x @ theta) + N * 0.02 * theta
        theta = theta - 0.02 / np.sqrt(t) * g
        theta *= min(1.0, 0.7 / np.linalg.norm(theta))
    assert np.allclose(run(x, y, **rule), theta, rtol=0, atol=1e-12)


@pytest.mark.stat
def test_noise_scale():
    """With x = 0 the loop is a Gaussian walk: chi-square of its end with 8000 degrees of
    freedom, false-alarm rate 1e-6; a scale off by 1.05 either way fails it."""
    x, y = np.zeros((N, 40)), np.ones(N)
    rule = settings(eta_kind=sgd.CONSTANT, eta0=0.01, noise_scale=3.0, size=1e6, ridge=0.0)
    end = run(x, y, chains=200, p=40, **rule) / (0.01 * 3.0 * np.sqrt(STEPS))
    dof, total = end.size, np.sum(end**2)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], dof)
    assert low < total < high
    assert 1.05**-2 * total < low
    assert 1.05**2 * total > high


def test_every_iterate_is_feasible():
    x, y = records()
    for code, norm in zip(SETS, (2, 1, np.inf), strict=True):
        theta = run(x, y, chains=10, **settings(set_code=code, noise_scale=500.0))
        assert np.all(np.linalg.norm(theta, norm, axis=1) <= 0.7 * (1 + 1e-12))


def test_learning_rates():
    assert sgd.learning_rate(sgd.CONSTANT, 0.3, 7.0) == 0.3
    assert sgd.learning_rate(sgd.INV_SQRT, 0.3, 7.0) == 0.3 / np.sqrt(7.0)
    assert sgd.learning_rate(sgd.INV, 0.3, 7.0) == 0.3 / 7.0


def test_inputs_are_neither_changed_nor_needed_writeable():
    x, y = records()
    theta0, noise, index = np.full((2, P), 0.01), keys(2, 1), keys(2, 2)
    free = run_from(x, y, theta0, noise, index, **settings())
    held = [a.copy() for a in (x, y, theta0, noise, index)]
    for array in (x, y, theta0, noise, index):
        array.flags.writeable = False
    locked = run_from(x, y, theta0, noise, index, **settings())
    assert locked.tobytes() == free.tobytes()
    assert all(
        np.array_equal(a, b) for a, b in zip(held, (x, y, theta0, noise, index), strict=True)
    )


def test_progress_is_told_and_can_stop_the_run():
    x, y = records()
    told = []
    run(x, y, progress=lambda done, steps: told.append((done, steps)), **settings(steps=500))
    assert told[-1] == (500, 500)
    assert [done for done, _ in told] == sorted({done for done, _ in told})

    def interrupt(done, steps):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(x, y, progress=interrupt, **settings(steps=10**9))


def test_refuses_shapes_that_do_not_fit():
    x, y = records()
    theta, k = np.zeros((2, P)), keys(2, 1)
    for bad in (
        lambda: run_from(x, y, np.zeros((2, P + 1)), k, k, **settings()),
        lambda: run_from(sparse.csr_array(x), y[:-1], theta, k, k, **settings()),
        lambda: run_from(x, y, theta, k, k, **settings(population=N + 1)),
        lambda: run_from(x, y, theta, k[:1], k, **settings()),
    ):
        with pytest.raises(ValueError, match=r"fit|keys"):
            bad()
