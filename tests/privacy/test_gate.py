"""The gate: what it hands out, to whom, and which bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.loops import batch_indices, exponential_noise, gaussian_noise, reduced_sgd
from dperm_cli.privacy.events import (
    Channel,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    SampledGaussian,
)
from dperm_cli.privacy.gate import Gate, install_tape, range_delta
from dperm_cli.privacy.streams import LAW

KINDS = {"gaussian": Gaussian, "laplace": Laplace, "gamma_norm": GammaNorm}


def seeds(count=2, seed=0):
    return [seed_sequence(seed, "gate", trial) for trial in range(count)]


def event_of(kind, **changes):
    return KINDS[kind](**({"scale": 2.0, "record_norm": 0.5, "count": 4} | changes))


def stream(gate, kind, **changes):
    return gate.stream(event_of(kind, **changes), 3)


def uniforms(gate, count=1):
    return gate.stream(Exponential(1.0, 1.0, count), 3)


# what dperm promises to draw again, on every version of Python and numpy
PINNED = {
    "gaussian": [
        "-0x1.789bfaa989f8dp+0",
        "-0x1.1e43e9b7d07adp+0",
        "0x1.4c3a09025b747p-2",
        "0x1.cc39f42b102c8p+0",
        "-0x1.264015b2d632ep-1",
        "0x1.5df5a69ec99f7p+0",
    ],
    "laplace": [
        "-0x1.227e7c51f3989p-1",
        "-0x1.5e69a48200ecdp+0",
        "0x1.9239bddafaea0p+1",
        "0x1.467201a7ac130p+0",
        "-0x1.bc982b11bd414p+0",
        "0x1.c96464dcb8f9bp+1",
    ],
    "gamma_norm": [
        "-0x1.76f14eb467e3bp-2",
        "-0x1.3e8fb365e3a1ap+2",
        "-0x1.e0d5cccf317a5p-1",
        "-0x1.4e4fbccd89aa5p+2",
        "0x1.4902bd9a8b0efp+1",
        "0x1.89f301cb6d370p+1",
    ],
}
PINNED_UNIFORMS = [
    "0x1.38909cf0c3584p-3",
    "0x1.45329e8f88d2dp-1",
    "0x1.a6c2249f20cb9p-1",
    "0x1.f1f08379834bfp-1",
]


@pytest.mark.parametrize("kind", KINDS)
def test_first_draws_are_these_bytes(kind):
    noise = stream(Gate(seeds()), kind)
    drawn = noise.add(np.zeros((2, 3)), 1)
    assert [value.hex() for value in drawn.ravel().tolist()] == PINNED[kind]


def test_first_uniforms_are_these_bytes():
    law = uniforms(Gate(seeds()))
    assert [value.hex() for value in law.uniforms(1, 0, 4).tolist()] == PINNED_UNIFORMS


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_keyed_by_trial_stream_and_step(kind):
    """All differ, and none depends on the order of asking or on the trials beside it."""
    zero = np.zeros((2, 3))
    gate = Gate(seeds())
    first, second = stream(gate, kind), stream(gate, kind)
    draws = [s.add(zero, step) for s in (first, second) for step in (3, 0)]
    assert len(np.unique(np.concatenate(draws))) == 4 * 6
    alone = stream(Gate(seeds()[1:]), kind).add(zero[:1], 0)
    assert np.array_equal(alone[0], draws[1][1])
    other = stream(Gate(seeds(seed=1)), kind).add(zero, 0)
    assert not np.any(other == draws[1])


def test_law_uniforms_are_one_sequence_read_anywhere():
    law = uniforms(Gate(seeds()), count=2)
    whole = law.uniforms(0, 1, 50)
    assert np.array_equal(law.uniforms(0, 1, 20, start=13), whole[13:33])
    assert 0.0 < whole.min() < whole.max() < 1.0
    assert not np.any(np.isin(whole, law.uniforms(0, 0, 50)))
    assert not np.any(np.isin(whole, law.uniforms(1, 1, 50)))


def test_an_exponential_passes_the_end_of_its_first_word():
    """A word whose U is the least one takes another word: E = 52 ln 2 + E'."""
    key = np.ones(2, np.uint64)
    last = np.uint64(2**64 - 1)
    deep = exponential_noise.draw_exponential.py_func(
        key[0], key[1], np.uint64(0), np.uint64(5), last
    )
    word, _ = exponential_noise.words(key[0], key[1], np.uint64(0), np.uint64(5 + 2**24))
    expected = 52 * np.log(2.0) - np.log(exponential_noise.unit(word))
    assert deep == pytest.approx(expected, rel=1e-14)
    assert deep > 52 * np.log(2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [
        {"scale": 1.0},
        {"count": 3},
        {"record_norm": 1.0},
        {"record_norm": 0.5 * (1.0 + 1e-9)},
        {"gap": 0.9},
        {"relation": "replace_one"},
    ],
)
def test_noise_must_be_an_event_of_the_plan(kind, change):
    plan = ([event_of(kind)], "replace_one")
    stream(Gate(seeds(), plan=plan), kind)
    # what moves by the same amount, up to the rounding of a formula, is the same event
    stream(Gate(seeds(), plan=plan), kind, record_norm=0.5 * (1.0 + 1e-15), gap=1.0)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        stream(Gate(seeds(), plan=plan), kind, **change)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_must_be_of_the_events_kind_and_is_handed_out_once(kind):
    gate = Gate(seeds(), plan=([event_of(kind)], "replace_one"))
    for other in set(KINDS) - {kind}:
        with pytest.raises(PrivacyError):
            stream(gate, other)
    noise = stream(gate, kind)
    with pytest.raises(PrivacyError):
        stream(gate, kind)
    noise.add(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError, match="second time"):
        noise.add(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError, match="step 4 of a stream of 4"):
        noise.add(np.zeros((2, 3)), 4)


def test_batches_must_be_an_event_of_the_plan():
    event = SampledGaussian(2.0, 0.5, 2, 9, "fixed", 4)
    gate = Gate(seeds(), plan=([event], "replace_one"))
    changes: list[dict] = [
        {"population": 8}, {"batch": 3}, {"sampling": "poisson"}, {"count": 5}, {"scale": 1.0},
        {"record_norm": 0.6}, {"relation": "replace_one"},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(PrivacyError, match="no event of the plan"):
            gate.stream(event.change_fields(**change), 3)
    gate.stream(event, 3)
    with pytest.raises(PrivacyError):
        gate.stream(event, 3)
    with pytest.raises(PrivacyError):
        Gate(seeds(), plan=([Gaussian(2.0, 0.5, 4)], "replace_one")).stream(event, 3)


def test_batches_and_their_noise_are_of_one_stream_and_of_two_keys():
    event = SampledGaussian(2.0, 0.5, 2, 9, "fixed", 4)
    drawn = Gate(seeds(), plan=([event], "replace_one")).stream(event, 3)
    batches = [drawn.draw(trial, step) for trial in range(2) for step in range(4)]
    assert all(len(set(batch.tolist())) == 2 for batch in batches)
    assert len({batch.tobytes() for batch in batches}) > 4
    noisy = drawn.add(np.zeros((2, 3)), 1)
    with pytest.raises(PrivacyError, match="second time"):
        drawn.add(np.zeros((2, 3)), 1)
    # what a compiled loop gets is the same noise and the same batches, once
    sealed = Gate(seeds()).stream(event, 3).sealed_draws
    assert sealed[2:] == (2.0, 4, 9, 2, False)
    assert np.array_equal(noisy, 2.0 * gaussian_noise.normals(sealed.noise_keys, 1, 1, 3)[:, 0, :])
    again = [batch_indices.batch(sealed.index_keys[trial], 3, 9, 2, False) for trial in range(2)]
    assert np.array_equal(again, [batches[3], batches[7]])
    with pytest.raises(PrivacyError, match="no compiled loop"):
        _ = drawn.sealed_draws
    used = Gate(seeds(), plan=([event], "replace_one")).stream(event, 3)
    _ = used.sealed_draws
    with pytest.raises(PrivacyError, match="second time"):
        used.add(np.zeros((2, 3)), 0)


def test_a_law_must_be_an_event_of_the_plan():
    event = Exponential(0.5, 1.5, 2)

    def gate():
        return Gate(seeds(), plan=([event], "replace_one"))

    changes: list[dict] = [
        {"exponent": 0.6}, {"record_oscillation": 0.75}, {"count": 1}, {"gap": 1.5},
        {"relation": "replace_one"},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(PrivacyError):
            gate().stream(event.change_fields(**change), 3)
    law = gate().stream(event, 3)
    law.release(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError):
        law.release(np.zeros((2, 3)), 0)


class Tape:
    """Writes down what it heard, and hands back 7."""

    def __init__(self):
        self.heard = []

    def take_draw(self, stream, value, drawn, public):
        self.heard.append((stream, value, drawn, public))
        return 7.0


def test_a_tape_hears_every_kind_and_closes_the_compiled_path():
    tape = Tape()
    gate = Gate(seeds(), tape)
    assert not gate.can_run_compiled
    for kind in KINDS:
        noise = stream(gate, kind)
        assert noise.add(np.ones((2, 3)), 0) == 7.0
    sampled = gate.stream(SampledGaussian(2.0, 0.5, 2, 9, "fixed", 4), 3)
    assert sampled.add(np.ones((2, 3)), 0) == 7.0
    assert sampled.draw(1, 2) == 7.0
    with pytest.raises(PrivacyError, match="past the tape"):
        _ = sampled.sealed_draws
    frame = reduced_sgd.frame(np.eye(1, 6))
    with pytest.raises(PrivacyError, match="past the tape"):
        stream(gate, "gaussian").add_in_frame(np.zeros((2, 3)), 0, 1, 4)
    with pytest.raises(PrivacyError, match="past the tape"):
        stream(gate, "gaussian").draw_direction(frame)
    users = gate.stream(Channel(1.0, 1, "l_inf", 3), 3, bound=2.0, users=4)
    with pytest.raises(PrivacyError, match="past the tape"):
        _ = users.sealed_draws
    assert users.send(2, np.ones((2, 3))) == 7.0
    law = uniforms(gate)
    assert law.release(np.ones((2, 3)), 0) == 7.0
    names = [type(event).__name__ for event in (heard[0].event for heard in tape.heard)]
    sums = ["Gaussian", "Laplace", "GammaNorm", "SampledGaussian"]
    assert names == [*sums, "SampledGaussian", "Channel", "Exponential"]
    for of, value, drawn, public in tape.heard[:4]:
        assert np.array_equal(value, np.ones((2, 3)))
        assert (of.event.scale, of.event.sensitivity(of.relation), drawn.shape) == (
            2.0,
            1.0,
            (2, 3),
        )
        assert public == ((2, 3), 0)
    batch, sent, last = tape.heard[4:]
    assert (batch[1], batch[3]) == (None, (1, 2))
    # the value that an answer stands for, over the bound
    assert np.array_equal(sent[1], np.full((2, 3), 0.5))
    assert sent[3] == ((2, 3), 2, 2.0)
    assert last[1] is LAW
    assert last[3] == (0,)
    # streams are numbered in the order of asking, also those that failed
    numbers = [heard[0].number for heard in tape.heard]
    assert numbers == [0, 1, 2, 3, 3, 6, 7]


def test_listening_puts_a_tape_on_every_gate_of_the_process_and_takes_it_off_again():
    whole, own = Tape(), Tape()
    with install_tape(whole):
        gates = [Gate(seeds()), Gate(seeds()), Gate(seeds(), own)]
    assert [gate.tape for gate in gates] == [whole, whole, own]
    assert Gate(seeds()).tape is None


def test_the_range_of_exponentials_never_matters_and_that_of_normals_does():
    assert (
        range_delta([Laplace(1.0, 4000.0), GammaNorm(1.0, 4000.0, 10**6)], "replace_one", 9) == 0.0
    )
    assert range_delta([Laplace(1.0, 5000.0)], "replace_one", 9) == 1.0
    assert range_delta([Exponential(1.0, 1.0)], "replace_one", 9) == 0.0
    normal = [range_delta([Gaussian(1.0, norm, 3)], "replace_one", 2) for norm in (0.0, 1.0, 5.0)]
    assert normal[0] == 0.0
    assert 3 * 2.0**-64 < normal[1] < 1e-10
    assert normal[2] == 3.0


def test_the_range_counts_every_pair_of_coordinates():
    """A shift spread over all pairs pushes about half of each pair's atom out of the range."""
    pairs, shift = 500_000, 0.5
    spread = range_delta([Gaussian(1.0, shift / 2.0)], "replace_one", 2 * pairs)
    assert spread >= pairs * 2.0**-65
    # and the worst of all ways to spread it over a few pairs, by search
    atom, rng = 2.0**-64, np.random.default_rng(0)
    for m in (1, 2, 5, 20):
        bound = range_delta([Gaussian(1.0, shift / 2.0)], "replace_one", 2 * m)
        parts = rng.dirichlet(np.full(m, 0.3), 2000)
        t = shift * np.sqrt(np.vstack([parts, np.full((1, m), 1.0 / m), np.eye(m)]))
        h = np.exp(-((np.sqrt(128 * np.log(2)) - t) ** 2) / 2.0)
        assert np.max(np.sum(h + atom, axis=1)) <= bound * (1 + 1e-12)


def test_a_value_of_another_shape_gets_no_noise():
    """One draw spread over two coordinates would cancel in their difference."""
    gate = Gate([np.random.SeedSequence(0)])
    stream = gate.stream(Gaussian(1.0, 0.5), 1)
    with pytest.raises(PrivacyError, match="shape"):
        stream.add(np.zeros((1, 2)), 0)
