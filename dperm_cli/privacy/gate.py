"""The one gate through which noise is drawn.

A mechanism never touches a random generator. It asks the gate for the stream of an event that was
accounted for: ``gate.stream(event, dim)``. The event says which noise, of which scale, how often,
and how far a neighbouring data set may move the values that it hides; nothing of that is said a
second time. A plain loop adds noise step by step with ``stream.add``. A compiled loop receives
``stream.sealed_draws()`` (keys, scale and kind as one object) and produces the same numbers. A tape
(see ``audit.replay``) records every value that passes, and forbids the compiled path.

Noise is seeded (``Gate``: reproducible, float64, for research) or comes from the operating system
and lies on a grid (``Gate.secure``). The noises are

=============  =======================================  ================  ==================
noise          density of the noise b                   sensitivity in    secure
=============  =======================================  ================  ==================
``gaussian``   exp(-|b|_2^2 / (2 scale^2))              L2                yes
``laplace``    exp(-|b|_1 / scale)                      L1                yes
``gamma_norm`` exp(-|b|_2 / scale)                      L2                yes
``wishart``    of scale (W - W') / 2, see below         nuclear           yes
batches        record numbers, or sums over batches                       no
laws           uniforms for a sampler of exp(-c loss)                     no
choices        entries of a public list                                   yes
selections     numbers of runs, each with a gate of its own               no
channels       answers of users' devices (``privacy.channels``)           yes
=============  =======================================  ================  ==================

W and W' are independent Wishart matrices of order q with q + 1 degrees of freedom; the values are
packed symmetric matrices (``core.symmetric``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.events.own_copies import copy_events
from dperm_cli.privacy.gate_protocol import Tape
from dperm_cli.privacy.grid_noise import GridNoise
from dperm_cli.privacy.secure_batches import SystemBatches
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import (
    KeyedBatches,
    KeyedNoise,
    StepRecord,
    stream_key,
)

_LISTENING: list[Tape] = []  # tapes for gates that are opened without one, the last first


@contextmanager
def install_tape(tape: Tape) -> Iterator[None]:
    """Put ``tape`` on every gate that is opened in the block without a tape of its own.

    For audits of a whole run in this process: gates are opened deep below the command line. A tape
    closes the compiled loops.
    """
    _LISTENING.append(tape)
    try:
        yield
    finally:
        _LISTENING.remove(tape)


class Gate:
    """Issues the noise of ``trials`` independent releases, one seed each.

    Streams are numbered in the order they are asked for; the key of a stream is derived from
    (trial's seed, stream number), so no two streams and no two trials share random numbers.
    With ``plan`` = (events, relation) every stream must carry out an event of the plan, each used
    once, and no step of a stream is drawn twice.

    >>> from dperm_cli.privacy.events import Gaussian
    >>> gate = Gate([np.random.SeedSequence(1)], plan=([Gaussian(4.0, 0.5)], "replace_one"))
    >>> gate.stream(Gaussian(1.0, 0.5), dim=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dperm_cli.core.errors.PrivacyError: Gaussian(scale=1.0, ...) is no event of the plan ...
    """

    _fixed = False

    def __init__(
        self,
        seeds: Sequence[np.random.SeedSequence],
        tape: Tape | None = None,
        plan: tuple[Sequence[Event], str] | None = None,
    ) -> None:
        self._seeds = list(seeds)
        self._grid: Grid | None = None
        self.system = False  # draws channels' answers from the operating system's generator
        self.source: secure_noise.Source = secure_noise.system_words
        self.trials = len(self._seeds)
        self._streams = 0
        self._numbers: Iterator[int] = count()
        self.tape = _LISTENING[-1] if tape is None and _LISTENING else tape
        self._unused = None if plan is None else list(copy_events(plan[0]))
        self._planned = len(self._unused or ())
        self._selections: list[Event] = []  # those that were asked for
        self.relation = "replace_one" if plan is None else plan[1]

    @classmethod
    def secure(
        cls,
        trials: int,
        grid: Grid | None,
        plan: tuple[Sequence[Event], str],
        tape: Tape | None = None,
        source: secure_noise.Source = secure_noise.system_words,
    ) -> Gate:
        """A gate whose noise comes from the operating system and lies on a grid.

        Values are rounded to the grid, noise is exact on it, and sums are made of integers: what
        comes out is a multiple of ``grid.step`` whatever went in. ``plan`` holds the events of the
        rounded releases (``privacy.secure_grid.put_on_grid``). ``source`` is for tests.

        Without a grid the gate is for channels alone. The values that an answer can have do not
        depend on what it stands for, and its chances are whole numbers of 2^-64: there is nothing
        to round.
        """
        gate = cls([], tape, plan)
        gate.trials, gate._grid, gate.source = trials, grid, source
        gate.system = grid is None
        return gate

    @property
    def can_run_compiled(self) -> bool:
        """Whether compiled loops may draw for themselves (seeded noise without a tape)."""
        return self.tape is None and self._grid is None and not self.system

    def stream(self, event: Event, dim: int, **public: Any) -> Any:
        """The stream that carries out an event of the plan, in ``dim`` coordinates.

        Args:
            event: what is done to the records; taken off the plan. PrivacyError where the plan
                holds no such event: nothing was accounted for.
            dim: coordinates of one draw.
            public: what else the event's stream needs, all of it public (see ``Event.open``).
        """
        spent = self._spend(event)
        if spent.alternatives:
            self._selections.append(spent)
        return spent.open(self, dim, **public)

    def each(self, events: Sequence[Event]) -> list[Gate]:
        """One gate for every trial, for releases whose set differs from trial to trial.

        Each may spend these events of the plan, and this gate what is left of it. A trial's numbers
        are those of the streams that would have come next here, whatever the other trials ask for.
        PrivacyError where the plan does not hold the events.
        """
        keys: dict[int, np.ndarray] = {}
        spent = [self._spend(event) for event in events]
        if self._grid is not None:
            return [self._make_trial(self._grid, spent) for _ in range(self.trials)]
        return [_OneTrial(self, trial, spent, keys).fix() for trial in range(self.trials)]

    def _make_trial(self, grid: Grid, events: Sequence[Event]) -> Gate:
        """The gate of one trial on the grid, whose noise is fresh."""
        one = Gate.secure(1, grid, (events, self.relation), self.tape, self.source)
        one._numbers = self._numbers
        return one.fix()

    def open_run(self, keys: np.ndarray, run: int, selection: Any, candidate: int) -> Gate:
        """A gate for one run of a private selection, which may spend the events of one run.

        Args:
            keys: the keys [trials, 2] of the selection's stream, of the trials that have the run;
                the run's seeds follow from them.
            run: the number of the run.
            selection: the event of the stream. PrivacyError where no stream of it was asked for.
            candidate: which of its candidates the run tries.
        """
        if not any(selection is one for one in self._selections):
            raise PrivacyError("a run of a selection that was not asked for")
        return self._make_run(keys, run, selection.alternatives[candidate])

    def _make_run(self, keys: np.ndarray, run: int, events: Sequence[Event]) -> Gate:
        """The gate of one run, which may spend these events."""
        words = [[int(word) for word in key] for key in keys]
        seeds = [np.random.SeedSequence(entropy, spawn_key=(run,)) for entropy in words]
        one = Gate(seeds, self.tape, (events, self.relation))
        one._numbers = self._numbers
        return one.fix()

    def fix(self) -> Gate:
        """This gate, none of whose public attributes can be set any more."""
        self._fixed = True
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and not name.startswith("_"):
            raise PrivacyError(f"{name} of a gate is fixed before it is handed out")
        super().__setattr__(name, value)

    # --- for streams --------------------------------------------------------------------------

    def draws(self, kind: str, own_grid: int | None = None) -> KeyedNoise | GridNoise:
        """The noise of a new stream; with secure noise on the plan's grid or on its own one."""
        if self._grid is None:
            return KeyedNoise(self.keys())  # refused by a gate for channels
        grid = self._grid if own_grid is None else Grid(own_grid)
        return GridNoise(self.trials, grid.step, self.source)

    def steps(self, number: int) -> StepRecord:
        """The steps of a new stream."""
        return StepRecord(number, once=self._unused is not None)

    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, of a new stream."""
        if self._grid is not None or self.system:
            raise PrivacyError("only noise on the grid is secure; this stream is seeded")
        number, self._streams = self._streams, self._streams + 1
        return np.stack([stream_key(seed, number) for seed in self._seeds])

    def batches(self, population: int, batch: int, poisson: bool) -> Any:
        """The random batches of a new stream: keyed ones, or with secure noise the system's."""
        if self._grid is None:
            return KeyedBatches(self.keys(), population, batch, poisson)
        return SystemBatches(population, batch, poisson, self.source)

    def words(self) -> secure_noise.Source:
        """The operating system's generator, for choices from lists.

        A gate with a tape has it as well: the replays of audits hear choices of secure plans.
        """
        if self._grid is None and not self.system and self.tape is None:
            raise PrivacyError("a choice from a list is drawn by a secure gate alone")
        return self.source

    def next_number(self) -> int:
        """The number of a new stream, in the order of asking."""
        return next(self._numbers)

    @property
    def events_to_come(self) -> int:
        """How many events of the plan were not asked for yet; 0 without a plan."""
        return len(self._unused or ())

    @property
    def is_untouched(self) -> bool:
        """Whether the plan has events, and none of them was asked for."""
        return 0 < self._planned == self.events_to_come

    def _spend(self, event: Event) -> Event:
        """With a plan: take off the event that pays for this one, or raise PrivacyError."""
        if self._unused is None:
            return event
        for place, planned in enumerate(self._unused):
            if type(event) is type(planned) and event.fits(planned, self.relation):
                return self._unused.pop(place)  # by place: two events may call themselves equal
        raise PrivacyError(f"{event} is no event of the plan that was accounted for")


class _OneTrial(Gate):
    """Some events of another gate, for one of its trials; ``shared`` is common to its siblings."""

    def __init__(
        self, whole: Gate, trial: int, events: Sequence[Event], shared: dict[int, np.ndarray]
    ) -> None:
        left = None if whole._unused is None else (tuple(events), whole.relation)
        super().__init__([], whole.tape, left)
        self.relation, self._numbers = whole.relation, whole._numbers
        self.trials = 1
        self._whole, self._trial, self._shared = whole, trial, shared
        self._streams = whole._streams

    def keys(self) -> np.ndarray:
        number, self._streams = self._streams, self._streams + 1
        if number not in self._shared:
            self._whole._streams = number
            self._shared[number] = self._whole.keys()
        return self._shared[number][self._trial : self._trial + 1]


def range_delta(events: Sequence[Event], relation: str, dim: int) -> float:
    """The delta that the bounded range of the seeded generator can add, in ``dim`` coordinates."""
    return sum((event.range_delta(relation, dim) for event in events), 0.0)
