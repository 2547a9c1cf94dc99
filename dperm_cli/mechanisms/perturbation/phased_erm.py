"""Minimisation in phases over disjoint records, each near the noisy point before [FKT20]."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.bounds.fkt20 import PhaseFacts
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Count, Help, Positive
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import EitherNoise, Plan, Release
from dperm_cli.mechanisms.shared.noise_law import noise_moment
from dperm_cli.mechanisms.shared.noisy_minimiser import INFLATION
from dperm_cli.mechanisms.shared.user_answers import distance_from_centre
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import DisjointBatches
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.solvers import perturbed_minimiser
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class Phase:
    """One phase: how many records, the step, and how well its minimiser is found.

    ``modulus`` is the strong convexity of what is minimised, ``distance`` how far the point that
    is found may be from the minimiser.
    """

    size: int
    step: float
    modulus: float
    distance: float


@dataclass(frozen=True)
class PhasedErm(EitherNoise):
    """theta_i = Project(argmin of the sum over part i + |x - theta_(i-1)|^2 / (2 eta_i) + noise).

    Algorithm: [FKT20, phased ERM]: part i has half of the records that are left, eta_i = eta / 4^i,
    theta_0 is the centre of the set and the last theta is released. Guarantee: pure epsilon
    (Gamma-norm noise) or (epsilon, delta) (Gaussian) for ONE release of sensitivity G, whatever the
    number of phases is: a record is in one part, and moves the minimiser of its phase by G eta_i at
    most (G <= 2 L); only replace_one, parts by place; trust: central. ``noise_scale`` is that of
    the noise on a minimiser over its eta_i, in the unit of the SUM of gradients. Shapes: theta
    [trials, p]. Cost: a minimisation for each phase and trial, over n records in all. Unsupported:
    add_remove; losses with kinks; sets so large that no minimiser is found well enough.

    ``phases=auto`` and ``eta=auto`` minimise the bound on the POPULATION risk of independent
    records (docs/proofs/phased_erm.md); on the empirical risk none is claimed.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> PhasedErm().plan(spec, Budget(1.0, 1e-6)).settings["sizes"]
    [500, 250, 125, 125]
    """

    phases: Annotated[Count | Auto, Help("auto = least population risk in theory")] = "auto"
    eta: Annotated[Positive | Auto, Help("four times the first step; auto = the same")] = "auto"

    requires: ClassVar[tuple[str, ...]] = ("smooth",)
    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    one_pass: ClassVar[bool] = True

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[DisjointBatches]:
        """One release for all phases, as many as suit the noise."""
        gamma = self.is_gamma(spec, budget)
        sizes, _ = self.choose_phases(spec, noise_moment(spec.p, scale, gamma))
        event = DisjointBatches(
            scale,
            (1.0 + INFLATION) * spec.lipschitz,
            len(sizes),
            "gamma_norm" if gamma else "gaussian",
            gap=(1.0 + INFLATION) * spec.gradient_gap,
        )
        return (event,)

    def choose_phases(self, spec: ProblemSpec, moment: float) -> tuple[list[int], float]:
        """The sizes of the phases and the step ``eta``, from public facts alone.

        Args:
            spec: the public facts of the problem.
            moment: E |b|^2 of the noise on a sum of gradients.

        Raises:
            Unsupported: more phases than records allow, or none whose minimiser is found well.
        """
        if spec.smoothness is None:
            raise Unsupported(
                f"{spec.loss} has kinks: no minimiser of a phase is certain to be found as near as "
                "the noise is made for; use mechanism=one_pass_sgd, or a loss without kinks"
            )
        most = max(1, int(math.log2(spec.n)))
        if self.phases != "auto" and int(self.phases) > most:
            raise Unsupported(
                f"mechanism.phases={self.phases} with {spec.n} records: at most {most}, as each "
                "phase takes half of the records that are left"
            )
        facts = _collect_facts(spec, moment)
        found = []
        for count in range(1, most + 1) if self.phases == "auto" else [int(self.phases)]:
            sizes = [len(part) for part in split_records(spec.n, count)]
            eta = facts.find_best_step(sizes) if self.eta == "auto" else float(self.eta)
            if _are_found(spec, sizes, eta):
                found.append((facts.add_up(eta, sizes), sizes, eta))
        if not found:
            raise Unsupported(
                "no minimiser of a phase is certain to be found as near as the noise is made for; "
                "take a smaller set (constraint.radius) or mechanism=noisy_gd"
            )
        _, sizes, eta = min(found)
        return sizes, eta

    def settings(
        self, spec: ProblemSpec, events: tuple[DisjointBatches], budget: Budget
    ) -> dict[str, Any]:
        """The phases, and what the bound on the risk is made of."""
        event = events[0]
        gamma = event.noise == "gamma_norm"
        moment = noise_moment(spec.p, event.scale, gamma)
        sizes, eta = self.choose_phases(spec, moment)
        return {
            "noise": "gamma" if gamma else "gaussian",
            "phases": len(sizes),
            "sizes": sizes,
            "eta": eta,
            "inflation": INFLATION,
            "facts": asdict(_collect_facts(spec, moment)),
        }

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Phase after phase, all trials at once: they see the same parts."""
        spec, facts = view.spec, plan.settings
        parts = split_records(spec.n, facts["phases"])
        noise = gate.stream(plan.events[0], spec.p, parts=parts)
        theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
        for step, phase in enumerate(list_phases(spec, facts["sizes"], facts["eta"])):

            def find(
                part: np.ndarray, phase: Phase = phase, before: np.ndarray = theta
            ) -> np.ndarray:
                weight = 1.0 / phase.step
                points = view.restrict(part).find_perturbed_minimisers(
                    -weight * before, weight, phase.distance
                )
                return phase.modulus * points

            theta = spec.constraint.project(noise.release(find, step) / phase.modulus)
            progress.report("phased_erm", step + 1, facts["phases"])
        return Release(theta)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """The bound on the population risk: it is for what has no other mechanism."""
        facts = plan.settings
        return PhaseFacts(**facts["facts"]).add_up(facts["eta"], facts["sizes"])

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss in one phase: theta is minus its gradient, and noise."""
        first, _ = linear_pair(budget.relation, radius=10.0)
        chosen = replace(self.fix_noise(budget), phases=1, eta=4.0)
        scale = chosen.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, radius=2.0 + 10.0 * scale)
        if chosen.noise == "gamma":
            return Adversary(first, second, chosen, kind="threshold", floor=0.85)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)


def split_records(n: int, phases: int) -> list[np.ndarray]:
    """The record numbers of each phase: every second one of what is left; the last has the rest.

    This depends on n alone, which is public.
    """
    parts, rest = [], np.arange(n)
    for _ in range(phases - 1):
        parts.append(rest[1::2])
        rest = rest[::2]
    return [*parts, rest]


def list_phases(spec: ProblemSpec, sizes: list[int], eta: float) -> list[Phase]:
    """The phases of a plan, from public facts alone."""
    found = []
    for number, size in enumerate(sizes, start=1):
        step = eta / 4.0**number
        modulus = 1.0 / step + size * spec.strong_convexity
        wanted = 0.5 * INFLATION * min(spec.lipschitz, spec.gradient_gap) / modulus
        part = replace(spec, n=size)
        tilt = spec.constraint.radius / step
        distance = perturbed_minimiser.provable_distance(part, modulus, tilt, wanted)
        found.append(Phase(size, step, modulus, distance))
    return found


def _are_found(spec: ProblemSpec, sizes: list[int], eta: float) -> bool:
    """Whether minimisers are found so near that the sensitivity grows by ``INFLATION`` only."""
    moves = INFLATION * min(spec.lipschitz, spec.gradient_gap) * (1.0 + 1e-12)
    try:
        phases = list_phases(spec, sizes, eta)
    except Unsupported:
        return False
    return all(2.0 * phase.modulus * phase.distance <= moves for phase in phases)


def _collect_facts(spec: ProblemSpec, moment: float) -> PhaseFacts:
    """What the bound on the population risk depends on."""
    return PhaseFacts(
        reach=distance_from_centre(spec),
        lipschitz=spec.lipschitz_total,
        move=spec.gradient_gap,
        noise=math.sqrt(moment),
        error=0.5 * INFLATION * spec.gradient_gap,
    )
