"""The test data dependent learner, TDDL [JT13, Alg. 2]: it learns from noisy predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Allowed, Auto, Choices, Help, Positive, Range
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.adversary import FAR_RADIUS, Adversary, kernel_pair
from dperm_cli.mechanisms.base import Design, Plan, Release, find_scale
from dperm_cli.mechanisms.shared import kernel_queries, norm_bound, sparse_answers
from dperm_cli.mechanisms.shared.kernel_queries import KernelMechanism, StabilityBounds
from dperm_cli.mechanisms.shared.sparse_answers import RunParameters
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.kernel import KernelView

_LITTLE = 0.1  # the norm's share where the predictions are attacked
_ROUNDS = 3  # rounds that give the answers the budget that basic composition leaves


@dataclass(frozen=True)
class KernelSemiInteractive(KernelMechanism):
    """w nearest to noisy predictions on T public points, in the span of these and in a ball.

    Algorithm: [JT13, Alg. 2]. ``perturbation=laplace``: T coordinates with Laplace noise nu, each
    moving by s = 2 L R^2 / (lambda n); ``calibration=paper`` is nu = s sqrt(8 T ln(1 / delta)) /
    epsilon, valid for epsilon <= 1, and auto the least nu by the composition of T Laplace steps.
    ``gaussian``: all of them move by 2 L R / (lambda n) |K_ZZ|_2^(1/2) in L2. ``interactive``: the
    answers of kernel_interactive in place of noisy predictions [JT13, Sec. 6.1]. Guarantee: pure
    epsilon (Laplace, interactive) or (epsilon, delta) under replace_one; trust: central.
    ``noise_scale`` is nu, the standard deviation, or 1 / eps_0, in the unit of a prediction.
    Shapes: theta [trials, dim]. Cost: one minimisation, an eigendecomposition of K_ZZ.
    Unsupported: Gaussian noise at delta = 0; calibration=paper at delta = 0 or epsilon > 1.

    ``queries=auto`` takes T = C n epsilon lambda / (L R sqrt(ln(1 / delta))) [JT13, Thm 5], the
    constant taken as one, and at most the public points there are. ``radius`` is that of the ball:
    auto the problem's own bound on |w*|, paper 2 L R / lambda [JT13, Cor. 6]. ``norm_share`` of
    epsilon releases |w*| [JT13, Sec. 5], and the ball is that of the estimate where it is smaller.

    >>> from dperm_cli.mechanisms.adversary import kernel_pair
    >>> spec = kernel_pair()[0].spec()  # one record, one public query
    >>> plan = KernelSemiInteractive().plan(spec, Budget(1.0, 0.0))
    >>> round(plan.noise_scale, 2)
    1.0
    """

    added_keys: ClassVar[dict[str, Any]] = {"norm_share": 0.0}  # keys that came after the others

    perturbation: Annotated[
        str,
        Choices("laplace", "gaussian", "interactive"),
        Help("interactive: the answers of kernel_interactive"),
    ] = "laplace"
    calibration: Annotated[
        str,
        Choices("auto", "paper"),
        Help("auto = least noise; paper = s sqrt(8 T ln(1/delta)) / epsilon"),
    ] = "auto"
    queries: Annotated[
        int | Auto, Range(1, 20_000), Help("T; auto = C n epsilon lambda / (L R sqrt(ln(1/delta)))")
    ] = "auto"
    norm_share: Annotated[
        float, Range(0, below=1), Help("share of epsilon that estimates |w*|; 0 = its public bound")
    ] = 0.0
    radius: Annotated[
        Positive | Literal["auto", "paper"],
        Allowed("must be a finite number > 0, auto or paper"),
        Help("auto = the bound on |w*|, paper = 2 L R / lambda"),
    ] = "auto"

    def check(self, spec: KernelSpec, budget: Budget) -> None:
        """A kernel, queries, and what the perturbation needs."""
        kernel_queries.check_kernel_problem(spec, budget)
        self._admit(budget)

    def design(self, spec: KernelSpec, budget: Budget) -> Design:
        """T, the sensitivity and the noise, from public facts alone."""
        count, moves = self.points(spec, budget), kernel_queries.bound_moves(spec)
        settings: dict[str, Any] = {
            "perturbation": self.perturbation,
            "calibration": self.calibration,
            "queries": count,
            "radius": self.ball(spec),
            "distance": moves.distance,
        }
        norm = self._norm(moves, budget)
        if norm:
            settings |= {"norm_share": self.norm_share, "norm_scale": norm[0].scale}
        if self.perturbation == "interactive":
            run = self._choose_run(spec, moves, count, budget)
            events: tuple[Event, ...] = (run.event(moves, count), *norm)
            scale = run.scale
            settings |= {"updates": run.updates, "step": run.step}
        else:
            scale = self._scale(spec, moves, count, budget)
            events = (self._event(spec, moves, count, scale), *norm)
        return Design(events, scale, count, settings)

    def events(self, spec: KernelSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """The release at another noise scale, on as many points as there are."""
        moves = kernel_queries.bound_moves(spec)
        count = spec.count if self.queries == "auto" else min(int(self.queries), spec.count)
        norm: tuple[Laplace, ...] = ()
        if self.norm_share:  # that share of what T Laplace releases and the norm's cost together
            odds = self.norm_share / (1.0 - self.norm_share)
            norm = (norm_bound.event(moves, odds * count * moves.value / scale),)
        if self.perturbation != "interactive":
            return (self._event(spec, moves, count, scale), *norm)
        run = sparse_answers.run_at_scale(spec, scale, count, self.failure)
        return (run.event(moves, count), *norm)

    def release(self, view: KernelView, plan: Plan, gate: Gate) -> Release:
        """Noisy predictions on Z, and what is nearest to them in the ball."""
        spec, count, radius = view.spec, plan.settings["queries"], plan.settings["radius"]
        moves, info = kernel_queries.bound_moves(spec), {}
        found = view.find_minimiser(moves.distance)
        noisy = self._noisy(spec, found.values(spec.queries[:count]), plan, gate)
        if self.norm_share:
            norm = cast(Laplace, plan.events[1])
            radius = norm_bound.estimate(found, moves, norm, radius, gate)
            info = {"settings": {"norm_estimate": radius}}
        alpha = kernel_queries.fit_in_ball(spec.gram[:count, :count], noisy, radius)
        return Release(alpha @ spec.rows[:count], info)

    def adversary(self, budget: Budget) -> Adversary:
        """One record on a line, whose predictions at one public point are s apart.

        The norms of the two minimisers are equal: little is left to what does not tell them apart.
        Gaussian noise is shown whole, in a ball whose boundary is never met.
        """
        attacked = replace(self, norm_share=min(self.norm_share, _LITTLE))
        if self.perturbation != "gaussian":
            return Adversary(*kernel_pair(), attacked)
        attacked = replace(attacked, radius=FAR_RADIUS)
        return Adversary(*kernel_pair(), attacked, kind="gaussian", floor=0.75)

    def points(self, spec: KernelSpec, budget: Budget) -> int:
        """T [JT13, Thm 5] or as given, at most the public points."""
        if self.queries != "auto":
            if int(self.queries) > spec.count:
                raise Unsupported(
                    f"{self.queries} queries of {spec.count} public points: raise kernel.queries"
                )
            return int(self.queries)
        logs = math.sqrt(math.log(1.0 / budget.delta)) if budget.delta > 0.0 else 1.0
        found = spec.radius * spec.n * budget.epsilon * spec.ridge
        found /= spec.lipschitz * spec.bound * max(logs, 1.0)
        return max(1, min(spec.count, math.floor(min(found, 1e9))))

    def ball(self, spec: KernelSpec) -> float:
        """The radius of the convex set."""
        if self.radius == "paper":
            return 2.0 * spec.lipschitz * spec.bound / spec.ridge
        return spec.radius if self.radius == "auto" else float(self.radius)

    def _admit(self, budget: Budget) -> None:
        if self.perturbation == "gaussian" and budget.delta == 0.0:
            raise Unsupported("Gaussian noise needs delta > 0; use mechanism.perturbation=laplace")
        if self.calibration != "paper":
            return
        sparse_answers.require_delta(budget)
        if self.perturbation == "gaussian":
            raise Unsupported("the paper has no Gaussian noise: use mechanism.calibration=auto")
        if self.perturbation == "laplace" and budget.epsilon > 1.0:
            raise Unsupported(
                "nu = s sqrt(8 T ln(1/delta)) / epsilon is private up to epsilon = 1; use "
                "mechanism.calibration=auto"
            )

    def _norm(self, moves: StabilityBounds, budget: Budget) -> tuple[Laplace, ...]:
        """The release of the norm, where there is one."""
        if not self.norm_share:
            return ()
        return (norm_bound.event(moves, self.norm_share * budget.epsilon),)

    def _remaining_budget(self, budget: Budget) -> Budget:
        """What basic composition leaves beside the norm."""
        return replace(budget, epsilon=(1.0 - self.norm_share) * budget.epsilon)

    def _choose_run(
        self, spec: KernelSpec, moves: StabilityBounds, count: int, budget: Budget
    ) -> RunParameters:
        left, norm = self._remaining_budget(budget), self._norm(moves, budget)
        if self.calibration == "paper":
            return sparse_answers.make_paper_run(spec, count, left, self.failure)
        wide = sparse_answers.threshold_ratio(count, self.failure)
        if not norm:
            return sparse_answers.find_sufficient_run(spec, moves, count, budget, wide)

        def at(epsilon: float) -> tuple[RunParameters, float]:
            design = sparse_answers.find_sufficient_run(
                spec, moves, count, replace(budget, epsilon=epsilon), wide
            )
            events = (design.event(moves, count), *norm)
            spent = account(events, delta=budget.delta, relation=budget.relation)
            return design, spent.epsilon

        return _largest(at, left.epsilon, budget.epsilon)

    def _scale(self, spec: KernelSpec, moves: StabilityBounds, count: int, budget: Budget) -> float:
        norm = self._norm(moves, budget)
        if self.calibration == "paper":
            return explicit_scale(moves.value, count, self._remaining_budget(budget))
        if not norm and self.perturbation == "gaussian":
            return calibrate.gaussian_scale(
                budget.epsilon, budget.delta, self._reach(spec, moves, count)
            )
        if not norm and budget.delta == 0.0:
            return calibrate.pure_scale(budget.epsilon / count, moves.value)
        unit: Any = self._event(spec, moves, count, 1.0)
        return find_scale(lambda scale: (replace(unit, scale=scale), *norm), budget)

    def _event(self, spec: KernelSpec, moves: StabilityBounds, count: int, scale: float) -> Event:
        if self.perturbation == "gaussian":
            reach = self._reach(spec, moves, count)
            return Gaussian(scale, reach / 2.0, relation=kernel_queries.PROVED_RELATION)
        return kernel_queries.make_laplace(scale, moves.value, count)

    def _reach(self, spec: KernelSpec, moves: StabilityBounds, count: int) -> float:
        """How far the vector of predictions moves in L2: |K_ZZ|_2^(1/2) times the weight."""
        gram = spec.gram[:count, :count]
        top = float(np.linalg.eigvalsh(0.5 * (gram + gram.T))[-1])
        return moves.weight * math.sqrt(max(top, 0.0) + 1e-12 * count * spec.bound**2)

    def _noisy(self, spec: KernelSpec, values: np.ndarray, plan: Plan, gate: Gate) -> np.ndarray:
        """Noisy predictions, or answers, [trials, T]."""
        event = plan.events[0]
        if self.perturbation == "interactive":
            stream = gate.stream(event, 1)
            return sparse_answers.answer_queries(stream, plan.settings["step"], values, spec.gram)[
                0
            ]
        if self.perturbation == "gaussian":
            noise = gate.stream(event, len(values))
            return noise.add(np.tile(values, (gate.trials, 1)), 0)
        noise = gate.stream(event, 1)
        # each coordinate is a step of its own, and moves by the sensitivity
        parts = [noise.add(np.full((gate.trials, 1), v), t) for t, v in enumerate(values)]
        return np.concatenate(parts, axis=1)


def _largest(
    at: Callable[[float], tuple[RunParameters, float]], start: float, most: float
) -> RunParameters:
    """The design of nearly the largest epsilon that with the norm's release spends ``most``."""
    best, spent = at(start)
    while spent > most:  # by a rounding of the accountant's, if at all
        start *= 0.99
        best, spent = at(start)
    for _ in range(_ROUNDS):
        start += 0.9 * (most - spent)
        found, more = at(start)
        if more > most:
            break
        best, spent = found, more
    return best


def explicit_scale(sensitivity: float, count: int, budget: Budget) -> float:
    """s sqrt(8 T ln(1 / delta)) / epsilon: (epsilon, delta)-DP for epsilon <= 1, every T and s.

    One step costs e = s / nu. By strong composition T of them cost sqrt(2 T ln(1 / delta)) e +
    T e (e^e - 1), which is epsilon / 2 and at most as much again (docs/proofs).
    """
    return sensitivity * math.sqrt(8.0 * count * math.log(1.0 / budget.delta)) / budget.epsilon
