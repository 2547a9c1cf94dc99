"""Streams of random numbers that the gate opens for events: noise, batches, answers, uniforms.

A stream belongs to one event. Every value goes through its methods, where a tape can record it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import (
    batch_indices,
    exponential_noise,
    gaussian_noise,
    local_channels,
    reduced_sgd,
)
from dperm_cli.loops.sealed_noise import SealedAnswers, SealedBatches, SealedNoise
from dperm_cli.privacy import secure_direction
from dperm_cli.privacy.gate_protocol import NoiseSource
from dperm_cli.privacy.meters import Meter, RootOfSquares
from dperm_cli.privacy.set_once import SetOnce, read_numbers

GAUSSIAN, LAPLACE, GAMMA_NORM, WISHART = "gaussian", "laplace", "gamma_norm", "wishart"
_EXPONENTIAL_NOISES: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    # looked up at each call, so that a test may put others in their place
    LAPLACE: lambda *draw: exponential_noise.laplaces(*draw),
    GAMMA_NORM: lambda *draw: exponential_noise.gamma_norms(*draw),
    WISHART: lambda *draw: exponential_noise.wishart_differences(*draw),
}
# Smallest bound of a channel: below, its inverse is infinite and 0 over it is no number.
_LEAST_BOUND = 2.0**-1022


class StepRecord:
    """Which of ``count`` steps were drawn; with ``once`` none is drawn a second time."""

    def __init__(self, count: int, once: bool) -> None:
        self.count, self._once = count, once
        self._seen: set[int] = set()
        self._used_up = False

    def mark(self, step: int) -> None:
        if not isinstance(step, Integral) or not 0 <= step < self.count:
            raise PrivacyError(f"noise asked for step {step} of a stream of {self.count}")
        if self._once and (self._used_up or step in self._seen):
            raise PrivacyError(f"noise of step {step} asked for a second time")
        if self._once:
            self._seen.add(step)

    def mark_all(self) -> None:
        """For a compiled loop, which draws every step."""
        if self._once and (self._used_up or self._seen):
            raise PrivacyError("some steps were drawn: no compiled loop may draw them again")
        self._used_up = True


class Stream(SetOnce):
    """Base of all streams: the event, the number of the stream, and the tape that listens.

    ``tells_noise`` says that what a tape hears, less its value, is noise of ``scale``;
    ``few_outcomes`` that what is drawn may be one of a few points, and nearly certain.
    """

    scale: float
    tells_noise = False
    few_outcomes = False

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        self.event, self.dim, self.trials = event, dim, gate.trials
        self.number, self.relation = gate.next_number(), gate.relation
        self._tape = gate.tape

    def meter(self) -> Meter:
        """A new meter of what neighbouring runs move this stream by."""
        return self.event.meter(self.relation)

    def _take_draw(self, value: Any, drawn: np.ndarray, *public: Any) -> np.ndarray:
        """What is drawn, or what a tape puts in its place.

        ``value`` is what the noise hides. ``public`` must be equal on neighbouring runs.
        """
        if self._tape is None:
            return drawn
        return self._tape.take_draw(self, value, drawn, (np.shape(value), *public))

    def _read_numbers(self, value: Any) -> np.ndarray:
        """Refuse other shapes: broadcasting would add one draw to many coordinates."""
        if np.shape(value) != (self.trials, self.dim):
            shape = (self.trials, self.dim)
            raise PrivacyError(f"a value of shape {np.shape(value)} at noise of shape {shape}")
        return read_numbers(value)


class NoiseStream(Stream):
    """Noise of one kind keyed by (trial, step), or on a grid; [trials, dim] at each step."""

    tells_noise = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self.kind, self.scale = event.noise_law, event.scale
        self._noise = gate.draws(self.kind, event.own_grid)
        self._steps = gate.steps(event.count)

    @property
    def count(self) -> int:
        return self._steps.count

    def add(self, value: np.ndarray, step: int) -> np.ndarray:
        """``value`` [trials, dim] plus this step's noise; PrivacyError for any other shape."""
        value = self._read_numbers(value)
        self._steps.mark(step)
        value, drawn = self._noise.add(value, self.kind, self.scale, self.dim, step)
        return self._take_draw(value, drawn, step)

    def add_in_frame(self, value: np.ndarray, step: int, normals: int, degrees: int) -> np.ndarray:
        """``value`` [trials, n + T] with this step's noise in a frame that turns with the noise:
        ``normals`` normal numbers and the root of a chi^2 after them (``loops.reduced_sgd``)."""
        noise = self._seal_noise()
        self._steps.mark(step)
        return reduced_sgd.add_noise(read_numbers(value), noise, step, normals, degrees)

    def draw_direction(self, frame: reduced_sgd.Frame) -> np.ndarray:
        """Uniform unit vectors [trials, p] orthogonal to a frame, from numbers of no step."""
        return reduced_sgd.outward(frame, self._seal_noise().keys, self.count)

    def draw_copy(self, number: int) -> np.ndarray:
        """Noise [trials, dim] of the stream's law from numbers of no step, to split a release with.

        It was added to nothing, so that whatever is made of it and of releases is post-processing.
        """
        if not isinstance(self._noise, KeyedNoise):
            raise PrivacyError("secure noise has no keys; nothing more is drawn")
        if not isinstance(number, Integral) or number < 0:
            raise PrivacyError("a copy has a whole number, 0 or more: others are those of steps")
        nothing, step = np.zeros((self.trials, self.dim)), self.count + number
        drawn = self._noise.add(nothing, self.kind, self.scale, self.dim, step)[1]
        return self._take_draw(None, drawn, step)

    def _seal_noise(self) -> SealedNoise:
        if not isinstance(self._noise, KeyedNoise):
            raise PrivacyError("secure noise has no keys; use the plain loop")
        if self.kind != GAUSSIAN:
            raise PrivacyError("compiled loops draw Gaussian noise alone")
        return SealedNoise(require_no_tape(self._noise.keys, self._tape), self.scale, self.count)


class PerturbedStream(NoiseStream):
    """The linear term of a perturbed objective: a tape hears the minimiser, and not the noise."""

    tells_noise = False

    def find(
        self,
        point: Callable[[np.ndarray], np.ndarray],
        value: Callable[[np.ndarray], np.ndarray],
        step: int,
        paid: NoiseStream,
    ) -> np.ndarray:
        """A point [trials, dim] at which ``value`` plus this step's noise is known, plus the noise
        of ``paid``.

        ``point`` finds it from the noise alone [trials, dim], as the minimiser of a perturbed
        objective: the noise is then a known function of the point, less value(point). But a solver
        finds it up to an error that depends on the records, so that it leaves with the noise of a
        second stream alone, whose sensitivity is for that error. A tape may put another point in
        its place, and hears of the value there.
        """
        self._steps.mark(step)
        nothing = np.zeros((self.trials, self.dim))
        _, drawn = self._noise.add(nothing, self.kind, self.scale, self.dim, step)
        found = point(drawn)
        if self._tape is not None:
            found = self._take_draw(nothing, found, step)
            found = self._take_draw(value(found), found, step)
        return paid.add(found, step)


class SampledStream(NoiseStream):
    """Batches of record numbers and Gaussian noise on sums over them (``SampledGaussian``)."""

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self.population, self.batch, self.sampling = event.population, event.batch, event.sampling
        self._batches = gate.batches(self.population, self.batch, self.sampling == "poisson")

    def draw(self, trial: int, step: int) -> np.ndarray:
        """The record numbers of one trial's batch at one step, [b] (b varies under Poisson)."""
        drawn = self._batches.draw(trial, step)
        return (
            drawn if self._tape is None else self._tape.take_draw(self, None, drawn, (trial, step))
        )

    @property
    def sealed_draws(self) -> SealedBatches:
        """All that a compiled loop draws: noise and batches of every step; used up then."""
        noise = self._seal_noise()
        self._steps.mark_all()
        return SealedBatches(
            noise.keys, self._batches.keys, noise.scale, noise.steps,
            self.population, self.batch, self.sampling == "poisson",
        )  # fmt: skip


class KeyedNoise:
    """Noise that is a function of (key, step, coordinate): seeded, in float64."""

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys

    def add(
        self, value: np.ndarray, kind: str, scale: float, dim: int, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if kind == GAUSSIAN:
            noise = gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]
        else:
            noise = _EXPONENTIAL_NOISES[kind](self.keys, step, dim)
        return value, value + scale * noise


class KeyedBatches:
    """Batches that are a function of (key, step): seeded."""

    def __init__(self, keys: np.ndarray, population: int, batch: int, poisson: bool) -> None:
        self.keys, self._law = keys, (population, batch, poisson)

    def draw(self, trial: int, step: int) -> np.ndarray:
        """The record numbers of a batch, int64 [b]."""
        return batch_indices.batch(self.keys[trial], step, *self._law)


class CoordinateStream(Stream):
    """One draw from N(0, scale^2 I), handed out coordinate by coordinate.

    Which function of the data a coordinate is of may depend on the earlier ones.
    """

    tells_noise = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self.scale = event.scale
        self._noise = gaussian_noise.normals(gate.keys(), 0, 1, dim)[:, 0, :]
        self._steps = StepRecord(dim, once=True)

    def meter(self) -> Meter:
        return RootOfSquares(self.event.sensitivity(self.relation))

    def add(self, value: np.ndarray, number: int) -> np.ndarray:
        """``value`` [trials] plus the noise of coordinate ``number``."""
        if np.shape(value) != (self.trials,):
            raise PrivacyError(f"a coordinate of {self.trials} trials takes one number of each")
        self._steps.mark(number)
        column = read_numbers(value)[:, None].copy()
        drawn = column + self.scale * self._noise[:, number : number + 1]
        return self._take_draw(column, drawn, number)[:, 0]


class SparseStream(Stream):
    """Answers shown with noise where they are far from what was known (event ``SparseAnswers``).

    One draw of noise serves the test and the value shown, and a trial is over after its updates.
    """

    few_outcomes = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self.scale, self.threshold, self.updates = event.scale, event.threshold, event.updates
        self._noise, self._steps = KeyedNoise(gate.keys()), StepRecord(event.queries, once=True)
        self._made = np.zeros(self.trials, np.int64)

    @property
    def has_ended(self) -> np.ndarray:
        """Which trials have made all their updates, [trials]; they answer from what is known."""
        return self._made >= self.updates

    def answer(
        self, value: np.ndarray, known: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers [trials] to query ``step`` and whether each is an update, [trials].

        ``value`` [trials] depends on the data, ``known`` [trials] on earlier releases. A trial
        without updates left returns ``known`` and ignores ``value``.
        """
        if np.shape(value) != (self.trials,) or np.shape(known) != (self.trials,):
            raise PrivacyError(f"answers for {self.trials} trials take one number of each")
        self._steps.mark(step)
        over = self.has_ended
        column = read_numbers(np.where(over, known, value))[:, None]
        _, drawn = self._noise.add(column, LAPLACE, self.scale, 1, step)
        far = ~over & ~(np.abs(drawn[:, 0] - known) <= self.threshold)
        shown = np.stack([far.astype(float), np.where(far, drawn[:, 0], known)], axis=1)
        if self._tape is not None:
            # the answers known before must be equal too: they decide what is shown
            shown = self._take_draw(column, shown, step, np.asarray(known).tobytes())
            far = shown[:, 0] > 0.0
        self._made += far
        return shown[:, 1], far


class BatchStream(Stream):
    """Noise on the sums over batches of records that no record shares (event ``DisjointBatches``).

    The stream itself asks for each sum, over its own batch; each batch is used once.
    """

    tells_noise = True

    def __init__(
        self, gate: NoiseSource, event: Any, dim: int, *, parts: Sequence[np.ndarray]
    ) -> None:
        super().__init__(gate, event, dim)
        if len(parts) != event.batches or event.count != 1:
            raise PrivacyError(f"{len(parts)} batches are no event of the plan")
        indices = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        if indices.size != np.unique(indices).size:
            raise PrivacyError("a record is in more than one of the disjoint batches")
        self._parts = [np.array(part, dtype=np.int64) for part in parts]
        self._steps = StepRecord(len(self._parts), once=True)
        self.kind, self.scale = event.noise, event.scale
        self._noise = gate.draws(self.kind)

    def release(self, total: Callable[[np.ndarray], np.ndarray], step: int) -> np.ndarray:
        """``total(indices)``, the sum [trials, dim] over the records of batch ``step``, with noise.

        ``total`` must look at the records with these indices and at no others.
        """
        self._steps.mark(step)
        value = self._read_numbers(total(self._parts[step]))
        value, drawn = self._noise.add(value, self.kind, self.scale, self.dim, step)
        return self._take_draw(value, drawn, step)


class ChannelStream(Stream):
    """What users' devices send (event ``Channel``). An answer is keyed by (trial, number).

    ``coding`` is the channel in integers, for values of norm up to ``bound``; None where compiled
    loops cannot carry the channel out.
    """

    def __init__(
        self, gate: NoiseSource, event: Any, dim: int, *, bound: float, users: int
    ) -> None:
        super().__init__(gate, event, dim)
        if not _LEAST_BOUND <= bound < np.inf:
            raise PrivacyError(f"a bound of {bound} on what a channel hides")
        if dim != event.dim:
            raise PrivacyError(f"answers in {dim} dimensions are no event of the plan")
        self.channel, self.bound, self.users = event.channel(), bound, users
        self.coding = self.channel.coding(bound) if self.channel.compiled else None
        self._keys = None if gate.system else gate.keys()
        self._source = gate.source
        self._asked = np.zeros(users, np.int32)
        self._sent = 0

    @property
    def messages(self) -> int:
        """How often each user answers, at most."""
        return self.event.messages

    def send(self, user: int, value: np.ndarray) -> np.ndarray:
        """The answers [trials, dim] of one user's device to its vectors ``value`` [trials, dim].

        PrivacyError where the user has answered as often as was accounted for.
        """
        if np.shape(value) != (self.trials, self.channel.dim):
            shape = (self.trials, self.channel.dim)
            raise PrivacyError(f"a value of shape {np.shape(value)} at a channel of shape {shape}")
        if not (0 <= user < self.users and self._asked[user] < self.messages):
            raise PrivacyError(f"user {user} is asked once more than {self.messages} times")
        self._asked[user] += 1
        value = read_numbers(value)
        if self.coding is None:
            if self._keys is None:
                raise PrivacyError(
                    f"answers of the {self.channel.shape} channel have no secure form"
                )
            drawn = self.bound * self.channel.sample(value / self.bound, self._words())
        elif self._keys is None and not self.channel.discrete:
            self._sent += 1
            drawn = secure_direction.send(self.coding, value, self._source)
        else:
            drawn = local_channels.send(self.coding, value, self._words())
        return self._take_draw(value / self.bound, drawn, user, float(self.bound))

    @property
    def sealed_draws(self) -> SealedAnswers:
        """All that a compiled loop draws, which asks every user; used up then."""
        if self._keys is None:
            raise PrivacyError("secure noise has no keys; use the plain loop")
        if self.coding is None:
            raise PrivacyError(f"the {self.channel.shape} channel has no compiled loop")
        if self._sent:
            raise PrivacyError("some users have answered: no loop may ask all of them")
        keys = require_no_tape(self._keys, self._tape)
        self._asked[:] = self.messages
        self._sent = self.users * self.messages
        return SealedAnswers(keys, self.coding, self.users, self.messages)

    def _words(self) -> np.ndarray:
        number, self._sent = self._sent, self._sent + 1
        count = self.channel.blocks
        if self._keys is None:
            return self._source(2 * count * self.trials).reshape(self.trials, 2, count)
        return local_channels.draw_words(self._keys, number, count)


class SelectionStream(Stream):
    """The runs of a private selection: how many, and for each a candidate and a gate of its own.

    ``numbers`` [trials] are drawn from the event's law. Run k of a trial may spend the events of
    its candidate, once, where k is below the trial's number.
    """

    few_outcomes = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        if event.count != 1:
            raise PrivacyError("one stream is for the runs of one selection")
        self._gate, self._keys = gate, gate.keys()
        uniforms = exponential_noise.uniform_of_each(self._keys, 0, 0)
        drawn = np.array([event.find_number(float(one)) for one in uniforms], dtype=np.int64)
        self.numbers = np.array(self._take_draw(None, drawn, 0))
        self.numbers.flags.writeable = False
        self._runs = StepRecord(int(np.max(self.numbers, initial=0)), once=True)

    def open_runs(self, run: int) -> list[tuple[int, np.ndarray, Any]]:
        """Run ``run`` of all trials that have one: which candidates, of which trials, and a gate.

        The gate is for these trials and the candidate's events, each once. PrivacyError for a run
        that no trial has, and for one that was opened before.
        """
        self._runs.mark(run)
        among = self.event.candidates
        uniforms = exponential_noise.uniform_of_each(self._keys, 1, run)
        drawn = np.minimum((uniforms * len(among)).astype(np.int64), len(among) - 1)
        drawn = self._take_draw(None, np.where(self.numbers > run, drawn, -1), 1 + run)
        groups = [(number, np.flatnonzero(drawn == number)) for number in range(len(among))]
        return [
            (number, trials, self._gate.open_run(self._keys[trials], run, self.event, number))
            for number, trials in groups
            if len(trials)
        ]


class LawStream(Stream):
    """Random numbers for a sampler of a law made of the loss.

    The sampler turns uniforms into a point and passes the point through ``release``, where a tape
    sees it; that it has the law it claims is the business of the sampler's own tests.
    """

    few_outcomes = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self._keys, self._steps = gate.keys(), gate.steps(event.count)

    def uniforms(self, trial: int, step: int, count: int, start: int = 0) -> np.ndarray:
        """Numbers ``start`` .. ``start + count - 1`` of a trial's step, in (0, 1), shape [count].

        A step has 2^33 numbers.
        """
        return exponential_noise.uniforms(self._keys[trial], step, start, count)

    def each(self, step: int, number: int) -> np.ndarray:
        """Number ``number`` of a step of every trial, in (0, 1), shape [trials]."""
        return exponential_noise.uniform_of_each(self._keys, step, number)

    def release(self, drawn: np.ndarray, step: int) -> np.ndarray:
        """What was sampled at a step, [trials, p]."""
        self._steps.mark(step)
        return drawn if self._tape is None else self._tape.take_draw(self, LAW, drawn, (step,))


LAW = object()  # what a tape hears as the value of a draw from a law, which hides no value


def require_no_tape(keys: np.ndarray, tape: Any) -> np.ndarray:
    """The keys for a compiled loop. PrivacyError while a tape listens."""
    if tape is not None:
        raise PrivacyError("a compiled loop would draw past the tape; use the plain loop")
    return keys


def stream_key(seed: np.random.SeedSequence, number: int) -> np.ndarray:
    """The key [2], uint64, of a trial's stream number ``number``."""
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    return child.generate_state(2, np.uint64)
