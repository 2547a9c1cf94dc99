"""Record and replay: does what reaches the noise gate move by no more than it declares?

A mechanism is run on a data set with a tape on its gate. Its outputs are then frozen and it is run
again on a neighbouring data set, receiving the same noisy values and the same batches: every
call must come in the same order with the same shapes, scales and sensitivities, and no value
may differ by more than the declared sensitivity, and the outputs must be equal. Every stream must
be an event of the plan. No value passes with a sampler's draw: there the potentials of the two runs
are compared (``_laws``). Of a local channel the move is the largest log ratio that any answers of
all users could have, over what those of one claim together: the neighbours differ in one record,
so that nobody but its user may answer to anything else on the second run.

The audit runs the plain loops: that a mechanism's compiled loops give the same bytes is a test of
the contract suite, and that a claim holds for data sets that were not tried is the business of the
proof pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dperm_cli.audit._laws import moved, watched
from dperm_cli.core.rng import seed_sequence
from dperm_cli.mechanisms._opening import is_local, view_of
from dperm_cli.mechanisms._protocol import Mechanism, Plan
from dperm_cli.privacy.channels import by_epsilon
from dperm_cli.privacy.events import Exponential
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.kernel_problem import KernelProblem
from dperm_cli.problem.problem import Problem

TOLERANCE = 1e-9
TRIALS = 2


@dataclass
class Call:
    """One passage through the gate."""

    kind: str
    facts: tuple[Any, ...]
    value: np.ndarray | None
    drawn: np.ndarray
    looks: list[Any] = field(default_factory=list)


@dataclass
class Recorder:
    """The tape of the first run; ``seen`` is what a ``Watched`` view notes."""

    calls: list[Call] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def noise(self, value, scale, sensitivity, drawn):
        return self._value("noise", value, scale, sensitivity, drawn)

    def laplace(self, value, scale, sensitivity, drawn):
        return self._value("laplace", value, scale, sensitivity, drawn)

    def gamma_norm(self, value, scale, sensitivity, drawn):
        return self._value("gamma_norm", value, scale, sensitivity, drawn)

    def choice(self, population, batch, sampling, drawn):
        self.calls.append(Call("choice", (population, batch, sampling), None, np.array(drawn)))
        return drawn

    def law(self, exponent, oscillation, drawn):
        self.calls.append(
            Call("law", (exponent, oscillation), None, np.array(drawn), self._looks())
        )
        return drawn

    def channel(self, user, value, event, bound, drawn):
        facts = (user, event, float(bound), value.shape)
        self.calls.append(Call("channel", facts, np.array(value), np.array(drawn)))
        return drawn

    def _looks(self) -> list[Any]:
        looks = list(self.seen)
        self.seen.clear()
        return looks

    def disjoint(self, value, scale, sensitivity, drawn, new):
        return self._value("disjoint", value, scale, sensitivity, drawn)

    def coordinate(self, value, scale, sensitivity, drawn, new):
        return self._value("coordinate", value, scale, sensitivity, drawn)

    def sparse(self, value, known, scale, sensitivity, drawn):
        facts = (float(scale), float(sensitivity), np.asarray(known).tobytes())
        self.seen.clear()
        self.calls.append(Call("sparse", facts, np.array(value), np.array(drawn)))
        return drawn

    def _value(self, kind, value, scale, sensitivity, drawn):
        facts = (float(scale), float(sensitivity), value.shape)
        self.seen.clear()  # what was looked at for this value is no law's business
        self.calls.append(Call(kind, facts, np.array(value), np.array(drawn)))
        return drawn


@dataclass
class Player:
    """The tape of the second run: hands back what was drawn and compares.

    ``exponents`` are those of the plan's exponential mechanisms.
    """

    calls: list[Call]
    exponents: tuple[float, ...] = ()
    seen: list[Any] = field(default_factory=list)
    position: int = 0
    worst: float = 0.0
    moved: float = 0.0
    told: np.ndarray | float = 0.0
    faults: list[str] = field(default_factory=list)

    def noise(self, value, scale, sensitivity, drawn):
        return self._value("noise", 2, value, scale, sensitivity, drawn)

    def laplace(self, value, scale, sensitivity, drawn):
        return self._value("laplace", 1, value, scale, sensitivity, drawn)

    def gamma_norm(self, value, scale, sensitivity, drawn):
        return self._value("gamma_norm", 2, value, scale, sensitivity, drawn)

    def choice(self, population, batch, sampling, drawn):
        call = self._next("choice", (population, batch, sampling))
        return drawn if call is None else call.drawn

    def law(self, exponent, oscillation, drawn):
        call = self._next("law", (exponent, oscillation))
        looks = list(self.seen)
        self.seen.clear()
        if call is None:
            return drawn
        plain = exponent in self.exponents
        self._judge(moved(call.looks, looks, exponent, oscillation, plain))
        return call.drawn

    def disjoint(self, value, scale, sensitivity, drawn, new):
        """The moves of all batches of a pass count together."""
        self.moved = 0.0 if new else self.moved
        return self._value("disjoint", 2, value, scale, sensitivity, drawn)

    def channel(self, user, value, event, bound, drawn):
        """What all answers, whoever's, tell the two records apart by counts together."""
        call = self._next("channel", (user, event, float(bound), value.shape))
        if call is None or call.value is None:
            return drawn
        channel = by_epsilon(event.shape, event.dim, event.epsilon)
        distance = channel.distance(call.value / bound, value / bound)
        # equal vectors tell nothing: a long one may not look parallel to itself
        same = np.all(call.value == value, axis=-1)
        self.told = self.told + np.where(same, 0.0, distance)
        self._judge(float(np.max(self.told)) / (event.messages * event.epsilon))
        return call.drawn

    def coordinate(self, value, scale, sensitivity, drawn, new):
        """The squares of the moves of all coordinates of a vector count together."""
        self.moved = 0.0 if new else self.moved
        return self._value("coordinate", 2, value, scale, sensitivity, drawn)

    def sparse(self, value, known, scale, sensitivity, drawn):
        """The answers known before must be equal too: they decide what is shown."""
        facts = (float(scale), float(sensitivity), np.asarray(known).tobytes())
        return self._moved("sparse", 1, value, facts, sensitivity, drawn)

    def _value(self, kind, norm, value, scale, sensitivity, drawn):
        """``norm`` is that of the sensitivity of this kind of noise."""
        facts = (float(scale), float(sensitivity), value.shape)
        return self._moved(kind, norm, value, facts, sensitivity, drawn)

    def _moved(self, kind, norm, value, facts, sensitivity, drawn):
        self.seen.clear()
        call = self._next(kind, facts)
        if call is None or call.value is None:
            return drawn
        moved = np.atleast_2d(value - call.value)
        distance = float(np.max(np.linalg.norm(moved, ord=norm, axis=-1)))
        ratio = distance / sensitivity if sensitivity > 0 else float("inf")
        if kind == "disjoint":
            ratio = self.moved = self.moved + ratio
        if kind == "coordinate":
            ratio = self.moved = float(np.hypot(self.moved, ratio))
        self._judge(ratio)
        return call.drawn

    def _judge(self, ratio: float) -> None:
        # written so that a nan distance is a fault
        if not ratio <= 1.0 + TOLERANCE:
            self.faults.append(f"call {self.position}: moved by {ratio:.6g} sensitivities")
        self.worst = max(self.worst, ratio if ratio == ratio else float("inf"))

    def _next(self, kind: str, facts: tuple[Any, ...]) -> Call | None:
        if self.position >= len(self.calls):
            self.faults.append(f"call {self.position + 1}: one call more than on the first run")
            return None
        call = self.calls[self.position]
        self.position += 1
        if (call.kind, call.facts) != (kind, facts):
            seen, now = (call.kind, call.facts), (kind, facts)
            self.faults.append(f"call {self.position}: {now} where the first run had {seen}")
            return None
        return call


@dataclass(frozen=True)
class Replay:
    """The verdict: ``worst`` is the largest move in units of the declared sensitivity."""

    calls: int
    worst: float
    faults: tuple[str, ...]

    @property
    def private(self) -> bool:
        return not self.faults


def replay(
    mechanism: Mechanism,
    plan: Plan,
    first: Problem | KernelProblem,
    second: Problem | KernelProblem,
    seed: int = 0,
) -> Replay:
    """Run on ``first``, freeze, run on the neighbouring ``second`` and compare."""
    recorder = Recorder()
    seeds = [seed_sequence(seed, "replay", trial) for trial in range(TRIALS)]
    allowed = (plan.events, plan.guarantee.relation)
    view: Any = _watched(mechanism, first, recorder.seen)
    out = mechanism.release(view, plan, Gate(seeds, recorder, allowed))
    exponents = tuple(e.exponent for e in plan.events if isinstance(e, Exponential))
    player = Player(recorder.calls, exponents)
    view = _watched(mechanism, second, player.seen)
    again = mechanism.release(view, plan, Gate(seeds, player, allowed))
    faults = list(player.faults)
    if player.position != len(recorder.calls):
        faults.append(f"{player.position} calls where the first run had {len(recorder.calls)}")
    # equal passages must give equal outputs: nothing else may reach the data
    if not faults and not np.array_equal(out.theta, again.theta):
        faults.append("the outputs differ although every noisy value was the same")
    if not faults and repr(dict(out.info)) != repr(dict(again.info)):
        faults.append("the by-products differ although every noisy value was the same")
    return Replay(len(recorder.calls), player.worst, tuple(faults))


def _watched(mechanism: Mechanism, problem: Any, seen: list[Any]) -> Any:
    """The mechanism's view; what passes channels is seen there."""
    return view_of(mechanism, problem) if is_local(mechanism) else watched(problem, seen)


def neighbour(problem: Any, index: int, row: np.ndarray, target: float) -> Any:
    """``problem`` with record ``index`` replaced; the row must respect the declared bound.

    A removal under add_remove is a replacement by a row of zeros, which contributes nothing.
    """
    data: Data = problem.data
    # minimisers of kernel problems are remembered by what their data are called
    name = f"{data.fingerprint} {index} {np.asarray(row).tobytes().hex()} {target!r}"
    return replace(problem, data=data.with_record(index, row, target, fingerprint=name))
