"""A convex empirical risk minimisation problem and the public facts about it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dperm_cli.problem.data import Data


class Loss(Protocol):
    """A generalised-linear loss l(z; y) of the margin z = <x, theta>.

    All methods broadcast over arrays of margins [..., n] and labels [n].
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    code: ClassVar[int]

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """One subgradient in z."""
        ...

    def slope_bound(self, margin: float, target: float) -> float:
        """sup |slope| over |z| <= margin and |y| <= target."""
        ...

    @property
    def smoothness(self) -> float | None:
        """Lipschitz constant of the slope in z, or None when the loss has kinks."""
        ...

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """sup_z (a z - l(z; y)), +inf outside the domain."""
        ...


class Constraint(Protocol):
    """A closed bounded convex set in R^p; all norms without a name are Euclidean."""

    name: ClassVar[str]
    code: ClassVar[int]

    @property
    def p(self) -> int:
        """The dimension."""
        ...

    @property
    def size(self) -> float:
        """The ball's radius in its own norm: the one number its compiled projection needs."""
        ...

    @property
    def radius(self) -> float:
        """sup of |theta| over the set."""
        ...

    @property
    def diameter(self) -> float:
        """sup of |theta - theta'| over the set."""
        ...

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Euclidean projection of each row of [..., p]."""
        ...

    def support(self, g: np.ndarray) -> np.ndarray:
        """sup of <g, theta> over the set, for each row of [..., p]."""
        ...

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """A minimiser of <g, theta> over the set, for each row of [..., p]."""
        ...

    def gauge(self, theta: np.ndarray) -> np.ndarray: ...

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray: ...

    def centre(self) -> np.ndarray:
        """A point of the set that depends on no data, shape [p]."""
        ...


@dataclass(frozen=True)
class ProblemSpec:
    """The facts of a problem that are public, and all that a mechanism may plan with.

    ``lipschitz`` and ``smoothness`` are those of one record's loss without the ridge, in theta
    (Euclidean); ``strong_convexity`` is per record, so the sum is n times as convex.
    ``lipschitz_total`` counts the ridge too. ``curvature_bound`` bounds the largest eigenvalue of
    the summed Hessian of the data part (n * smoothness), or is None.
    """

    n: int
    p: int
    lipschitz: float
    lipschitz_total: float
    smoothness: float | None
    strong_convexity: float
    ridge: float
    constraint: Constraint
    loss: str
    task: str
    row_bound: float
    target_bound: float

    @property
    def curvature_bound(self) -> float | None:
        return None if self.smoothness is None else self.n * self.smoothness


@dataclass(frozen=True)
class Problem:
    """minimise sum_i l(<x_i, theta>; y_i) + n * (ridge / 2) * |theta|^2 over the set.

    The ridge is a part of each record's loss (as BST14 counts it) that does not depend on the
    record: it adds ``ridge * radius`` to the Lipschitz constant and ``ridge`` to the strong
    convexity, and cancels from every difference between neighbouring data sets.
    """

    data: Data
    loss: Loss
    constraint: Constraint
    ridge: float = 0.0

    def objective(self, theta: np.ndarray) -> np.ndarray:
        """The summed loss at each row of [..., p]."""
        theta = np.asarray(theta, dtype=float)
        z = self.margins(theta)
        penalty = 0.5 * self.data.n * self.ridge * np.sum(theta * theta, axis=-1)
        return np.sum(self.loss.value(z, self.data.y), axis=-1) + penalty

    def margins(self, theta: np.ndarray) -> np.ndarray:
        """<x_i, theta> for each row of [..., p], shape [..., n]."""
        flat = theta.reshape(-1, theta.shape[-1])
        z = np.ascontiguousarray((self.data.x @ flat.T).T)
        return z.reshape(*theta.shape[:-1], self.data.n)

    def data_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of one subgradient of the loss without the ridge, [..., p]."""
        theta = np.asarray(theta, dtype=float)
        slopes = self.loss.slope(self.margins(theta), self.data.y).reshape(-1, self.data.n)
        return np.ascontiguousarray((self.data.x.T @ slopes.T).T).reshape(theta.shape)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """A subgradient of the objective, [..., p]."""
        return self.data_gradient(theta) + self.data.n * self.ridge * np.asarray(theta)

    def spec(self) -> ProblemSpec:
        """The public facts (they follow from declared bounds, n and p alone)."""
        return make_spec(
            n=self.data.n,
            p=self.data.p,
            loss=self.loss,
            constraint=self.constraint,
            ridge=self.ridge,
            task=self.data.task,
            row_bound=self.data.row_bound,
            target_bound=self.data.target_bound,
        )

    def fingerprint(self) -> str:
        """Hex digest of everything the optimum depends on."""
        facts = [self.data.fingerprint, repr(self.loss), repr(self.constraint), repr(self.ridge)]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def make_spec(
    *,
    n: int,
    p: int,
    loss: Loss,
    constraint: Constraint,
    ridge: float,
    task: str,
    row_bound: float,
    target_bound: float,
) -> ProblemSpec:
    """Assemble the public facts of a problem from its declared bounds."""
    slope = loss.slope_bound(row_bound * constraint.radius, target_bound)
    smoothness = None if loss.smoothness is None else loss.smoothness * row_bound**2
    return ProblemSpec(
        n=n,
        p=p,
        lipschitz=row_bound * slope,
        lipschitz_total=row_bound * slope + ridge * constraint.radius,
        smoothness=smoothness,
        strong_convexity=ridge,
        ridge=ridge,
        constraint=constraint,
        loss=loss.name,
        task=task,
        row_bound=row_bound,
        target_bound=target_bound,
    )
