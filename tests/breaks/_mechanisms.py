"""Mechanisms that ship with no package: what the replay audit must catch, and what it must accept.

They reach the records through ``view.batch_gradient`` and ``view.gradient_sum`` and the noise
through ``_doors.open_*`` alone, so that they follow the gate when its doors move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.privacy.events import DisjointBatches, Gaussian
from tests.breaks._doors import (
    Mechanism,
    Release,
    open_batches,
    open_coordinates,
    open_sums,
    parts_by_place,
)

SCALE = 50.0  # of all noise here: what the plans cost is not the matter of these tests


class Bare(Mechanism):
    """All noise has one scale, and nothing attacks these: the tests bring their own neighbours."""

    relations: ClassVar = ("replace_one",)

    def scale(self, spec, budget):
        return SCALE

    def adversary(self, budget):
        raise NotImplementedError

    def batches(self, spec, count: int, scale: float, noise: str = "gaussian") -> DisjointBatches:
        return DisjointBatches(scale, spec.lipschitz, count, noise, gap=spec.gradient_gap)


@dataclass(frozen=True)
class TwoPasses(Bare):
    """Two passes over batches by place, their sums asked for in turn: A0 B0 A1 B1 ...

    With ``leak`` the sums of the second pass are that many times what was accounted for.
    """

    leak: float = 1.0
    count: int = 4

    def events(self, spec, scale, budget):
        return (self.batches(spec, self.count, scale),) * 2

    def release(self, view, plan, gate):
        spec = view.spec
        parts = parts_by_place(view, self.count)
        passes = [open_batches(gate, event, parts, spec.p) for event in plan.events]
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        for step in range(self.count):
            for factor, stream in zip((1.0, self.leak), passes, strict=True):

                def total(batch, at=theta, factor=factor):
                    return factor * view.batch_gradient(at, batch)

                theta = spec.constraint.project(theta - 0.01 * stream.release(total, step))
        return Release(theta)


@dataclass(frozen=True)
class LeakBetweenQuietPasses(Bare):
    """A pass whose every sum is over all records, and after each of its sums another pass begins.

    The others release noise alone. A record moves each of the first pass's ``count`` sums by one
    sensitivity, and one was accounted for. With ``honest`` the sums are over their own batches.
    """

    count: int = 2
    honest: bool = False
    noise: str = "gaussian"

    def events(self, spec, scale, budget):
        return (self.batches(spec, self.count, scale, self.noise),) * self.count

    def release(self, view, plan, gate):
        spec = view.spec
        parts = parts_by_place(view, self.count)
        streams = [open_batches(gate, event, parts, spec.p) for event in plan.events]
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        for step in range(self.count):

            def total(batch, at=theta):
                return view.batch_gradient(at, batch) if self.honest else view.gradient_sum(at)

            theta = spec.constraint.project(theta - 0.01 * streams[0].release(total, step))
            for other in streams[step + 1 : step + 2]:
                other.release(lambda batch: np.zeros((gate.trials, spec.p)), 0)
        return Release(theta)


@dataclass(frozen=True)
class TreeAggregation(Bare):
    """DP-FTRL: sums of a binary tree over batches by place, each node noised when it is complete.

    Algorithm: [Kairouz et al. 2021, DP-FTRL], one pass over 2^levels batches; at time t the sum of
    the first t batch gradients is that of the nodes of t's binary digits. Every level is a
    partition of the records, so that a record moves one node of it: each level is one event
    ``DisjointBatches``, and the levels are composed. A node's value is made of gradients at the
    points of its own batches. With ``leaky_level`` the nodes of that level are released
    ``factor`` times as large as was accounted for.
    """

    levels: int = 3
    step_size: float = 0.05
    leaky_level: int | None = None
    factor: float = 2.0

    def events(self, spec, scale, budget):
        counts = [2 ** (self.levels - level) for level in range(self.levels + 1)]
        return tuple(self.batches(spec, count, scale) for count in counts)

    def release(self, view, plan, gate):
        spec, leaves = view.spec, 2**self.levels
        small = parts_by_place(view, leaves)
        streams = []
        for level, event in enumerate(plan.events):
            width = 2**level
            parts = [
                np.concatenate(small[start : start + width]) for start in range(0, leaves, width)
            ]
            streams.append(open_batches(gate, event, parts, spec.p))
        centre = np.tile(spec.constraint.centre(), (gate.trials, 1))
        theta, points, noisy = centre, [], {}
        for time in range(leaves):
            points.append(theta)
            for level, stream in enumerate(streams):
                if (time + 1) % 2**level:
                    continue
                node = (time + 1) // 2**level - 1

                def total(batch, level=level, node=node):
                    first = node * 2**level
                    value = sum(
                        view.batch_gradient(points[leaf], small[leaf])
                        for leaf in range(first, first + 2**level)
                    )
                    return value * (self.factor if level == self.leaky_level else 1.0)

                noisy[level, node] = stream.release(total, node)
            theta = spec.constraint.project(centre - self.step_size * prefix(noisy, time + 1))
        return Release(theta)


def prefix(noisy: dict[tuple[int, int], np.ndarray], time: int) -> np.ndarray:
    """The noisy sum of the first ``time`` leaves: one node for each binary digit of ``time``."""
    total, done = 0.0, 0
    for level in reversed(range(time.bit_length())):
        if time >> level & 1:
            total = total + noisy[level, done >> level]
            done += 1 << level
    return np.asarray(total)


@dataclass(frozen=True)
class TwoVectors(Bare):
    """Two vectors, the coordinates of each asked for one by one, in turn.

    Each is the sum of all gradients at the centre, ``factor`` times as large as was accounted for
    in the first vector.
    """

    factor: float = 1.0

    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),) * 2

    def release(self, view, plan, gate):
        spec = view.spec
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        sums = view.gradient_sum(theta)
        streams = [open_coordinates(gate, event, spec.p) for event in plan.events]
        out = np.zeros_like(theta)
        for number in range(spec.p):
            for place, stream in enumerate(streams):
                value = sums[:, number] * (self.factor if place == 0 else 1.0)
                out[:, number] += stream.add(value, number)
        return Release(spec.constraint.project(-0.01 * out))


@dataclass(frozen=True)
class SumsAndBatches(Bare):
    """A pass over batches, and between its sums full gradients of another event."""

    leak: float = 1.0
    count: int = 4

    def events(self, spec, scale, budget):
        whole = Gaussian(scale, spec.lipschitz, self.count, gap=spec.gradient_gap)
        return self.batches(spec, self.count, scale), whole

    def release(self, view, plan, gate):
        spec = view.spec
        parts = parts_by_place(view, self.count)
        batches = open_batches(gate, plan.events[0], parts, spec.p)
        sums = open_sums(gate, plan.events[1], spec.p)
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        for step in range(self.count):
            noisy = batches.release(
                lambda batch, at=theta: self.leak * view.batch_gradient(at, batch), step
            )
            theta = spec.constraint.project(theta - 0.01 * noisy)
            theta = spec.constraint.project(theta - 0.01 * sums.add(view.gradient_sum(theta), step))
        return Release(theta)
