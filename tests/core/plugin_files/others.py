"""A kernel, a sampler, an event with its mechanism, and a bound."""

from dataclasses import dataclass

import numpy as np

from dperm_cli import (
    Certificate,
    Gaussian,
    Kernel,
    Mechanism,
    Release,
    Sampler,
    check_mechanism,
    upper_bound,
)


@dataclass(frozen=True, kw_only=True)
class Affine(Kernel):
    """1 + <x, z>."""

    def gram(self, a, b):
        return 1.0 + np.asarray(a @ b.T)

    def diagonal(self, a):
        return 1.0 + np.einsum("ij,ij->i", a, a)

    def bound(self, row_bound):
        return (1.0 + row_bound**2) ** 0.5


@dataclass(frozen=True)
class Centre(Sampler):
    """The centre of the set, which is far from the law that is asked for."""

    def plan(self, target, dist_inf):
        return Certificate("centre", "none", dist_inf=0.0)

    def draw(self, potential, target, certificate, source):
        return target.constraint.centre()


@dataclass(frozen=True)
class Quiet(Gaussian):
    """Gaussian noise under a name of its own."""


@dataclass(frozen=True)
class QuietStep(Mechanism):
    """One step with that event."""

    def events(self, spec, scale, budget):
        return (Quiet(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view, plan, gate):
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(view.spec.constraint.project(start - 0.1 * total))


@upper_bound("one guess", check_mechanism("quiet_step"))
def guess(at):
    """A bound that rests on its author's word."""
    return 1e-3 * at.spec.n
