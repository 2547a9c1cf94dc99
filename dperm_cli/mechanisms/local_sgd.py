"""Stochastic gradient descent from the answers of users' devices [DJW12, Sec. 3]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.loops import local, sgd
from dperm_cli.loops.local import Learner
from dperm_cli.mechanisms import _local
from dperm_cli.mechanisms._adversary import Adversary, linear_pair
from dperm_cli.mechanisms._local import Way
from dperm_cli.mechanisms._local_view import LocalView
from dperm_cli.mechanisms._protocol import Plan, Release
from dperm_cli.privacy import channels
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Channel
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.problem import ProblemSpec


@dataclass(frozen=True)
class LocalSgd:
    """theta <- Project(theta - eta (z + the regulariser's gradient)), z a user's answer.

    Algorithm: [DJW12, Sec. 3 and Cor. 2]: user i takes a subgradient of his own loss at theta, of
    norm at most L in the channel's norm, and sends an answer z of mean that subgradient; each user
    answers ``answers`` times. Guarantee: local, under replace_one; a user's answers are
    epsilon-locally private together and tell at most I* nats about the record; trust: local
    (nobody but the user sees a record). ``noise_scale`` is the norm M L of an answer, in the
    channel's norm and the unit of one record's gradient. Shapes: theta [trials, p]. Cost: one pass
    over the records for each answer, n p a trial, memory p. Unsupported: add_remove; an
    ``information`` that no channel reaches.

    ``channel``: l_1 (as the paper pairs it), l_inf or l_2. ``row_norm`` shortens rows to that norm
    (the channel's), so that L is smaller; auto = the declared bound. ``step_size=auto``: R / (G
    sqrt T), G^2 = E |z|_2^2, which is proved for answers=1 (docs/proofs/local_sgd.md).
    """

    channel: str = "l_1"
    answers: int = 1
    row_norm: Any = "auto"
    step_size: Any = "auto"
    step_rule: str = "constant"
    output: str = "average"

    guarantees: ClassVar[tuple[str, ...]] = ("local",)
    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    secure: ClassVar[bool] = True
    trust: ClassVar[str] = "local"
    one_pass: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.choice("mechanism.channel", self.channel, _local.SHAPES)
        answers = checks.integer("mechanism.answers", self.answers, low=1, high=10**6)
        object.__setattr__(self, "answers", answers)
        checks.auto_or(checks.positive, "mechanism.row_norm", self.row_norm)
        checks.auto_or(checks.positive, "mechanism.step_size", self.step_size)
        checks.choice("mechanism.step_rule", self.step_rule, _local.RULES)
        checks.choice("mechanism.output", self.output, _local.OUTPUTS)

    def plan(self, spec: ProblemSpec, budget: Budget) -> Plan:
        """Channel and step size, from public facts alone."""
        event = _local.event_for(self.channel, spec, self.answers, budget)
        channel = _local.channel_of(event)
        bound = _local.bound_of(self.channel, spec, self.row_norm)
        steps = spec.n * self.answers
        length = gradient_norm(spec, bound * math.sqrt(channel.second_moment))
        reach = _local.distance_from_centre(spec)
        step = reach / (length * math.sqrt(steps)) if self.step_rule == "constant" else (
            reach / length
        )  # fmt: skip
        settings = {
            **_local.settings_of(channel, event, bound, spec),
            "map": "euclid",
            "size": spec.constraint.size,
            "step_rule": self.step_rule,
            "step": step if self.step_size == "auto" else float(self.step_size),
            "gradient_norm": length,
            "output": self.output,
        }
        guarantee = _local.guarantee_of(event, budget)
        return Plan((event,), guarantee, bound * channel.multiplier, steps, settings)

    def events(self, spec: ProblemSpec, scale: float) -> tuple[Channel]:
        """The channel whose answers have this norm."""
        bound = _local.bound_of(self.channel, spec, self.row_norm)
        found = channels.by_multiplier(self.channel, spec.p, scale / bound)
        return (Channel(found.epsilon, self.answers, self.channel, spec.p),)

    def release(self, view: LocalView, plan: Plan, gate: Gate) -> Release:
        """Ask every user."""
        event = plan.events[0]
        assert isinstance(event, Channel)
        way = _way(view.spec, plan.settings)
        args = (view, gate, event, way, plan.settings, self.row_norm)
        return Release(_local.descend("local_sgd", *args))

    def adversary(self, budget: Budget) -> Adversary:
        """One user on a line: the only step is minus his answer, whose sign is a private bit."""
        chosen = replace(self, answers=1, step_size=1.0, step_rule="constant", output="last")
        first, second = linear_pair(budget.relation)
        return _local.signed(first, second, chosen, budget)


def gradient_norm(spec: ProblemSpec, answer: float) -> float:
    """G with E |z + r'(theta)|_2^2 <= G^2, from the root mean square of an answer."""
    extra = spec.regulariser.lipschitz(spec.constraint.radius, spec.p)
    return answer + extra


def _way(spec: ProblemSpec, facts: Any) -> Way:
    constraint = spec.constraint
    kind = sgd.CONSTANT if facts["step_rule"] == "constant" else sgd.INV_SQRT
    if constraint.code is not None:
        return _local.by_learner(
            Learner(
                local.EUCLID, int(constraint.code), float(constraint.size), kind, facts["step"],
                float(spec.ridge), float(spec.lasso), 2.0, False,
            )
        )  # fmt: skip

    def move(step: int, theta: np.ndarray, state: np.ndarray, z: np.ndarray):
        eta = sgd.learning_rate(kind, facts["step"], step + 1)
        return constraint.project(theta - eta * (z + spec.regulariser.subgradient(theta))), state

    return Way(None, move)
