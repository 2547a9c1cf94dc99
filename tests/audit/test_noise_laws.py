"""The gate draws what an event says, and a wrong law is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit import noise_laws
from dperm_cli.loops import batch_indices, exponential_noise, gaussian_noise
from dperm_cli.privacy import streams
from dperm_cli.privacy.events import DisjointBatches, GammaNorm, Gaussian, Laplace, SampledGaussian
from dperm_cli.privacy.gate import Gate

EVENTS = {
    "gaussian": Gaussian(3.0, 1.0, 4),
    "laplace": Laplace(3.0, 1.0, 4),
    "gamma_norm": GammaNorm(3.0, 1.0, 4),
    "sampled": SampledGaussian(3.0, 1.0, 2, 10, "fixed", 4),
    "batches": DisjointBatches(3.0, 1.0, 4, "gamma_norm"),
}


@pytest.mark.stat
@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("dim", [1, 5])
def test_the_law_of_every_event_is_that_of_its_noise(name, dim):
    """False-alarm rate 1e-9 an event."""
    assert noise_laws.find_faults(EVENTS[name], dim, "replace_one") == []


@pytest.mark.stat
@pytest.mark.parametrize("name", EVENTS)
def test_noise_that_is_five_percent_too_small_is_noticed(name, monkeypatch):
    plain = streams.KeyedNoise.add

    def smaller(self, value, kind, scale, dim, step):
        return plain(self, value, kind, 0.95 * scale, dim, step)

    monkeypatch.setattr(streams.KeyedNoise, "add", smaller)
    assert noise_laws.find_faults(EVENTS[name], 3, "replace_one")


@pytest.mark.stat
def test_one_draw_for_all_steps_is_noticed(monkeypatch):
    plain = streams.KeyedNoise.add

    def same(self, value, kind, scale, dim, step):
        return plain(self, value, kind, scale, dim, 0)

    monkeypatch.setattr(streams.KeyedNoise, "add", same)
    assert noise_laws.find_faults(EVENTS["gaussian"], 3, "replace_one")


@pytest.mark.stat
@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_batches_are_counted(sampling, monkeypatch):
    event = SampledGaussian(3.0, 1.0, 3, 9, sampling, 4)
    assert noise_laws.batch_faults(event, "replace_one") == []
    plain = streams.SampledStream.draw
    monkeypatch.setattr(
        streams.SampledStream, "draw", lambda self, trial, step: plain(self, trial, 0)
    )
    assert noise_laws.batch_faults(event, "replace_one")


MIXED = [
    Gaussian(2.0, 1.0, 3),
    Laplace(0.5, 1.0, 2),
    GammaNorm(3.0, 1.0),
    SampledGaussian(4.0, 6.0, 1, 6, "fixed", 36),
]


@pytest.mark.parametrize("event", MIXED, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("dim", [1, 20])
def test_the_gate_draws_what_events_say(event, dim):
    assert noise_laws.find_faults(event, dim, "replace_one") == []


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_scale_wrong_by_a_twentieth_is_found(factor, monkeypatch):
    normals, laplaces = gaussian_noise.normals, exponential_noise.laplaces
    gammas = exponential_noise.gamma_norms
    monkeypatch.setattr(gaussian_noise, "normals", lambda *a: factor * normals(*a))
    monkeypatch.setattr(exponential_noise, "laplaces", lambda *a: factor * laplaces(*a))
    monkeypatch.setattr(exponential_noise, "gamma_norms", lambda *a: factor * gammas(*a))
    for event in MIXED:
        (first, *_) = noise_laws.find_faults(event, 3, "replace_one")
        assert "times as large" in first


def test_noise_that_is_drawn_again_is_found(monkeypatch):
    normals = gaussian_noise.normals
    monkeypatch.setattr(gaussian_noise, "normals", lambda keys, step, *a: normals(keys, 0, *a))
    assert any("steps" in words for words in noise_laws.find_faults(MIXED[0], 3, "replace_one"))


def test_one_key_for_all_trials_is_found(monkeypatch):
    keys = Gate.keys
    monkeypatch.setattr(Gate, "keys", lambda self: np.tile(keys(self)[:1], (self.trials, 1)))
    assert any("trials" in words for words in noise_laws.find_faults(MIXED[0], 3, "replace_one"))


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
    batch = batch_indices.batch
    wrong = lambda key, step, *a: change(batch(key, step, *a), step)  # noqa: E731
    monkeypatch.setattr(batch_indices, "batch", wrong)
    event, relation = BATCHES[1]
    assert any(said in words for words in noise_laws.batch_faults(event, relation))


def test_poisson_batches_of_one_size_are_found(monkeypatch):
    batch = batch_indices.batch
    monkeypatch.setattr(
        batch_indices, "batch", lambda key, step, n, m, _: batch(key, step, n, m, False)
    )
    event, relation = BATCHES[2]
    assert any("sizes" in words for words in noise_laws.batch_faults(event, relation))
