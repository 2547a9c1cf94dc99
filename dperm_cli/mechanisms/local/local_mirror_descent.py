"""Mirror descent from the answers of users' devices [DJW12, Sec. 3 and Cor. 1]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Choices, Help, Range
from dperm_cli.loops import local_learning
from dperm_cli.loops.local_learning import Learner
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.shared import user_answers
from dperm_cli.mechanisms.shared.user_answers import (
    ChannelRequest,
    LocalChannel,
    LocalDescent,
    UpdateRule,
)
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.channels import Channel as Shape
from dperm_cli.problem.problem import ProblemSpec

LEAST_POWER = 1.001


@dataclass(frozen=True)
class LocalMirrorDescent(LocalDescent):
    """theta <- argmin over C of eta <z + the regulariser's gradient, x> + B(x, theta).

    Algorithm: [DJW12, Sec. 3 and Cor. 1] with exponentiated gradients; z is a user's answer, of
    mean a subgradient of his loss at theta, as in ``local_sgd``. Maps: on the l_1 ball the relative
    entropy of weights on its 2 d corners, or |x|_q^2 / (2 (q - 1)); on the balls of a power 1 < q
    <= 2 the latter. Guarantee: local, under replace_one; a user's answers are epsilon-locally
    private together and tell at most I* nats about the record; trust: local (nobody but the user
    sees a record). ``noise_scale`` is the norm M L of an answer, in the channel's norm and the unit
    of one record's gradient. Shapes: theta [trials, p]. Cost: one pass over the records for each
    answer, n p a trial (more for powers), memory p. Unsupported: add_remove; sets without a map.

    ``channel``: l_inf (as the paper pairs it), l_1, l_2, privunit or privunit_g. ``row_norm``
    shortens rows to that norm (the channel's). ``step_size=auto`` makes the bound of
    docs/proofs/local_mirror_descent.md least, which is proved for answers=1.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> LocalMirrorDescent().plan(spec, Budget(2.0, 0.0)).settings["map"]
    'power'
    """

    channel: LocalChannel = "l_inf"
    map: Annotated[str, Choices("auto", "entropy", "power"), Help("entropy: L1 ball")] = "auto"
    power: Annotated[
        float | Auto, Range(LEAST_POWER, 2.0), Help("of the map; auto = by the ball and p")
    ] = "auto"

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """The set needs a map."""
        self._map(spec)

    def choose_step(self, spec: ProblemSpec, asked: ChannelRequest) -> tuple[float, dict[str, Any]]:
        """What makes the bound of the map least."""
        name, power = self._map(spec)
        distance, length = facts_of(spec, asked.channel, asked.bound, power)
        step, steps = math.sqrt(2.0 * distance) / length, spec.n * self.answers
        step = step / math.sqrt(steps) if self.step_rule == "constant" else step
        return step, {"map": name, "power": power, "distance": distance, "gradient_norm": length}

    def make_update(self, spec: ProblemSpec, facts: Any) -> UpdateRule:
        """The step of the plan's map."""
        entropy = facts["map"] == "entropy"
        return user_answers.compile_update(
            Learner(
                local_learning.ENTROPY if entropy else local_learning.POWER, 0,
                float(spec.constraint.size), user_answers.step_rule_code(facts), facts["step"],
                float(spec.ridge), float(spec.lasso),
                facts["power"] or 2.0, _is_cross(spec),
            )
        )  # fmt: skip

    def adversary(self, budget: Budget) -> Adversary:
        """That of every local descent: on a line the power map's step is the plain one."""
        plain = replace(self, map="auto", power="auto")
        return super(LocalMirrorDescent, plain).adversary(budget)

    def _map(self, spec: ProblemSpec) -> tuple[str, float | None]:
        """The map's name and its power; Unsupported for sets without one."""
        if _is_cross(spec):
            if self.map in ("auto", "entropy"):
                return "entropy", None
            return "power", l1_power(spec.p) if self.power == "auto" else float(self.power)
        own = spec.constraint.norm_power
        if own is None or not 1.0 < own <= 2.0 or self.map == "entropy":
            raise Unsupported(
                "local_mirror_descent has the entropy for the l_1 ball and the power map for the "
                "l_1 ball and for balls of a power up to 2; elsewhere use mechanism=local_sgd"
            )
        if self.power != "auto" and float(self.power) != own:
            raise Unsupported(f"the map of this ball has the power {own:g}: leave power=auto")
        return "power", own


def _is_cross(spec: ProblemSpec) -> bool:
    """Whether the set is the l_1 ball."""
    hull = spec.constraint.axis_hull
    return hull is not None and hull.signed


def l1_power(p: int) -> float:
    """q whose conjugate is max(2, 2 ln p), for which the map's bound is least but for constants."""
    dual = max(2.0, 2.0 * math.log(p))
    return dual / (dual - 1.0)


def facts_of(
    spec: ProblemSpec, channel: Shape, bound: float, power: float | None
) -> tuple[float, float]:
    """B(u, centre) for u in the set and the root mean square of a gradient, at most.

    Of the entropy (``power`` None) of weights on the corners of the ball of radius r: ln 2d, and
    r |.|_inf. Of |x|_q^2 / (2 (q - 1)): r^2 / (2 (q - 1)), and |.|_s for the conjugate s.
    """
    size, p = spec.constraint.size, spec.p
    extra = spec.ridge * spec.constraint.radius
    if power is None:
        answer = answer_norm(channel, math.inf) * bound
        return math.log(2.0 * p), size * (answer + extra + spec.lasso)
    dual = power / (power - 1.0)
    answer = answer_norm(channel, dual) * bound
    extra += spec.lasso * p ** (1.0 / dual)
    return size**2 / (2.0 * (power - 1.0)), answer + extra


def answer_norm(channel: Shape, norm: float) -> float:
    """sqrt(E |z|_norm^2) of an answer to inputs of the unit ball, at most; norm >= 2."""
    if channel.shape == "l_inf":
        return channel.multiplier * channel.dim ** (1.0 / norm)
    if channel.shape == "l_1":
        return channel.multiplier
    if channel.shape != "l_2":  # answers lean towards the input: no more than |.|_2 is known
        return channel.multiplier
    # E max of d squares of normals is at most 4 ln d + 2 ln 2; |.|_norm <= d^(1/norm) |.|_inf
    largest = min(1.0, (4.0 * math.log(channel.dim) + 2.0 * math.log(2.0)) / channel.dim)
    return channel.multiplier * min(1.0, math.sqrt(largest) * channel.dim ** (1.0 / norm))
