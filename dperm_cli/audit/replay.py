"""Record and replay: check that values at the noise gate move at most by their sensitivity.

A mechanism is run on a data set with a tape on its gate. Its outputs are then frozen and it is run
again on a neighbouring data set, receiving the same noisy values and the same batches: every call
must come in the same order, from the same stream, with the same public facts; the meter of each
stream (``privacy.meters``) adds up how far its values moved, which may not exceed what its event
declares; and the outputs must be equal. No value passes with a sampler's draw: there what the laws
were made of is compared (``audit.law_replay``).

The audit runs the plain loops: that a mechanism's compiled loops give the same bytes, or the same
law, is the business of ``audit.law_comparison`` and of the contract suite, and that a claim holds
for data sets that were not tried that of the proof pages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit.law_replay import LawInputs, watch_view
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.meters import Meter
from dperm_cli.privacy.streams import LAW
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.views.choose import is_local, open_view

TOLERANCE = 1e-9
TRIALS = 2


@dataclass(frozen=True)
class Call:
    """One passage through the gate: which stream, of which event, with what."""

    number: int
    event: Any
    public: tuple[Any, ...]
    value: Any
    drawn: np.ndarray

    @property
    def facts(self) -> tuple[Any, ...]:
        """What must be equal on neighbouring runs."""
        return (self.number, self.event, self.public)


class _Tape:
    """What recorder and player have in common; ``seen`` is what a watched view notes."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.outside: list[str] = []

    def _call(self, stream: Any, value: Any, drawn: np.ndarray, public: tuple[Any, ...]) -> Call:
        if value is LAW:
            value = LawInputs(self.seen)
        elif value is not None:
            value = np.array(value)
        if value is not None:
            # what was looked at for this value is the business of no later law
            self.seen.clear()
        return Call(stream.number, stream.event, public, value, np.array(drawn))


class Recorder(_Tape):
    """The tape of the first run."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def take_draw(self, stream: Any, value: Any, drawn: np.ndarray, public: tuple) -> np.ndarray:
        self.calls.append(self._call(stream, value, drawn, public))
        return drawn


class Player(_Tape):
    """The tape of the second run: hands back what was drawn, and measures each stream."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = calls
        self.position, self.worst = 0, 0.0
        self.faults: list[str] = []
        self._meters: dict[int, Meter] = {}

    def take_draw(self, stream: Any, value: Any, drawn: np.ndarray, public: tuple) -> np.ndarray:
        now = self._call(stream, value, drawn, public)
        before = self._next(now)
        if before is None:
            return drawn
        if before.value is not None:
            meter = self._meters.setdefault(stream.number, stream.meter())
            self._judge(meter.move(before.value, now.value))
        return before.drawn

    def _judge(self, ratio: float) -> None:
        # written so that a nan distance is a fault
        if not ratio <= 1.0 + TOLERANCE:
            self.faults.append(f"call {self.position}: moved by {ratio:.6g} sensitivities")
        self.worst = max(self.worst, ratio if ratio == ratio else float("inf"))

    def _next(self, now: Call) -> Call | None:
        if self.position >= len(self.calls):
            self.faults.append(f"call {self.position + 1}: one call more than on the first run")
            return None
        call = self.calls[self.position]
        self.position += 1
        if call.facts != now.facts or type(call.value) is not type(now.value):
            seen = f"call {self.position}: {now.facts} where the first run had {call.facts}"
            self.faults.append(seen)
            return None
        return call


@dataclass(frozen=True)
class Replay:
    """The verdict: ``worst`` is the largest move in units of the declared sensitivity."""

    calls: int
    worst: float
    faults: tuple[str, ...] = ()

    @property
    def private(self) -> bool:
        return not self.faults

    def join(self, other: Replay) -> Replay:
        """What both found."""
        worst = max(self.worst, other.worst)
        return Replay(self.calls + other.calls, worst, (*self.faults, *other.faults))


def replay(
    mechanism: Mechanism,
    plan: Plan,
    first: Problem | KernelProblem,
    second: Problem | KernelProblem,
    seed: int = 0,
) -> Replay:
    """Run on ``first``, freeze, run on the neighbouring ``second`` and compare."""
    seeds = [seed_sequence(seed, "replay", trial) for trial in range(TRIALS)]

    def release(problem: Any, ear: Any) -> tuple[np.ndarray, str]:
        out = mechanism.release(*_open_release(mechanism, plan, problem, seeds, ear))
        return np.asarray(out.theta), repr(dict(out.info))

    return _compare_runs(plan, first, second, release)


def replay_session(
    mechanism: Any, plan: Plan, first: KernelProblem, second: KernelProblem, rows: np.ndarray,
    seed: int = 0,
) -> Replay:  # fmt: skip
    """The same of a session that is asked the queries ``rows`` [k, columns], one after another."""
    seeds = [seed_sequence(seed, "replay session")]

    def answer(problem: Any, ear: Any) -> tuple[np.ndarray, str]:
        session = mechanism.session(*_open_release(mechanism, plan, problem, seeds, ear))
        answers = [session.ask(row[None, :]) for row in rows if not session.has_ended]
        return np.array([value for value, _ in answers]), repr([made for _, made in answers])

    return _compare_runs(plan, first, second, answer)


def replay_runs(plan: Plan, first: Any, second: Any, seed: int = 0) -> Replay:
    """The same of releases as the runner makes them, ``release(trials, seed, tape)``.

    The runner may hand a mechanism another problem than the one that was planned with.
    """

    def release(made: Any, ear: Any) -> tuple[np.ndarray, str]:
        out = made(TRIALS, seed, ear)
        return np.asarray(out.theta), repr(dict(out.info))

    return _compare_runs(plan, first, second, release)


def _compare_runs(plan: Plan, first: Any, second: Any, run: Any) -> Replay:
    """``run(problem, tape)`` gives outputs and by-products, on one data set and on the other."""
    recorder = Recorder()
    out, info = run(first, recorder)
    player = Player(recorder.calls)
    again, info_again = run(second, player)
    faults = [*_find_undrawn(plan, recorder.calls), *player.faults, *recorder.outside[:1]]
    if player.position != len(recorder.calls):
        faults.append(f"{player.position} calls where the first run had {len(recorder.calls)}")
    # equal passages must give equal outputs: nothing else may reach the data
    if not faults and not np.array_equal(out, again):
        faults.append("the outputs differ although every noisy value was the same")
    if not faults and info != info_again:
        faults.append("the by-products differ although every noisy value was the same")
    return Replay(len(recorder.calls), player.worst, tuple(faults))


def _find_undrawn(plan: Plan, calls: list[Call]) -> list[str]:
    """Events of the plan with which nothing was released: a value then leaves without its noise."""
    heard = {call.number: call.event for call in calls}
    # an allowance, as for a sampler's error, opens no stream
    unheard = [one for one in plan.events if one.stream or type(one).open is not Event.open]
    for event in heard.values():
        if event in unheard:
            unheard.remove(event)
    return [f"nothing was released with {type(event).__name__} of the plan" for event in unheard]


def _open_release(
    mechanism: Mechanism, plan: Plan, problem: Any, seeds: list[Any], ear: Any
) -> tuple[Any, Plan, Gate]:
    """The mechanism's view, the plan and a gate with this tape, which sees what passes channels."""
    if is_local(mechanism):
        view: Any = open_view(mechanism, problem)
    else:
        view = watch_view(problem, ear.seen, ear.outside)
    return view, plan, Gate(seeds, ear, (plan.events, plan.guarantee.relation))


def replace_record(problem: Any, index: int, row: np.ndarray, target: float) -> Any:
    """``problem`` with record ``index`` replaced; the row must respect the declared bound.

    A removal under add_remove is a replacement by a row of zeros, which contributes nothing.
    """
    data: Data = problem.data
    # minimisers of kernel problems are remembered by what their data are called
    name = f"{data.fingerprint} {index} {np.asarray(row).tobytes().hex()} {target!r}"
    return replace(problem, data=data.with_record(index, row, target, fingerprint=name))
