"""Replay measures each kind of noise in its own norm, and the search for neighbours has power."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.law_replay import LawInputs, Slope, WatchedView
from dperm_cli.audit.random_neighbours import make_pairs, search
from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.shared.sampled_release import interval_pair
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.privacy.events import Exponential, GammaNorm, Gaussian, Laplace, SampledGaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.meters import LawRange, LawSlope
from dperm_cli.samplers.base import Target

BUDGET = Budget(1.0, 1e-5)
ROOT = Path(__file__).resolve().parents[2]


KINDS = {"gaussian": Gaussian, "gamma_norm": GammaNorm, "laplace": Laplace}


def opened(tape, event, dim=2, **public):
    """The stream of an event at a gate of one trial with this tape."""
    return Gate([seed_sequence(0, "test")], tape).stream(event, dim, **public)


@pytest.mark.parametrize(
    ("kind", "moved", "size"),
    [
        ("gaussian", [3.0, 4.0], 5.0),
        ("gamma_norm", [3.0, 4.0], 5.0),
        ("laplace", [3.0, 4.0], 7.0),
        ("laplace", [0.0, np.nan], np.inf),
    ],
)
def test_moves_are_measured_in_the_norm_of_the_noise(kind, moved, size):
    def passes(tape, value, sensitivity):
        return opened(tape, KINDS[kind](1.0, sensitivity / 2)).add(np.array([value]), 0)

    recorder = Recorder()
    first = passes(recorder, [0.0, 0.0], 10.0)
    player = Player(recorder.calls)
    second = passes(player, moved, 10.0)
    assert player.worst == pytest.approx(size / 10.0)
    assert bool(player.faults) == (size > 10.0)
    assert np.array_equal(first, second)
    other = Player(recorder.calls)
    passes(other, moved, 9.0)
    assert "where the first run had" in other.faults[0]


def test_each_step_of_a_stream_is_measured_by_itself():
    """An adaptive sequence: what one step moves leaves the next one its own sensitivity."""

    def passes(tape, values):
        noise = opened(tape, Gaussian(1.0, 0.5, 3))
        for step, value in enumerate(values):
            noise.add(np.full((1, 2), value), step)

    recorder = Recorder()
    passes(recorder, (0.0, 0.0, 0.0))
    player = Player(recorder.calls)
    passes(player, (0.7, 0.7, 0.7))
    assert player.worst == pytest.approx(0.7 * np.sqrt(2.0))
    assert player.faults == []
    player = Player(recorder.calls)
    passes(player, (0.7, 0.8, 0.7))
    assert len(player.faults) == 1
    assert player.faults[0].startswith("call 2")


@pytest.mark.parametrize(
    "change",
    [{"scale": 1.1}, {"record_norm": 0.6}, {"count": 2}, {"gap": 0.9}, {"relation": "replace_one"}],
)
def test_another_event_than_on_the_first_run_is_a_fault(change):
    """Also one that declares more, so that what moved would pass."""
    recorder = Recorder()
    event = Gaussian(1.0, 0.5)
    opened(recorder, event).add(np.zeros((1, 2)), 0)
    player = Player(recorder.calls)
    opened(player, event.change_fields(**change)).add(np.zeros((1, 2)), 0)
    assert "where the first run had" in player.faults[0]


def test_another_step_stream_or_shape_than_on_the_first_run_is_a_fault():
    event = Gaussian(1.0, 0.5, 2)

    def passes(tape, order=(0, 1), step=0, dim=2):
        gate = Gate([seed_sequence(0, "test")], tape)
        streams = [gate.stream(event, dim) for _ in range(2)]
        for number in order:
            streams[number].add(np.zeros((1, dim)), step)

    recorder = Recorder()
    passes(recorder)
    for changed in ({"order": (1, 0)}, {"order": (0, 0)}, {"step": 1}, {"dim": 3}):
        player = Player(recorder.calls)
        passes(player, **changed)
        assert player.faults, changed
    more = Player(recorder.calls)
    passes(more, order=(0, 1, 1), step=0)
    assert "one call more" in more.faults[0]
    fewer = Player(recorder.calls)
    passes(fewer, order=(0,))
    assert (fewer.faults, fewer.position) == ([], 1)  # ``replay`` counts the calls


def test_a_value_where_a_batch_was_drawn_is_a_fault():
    """Of one stream, with equal facts: the one hides something and the other does not."""
    recorder = Recorder()
    stream = opened(recorder, SampledGaussian(1.0, 0.5, 1, 4, "fixed"))
    stream._take_draw(None, np.zeros((1, 2)), 0)
    player = Player(recorder.calls)
    other = opened(player, SampledGaussian(1.0, 0.5, 1, 4, "fixed"))
    other._take_draw(np.zeros(()), np.zeros((1, 2)), 0)
    assert "where the first run had" in player.faults[0]


def test_a_law_and_its_facts_are_replayed():
    def passes(tape, point, exponent=0.5):
        return opened(tape, Exponential(exponent, 1.0)).release(np.full((1, 2), point), 0)

    recorder = Recorder()
    drawn = passes(recorder, 1.0)
    player = Player(recorder.calls)
    assert np.array_equal(passes(player, 0.0), drawn)
    assert not player.faults
    other = Player(recorder.calls)
    assert passes(other, 0.0, 0.6).sum() == 0.0
    assert other.faults


def laws(plain, exponent, oscillation, factor=1.0):
    """The move of a law of linear losses of which one is turned round, on [-1/2, 1/2]."""
    looks = []
    for problem in interval_pair("replace_one", 2, 0.5):
        kappa = 0.0 if plain else 1.0
        seen: list = []
        WatchedView(problem, seen).potential(Target(problem.spec(), factor * exponent, kappa))
        looks.append(LawInputs(seen))
    if plain:
        return LawRange(exponent, oscillation).move(*looks)
    return LawSlope(exponent, oscillation).move(*looks)


def test_the_move_of_a_law_is_seen():
    """Losses -t and t move by 2 t: 2 over the interval; gradients by 2, at curvature 1."""
    assert laws(True, 0.5, 2.0) == pytest.approx(1.0)
    assert laws(True, 0.5, 2.0, factor=2.0) == pytest.approx(2.0)
    assert laws(True, 0.5, 1.0) == pytest.approx(2.0)
    # sqrt(m) / c = 1 / c: what is declared is 2 c
    assert laws(False, 0.5, 1.0) == pytest.approx(0.5)
    assert laws(False, 0.5, 1.0, factor=4.0) == pytest.approx(2.0)
    assert laws(True, 0.5, 0.0) == laws(False, 0.5, 0.0) == np.inf


def test_the_move_of_a_choice_is_seen():
    def moved(first, second, exponent, oscillation):
        return LawRange(exponent, oscillation).move(LawInputs(first), LawInputs(second))

    first = [np.array([1.0, 0.0]), np.array([2.0, 0.0])]  # two points, values of two trials
    second = [np.array([1.5, 0.0]), np.array([1.0, 0.0])]
    assert moved(first, second, 3.0, 1.5) == pytest.approx(1.0)
    assert moved(first, second[:1], 3.0, 1.5) == np.inf
    ball = registry.load("constraint", "l2_ball")(2.0, 2)
    slopes = [[Slope(np.array([g]), ball)] for g in ([0.0, 1.0], [3.0, 5.0])]
    assert moved(*slopes, 0.1, 20.0) == pytest.approx(1.0)  # 2 * 2 * |(3, 4)|


@pytest.mark.parametrize("relation", RELATIONS)
def test_pairs_are_neighbours_within_their_bounds(relation):
    kinds = set()
    for first, second, _ in make_pairs(relation, 12, 0):
        one, two = (np.asarray(_dense(p.data.x)) for p in (first, second))
        assert np.all(np.linalg.norm(np.vstack([one, two]), axis=1) <= 1.0 + 1e-12)
        differ = np.any(one != two, axis=1) | (first.data.y != second.data.y)
        assert differ.sum() <= 1
        kinds.add((first.loss.name, isinstance(first.data.x, np.ndarray)))
    assert len(kinds) == 8


def _dense(x):
    return x if isinstance(x, np.ndarray) else x.toarray()


@dataclasses.dataclass(frozen=True)
class Timid(NoisyGd):
    """Declares 0.9 of its sensitivity."""

    def events(self, spec, scale, budget):
        return (Gaussian(scale, 0.9 * spec.lipschitz, self._steps()),)


def test_a_tenth_too_little_is_found():
    assert search((NoisyGd(),), BUDGET, 24).private
    found = search((Timid(),), BUDGET, 24)
    assert not found.private
    assert found.worst == pytest.approx(1 / 0.9, rel=0.05)


def test_nothing_replayed_is_a_fault():
    found = search((NoisyGd(calibration="paper"),), BUDGET, 4)
    assert not found.private
    assert "nothing was replayed" in found.faults[0]


def test_no_mechanism_draws_past_the_gate():
    """A source test: mechanisms, their views and solvers know no generator but the gate."""
    forbidden = re.compile(
        r"np\.random|default_rng|import (random|secrets)\b|urandom|standard_normal|core\.seeds"
        r"|loops import .*\b(gaussian|exponential)_noise\b|loops\.\w+_noise import"
        r"|secure_noise|exact_noise\.fill"
        r"|batch_indices|(?<!box_muller\.)\bnormals\("
    )  # box_muller makes normals of uniforms that it is given
    rooms = {"mechanisms": 40, "views": 4, "solvers": 15}
    found = {room: sorted((ROOT / "dperm_cli" / room).rglob("*.py")) for room in rooms}
    assert all(len(found[room]) > least for room, least in rooms.items())
    files = [file for files in found.values() for file in files]
    for file in files:
        assert not forbidden.search(file.read_text()), file.name
    for line in ("noise = np.random.normal(0, sigma)", "from dperm_cli.loops import gaussian_noise",
                 "from dperm_cli.loops.gaussian_noise import normals", "exact_noise.fill(a, b)",
                 "from dperm_cli.core.seeds import generator"):  # fmt: skip
        assert forbidden.search(line), line
