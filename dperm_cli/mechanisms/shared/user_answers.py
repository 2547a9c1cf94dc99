"""The base class of local mechanisms: keys, a channel for the budget, one pass over the users.

The pass is [DJW12, Sec. 3]: user after user takes a subgradient at the point of the moment and
sends it through a channel; the learner steps against the answer, whose mean the subgradient is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Choices, Count, Help, Positive, Range
from dperm_cli.loops import local_learning, sgd
from dperm_cli.loops.local_learning import Learner
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Design, Mechanism, Output, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy import channels
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.channels import Channel as Shape
from dperm_cli.privacy.events import Channel
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_direction import GRID_BITS
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.local import LocalView

LocalChannel = Annotated[
    str, Choices(*channels.SHAPES), Help("the ball of subgradients and answers")
]
NORMS = {"l_inf": math.inf, "l_1": 1, "l_2": 2, "privunit": 2, "privunit_g": 2}
_MOST_TRIES = 100
SIGN_FLOOR, MOST_FLOORED = 0.95, 4.0  # of the attack on a sign, up to this epsilon


@dataclass(frozen=True)
class ChannelRequest:
    """What the users of a plan send: the event, its channel, the bound L on what goes in."""

    event: Channel
    channel: Shape
    bound: float


@dataclass(frozen=True)
class LocalDescent(Mechanism):
    """A learner who steps against users' answers: its keys, channel, release and attack.

    A subclass gives the step size (``choose_step``) and the update rule (``make_update``).
    """

    channel: LocalChannel
    answers: Annotated[Count, Range(1, 10**6), Help("of each user; they share the budget")] = 1
    row_norm: Annotated[Positive | Auto, Help("of shortened rows; auto = the bound")] = "auto"
    step_size: Annotated[Positive | Auto, Help("auto = from the bound on the risk")] = "auto"
    step_rule: Annotated[str, Choices("constant", "decreasing"), Help("as 1 / sqrt(t)")] = (
        "constant"
    )
    output: Output = "average"

    guarantees: ClassVar[tuple[str, ...]] = ("local",)
    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    secure: ClassVar[bool] = True
    trust: ClassVar[str] = "local"
    one_pass: ClassVar[bool] = True

    def describe_answers(self) -> str:
        """``signs``, or of the l_2 channel the grid of its directions."""
        return f"directions on {Grid(-GRID_BITS)}" if self.channel == "l_2" else "signs"

    @abstractmethod
    def choose_step(self, spec: ProblemSpec, asked: ChannelRequest) -> tuple[float, dict[str, Any]]:
        """The step size for ``step_size=auto``, and further settings to report."""

    @abstractmethod
    def make_update(self, spec: ProblemSpec, facts: Any) -> UpdateRule:
        """The update rule that the plan's settings describe."""

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Channel and step size, from public facts alone."""
        event = event_for(self.channel, spec, self.answers, budget)
        bound = bound_gradient(self.channel, spec, self.row_norm)
        asked = ChannelRequest(event, event.channel(), bound)
        step, own = self.choose_step(spec, asked)
        settings = {
            **describe_channel(asked, spec),
            "size": spec.constraint.size,
            "step_rule": self.step_rule,
            "step": step if self.step_size == "auto" else float(self.step_size),
            "output": self.output,
            **own,
        }
        scale = bound * asked.channel.multiplier
        return Design((event,), scale, spec.n * self.answers, settings)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Channel]:
        """The channel whose answers have this norm."""
        bound = bound_gradient(self.channel, spec, self.row_norm)
        least = bound * channels.least_multiplier(self.channel, spec.p)
        if not scale > least:
            raise Unsupported(f"a noise scale of {scale:g}: answers of the {self.channel} channel "
                              f"are always longer than {least:g}")  # fmt: skip
        found = channels.by_multiplier(self.channel, spec.p, scale / bound)
        return (Channel(found.epsilon, self.answers, self.channel, spec.p),)

    def release(self, view: LocalView, plan: Plan, gate: Gate) -> Release:
        """Ask every user."""
        way = self.make_update(view.spec, plan.settings)
        return Release(descend(inner_mechanism.name_of(self), view, gate, plan, way, self.row_norm))

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """The bound that ``step_size=auto`` makes least."""
        facts = plan.settings
        found = facts["step"] * facts["gradient_norm"] ** 2
        return found if facts["step_rule"] == "constant" else found / math.sqrt(plan.steps)

    def adversary(self, budget: Budget) -> Adversary:
        """One user in a ball on a line: the only step is minus his answer, a private sign."""
        chosen = replace(self, answers=1, step_size=1.0, step_rule="constant", output="last")
        if self.channel == "privunit_g":  # on a line too its answers are no signs
            return Adversary(*linear_pair(budget.relation), chosen)
        floor = SIGN_FLOOR if budget.epsilon <= MOST_FLOORED else None
        return Adversary(*linear_pair(budget.relation), chosen, kind="sign", floor=floor)


def event_for(shape: str, spec: ProblemSpec, answers: int, budget: Budget) -> Channel:
    """The event of the loudest channel within the budget, of which every user sends ``answers``.

    Epsilon and information are both shared evenly among the answers of a user.
    """
    if budget.relation != "replace_one":
        raise Unsupported("a local channel protects what a user's record says: use replace_one")
    found = []
    if math.isfinite(budget.epsilon):
        found.append(channels.by_epsilon(shape, spec.p, budget.epsilon / answers).epsilon)
    if budget.information is not None:
        each = budget.information / answers
        found.append(channels.by_information(shape, spec.p, each).epsilon)
    event = Channel(min(found), answers, shape, spec.p)
    for _ in range(_MOST_TRIES):
        guarantee = ledger_totals.recompute(
            (event,), kind="local", delta=0.0, relation=budget.relation, certificate=None
        )
        if guarantee.within(budget):
            return event
        # the last bits of a sum
        event = replace(event, epsilon=event.epsilon * (1.0 - 2.0**-52))
    raise Unsupported("no channel keeps to this budget")


def bound_gradient(shape: str, spec: ProblemSpec, row_norm: Any) -> float:
    """L: the bound on a record's subgradient in the channel's norm, [DJW12, Def. 2].

    From the loss's (L, p) class; ``row_norm`` (a number) is the norm that rows are shortened to.
    """
    norm = NORMS[shape]
    if spec.form is None:  # constants alone are given: Euclidean ones
        most = spec.lipschitz * (math.sqrt(spec.p) if norm == 1 else 1.0)
        slope, rows = 1.0, most
    else:
        form: Any = spec.form
        most = form.lipschitz_norm(spec.bounds, norm)
        rows = spec.bounds.row * (math.sqrt(spec.bounds.columns) if norm == 1 else 1.0)
        slope = most / rows if rows > 0.0 else 0.0
    if row_norm != "auto":
        if spec.task == "location":
            raise Unsupported("row_norm is for losses of a margin; medians are bounded as they are")
        most = slope * min(rows, float(row_norm))
    if not most > 0.0:
        raise Unsupported("no subgradient is but zero here: there is nothing to learn")
    return most


def distance_from_centre(spec: ProblemSpec) -> float:
    """sup |theta - centre| over the set, at most."""
    centred = not np.any(spec.constraint.centre())
    return spec.constraint.radius if centred else spec.constraint.diameter


def describe_channel(asked: ChannelRequest, spec: ProblemSpec) -> dict[str, Any]:
    """What a plan says of its channel; ``information`` and ``local_epsilon`` are of one answer."""
    channel, event = asked.channel, asked.event
    return {
        "channel": channel.shape,
        "channel_bound": asked.bound,
        "multiplier": channel.multiplier,
        "information": channel.information,
        "local_epsilon": channel.epsilon,
        "answers": event.messages,
        "answers_total": spec.n * event.messages,
    }


@dataclass(frozen=True)
class UpdateRule:
    """How a learner moves: the numbers of a compiled step, or a function that has none.

    ``move(step, theta, state, z)`` returns the next (theta, state), all [trials, p].
    """

    compiled: Learner | None
    move: Callable[..., tuple[np.ndarray, np.ndarray]]


def step_rule_code(facts: Any) -> int:
    """The code of ``step_rule`` in compiled loops."""
    return sgd.CONSTANT if facts["step_rule"] == "constant" else sgd.INV_SQRT


def compile_update(learner: Learner) -> UpdateRule:
    """The compiled step."""

    def move(step: int, theta: np.ndarray, state: np.ndarray, z: np.ndarray):
        theta, state = theta.copy(), state.copy()
        for at, memory, answer in zip(theta, state, z, strict=True):
            local_learning.learn(learner, step, at, memory, answer)
        return theta, state

    return UpdateRule(learner, move)


def descend(
    name: str, view: LocalView, gate: Gate, plan: Plan, way: UpdateRule, row_norm: Any
) -> np.ndarray:
    """One pass over the users for every answer of theirs, all trials at once: theta [trials, p]."""
    event, facts, spec = cast(Channel, plan.events[0]), plan.settings, view.spec
    stream = gate.stream(event, spec.p, bound=facts["channel_bound"], users=spec.n)
    devices = view.devices(stream, math.inf if row_norm == "auto" else float(row_norm))
    theta = np.tile(spec.constraint.centre(), (gate.trials, 1))
    ready = devices.compiled and stream.channel.compiled
    if gate.can_run_compiled and ready and way.compiled is not None:
        progress.report(f"{name}, compiled at first use", 0, spec.n * event.messages)
        mean, last = devices.descend(
            way.compiled, theta, lambda done, steps: progress.report(name, done, steps)
        )
        return mean if facts["output"] == "average" else last
    state, total = np.zeros_like(theta), np.zeros_like(theta)
    steps, stride = spec.n * event.messages, local_learning.stride(spec.n)
    for step in range(steps):
        answer = devices.ask(local_learning.place(step, spec.n, stride), theta)
        total += theta
        theta, state = way.move(step, theta, state, answer)
        progress.report(name, step + 1, steps)
    return total / steps if facts["output"] == "average" else theta
