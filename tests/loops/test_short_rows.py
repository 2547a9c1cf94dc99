"""Four chains to a vector: each has the bytes that it has alone, whoever shares its vector."""

import numpy as np
import pytest

from dperm_cli.loops import projections, reduced_sgd, sgd, slopes, thread_count
from dperm_cli.loops.sealed_noise import SealedBatches

N, STEPS = 60, 700
RULE = dict(eta_kind=sgd.INV_SQRT, eta0=0.002, ridge=0.01, loss_width=0.3)


def keys(chains):
    return np.random.default_rng(3).integers(0, 2**64, (2, chains, 2), dtype=np.uint64)


def records(p):
    rng = np.random.default_rng(p)
    lengths = rng.choice([1.0, 1e-3, 1e-170, 0.0], (N, 1), p=[0.7, 0.1, 0.1, 0.1])
    return lengths * rng.standard_normal((N, p)), np.sign(rng.standard_normal(N))


def run(p, chosen, **changes):
    x, y = records(p)
    noise = SealedBatches(*keys(9)[:, chosen], 0.3 * N, STEPS, N)
    theta0 = np.full((len(chosen), p), -0.0)
    rule = dict(loss_code=slopes.LOGISTIC, set_code=projections.L2_BALL, size=1.0, **RULE)
    return sgd.run(x, y, theta0, noise, threads=1, **{**rule, **changes})


@pytest.mark.parametrize("p", range(1, 18))
def test_a_chain_has_the_same_bytes_alone_and_beside_others(p):
    for changes in ({}, {"average": sgd.SUFFIX_AVERAGE}, {"size": 1e6}):
        alone = [run(p, [c], **changes) for c in range(9)]
        for chains in (2, 3, 4, 5, 8, 9):
            found = run(p, list(range(chains)), **changes)
            assert found.tobytes() == np.concatenate(alone[:chains]).tobytes()


@pytest.mark.parametrize("loss", [slopes.HINGE, slopes.SQUARED, slopes.HUBERIZED_HINGE])
def test_so_it_is_with_every_loss(loss):
    alone = [run(10, [c], loss_code=loss) for c in range(5)]
    assert run(10, list(range(5)), loss_code=loss).tobytes() == np.concatenate(alone).tobytes()


def test_threads_share_the_chains_of_the_reduced_loop_and_change_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 30)) / 6, np.sign(rng.standard_normal(6))
    rule = dict(loss_code=slopes.LOGISTIC, set_code=projections.L2_BALL, size=0.7, **RULE)
    found = []
    for threads in (1, 2, 4):
        with thread_count.use_threads(threads):
            noise = SealedBatches(*keys(3), 2.0, 36, 6)
            found.append(reduced_sgd.run(reduced_sgd.frame(x), y, noise, **rule).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("chains", range(2, 21))
def test_two_threads_share_any_number_of_chains(chains):
    groups = sgd._groups(chains, 2)
    sizes = [group.stop - group.start for group in groups]
    assert sum(sizes) == chains
    assert len(groups) % 2 == 0
    assert max(sizes) - min(sizes) <= 1
