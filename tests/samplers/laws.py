"""Exact probabilities of bins by quadrature, and chi-square tests of draws against them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from scipy import stats

from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.potential import Records
from tests import samplers
from tests.conftest import small_problem

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


class Numbers(samplers.Numbers):
    """A source of random numbers that counts what it gives."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked = 0

    def uniform(self, *shape: int) -> np.ndarray:
        self.asked += int(np.prod(shape))
        return super().uniform(*shape)

    def normal(self, *shape: int) -> np.ndarray:
        self.asked += int(np.prod(shape))
        return super().normal(*shape)


def case(loss: str, constraint: str, p: int, n: int = 20, f: float = 8.0, **more):
    """(problem, target, potential) with the exponent at which the oscillation F is ``f``."""
    problem = small_problem(loss, constraint, n=n, p=p, **{"radius": 1.0, **more})
    return built(problem, f)


def built(problem: Problem, f: float):
    spec = problem.spec()
    target = Target(spec, f / Target(spec, 1.0).oscillation)
    return problem, target, Records(problem.loss, problem.data, target)


def draw(sampler, target, potential, count: int, seed: int = 1, dist_inf: float = 0.01):
    """Draws [count, p], each from a stream of its own."""
    certificate = sampler.plan(target, dist_inf)
    return np.array(
        [
            sampler.draw(potential, target, certificate, Numbers(seed + 7919 * i))
            for i in range(count)
        ]
    )


class Bins:
    """Bins of a ball or a box in coordinates in which both are boxes, with exact probabilities."""

    def __init__(self, target: Target, per_axis: int) -> None:
        body, p = target.constraint, target.spec.p
        self.ball = body.name == "l2_ball" and p > 1
        half = body.radius if p == 1 else body.size
        ends = [(-half, half)] * p
        if self.ball:
            ends = (
                [(0.0, half), (-np.pi, np.pi)]
                if p == 2
                else [(0.0, half), (-1.0, 1.0), (-np.pi, np.pi)]
            )
        self.edges = [np.linspace(low, high, per_axis + 1) for low, high in ends]
        self.per_axis = per_axis

    def coordinates(self, theta: np.ndarray) -> np.ndarray:
        if not self.ball:
            return theta
        r = np.linalg.norm(theta, axis=-1)
        angle = np.arctan2(theta[..., 1], theta[..., 0])
        parts = [r, angle] if theta.shape[-1] == 2 else [r, theta[..., 2] / r, angle]
        return np.stack(parts, axis=-1)

    def back(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(theta, volume element)."""
        if not self.ball:
            return c, np.ones(len(c))
        r, angle = c[:, 0], c[:, -1]
        flat = r if c.shape[1] == 2 else r * np.sqrt(1.0 - c[:, 1] ** 2)
        parts = [flat * np.cos(angle), flat * np.sin(angle)]
        if c.shape[1] == 3:
            parts.append(r * c[:, 1])
        return np.stack(parts, axis=1), r ** (c.shape[1] - 1)

    def number(self, theta: np.ndarray) -> np.ndarray:
        c = self.coordinates(theta)
        index = [
            np.clip(np.searchsorted(e, c[:, j], side="right") - 1, 0, self.per_axis - 1)
            for j, e in enumerate(self.edges)
        ]
        return np.ravel_multi_index(index, (self.per_axis,) * len(self.edges))

    def probabilities(self, potential) -> np.ndarray:
        """Of the law exp(-f), by Gauss-Legendre in every bin."""
        nodes = np.array(list(product(_NODES, repeat=len(self.edges))))
        weights = np.prod(np.array(list(product(_WEIGHTS, repeat=len(self.edges)))), axis=1)
        mass = []
        for cell in product(range(self.per_axis), repeat=len(self.edges)):
            low = np.array([e[i] for e, i in zip(self.edges, cell, strict=True)])
            high = np.array([e[i + 1] for e, i in zip(self.edges, cell, strict=True)])
            theta, volume = self.back(low + 0.5 * (high - low) * (1.0 + nodes))
            mass.append(float(np.sum(weights * volume * np.exp(-potential.value(theta)))))
        return np.array(mass) / np.sum(mass)


def p_value(bins: Bins, probabilities: np.ndarray, theta: np.ndarray) -> float:
    """Of the chi-square statistic of draws [m, p]; bins that expect fewer than 10 are joined."""
    seen = np.bincount(bins.number(theta), minlength=len(probabilities))
    order = np.argsort(probabilities)
    expected, seen = len(theta) * probabilities[order], seen[order]
    rare = int(np.searchsorted(np.cumsum(expected), 10.0)) + 1
    expected = np.append(np.sum(expected[:rare]), expected[rare:])
    seen = np.append(np.sum(seen[:rare]), seen[rare:])
    while len(expected) > 1 and expected[1] < 5.0:
        expected = np.append(expected[0] + expected[1], expected[2:])
        seen = np.append(seen[0] + seen[1], seen[2:])
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def colder(potential: Records, factor: float) -> Records:
    """The potential of the same records at another exponent: what a wrong sampler would draw."""
    target = replace(potential.target, exponent=potential.target.exponent * factor)
    return Records(potential.loss, potential.data, target)
