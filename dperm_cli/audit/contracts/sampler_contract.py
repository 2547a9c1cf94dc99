"""What every sampler promises: a certificate from public facts, and draws from its law."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import kstest

from dperm_cli.audit import declared_grid
from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.problems import small_problem
from dperm_cli.audit.contracts.promises import NotTried, count_tried, promise, require, show
from dperm_cli.audit.sampler_laws import LEVEL, find_distribution
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Certificate, Target
from dperm_cli.samplers.shared.potential import Records

LOSSES, SETS = declared_grid.PLAIN[:4], declared_grid.SETS[::2]
_DISTANCE = 1e-3  # that is asked for
_DRAWS = 1500
_LONGEST = 20_000  # steps above which no draw is made
_LONG = 200  # steps above which a draw is not repeated often


class Numbers:
    """Random numbers of one draw, from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def uniform(self, *shape: int) -> np.ndarray:
        """Independent uniforms in (0, 1]."""
        return 1.0 - self._rng.random(shape)

    def normal(self, *shape: int) -> np.ndarray:
        """Independent standard normals."""
        return self._rng.standard_normal(shape)


@dataclass(frozen=True)
class Subject:
    """A sampler as it comes."""

    sampler: Any


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The sampler to be checked, from its class."""
    if cls.candidates is not None:
        raise NotTried("it takes the first of other samplers, and draws nothing of its own")
    examples = make_examples(cls)
    # one that gives no guarantee without being asked twice
    return Subject(next((made for made in examples if made.allow_heuristic is True), examples[0]))


def _cases(subject: Subject, columns: tuple[int, ...] = (1, 2)) -> Iterator[tuple[Any, ...]]:
    """(potential, target, certificate) of each problem that it has a plan for."""
    for loss in LOSSES:
        for p in columns:
            for body in SETS:
                problem = replace(small_problem(loss, body, n=8, p=p, radius=1.2), ridge=0.05)
                target = Target(problem.spec(), exponent=0.3)
                try:
                    certificate = subject.sampler.plan(target, _DISTANCE)
                except Unsupported:
                    continue
                yield Records(problem.loss, problem.data, target), target, certificate


@promise(
    "its plan gives a certificate from public facts, or Unsupported",
    mend="plan(target, dist_inf) returns Certificate(sampler, theorem, dist_inf) with a "
    "dist_inf at most what was asked for, from target alone",
)
def check_plan(subject: Subject) -> str:
    count = 0
    for _, target, certificate in _cases(subject):
        require(isinstance(certificate, Certificate), f"plan gives {type(certificate).__name__}")
        again = subject.sampler.plan(target, _DISTANCE)
        require(certificate == again, "planned twice, its certificate differs")
        asked = bool(subject.sampler.allow_heuristic) or certificate.dist_inf <= _DISTANCE
        require(asked, f"dist_inf is {certificate.dist_inf:g}, and {_DISTANCE:g} was asked for")
        require(certificate.dist_inf >= 0, f"dist_inf is {certificate.dist_inf:g}")
        count += 1
    return count_tried(count, "problems", "it has no plan for the problems that were tried")


@promise(
    "a draw is a point of the set, and its numbers alone decide it",
    mend="draw returns theta [p] inside the set, from source.uniform and source.normal; "
    "ArithmeticError where it did not come out",
)
def check_draw(subject: Subject) -> str:
    count = 0
    for potential, target, certificate in _cases(subject):
        if certificate.steps > _LONGEST:
            continue
        one, again, other = (
            np.asarray(subject.sampler.draw(potential, target, certificate, Numbers(seed)))
            for seed in (0, 0, 1)
        )
        p = target.constraint.p
        require(one.shape == (p,), f"a draw has shape {list(one.shape)} in {p} dimensions")
        require(
            target.constraint.contains(one, 1e-7), f"the draw {show(one)} is outside of the set"
        )
        require(np.array_equal(one, again), "the same numbers give another draw")
        require(not np.array_equal(one, other), "other numbers give the same draw")
        count += 1
    return count_tried(count, "problems", "it has no short plan for the problems that were tried")


@promise(
    "on a line its draws have the law exp(-f)",
    mend="the law must be within dist_inf of exp(-f) on the set, f being potential.value",
)
def check_law(subject: Subject) -> str:
    count = 0
    for potential, target, certificate in _cases(subject, (1,)):
        if certificate.steps > _LONG or not math.isfinite(certificate.dist_inf):
            continue
        draw = subject.sampler.draw
        theta = np.array(
            [draw(potential, target, certificate, Numbers(seed))[0] for seed in range(_DRAWS)]
        )
        law = find_distribution(potential, target.constraint)
        if law is None:
            continue
        far = float(kstest(theta, lambda x, law=law: np.interp(x, *law)).statistic)
        # a law on a net of points differs by what lies between two of them
        atom = float(np.max(np.unique(theta, return_counts=True)[1])) / _DRAWS
        allowed = math.expm1(min(certificate.dist_inf, 1.0)) + (atom if atom > 2 / _DRAWS else 0.0)
        chance = float(kolmogorov(math.sqrt(_DRAWS) * max(far - allowed, 0.0)))
        require(
            chance >= LEVEL,
            f"the distance of {_DRAWS} draws to exp(-f) is {far:.3g}: by "
            f"chance that has probability {chance:.1g}",
        )
        count += 1
        if count == 2:
            break
    what = f"laws of one dimension, {_DRAWS} draws each"
    return count_tried(count, what, "it has no short plan on a line")
