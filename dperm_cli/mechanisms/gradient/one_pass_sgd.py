"""Private SGD in one pass over disjoint batches [BST14, Note after Thm 2.4; SCS13; DJW13]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.bounds import one_pass
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Count, Help
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import EitherNoise, LearningRate, Output, Plan, Release
from dperm_cli.mechanisms.shared.noise_law import noise_moment
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import DisjointBatches
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView

RATES = ("auto", "convex", "strongly_convex")


@dataclass(frozen=True)
class OnePassSgd(EitherNoise):
    """theta <- Project(theta - eta(t) [mean gradient of batch t + noise / m]), each record once.

    Algorithm: SGD over k disjoint batches of m = n / k records, the earlier method that [BST14]
    compares Thm 2.4 with. Guarantee: pure epsilon (Gamma-norm noise) or (epsilon, delta) (Gaussian)
    for ONE release of sensitivity S, whatever k is: a neighbour moves all batch sums together
    by S = G <= 2 L (replace_one, batches by place) or L (add_remove, batches by the name of the
    record); trust: central. ``noise_scale`` is that of the noise on the SUM over one batch. Shapes:
    theta [trials, p]. Cost: one pass, n p a trial. Unsupported: Gaussian noise at delta = 0;
    ``learning_rate=strongly_convex`` without a ridge.

    ``batches=auto`` and ``learning_rate=auto`` minimise the bound on the POPULATION risk of
    independent records (docs/proofs/one_pass_sgd.md); on the empirical risk none is claimed.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> OnePassSgd().plan(spec, Budget(1.0, 0.0)).settings["batches"]
    91
    """

    batches: Annotated[Count | Auto, Help("auto = least population risk in theory")] = "auto"
    learning_rate: LearningRate = "auto"
    output: Output = "average"

    one_pass: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[DisjointBatches]:
        """One pass over batches that suit the noise."""
        noise = "gamma_norm" if self.is_gamma(spec, budget) else "gaussian"
        batches = self.batches
        if batches == "auto":
            batches = best_batches(spec, noise_moment(spec.p, scale, noise == "gamma_norm"))
        if batches > spec.n:
            raise Unsupported(f"{batches} batches of {spec.n} records: some would be empty")
        partition = "content" if budget.relation == "add_remove" else "place"
        event = DisjointBatches(
            scale, spec.lipschitz, int(batches), noise, gap=spec.gradient_gap, partition=partition
        )
        return (event,)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One pass, all trials at once: they see the same batches."""
        spec, facts = view.spec, plan.settings
        batches, by_content = facts["batches"], facts["partition"] == "content"
        parts = view.parts(batches, by_content=by_content)
        noise = gate.stream(plan.events[0], spec.p, parts=parts)
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        total = np.zeros_like(theta)
        for step, part in enumerate(parts):
            # under add_remove the true size of a batch is private
            size = spec.n / batches if by_content else len(part)
            total += theta
            noisy = noise.release(lambda batch, at=theta: view.batch_gradient(at, batch), step)
            noisy = noisy / size + spec.regulariser.subgradient(theta)
            theta = spec.constraint.project(theta - _eta(facts, step + 1) * noisy)
            progress.report("one_pass_sgd", step + 1, batches)
        return Release(total / batches if facts["output"] == "average" else theta)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """D G / sqrt(k), the bound of its learning rate: it is for what has no other mechanism."""
        facts = plan.settings
        return spec.constraint.diameter * facts["gradient_bound"] / math.sqrt(facts["batches"])

    def adversary(self, budget: Budget) -> Adversary:
        """One record in one batch and a ridge: theta is minus its noisy gradient."""
        chosen = replace(
            self.fix_noise(budget), batches=1, learning_rate="strongly_convex", output="last"
        )
        first, second = linear_pair(budget.relation, ridge=1.0)
        if chosen.noise == "gamma":
            return Adversary(first, second, chosen, kind="threshold", floor=0.85)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)

    def settings(
        self, spec: ProblemSpec, events: tuple[DisjointBatches], budget: Budget
    ) -> dict[str, Any]:
        """Batches and learning rate."""
        event = events[0]
        moment = noise_moment(spec.p, event.scale, event.noise == "gamma_norm")
        by_content = event.partition == "content"
        bound = gradient_bound(spec, event.batches, moment, by_content)
        rate, curved = self.learning_rate, spec.strong_convexity > 0
        if rate == "strongly_convex" and not curved:
            raise Unsupported("the strongly convex learning rate needs ridge > 0")
        if rate == "auto":
            values = {
                known: population_bound(spec, event.batches, bound, known)
                for known in RATES[1:]
                if curved or known == "convex"
            }
            rate = min(values, key=lambda known: values[known])
        diameter = spec.constraint.diameter
        flat = diameter / (bound * math.sqrt(event.batches))
        return {
            "noise": "gamma" if event.noise == "gamma_norm" else "gaussian",
            "batches": event.batches,
            "partition": event.partition,
            "learning_rate": rate,
            "eta0": flat if rate == "convex" else 1.0 / spec.strong_convexity,
            "gradient_bound": bound,
            "output": self.output,
        }


def best_batches(spec: ProblemSpec, moment: float) -> int:
    """k = n / m near m = sqrt(E |b|^2) / L: there (m / n) (L^2 + E |b|^2 / m^2) is least."""
    size = math.sqrt(moment) / spec.lipschitz_total if spec.lipschitz_total > 0 else 1.0
    return int(min(max(round(spec.n / size), 1), spec.n))


def gradient_bound(spec: ProblemSpec, batches: int, moment: float, by_content: bool) -> float:
    """G with E |g_t|^2 <= G^2, g_t the noisy mean gradient of one batch of independent records.

    L^2 + E |b|^2 / m^2, m the size of the smallest batch; under add_remove m = n / k, and the
    number of records in a batch spreads: 1 + 1 / m times L^2.
    """
    size = spec.n / batches if by_content else spec.n // batches
    spread = 1.0 + 1.0 / size if by_content else 1.0
    return math.sqrt(spread * spec.lipschitz_total**2 + moment / size**2)


def population_bound(spec: ProblemSpec, batches: int, bound: float, rate: str) -> float:
    """E F(mean of theta_1 .. theta_k) - min F, F one record's expected loss.

    D G / sqrt(k) with the constant step D / (G sqrt(k)); G^2 (1 + ln k) / (2 Delta k) with 1 /
    (Delta t).
    """
    if rate == "convex":
        return one_pass.convex(spec.constraint.diameter, bound, batches)
    return one_pass.strongly_convex(spec.strong_convexity, bound, batches)


def _eta(facts: Any, step: int) -> float:
    return facts["eta0"] / (step if facts["learning_rate"] == "strongly_convex" else 1.0)
