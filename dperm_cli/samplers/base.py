"""The base class of samplers, the law that they draw from, and what they may know of it.

A mechanism makes a ``Target`` from public facts (``plan``) and a ``Potential`` from the records
(``release``; ``samplers.shared.potential.Records`` is the one for a loss and a data set), and hands
both to a sampler:

    certificate = sampler.plan(target, dist_inf)                        # no record is seen
    theta = sampler.draw(potential, target, certificate, source)        # [p], one draw

Which sampler runs, and every number in its certificate, follows from the target alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import CheckedFields, Help, Positive, Range, Unit
from dperm_cli.core.registry import Plugin
from dperm_cli.problem.problem import ProblemSpec


@dataclass(frozen=True)
class Target:
    """pi(theta) proportional to exp(-f(theta)) on the set, f = exponent * objective + quadratic.

    The objective is the problem's summed loss with its regulariser; the quadratic is
    (kappa / 2) |theta|^2. All bounds hold for every data set of n records within the declared
    bounds, so that nothing here depends on a record.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(100, 1.0, make_ball(1.0, 2))
    >>> Target(spec, exponent=0.5).oscillation, Target(spec, exponent=0.5, kappa=2.0).oscillation
    (100.0, 101.0)
    """

    spec: ProblemSpec
    exponent: float
    kappa: float = 0.0

    @property
    def constraint(self) -> Any:
        """The set, ``sets.base.ConvexSet``."""
        return self.spec.constraint

    @property
    def dimension(self) -> int:
        """Dimension of the set's affine hull."""
        return self.constraint.directions().shape[1]

    @property
    def ridge(self) -> float:
        """q: besides the losses, f contains (q / 2) |theta|_2^2."""
        return self.exponent * self.spec.n * self.spec.ridge + self.kappa

    @property
    def lasso(self) -> float:
        """The factor of |theta|_1 in f, besides the losses."""
        return self.exponent * self.spec.n * self.spec.lasso

    @property
    def oscillation(self) -> float:
        """F >= max f - min f over the set: n records of ``spec.variation`` each, and the rest."""
        spec, radius = self.spec, self.constraint.radius
        rest = 0.5 * self.ridge * radius**2 + self.lasso * math.sqrt(spec.p) * radius
        return self.exponent * spec.n * spec.variation + rest

    @property
    def strong_convexity(self) -> float:
        """m such that f - (m / 2) |theta|^2 is convex, from the regularisers alone."""
        return self.exponent * self.spec.n * self.spec.strong_convexity + self.kappa

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant of f on the set."""
        spec = self.spec
        return self.exponent * spec.n * spec.lipschitz_total + self.kappa * self.constraint.radius


class Pieces(NamedTuple):
    """A convex piecewise quadratic function of one number t, up to a constant.

    Its derivative is slope + curvature t + the sum of jump_j over the at_j < t; ``at`` and ``jump``
    [m] come in any order, jump_j >= 0.

    >>> distance = Pieces(slope=-1.0, curvature=0.0, at=np.array([0.5]), jump=np.array([2.0]))
    >>> distance.slope, float(distance.slope + distance.jump[distance.at < 3.0].sum())
    (-1.0, 1.0)
    """

    slope: float
    curvature: float
    at: np.ndarray
    jump: np.ndarray


class Potential(Protocol):
    """The function f of the records. Only samplers inside a mechanism may use it.

    ``magnitude`` bounds the sum over f's terms of their moduli on the set: rounding errors of a
    value are measured by it.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> from dperm_cli.samplers.shared.potential import Records
    >>> problem, _ = linear_pair("replace_one", n=4, radius=1.0)
    >>> f: Potential = Records(problem.loss, problem.data, Target(problem.spec(), exponent=0.5))
    >>> f.value(np.array([[-1.0], [1.0]])).tolist()
    [2.0, -2.0]
    """

    @property
    def magnitude(self) -> float: ...

    def value(self, theta: np.ndarray) -> np.ndarray:
        """f at each row of [..., p], shape [...]."""
        ...

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """A subgradient of f at each row of [..., p]."""
        ...

    def both(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """f and a subgradient at theta [p], computed in one pass over the records."""
        ...

    def along(self, origin: np.ndarray, direction: np.ndarray) -> Pieces:
        """t -> f(origin + t direction), for losses that are piecewise quadratic along every line
        (``samplers.shared.potential.piecewise`` tells which); NotImplementedError for others."""
        ...


class Source(Protocol):
    """Random numbers of one trial, in the order in which they are asked for.

    >>> class Seeded(Source):
    ...     numbers = np.random.default_rng(1)
    ...     def uniform(self, *shape):
    ...         return 1.0 - self.numbers.random(shape)
    >>> Seeded().uniform(2, 3).shape
    (2, 3)
    """

    def uniform(self, *shape: int) -> np.ndarray:
        """Independent uniforms in (0, 1]."""
        ...

    def normal(self, *shape: int) -> np.ndarray:
        """Independent standard normals."""
        ...


@dataclass(frozen=True)
class Certificate:
    """What is proved about the law of a draw, from public facts alone.

    Attributes:
        dist_inf: a bound on sup |log(law / pi)|; 0 for a draw that is exact in real arithmetic.
        theorem: the name of the proof.
        steps: the length of the chain, fixed beforehand.
        constant_time: whether the running time does not depend on the records.
        facts: the numbers that went in, JSON-able.

    >>> Certificate("net", "exponential mechanism on a net", dist_inf=0.0).exact
    True
    """

    sampler: str
    theorem: str
    dist_inf: float
    steps: int = 1
    constant_time: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        return self.dist_inf == 0.0


class Sampler(Plugin, CheckedFields):
    """A frozen dataclass whose fields are the keys of ``conf/sampler/<name>.yaml``.

    ``plan`` raises Unsupported, with the cost and an alternative, where the law has no certificate
    or the draw would take too long. ``draw`` gives one point [p]. A failure inside ``draw`` raises
    ArithmeticError: the mechanism must not release it, since it is not a private outcome.

    >>> class Centre(Sampler):
    ...     plan = staticmethod(lambda target, dist_inf: Certificate("centre", "none", math.inf))
    ...     draw = staticmethod(lambda potential, target, *rest: target.constraint.centre())
    >>> Centre().plan(None, 0.1).exact
    False
    """

    group: ClassVar[str] = "sampler"
    allow_heuristic: Any = False  # draws from a law that nothing is known of
    candidates: Any = None  # ``candidates()``, of one that takes the first of others

    # of one that takes the first of others there is neither
    plan: Callable[[Target, float], Certificate]
    draw: Callable[[Potential, Target, Certificate, Source], np.ndarray]


# Fields that several samplers have.
AllowHeuristic = Annotated[bool, Help("whether draws without any guarantee are allowed")]
ChainSteps = Annotated[int, Range(1, 10**9), Help("length of the chain")]
MostSeconds = Annotated[Positive, Help("a draw that may take longer is refused"), Unit("s")]
