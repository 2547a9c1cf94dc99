"""A convex empirical risk minimisation problem and the public facts about it."""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts
from dperm_cli.problem.data import Bounds, Data, PublicFacts, sum_blocks
from dperm_cli.problem.public_facts import Block
from dperm_cli.problem.regulariser import Regulariser

# What a loss and a set have to be is said where they live, above this room: every loss is a
# ``losses.base.PerRecord``, every set a ``sets.base.ConvexSet``.
Loss = Any
Constraint = Any


@dataclass(frozen=True)
class ProblemSpec:
    """The facts of a problem that are public, and all that a mechanism may plan with.

    ``lipschitz`` and ``smoothness`` are those of one record's loss without the regulariser, in
    theta (Euclidean); ``strong_convexity`` is per record, so the sum is n times as convex.
    ``lipschitz_total`` counts the regulariser too. ``curvature_bound`` bounds the largest
    eigenvalue of the summed Hessian of the data part (n * smoothness), or is None. ``penalty`` is
    the regulariser of the sum. ``compiled`` says whether loss and set both have compiled twins.
    ``form`` is the loss as a formula, for its other constants. ``entry_bound`` bounds |x|_inf where
    the rows were bounded in that norm; None says that nothing better than ``row_bound`` is known.
    ``phi`` and ``phi_row_bound`` are those of records that came projected (``Data``), ``blocks``
    those of rows that hold several scalings side by side.

    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(100, 1.0, make_ball(1.0, 3), smoothness=0.25)
    >>> isinstance(spec, ProblemSpec), spec.curvature_bound, spec.oscillation
    (True, 25.0, 4.0)
    """

    space: ClassVar[str] = "parameters"

    n: int
    p: int
    lipschitz: float
    lipschitz_total: float
    smoothness: float | None
    strong_convexity: float
    regulariser: Regulariser
    constraint: Constraint
    loss: str
    task: str
    row_bound: float
    target_bound: float
    bounds: Bounds
    compiled: bool = True
    form: Loss | None = field(default=None, repr=False)
    entry_bound: float | None = None
    phi: np.ndarray | None = field(default=None, repr=False, compare=False)
    phi_row_bound: float | None = None
    blocks: tuple[Block, ...] = ()

    @property
    def oscillation(self) -> float:
        """>= sup over records d, d' of the range of l_d - l_d' on the set; at most 2 L D."""
        if self.form is None:
            return 2.0 * self.lipschitz * self.constraint.diameter
        return self.form.oscillation(self.bounds, self.constraint)

    @property
    def variation(self) -> float:
        """>= sup over records d of the range of l_d on the set; at most L D, D the diameter."""
        if self.form is None:
            return self.lipschitz * self.constraint.diameter
        return self.form.variation(self.bounds, self.constraint)

    @property
    def gradient_gap(self) -> float:
        """>= sup over records d, d' and the set of |grad l_d - grad l_d'|; 2 L at most."""
        return 2.0 * self.lipschitz if self.form is None else self.form.gradient_gap(self.bounds)

    @property
    def curvature_bound(self) -> float | None:
        return None if self.smoothness is None else self.n * self.smoothness

    @property
    def ridge(self) -> float:
        return self.regulariser.ridge

    @property
    def lasso(self) -> float:
        return self.regulariser.lasso

    @property
    def penalty(self) -> Regulariser:
        return self.regulariser.times(self.n)


@dataclass(frozen=True)
class Problem:
    """minimise sum_i [l(theta; d_i) + (ridge / 2) |theta|_2^2 + lasso |theta|_1] over the set.

    With ``tilt`` b [p] the linear term <b, theta> is added to the sum (objective perturbation draws
    one); the public facts of ``spec`` are those without it.

    The regulariser is a part of each record's loss (as BST14 counts it) that does not depend on the
    record: it adds ``ridge * radius + lasso * sqrt(p)`` to the Lipschitz constant and ``ridge`` to
    the strong convexity, and cancels from every difference between neighbouring data sets.

    >>> from dperm_cli.losses.absolute import Absolute
    >>> from dperm_cli.sets import make_ball
    >>> data = Data.of_records("toy", "regression", np.eye(2), np.ones(2), 1.0, 1.0, fingerprint="")
    >>> problem = Problem(data, Absolute(), make_ball(1.0, 2), ridge=0.1)
    >>> float(problem.objective(np.zeros(2))), round(problem.spec().lipschitz_total, 3)
    (2.0, 1.1)
    """

    data: Data
    loss: Loss
    constraint: Constraint
    ridge: float = 0.0
    lasso: float = 0.0
    tilt: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def slant(self) -> np.ndarray:
        """The gradient of the linear term, [p]: ``tilt``, or zeros."""
        return np.zeros(self.p) if self.tilt is None else self.tilt

    @property
    def p(self) -> int:
        """Number of parameters."""
        return self.constraint.p

    @property
    def regulariser(self) -> Regulariser:
        """That of one record."""
        return Regulariser(self.ridge, self.lasso)

    @property
    def penalty(self) -> Regulariser:
        """The regulariser of the sum: n times that of one record."""
        return self.regulariser.times(self.data.n)

    def objective(self, theta: np.ndarray) -> np.ndarray:
        """The summed loss at each row of [..., p]."""
        theta = np.asarray(theta, dtype=float)
        total = self.loss.sum_values(theta, self.data) + self.penalty.value(theta)
        return total if self.tilt is None else total + theta @ self.tilt

    def evaluate_apart(self, points: np.ndarray) -> np.ndarray:
        """``objective`` at each of some points [m, p], with the bits that it has alone: [m].

        The records are passed over once for all of them, where the sums are compiled.
        """
        if not self.loss.has_compiled_sums(self.data):
            return np.array([float(self.objective(one)) for one in points])
        losses = self.loss.sum_values(np.asarray(points, dtype=float), self.data)
        penalty = self.penalty
        found = [loss + penalty.value(one) for loss, one in zip(losses, points, strict=True)]
        if self.tilt is not None:
            found = [value + one @ self.tilt for value, one in zip(found, points, strict=True)]
        return np.array(found, dtype=float)

    def data_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of one subgradient of the loss without the regulariser, [..., p]."""
        theta = np.asarray(theta, dtype=float)
        if self.loss.has_part_sums(self.data):
            return self.loss.gradient(theta, self.data)
        return sum_blocks(lambda block: self.loss.gradient(theta, block), self.data)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """A subgradient of the objective, [..., p]."""
        return self.data_gradient(theta) + self.penalty.subgradient(np.asarray(theta)) + self.slant

    def spec(self) -> ProblemSpec:
        """The public facts (they follow from declared bounds, n and p alone)."""
        return spec_of(self.data.facts(), self.loss, self.constraint, self.regulariser)

    def fingerprint(self) -> str:
        """Hex digest of everything the optimum depends on."""
        parts = (self.loss, self.constraint, self.regulariser)
        facts = [self.data.fingerprint, *map(repr, parts)]
        if self.tilt is not None:
            facts.append(self.tilt.tobytes().hex())
        return hash_parts(json.dumps(facts))


def spec_of(
    facts: PublicFacts, loss: Loss, constraint: Constraint, regulariser: Regulariser
) -> ProblemSpec:
    """Assemble the public facts of a problem from those of its data."""
    bounds = facts.bounds(constraint.radius)
    spec = make_spec(facts.n, loss, constraint, regulariser, facts.task, bounds)
    return replace(
        spec, entry_bound=facts.entry_bound, phi=facts.phi, phi_row_bound=facts.phi_row_bound,
        blocks=facts.blocks,
    )  # fmt: skip


def make_spec(
    n: int,
    loss: Loss,
    constraint: Constraint,
    regulariser: Regulariser,
    task: str,
    bounds: Bounds,
) -> ProblemSpec:
    """Assemble the public facts of a problem from its declared bounds."""
    return _assemble_spec(
        n, loss.lipschitz(bounds), loss.curvature_bound(bounds), constraint, regulariser, bounds,
        loss=loss.name, task=task, form=loss,
        compiled=loss.code is not None and constraint.code is not None,
    )  # fmt: skip


def _assemble_spec(
    n: int,
    lipschitz: float,
    smoothness: float | None,
    constraint: Constraint,
    regulariser: Regulariser,
    bounds: Bounds,
    **facts: Any,
) -> ProblemSpec:
    """The public facts with those that follow from the set, the regulariser and the bounds."""
    return ProblemSpec(
        n=n,
        p=constraint.p,
        lipschitz=lipschitz,
        lipschitz_total=lipschitz + regulariser.lipschitz(constraint.radius, constraint.p),
        smoothness=smoothness,
        strong_convexity=regulariser.strong_convexity,
        regulariser=regulariser,
        constraint=constraint,
        row_bound=bounds.row,
        target_bound=bounds.target,
        bounds=bounds,
        **facts,
    )


def without_curvature(spec: ProblemSpec, reason: str) -> str:
    """Why a mechanism that needs a Lipschitz gradient does not run: ``reason``, of a known loss.

    A problem given by constants alone (``bare_spec``) has no loss to say anything of.
    """
    if spec.form is None and spec.loss == "any":
        return "needs a smooth loss: set smoothness= (0.25 for logistic loss with unit rows)"
    return reason


def bare_spec(
    n: int,
    lipschitz: float,
    constraint: Constraint,
    *,
    regulariser: Regulariser | None = None,
    smoothness: float | None = None,
) -> ProblemSpec:
    """Public facts without a data set or a loss, from one record's constants.

    For planning alone: rows and targets are taken to be bounded by 1, and the loss and the set
    to have compiled twins.
    """
    bounds = Bounds(row=1.0, target=1.0, radius=constraint.radius, columns=constraint.p)
    return _assemble_spec(
        n, lipschitz, smoothness, constraint, regulariser or Regulariser(), bounds,
        loss="any", task="regression",
    )  # fmt: skip
