"""Replay measures each kind of noise in its own norm, and the search for neighbours has power."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit._laws import Slope, Watched, moved
from dperm_cli.audit.neighbours import pairs, search
from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.core import registry
from dperm_cli.core.rng import seed_sequence
from dperm_cli.mechanisms._drawing import interval_pair
from dperm_cli.mechanisms.noisy_gd import NoisyGd
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.noise import Gate
from dperm_cli.samplers._target import Target

BUDGET = Budget(1.0, 1e-5)
ROOT = Path(__file__).resolve().parents[2]


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
        gate = Gate([seed_sequence(0, "test")], tape)
        stream = getattr(gate, kind)(dim=2, count=1, scale=1.0, sensitivity=sensitivity)
        return stream.add(np.array([value]), 0)

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


def test_a_law_and_its_facts_are_replayed():
    recorder = Recorder()
    drawn = recorder.law(0.5, 2.0, np.ones((1, 2)))
    player = Player(recorder.calls)
    assert np.array_equal(player.law(0.5, 2.0, np.zeros((1, 2))), drawn)
    assert not player.faults
    assert Player(recorder.calls).law(0.6, 2.0, np.zeros((1, 2))).sum() == 0.0


def laws(plain, exponent, oscillation, factor=1.0):
    """The move of a law of linear losses of which one is turned round, on [-1/2, 1/2]."""
    looks = []
    for problem in interval_pair("replace_one", 2, 0.5):
        kappa = 0.0 if plain else 1.0
        seen: list = []
        Watched(problem, seen).potential(Target(problem.spec(), factor * exponent, kappa))
        looks.append(seen)
    return moved(*looks, exponent, oscillation, plain)


def test_the_move_of_a_law_is_seen():
    """Losses -t and t move by 2 t: 2 over the interval; gradients by 2, at curvature 1."""
    assert laws(True, 0.5, 2.0) == pytest.approx(1.0)
    assert laws(True, 0.5, 2.0, factor=2.0) == pytest.approx(2.0)
    assert laws(True, 0.5, 1.0) == pytest.approx(2.0)
    # sqrt(m) / c = 1 / c: what is declared is 2 c
    assert laws(False, 0.5, 1.0) == pytest.approx(0.5)
    assert laws(False, 0.5, 1.0, factor=4.0) == pytest.approx(2.0)


def test_the_move_of_a_choice_is_seen():
    first = [np.array([1.0, 0.0]), np.array([2.0, 0.0])]  # two points, values of two trials
    second = [np.array([1.5, 0.0]), np.array([1.0, 0.0])]
    assert moved(first, second, 3.0, 1.5, True) == pytest.approx(1.0)
    assert moved(first, second[:1], 3.0, 1.5, True) == np.inf
    ball = registry.load("constraint", "l2_ball")(2.0, 2)
    slopes = [[Slope(np.array([g]), ball)] for g in ([0.0, 1.0], [3.0, 5.0])]
    assert moved(*slopes, 0.1, 20.0, True) == pytest.approx(1.0)  # 2 * 2 * |(3, 4)|


@pytest.mark.parametrize("relation", RELATIONS)
def test_pairs_are_neighbours_within_their_bounds(relation):
    kinds = set()
    for first, second, _ in pairs(relation, 12, 0):
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

    def events(self, spec, scale):
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
    """A source test: mechanisms know no generator but the gate."""
    forbidden = re.compile(
        r"np\.random|default_rng|import (random|secrets)\b|urandom|standard_normal|core\.rng"
        r"|loops import .*\b(gaussian|indices|exponential)\b|(?<!box_muller\.)\bnormals\("
    )  # box_muller makes normals of uniforms that it is given
    files = sorted((ROOT / "dperm_cli" / "mechanisms").glob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not forbidden.search(file.read_text()), file.name
    assert forbidden.search("noise = np.random.normal(0, sigma)")
