"""The gate draws what an event says, and a wrong law is noticed."""

from __future__ import annotations

import pytest

from dperm_cli.audit import noise_laws
from dperm_cli.privacy import _streams
from dperm_cli.privacy.events import DisjointBatches, GammaNorm, Gaussian, Laplace, SampledGaussian

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
    assert noise_laws.faults(EVENTS[name], dim, "replace_one") == []


@pytest.mark.stat
@pytest.mark.parametrize("name", EVENTS)
def test_noise_that_is_five_percent_too_small_is_noticed(name, monkeypatch):
    plain = _streams.Keyed.add

    def smaller(self, value, kind, scale, dim, step):
        return plain(self, value, kind, 0.95 * scale, dim, step)

    monkeypatch.setattr(_streams.Keyed, "add", smaller)
    assert noise_laws.faults(EVENTS[name], 3, "replace_one")


@pytest.mark.stat
def test_one_draw_for_all_steps_is_noticed(monkeypatch):
    plain = _streams.Keyed.add

    def same(self, value, kind, scale, dim, step):
        return plain(self, value, kind, scale, dim, 0)

    monkeypatch.setattr(_streams.Keyed, "add", same)
    assert noise_laws.faults(EVENTS["gaussian"], 3, "replace_one")


@pytest.mark.stat
@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_batches_are_counted(sampling, monkeypatch):
    event = SampledGaussian(3.0, 1.0, 3, 9, sampling, 4)
    assert noise_laws.batch_faults(event, "replace_one") == []
    plain = _streams.SampledStream.draw
    monkeypatch.setattr(
        _streams.SampledStream, "draw", lambda self, trial, step: plain(self, trial, 0)
    )
    assert noise_laws.batch_faults(event, "replace_one")
