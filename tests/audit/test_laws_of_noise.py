"""The checks of noise: laws of paths, of streams, of batches, of samplers; each has power.

False alarms: 1e-9 a comparison. A scale wrong by 5 % is found.
"""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit import noise_laws, paths
from dperm_cli.loops import exponential, gaussian, indices
from dperm_cli.privacy.events import DisjointBatches, GammaNorm, Gaussian, Laplace, SampledGaussian
from dperm_cli.privacy.noise import Gate


def normal(seed, trials, p, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((trials, p))


@pytest.mark.parametrize("p", [1, 3, 40])
def test_one_law_is_one_law(p):
    assert paths.compare(normal(1, 600, p), normal(2, 600, p)).alike
    ends = np.sign(normal(1, 600, p)), np.sign(normal(2, 600, p)) * (1.0 + 1e-12)
    assert paths.compare(*ends).alike


@pytest.mark.parametrize(("p", "scale"), [(3, 0.75), (20, 0.85), (400, 0.97)])
def test_another_size_is_another_law(p, scale):
    found = paths.compare(normal(1, 600, p), normal(2, 600, p, scale))
    assert not found.alike
    assert "differs" in found.said


def test_the_same_draw_at_every_step_is_another_law():
    steps = np.random.default_rng(1).standard_normal((36, 500, 20))
    same = np.random.default_rng(2).standard_normal((500, 20))
    assert not paths.compare(np.sum(steps, axis=0), 36 * same).alike
    assert not paths.compare(np.sum(steps[:2], axis=0), 2 * same).alike


def test_a_shift_and_a_shape_are_another_law():
    assert not paths.compare(normal(1, 600, 3), normal(2, 600, 3) + 0.5).alike
    uniform = np.sqrt(3.0) * np.random.default_rng(3).uniform(-1, 1, (4000, 1))
    assert not paths.compare(normal(1, 4000, 1), uniform).alike


def test_equal_numbers_up_to_rounding():
    one = normal(1, 3, 4, 1e12)
    assert paths.same_numbers(one, one * (1.0 + 1e-9))
    assert not paths.same_numbers(one, one * (1.0 + 1e-4))
    assert not paths.same_numbers(one, np.full_like(one, np.nan))


EVENTS = [
    Gaussian(2.0, 1.0, 3),
    Laplace(0.5, 1.0, 2),
    GammaNorm(3.0, 1.0),
    SampledGaussian(4.0, 6.0, 1, 6, "fixed", 36),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("dim", [1, 20])
def test_the_gate_draws_what_events_say(event, dim):
    assert noise_laws.faults(event, dim, "replace_one") == []


def test_batches_of_disjoint_records_are_heard_elsewhere():
    assert noise_laws.faults(DisjointBatches(1.0, 1.0, 2), 3, "replace_one") == []


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_scale_wrong_by_a_twentieth_is_found(factor, monkeypatch):
    normals, laplaces = gaussian.normals, exponential.laplaces
    gammas = exponential.gamma_norms
    monkeypatch.setattr(gaussian, "normals", lambda *a: factor * normals(*a))
    monkeypatch.setattr(exponential, "laplaces", lambda *a: factor * laplaces(*a))
    monkeypatch.setattr(exponential, "gamma_norms", lambda *a: factor * gammas(*a))
    for event in EVENTS:
        (first, *_) = noise_laws.faults(event, 3, "replace_one")
        assert "times as large" in first


def test_noise_that_is_drawn_again_is_found(monkeypatch):
    normals = gaussian.normals
    monkeypatch.setattr(gaussian, "normals", lambda keys, step, *a: normals(keys, 0, *a))
    assert any("steps" in words for words in noise_laws.faults(EVENTS[0], 3, "replace_one"))


def test_one_key_for_all_trials_is_found(monkeypatch):
    keys = Gate.keys
    monkeypatch.setattr(Gate, "keys", lambda self: np.tile(keys(self)[:1], (self.trials, 1)))
    assert any("trials" in words for words in noise_laws.faults(EVENTS[0], 3, "replace_one"))


BATCHES = [
    (SampledGaussian(1.0, 1.0, 1, 2, "fixed", 4), "replace_one"),
    (SampledGaussian(1.0, 1.0, 2, 6, "fixed", 18), "replace_one"),
    (SampledGaussian(1.0, 1.0, 2, 6, "poisson", 18), "add_remove"),
    (SampledGaussian(1.0, 1.0, 1, 100, "poisson", 4), "add_remove"),
]


@pytest.mark.parametrize(("event", "relation"), BATCHES)
def test_batches_are_what_events_say(event, relation):
    assert noise_laws.batch_faults(event, relation) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda drawn, step: np.append(drawn, drawn[:1]), "twice"),
        (lambda drawn, step: drawn[1:], "holds 1 records"),
        (lambda drawn, step: np.array([0, 1 + step % 5]), "more often"),
        (lambda drawn, step: (np.arange(2) + 2 * step) % 6, "go together"),
    ],
)
def test_wrong_batches_are_found(change, said, monkeypatch):
    batch = indices.batch
    wrong = lambda key, step, *a: change(batch(key, step, *a), step)  # noqa: E731
    monkeypatch.setattr(indices, "batch", wrong)
    event, relation = BATCHES[1]
    assert any(said in words for words in noise_laws.batch_faults(event, relation))


def test_poisson_batches_of_one_size_are_found(monkeypatch):
    batch = indices.batch
    monkeypatch.setattr(indices, "batch", lambda key, step, n, m, _: batch(key, step, n, m, False))
    event, relation = BATCHES[2]
    assert any("sizes" in words for words in noise_laws.batch_faults(event, relation))
