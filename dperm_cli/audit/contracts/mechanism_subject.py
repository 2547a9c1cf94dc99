"""A mechanism to be checked, with the problems, plans and releases on which it is tried."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from dperm_cli.audit import declared_grid
from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.problems import small_problem
from dperm_cli.audit.contracts.promises import Broken
from dperm_cli.audit.random_neighbours import KERNEL, shorten_steps
from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import fields_of
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.views.choose import is_local, open_view

DELTA = 1e-5
LOSSES, SETS = declared_grid.PLAIN, declared_grid.SETS[:3]
STEPS = 8  # of a mechanism that has steps
_SAMPLER_SECONDS = 2.0  # that a sampler may plan for
_QUERIES = 4


@dataclass
class Subject:
    """A mechanism with its defaults, and with settings that make it quick.

    Attributes:
        whole: as it comes.
        mechanism: with few steps and quick samplers.
        variants: quick ones with other settings.
        losses: what it is tried on: names of shipped losses, and those of the same file.
    """

    whole: Mechanism
    mechanism: Mechanism
    variants: tuple[Mechanism, ...] = ()
    losses: tuple[Any, ...] = LOSSES
    _plans: dict[Any, Plan | Unsupported] = field(default_factory=dict)

    @property
    def is_kernel(self) -> bool:
        """Whether it works on a kernel's minimiser."""
        return self.whole.space == KERNEL

    def problems(self, *, sets: bool = False) -> list[Any]:
        """Small problems, one for each loss; with ``sets`` on other sets too."""
        wanted = [(loss, SETS[0]) for loss in self.losses]
        if sets and not self.is_kernel:
            wanted += [(self.losses[0], body) for body in SETS[1:]]
        return [self.make_problem(loss, body) for loss, body in wanted]

    def make_problem(self, loss: Any = LOSSES[0], body: str = SETS[0], n: int = 24) -> Any:
        """A small problem of the kind that the mechanism is for."""
        strong = "strong_convexity" in self.whole.requires or self.is_kernel
        found = small_problem(loss, body, n=n, ridge=1.0 if strong else 0.0)
        return _on_kernel(found) if self.is_kernel else found

    def large_problem(self) -> Problem:
        """One with as many records as the mechanism needs to come near the optimum."""
        n = 60_000 if is_local(self.whole) else 6000 if self.whole.one_pass else 60
        found = (self.make_problem(loss, n=n) for loss in self.losses)
        budget = Budget(1.0, DELTA, self.whole.relations[0])
        known = (one for one in found if self._try_plan(one, budget, self.whole) is not None)
        return next(known, self.make_problem(n=n))

    def first_problem(self) -> Any:
        """The first of ``problems`` that it has a plan for."""
        return self.first_plan()[0]

    def first_plan(self) -> tuple[Any, Plan]:
        """The first problem with a plan; ``Broken`` where every one is refused."""
        found = self.first_plan_or_none()
        if found is None:
            raise Broken("it refuses every problem that was tried")
        return found

    def first_plan_or_none(self) -> tuple[Any, Plan] | None:
        """The same, or None."""
        return next(((one, plan) for one, plan, _ in self.plans((1.0,), (DELTA,))), None)

    def is_refused(self, relation: str) -> bool:
        """Whether every problem is refused under a relation."""
        budget = Budget(1.0, DELTA, relation)
        return all(self._try_plan(problem, budget) is None for problem in self.problems())

    def plans(
        self, levels: Sequence[float], deltas: Sequence[float], problems: Sequence[Any] = ()
    ) -> Iterator[tuple[Any, Plan, Budget]]:
        """Every plan of the problems under its relations; refusals are left out."""
        for problem in problems or self.problems():
            for relation in self.mechanism.relations:
                for budget in (Budget(e, d, relation) for e in levels for d in deltas):
                    plan = self._try_plan(problem, budget)
                    if plan is not None:
                        yield problem, plan, budget

    def plan(self, problem: Any, budget: Budget, mechanism: Mechanism | None = None) -> Plan | None:
        """A plan that is made now, or None where it is refused."""
        with contextlib.suppress(Unsupported):
            return (mechanism or self.mechanism).plan(problem.spec(), budget)
        return None

    def _try_plan(
        self, problem: Any, budget: Budget, mechanism: Mechanism | None = None
    ) -> Plan | None:
        key = (self.words(problem), problem.data.n, budget, mechanism)
        if key not in self._plans:
            made = self.plan(problem, budget, mechanism)
            self._plans[key] = Unsupported("") if made is None else made
        found = self._plans[key]
        return None if isinstance(found, Unsupported) else found

    def release(
        self,
        problem: Any,
        plan: Plan,
        trials: int = 2,
        *,
        seed: int = 0,
        relation: str | None = None,
        chosen: Sequence[int] | None = None,
        whole: bool = False,
    ) -> np.ndarray:
        """theta [trials, p] of a release through a gate that holds it to its plan.

        Args:
            problem: the problem.
            plan: its plan.
            trials: how many, where none are ``chosen``.
            seed: of the noise.
            relation: of the plan; that of its guarantee if not given.
            chosen: the numbers of the trials.
            whole: whether the mechanism as it comes releases, whose plan this then is.
        """
        numbers = range(trials) if chosen is None else chosen
        seeds = [seed_sequence(seed, "contract", trial) for trial in numbers]
        mechanism = self.whole if whole else self.mechanism
        gate = Gate(seeds, plan=(plan.events, relation or plan.guarantee.relation))
        out = mechanism.release(open_view(mechanism, problem), plan, gate)
        return np.asarray(out.theta, dtype=float)

    def words(self, problem: Any) -> str:
        """The problem in words."""
        loss = f"loss {problem.loss.name or type(problem.loss).__name__}"
        return loss if self.is_kernel else f"{loss} on {problem.constraint.name}"

    def outputs(self, problem: Any) -> int:
        """How many numbers a released row has."""
        return len(problem.queries) if self.is_kernel else int(problem.p)

    def contains(self, problem: Any, theta: np.ndarray) -> np.ndarray:
        """Whether each row lies in the set; predictions have none."""
        every = np.ones(len(theta), dtype=bool)
        return every if self.is_kernel else problem.constraint.contains(theta, 1e-7)

    def other_records(self, problem: Any, seed: int) -> Any:
        """The same public facts with all records replaced."""
        rng = np.random.default_rng(100 + seed)
        data = problem.data
        x = rng.standard_normal(data.x.shape)
        x *= data.row_bound / np.linalg.norm(x, axis=1, keepdims=True)
        name = f"{data.fingerprint} other {seed}"
        other = data.with_records(x, rng.permutation(data.y), fingerprint=name)
        return replace(problem, data=other)

    def strange_records(self, problem: Any) -> dict[str, Any]:
        """Problems of the same facts with records that are strange, by words for them."""
        data, row = problem.data, np.eye(problem.data.p)[0] * problem.data.row_bound
        kinds = {
            "rows of zeros": np.zeros_like(data.x),
            "equal rows": np.tile(row, (data.n, 1)),
            "opposite rows": np.outer(np.resize([1.0, -1.0], data.n), row),
            "tiny rows": np.full_like(data.x, 1e-300),
        }
        return {
            words: replace(problem, data=data.with_records(x, data.y, fingerprint=words))
            for words, x in kinds.items()
        }

    def strange_facts(self) -> Iterator[tuple[Any, Budget]]:
        """Public facts and budgets that a mechanism may refuse."""
        problems = self.problems(sets=True)
        for problem in problems:
            for relation in self.mechanism.relations:
                for delta in (0.0, DELTA):
                    yield problem.spec(), Budget(1.0, delta, relation)
        one = self.make_problem(n=1)
        budget = Budget(1.0, DELTA, self.mechanism.relations[0])
        yield one.spec(), budget
        yield self.make_problem().spec(), replace(budget, epsilon=1e-3)
        if not self.is_kernel:
            yield replace(problems[0], ridge=0.5).spec(), budget
            yield replace(problems[0], lasso=0.1).spec(), budget


def make_subject(cls: type[Mechanism], others: Sequence[Any] = ()) -> Subject:
    """The mechanism to be checked, from its class.

    Args:
        cls: its class.
        others: losses of the same file, on which it is tried too.
    """
    examples = make_examples(cls)
    quick = tuple(make_quick(one) for one in examples)
    variants = tuple(dict.fromkeys(one for one in quick[1:] if one != quick[0]))
    losses = declared_grid.KERNEL_LOSSES if examples[0].space == KERNEL else LOSSES
    return Subject(examples[0], quick[0], variants, (*losses, *others))


def make_quick(mechanism: Mechanism) -> Mechanism:
    """The mechanism with few steps or batches, its own or the inner one's, and quick samplers."""
    if mechanism.space == KERNEL:
        return mechanism
    found = shorten_steps(mechanism, STEPS)
    names = fields_of(type(found))
    if "batches" in names:
        return replace(found, batches=4)  # type: ignore[call-arg]
    if found.sampler is not None and "sampler" in names:
        soon = registry.load("sampler", "auto")(most_seconds=_SAMPLER_SECONDS)
        return replace(found, sampler=soon)  # type: ignore[call-arg]
    return found


def _on_kernel(problem: Problem) -> KernelProblem:
    """The records under the Gaussian kernel, with public queries."""
    queries = np.random.default_rng(9).standard_normal((_QUERIES, problem.data.p))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    kernel = registry.load("kernel", "rbf")()
    return KernelProblem(problem.data, problem.loss, kernel, 0.5, queries)
