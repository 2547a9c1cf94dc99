"""The grid walk: the paper's own sampler, with the step count that its proof needs."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Help, Range
from dperm_cli.samplers.base import AllowHeuristic, Certificate, Potential, Sampler, Source, Target
from dperm_cli.samplers.proximal import Proximal
from dperm_cli.samplers.shared.heuristic import THEOREM
from dperm_cli.samplers.shared.potential_checks import remember
from dperm_cli.samplers.shared.walk_grid import Grid, describe, grid
from dperm_cli.samplers.shared.walk_steps import Walk

MODES = ("auto", "theorem", "spectral")
MOST_TABLE = 10_000_000  # entries of the table of moves
MOST_WORK = 4e9  # cells times records
_CHUNK = 1 << 17
_STEP_SECONDS = 50e-9
_YEAR = 365.25 * 86400


@dataclass(frozen=True)
class GridWalk(Sampler):
    """[BST14, Alg. 5, 6 and 7]: a lazy walk on a grid of a cube around the set.

    The set is first brought into isotropic position. The cube's cells are so small that f hardly
    changes in one. Outside the set the weight is reduced by a penalty of the gauge. A walk that
    ends outside is run again, at most m times; then a uniform point of the unit ball is taken. For
    t_inf steps, the law is within Dist_inf ``dist_inf`` of pi [docs/proofs/_samplers.md, Thm 5]. On
    a line and on cubes neither penalty nor retries are needed.

    ``steps=theorem`` runs t_inf steps. ``spectral`` (on a line) runs as many as powers of the
    chain's matrix show to be enough. This number depends on the records, so it is not in the
    certificate; the law is as near to pi for every data set. ``auto`` takes the first of the two
    that needs at most ``most_steps``. Where neither does, the plan is ``Unsupported`` with the
    cost; or, with ``allow_heuristic``, a walk of ``most_steps`` without any guarantee.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> target = Target(bare_spec(100, 1.0, make_ball(1.0, 1)), exponent=0.01)
    >>> certificate = GridWalk().plan(target, 0.5)
    >>> certificate.dist_inf, certificate.facts["mode"]
    (0.5, 'theorem')
    """

    steps: Annotated[str, Choices(*MODES), Help("spectral: the chain's matrix (p = 1)")] = "auto"
    most_steps: Annotated[float, Range(1, 1e13), Help("longer walks are refused")] = 1e9
    allow_heuristic: Annotated[AllowHeuristic, Help("walks are cut at most_steps")] = False

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """The paper's length of the walk, or a refusal with its cost."""
        if target.dimension == 0:
            raise Unsupported("the set is a point: there is nothing to draw")
        if not dist_inf > 0:
            raise Unsupported("grid_walk needs a part of epsilon for its distance from the law")
        place, walk = describe(target, dist_inf)
        moves = 2.0 * walk.dim * walk.cells**walk.dim
        if moves > MOST_TABLE or walk.cells**walk.dim * target.spec.n > MOST_WORK:
            raise Unsupported(_refusal(target, walk, dist_inf, "a table of as many cells"))
        mode = self._mode(target, walk)
        if mode is None and not self.allow_heuristic:
            raise Unsupported(_refusal(target, walk, dist_inf, ""))
        facts = {
            "mode": mode or "truncated",
            "accuracy": dist_inf,
            "theorem_steps": walk.steps,
            "attempts_at_most": walk.attempts,
            "cells": walk.cells**walk.dim,
            "spacing": place.tau / walk.cells,
            "eta": walk.eta,
            "alpha": walk.alpha,
        }
        if mode is None:
            return Certificate(self.name, THEOREM, math.inf, int(self.most_steps), facts=facts)
        theorem = "BST14 Alg. 6, slips corrected" if mode == "theorem" else "powers of the chain"
        return Certificate(
            self.name,
            theorem,
            dist_inf,
            steps=math.ceil(walk.steps),
            constant_time=mode == "theorem" and walk.cube,
            facts=facts,
        )

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One draw [p]."""
        accuracy = certificate.facts["accuracy"]
        place, walk = describe(target, accuracy)

        def make() -> tuple[Grid, int]:
            table, mode = grid(potential, target.spec.n, place, walk), certificate.facts["mode"]
            if mode == "spectral":
                from dperm_cli.samplers.shared.walk_spectrum import certify_steps

                return table, certify_steps(table, 0.5 * walk.inner, walk.steps)
            return table, certificate.steps

        table, steps = remember(self.name, potential, (self, target, accuracy), make)
        for _ in range(int(walk.attempts)):
            theta = table.point(walk_cells(table, steps, source), source.uniform(place.dim))
            if place.cube or bool(place.body.contains(theta, 1e-12)):
                return theta
        g = source.normal(place.dim)
        radius = float(source.uniform(1)[0]) ** (1.0 / place.dim)
        return place.points(radius * g / np.linalg.norm(g))

    def _mode(self, target: Target, walk: Walk) -> str | None:
        if self.steps != "spectral" and walk.steps <= self.most_steps:
            return "theorem"
        from dperm_cli.samplers.shared.walk_spectrum import MOST_CELLS, MOST_OSCILLATION

        short = walk.cells <= MOST_CELLS and target.oscillation <= MOST_OSCILLATION
        if self.steps != "theorem" and walk.dim == 1 and short:
            return "spectral"
        return None


def walk_cells(table: Grid, steps: int, source: Source) -> int:
    """The cell in which a walk of ``steps`` steps from the middle ends."""
    from dperm_cli.loops.grid_walk import advance

    at, left = table.start(), steps
    while left > 0:
        count = min(left, _CHUNK)
        at = advance(table.accept, table.jump, at, source.uniform(count))
        left -= count
    return at


def _refusal(target: Target, walk: Walk, dist_inf: float, also: str) -> str:
    spec, runs = target.spec, 1 if walk.cube else 2
    seconds = runs * walk.steps * _STEP_SECONDS
    time = f"{seconds / _YEAR:.3g} years" if seconds > _YEAR else f"{seconds:.3g} s"
    table = f" and {also} ({walk.cells**walk.dim:.2g})" if also else ""
    attempts = f" per attempt, {runs} attempts" if runs > 1 else ""
    try:
        other = Proximal().plan(target, dist_inf)
        instead = f"sampler=proximal (T={other.steps})"
    except Unsupported:
        instead = "another sampler"
    return (
        f"grid_walk at n={spec.n}, p={spec.p}, F={target.oscillation:.4g}, "
        f"dist_inf={dist_inf:.3g} needs {walk.steps:.2g} steps{attempts}{table} "
        f"(about {time} at 50 ns); use {instead}, or sampler.allow_heuristic=true, which has no "
        "guarantee"
    )
