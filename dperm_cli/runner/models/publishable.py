"""``Publishable``: a plan, a released point and public facts, all that may be published.

Model files, the words of a session and what ``dperm predict`` says are functions of a
``Publishable`` and of nothing else. It cannot be built from records: no constructor
takes ``Data``, rows, a problem or a path, and this module does not import them
(tests/runner/test_publishable.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli import __version__
from dperm_cli.core import checks, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import PrivacyError
from dperm_cli.kernels.base import Kernel
from dperm_cli.kernels.shared.feature_maps import Explicit, Features, Fourier, Landmarks
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.group_privacy import guarantee_for_person
from dperm_cli.privacy.budget import RELATIONS, Guarantee
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.events import kind as kind_of_events
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.results.ledger import statement
from dperm_cli.runner.models.input_schema import InputSchema
from dperm_cli.sets import make_ball

PUBLIC, DECLARED = "public", "declared"
HELD_OUT, FILE = "held-out", "file"  # where public points come from
# Largest number of events in a plan; equal events are one entry with a count. Files from others
# are accounted too, and every event takes time.
MOST_EVENTS = 32
NOISES = ("research", "secure")


@dataclass(frozen=True)
class ReleaseFacts:
    """What of a ``ProblemSpec`` is said of a release.

    ``population`` is the n of the formulas: the number of records under replace_one, a declared
    number under add_remove (``population_source``). ``constraint_size`` is the set's radius in its
    own norm, None for a set without one; of a kernel, the ball that holds the minimiser.
    """

    loss: str
    constraint: str
    constraint_size: float | None
    ridge: float
    lasso: float
    row_bound: float
    population: int
    population_source: str


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """The public map psi that a model's coordinates are of.

    ``arrays`` are ``frequencies`` [size, width], or ``points`` [T, width] and ``basis`` [T, dim];
    ``source`` says whether points are held-out inputs of the data set or rows of a public file.
    """

    kind: str
    kernel: Kernel
    arrays: Mapping[str, np.ndarray]
    source: str = FILE

    @classmethod
    def of(cls, features: Features, points: str | int) -> FeatureMap:
        """The map as it is published; ``points`` is the key that says where it has its points."""
        if isinstance(features, Explicit):
            return cls("explicit", features.kernel, {})
        if isinstance(features, Fourier):
            return cls("fourier", features.kernel, {"frequencies": features.frequencies})
        if not isinstance(features, Landmarks):
            raise TypeError(f"{type(features).__name__} is no map that can be published")
        rows = features.points
        dense = rows.toarray() if sparse.issparse(rows) else rows
        arrays = {"points": np.asarray(dense, dtype=float), "basis": features.weights}
        source = FILE if isinstance(points, str) and points != "auto" else HELD_OUT
        return cls("landmarks", features.kernel, arrays, source)

    def count_coordinates(self, columns: int) -> int:
        """Coordinates of psi(x) for rows of so many columns; ValueError where there is no map."""
        if self.kind == "fourier":
            return 2 * len(self.arrays["frequencies"])
        if self.kind == "landmarks":
            return self.arrays["basis"].shape[1]
        found = self.kernel.monomials(columns)
        if found is None:
            raise ValueError(f"kernel {self.kernel.name} has no finite map")
        return found

    def build_features(self, columns: int, row_bound: float) -> Features:
        """The map of rows of so many columns and of norm at most ``row_bound``."""
        bound = self.kernel.bound(row_bound)
        if self.kind == "fourier":
            found = self.arrays["frequencies"]
            return Fourier(self.kernel, columns, len(found), _kept={"w": found})
        if self.kind == "landmarks":
            return _Stored(self.kernel, self.arrays["points"], bound, self.arrays["basis"])
        return Explicit(self.kernel, columns, bound)

    def plain(self) -> dict[str, Any]:
        """Everything but the arrays as JSON-able values; the kernel without seeds and files."""
        keys = {name: getattr(self.kernel, name) for name in own_keys_of(type(self.kernel))}
        kernel = {"name": self.kernel.name, **keys}
        return {"kind": self.kind, "kernel": kernel, "source": self.source}


@dataclass(frozen=True, eq=False)
class _Stored(Landmarks):
    """Landmarks with the basis as it was: eigenvectors differ between linear algebra libraries."""

    basis: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        return self.basis


@dataclass(frozen=True, eq=False)
class Publishable:
    """One release as it may leave: what was planned, what came out, and the public facts.

    Attributes:
        version: of dperm.
        mechanism: its registered name.
        events: the plan's privacy events, from which ``guarantee`` is computed.
        relation: the neighbouring relation of the guarantee.
        delta: at which epsilon is computed.
        steps: noisy steps of the plan.
        noise: ``research`` or ``secure``, as the run said.
        arithmetic: what values and noise are made of, as the run said.
        facts: public facts of the problem.
        schema: what raw rows look like and what they go through.
        features: the map of a model with a kernel, or None.
        theta: the released point [p]; None for a session, which releases answers.
        plugins: the plug-ins from outside that the guarantee rests on, in words.
    """

    version: str
    mechanism: str
    events: tuple[Event, ...]
    relation: str
    delta: float
    steps: int
    noise: str
    arithmetic: str
    facts: ReleaseFacts
    schema: InputSchema
    features: FeatureMap | None
    theta: np.ndarray | None
    plugins: str | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        theta: np.ndarray | None,
        spec: ProblemSpec | KernelSpec,
        schema: InputSchema,
        *,
        mechanism: str,
        noise: str,
        arithmetic: str,
        population: int | None,
        features: FeatureMap | None = None,
        plugins: str | None = None,
    ) -> Publishable:
        """What may leave of a release.

        Args:
            plan: what the mechanism fixed before it saw a record.
            theta: the released point [p], or None for a session.
            spec: the public facts that it planned with.
            schema: of raw rows.
            mechanism: its registered name.
            noise: ``research`` or ``secure``.
            arithmetic: what values and noise are made of.
            population: the declared n, which add_remove needs; None under replace_one.
            features: the public map of a model with a kernel.
            plugins: the plug-ins from outside that made it, in words.

        Raises:
            PrivacyError: the release has no guarantee, or its n is not public.
        """
        relation = plan.guarantee.relation
        if plan.guarantee.kind == "none" or not plan.events:
            raise PrivacyError(f"{mechanism} gives no guarantee: nothing of it is published")
        if relation == "add_remove" and population != spec.n:
            raise PrivacyError("under add_remove a release needs a declared privacy.population")
        kernel = isinstance(spec, KernelSpec)
        body = make_ball(spec.radius, 1) if kernel else spec.constraint
        facts = ReleaseFacts(
            loss=spec.loss,
            constraint=body.name,
            constraint_size=None if body.size is None else float(body.size),
            ridge=float(spec.ridge),
            lasso=0.0 if kernel else float(spec.lasso),
            row_bound=float(spec.row_bound),
            population=int(spec.n),
            population_source=DECLARED if relation == "add_remove" else PUBLIC,
        )
        return cls(
            __version__, mechanism, tuple(plan.events), relation, float(plan.guarantee.delta),
            int(plan.steps), noise, arithmetic, facts, schema, features,
            None if theta is None else np.asarray(theta, dtype=float), plugins,
        )  # fmt: skip

    def __post_init__(self) -> None:
        """ValueError, InputError or Unsupported for parts that do not belong to one release."""
        checks.choice("relation", self.relation, RELATIONS)
        checks.choice("noise", self.noise, NOISES)
        source = DECLARED if self.relation == "add_remove" else PUBLIC
        checks.choice("population_source", self.facts.population_source, (source,))
        if not 0 < len(self.events) <= MOST_EVENTS:
            raise ValueError(f"must have 1 to {MOST_EVENTS} privacy events")
        if self.theta is not None:
            if self.theta.shape != (self.coordinates,):
                allowed = f"theta has shape {self.theta.shape}, its rows {self.coordinates} numbers"
                raise ValueError(allowed)
            if not np.all(np.isfinite(self.theta)):
                raise ValueError("theta holds a number that is nan or infinite")
        if self.guarantee.kind == "none" or not np.isfinite(self.guarantee.epsilon):
            raise ValueError(f"its events give no guarantee at delta {self.delta:g}")

    @property
    def coordinates(self) -> int:
        """The length that theta must have."""
        width = self.schema.width
        if self.features is not None:
            width = self.features.count_coordinates(width)
        return width * self.columns_of_theta

    @property
    def columns_of_theta(self) -> int:
        """How many numbers theta gives each coordinate of a row: one, or one for each class."""
        return self.schema.classes if self.schema.task == "multiclass" else 1

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the accountant gives for the events: never what somebody says of them."""
        delivers = kind_of_events(self.events)
        if delivers == "none":
            return Guarantee("none", np.inf, 1.0, self.relation, "no guarantee")
        kind = "local" if delivers == "local" else "pure" if self.delta == 0.0 else "approx"
        return ledger_totals.recompute(
            self.events, kind=kind, delta=self.delta, relation=self.relation, certificate=None
        )

    @property
    def records_per_person(self) -> int:
        """How many records of one person count; 1 where every record is somebody else's."""
        table = self.schema.table
        return 1 if table is None else table.unit.at_most

    @property
    def person_guarantee(self) -> Guarantee:
        """What holds for all records of one person: ``guarantee``, where a person has one."""
        return guarantee_for_person(self.guarantee, self.records_per_person)

    def values(self, raw: Any) -> np.ndarray:
        """f(x) of each raw row [m, columns], [m], of several classes [m, classes].

        Raises:
            ValueError: one is not finite.
        """
        assert self.theta is not None
        schema, several = self.schema, self.columns_of_theta > 1
        theta = self.theta.reshape(-1, schema.classes) if several else self.theta
        out = np.empty((raw.shape[0], *theta.shape[1:]))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in schema.blocks(len(out)):
                rows = schema.apply_row_rule(raw[part])
                if self.features is not None:
                    rows = self.features.build_features(schema.width, schema.l2_bound).apply(rows)
                out[part] = rows @ theta
        if not np.all(np.isfinite(out)):
            raise ValueError("its values are beyond what can be computed")
        return out

    def chances(self, values: np.ndarray) -> np.ndarray | None:
        """The model's probability of the positive class [m], or of each class [m, classes].

        None where its loss is no likelihood.

        Args:
            values: as ``values`` gives them.
        """
        name = self.facts.loss
        if name not in registry.list_shipped("loss"):
            return None  # a plug-in's own words are not run for a file of somebody else
        loss = registry.load("loss", name)
        return None if loss.chances is None else loss().chances(values)

    @property
    def published_inputs(self) -> str | None:
        """What of it are inputs of held-out people, in words."""
        if self.features is None or self.features.kind != "landmarks":
            return None
        if self.features.source != HELD_OUT:
            return None
        return statement.describe_public_inputs(len(self.features.arrays["points"]))

    def level(self) -> str:
        """Epsilon and delta with the relation and n they hold for, in words."""
        found, facts, most = self.person_guarantee, self.facts, self.records_per_person
        count = "n" if facts.population_source == PUBLIC else "declared population"
        whom = f" for a person with at most {most} records" if most > 1 else ""
        return (
            f"epsilon {found.epsilon:.6g}, delta {found.delta:.3g}{whom} "
            f"({self.relation}, {count} {facts.population})"
        )

    def session_words(self) -> str:
        """What a session spends, told before its first answer."""
        added = (self.published_inputs, statement.describe_plugins(self.plugins))
        return (
            f"{self.mechanism}: this session is {self.level()}, by {self.guarantee.source}; "
            f"another one spends as much again\nnoise={self.noise}: floating-point noise, not for "
            "release" + "".join(f"\n{words}" for words in added if words)
        )

    def plain(self) -> dict[str, Any]:
        """Everything but the arrays as JSON-able values, in one order."""
        found = {name: getattr(self, name) for name in list_fields(Publishable) if name != "theta"}
        if self.plugins is None:
            del found["plugins"]
        found["events"] = [ledger_totals.to_dict(event) for event in self.events]
        found["facts"] = dataclasses.asdict(self.facts)
        found["schema"] = self.schema.plain()
        if self.features is not None:
            found["features"] = self.features.plain()
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Theta and the public arrays of the map."""
        assert self.theta is not None
        found = {} if self.features is None else dict(self.features.arrays)
        return {"theta": self.theta, **{name: found[name] for name in sorted(found)}}


def own_keys_of(kernel: type[Kernel]) -> list[str]:
    """The keys of a kernel beyond those that all have."""
    return [name for name in list_fields(kernel) if name not in list_fields(Kernel)]


def list_fields(made: type) -> list[str]:
    """The names of a dataclass's fields, in order."""
    return [field.name for field in dataclasses.fields(made)]
