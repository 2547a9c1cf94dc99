"""Stochastic gradient descent from the answers of users' devices [DJW12, Sec. 3]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import local_learning, sgd
from dperm_cli.loops.local_learning import Learner
from dperm_cli.mechanisms.shared import user_answers
from dperm_cli.mechanisms.shared.user_answers import (
    ChannelRequest,
    LocalChannel,
    LocalDescent,
    UpdateRule,
)
from dperm_cli.problem.problem import ProblemSpec


@dataclass(frozen=True)
class LocalSgd(LocalDescent):
    """theta <- Project(theta - eta (z + the regulariser's gradient)), z a user's answer.

    Algorithm: [DJW12, Sec. 3 and Cor. 2]: user i takes a subgradient of his own loss at theta, of
    norm at most L in the channel's norm, and sends an answer z of mean that subgradient; each user
    answers ``answers`` times. Guarantee: local, under replace_one; a user's answers are
    epsilon-locally private together and tell at most I* nats about the record; trust: local
    (nobody but the user sees a record). ``noise_scale`` is the norm M L of an answer, in the
    channel's norm and the unit of one record's gradient. Shapes: theta [trials, p]. Cost: one pass
    over the records for each answer, n p a trial, memory p. Unsupported: add_remove; an
    ``information`` that no channel reaches.

    ``channel``: l_1 (as the paper pairs it), l_inf, l_2, privunit or privunit_g. ``row_norm``
    shortens rows to that norm (the channel's), so that L is smaller; auto = the declared bound.
    ``step_size=auto``: R / (G sqrt T), G^2 = E |z|_2^2, which is proved for answers=1
    (docs/proofs/local_sgd.md).

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> from dperm_cli.privacy.budget import Budget
    >>> LocalSgd().plan(bare_spec(1000, 1.0, make_ball(1.0, 5)), Budget(2.0, 0.0)).guarantee.kind
    'local'
    """

    channel: LocalChannel = "l_1"

    def choose_step(self, spec: ProblemSpec, asked: ChannelRequest) -> tuple[float, dict[str, Any]]:
        """R / (G sqrt T), or R / G where steps decrease."""
        length = gradient_norm(spec, asked.bound * math.sqrt(asked.channel.second_moment))
        reach, steps = user_answers.distance_from_centre(spec), spec.n * self.answers
        step = reach / (length * (math.sqrt(steps) if self.step_rule == "constant" else 1.0))
        return step, {"map": "euclid", "gradient_norm": length}

    def make_update(self, spec: ProblemSpec, facts: Any) -> UpdateRule:
        """The step in the numbers of a compiled set, or the set's own projection."""
        constraint, kind = spec.constraint, user_answers.step_rule_code(facts)
        if constraint.code is not None:
            return user_answers.compile_update(
                Learner(
                    local_learning.EUCLID, int(constraint.code), float(constraint.size), kind,
                    facts["step"], float(spec.ridge), float(spec.lasso), 2.0, False,
                )
            )  # fmt: skip

        def move(step: int, theta: np.ndarray, state: np.ndarray, z: np.ndarray):
            eta = sgd.learning_rate(kind, facts["step"], step + 1)
            moved = theta - eta * (z + spec.regulariser.subgradient(theta))
            return constraint.project(moved), state

        return UpdateRule(None, move)


def gradient_norm(spec: ProblemSpec, answer: float) -> float:
    """G with E |z + r'(theta)|_2^2 <= G^2, from the root mean square of an answer."""
    extra = spec.regulariser.lipschitz(spec.constraint.radius, spec.p)
    return answer + extra
