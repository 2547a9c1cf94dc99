"""Streams of noise, batches and uniforms: what the gate hands out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import channels, exponential, gaussian, indices
from dperm_cli.privacy import _exact
from dperm_cli.privacy.channels import Channel as Shape
from dperm_cli.privacy.events import Channel

GAUSSIAN, LAPLACE, GAMMA_NORM = "gaussian", "laplace", "gamma_norm"
# The tape's method for each kind of noise.
_HEARD = {GAUSSIAN: "noise", LAPLACE: "laplace", GAMMA_NORM: "gamma_norm"}
# Largest multiple of a grid that a value may be: sums with noise stay exact integers.
_MOST_UNITS = 2.0**52
# Smallest bound of a channel: below, its inverse is infinite and 0 over it is no number.
_LEAST_BOUND = 2.0**-1022


class Steps:
    """Which of ``count`` steps were drawn; with ``once`` none is drawn a second time."""

    def __init__(self, count: int, once: bool) -> None:
        self.count, self._seen = count, set() if once else None

    def mark(self, step: int) -> None:
        if not 0 <= step < self.count:
            raise PrivacyError(f"noise asked for step {step} of a stream of {self.count}")
        if self._seen is not None and step in self._seen:
            raise PrivacyError(f"noise of step {step} asked for a second time")
        if self._seen is not None:
            self._seen.add(step)


class NoiseStream:
    """Noise of one kind keyed by (trial, step), or on a grid; [trials, dim] at each step."""

    def __init__(
        self,
        kind: str,
        noise: Keyed | OnGrid,
        dim: int,
        scale: float,
        sensitivity: float,
        steps: Steps,
        tape: Any,
    ) -> None:
        self.kind, self.dim, self.scale, self.sensitivity = kind, dim, scale, sensitivity
        self._noise, self._steps, self._tape = noise, steps, tape

    @property
    def trials(self) -> int:
        return self._noise.trials

    @property
    def count(self) -> int:
        return self._steps.count

    def add(self, value: np.ndarray, step: int) -> np.ndarray:
        """``value`` [trials, dim] plus this step's noise; PrivacyError for any other shape.

        Without that check one draw could be spread over many coordinates, and cancel.
        """
        if np.shape(value) != (self.trials, self.dim):
            raise PrivacyError(
                f"a value of shape {np.shape(value)} at noise of shape {(self.trials, self.dim)}"
            )
        self._steps.mark(step)
        value, drawn = self._noise.add(value, self.kind, self.scale, self.dim, step)
        if self._tape is None:
            return drawn
        return getattr(self._tape, _HEARD[self.kind])(value, self.scale, self.sensitivity, drawn)

    def within(
        self, point: Callable[[np.ndarray], np.ndarray], value, step: int, paid: NoiseStream
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
            hear = getattr(self._tape, _HEARD[self.kind])
            found = hear(nothing, self.scale, self.sensitivity, found)
            found = hear(value(found), self.scale, self.sensitivity, found)
        return paid.add(found, step)

    @property
    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, for a compiled loop."""
        if not isinstance(self._noise, Keyed):
            raise PrivacyError("secure noise has no keys; use the plain loop")
        return opened(self._noise.keys, self._tape)


class Keyed:
    """Noise that is a function of (key, step, coordinate): seeded, in float64."""

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys

    @property
    def trials(self) -> int:
        return len(self.keys)

    def add(
        self, value: np.ndarray, kind: str, scale: float, dim: int, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if kind == GAUSSIAN:
            noise = gaussian.normals(self.keys, step, 1, dim)[:, 0, :]
        else:
            make = exponential.laplaces if kind == LAPLACE else exponential.gamma_norms
            noise = make(self.keys, step, dim)
        return value, value + scale * noise


class OnGrid:
    """Noise of the operating system's generator on multiples of ``step``, added in integers."""

    def __init__(self, trials: int, step: float, source: _exact.Source) -> None:
        self.trials, self._step, self._source = trials, step, source

    def add(
        self, value: np.ndarray, kind: str, scale: float, dim: int, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The value rounded to the grid, and the sum. Nothing here refuses a value: refusals
        would tell of it."""
        units = np.clip(np.rint(np.nan_to_num(value / self._step)), -_MOST_UNITS, _MOST_UNITS)
        drawn = _exact.rounded(kind, scale / self._step, self.trials * dim, self._source)
        total = units.astype(np.int64) + drawn.reshape(self.trials, dim)
        return units * self._step, total.astype(np.float64) * self._step


class CoordinateStream:
    """One draw from N(0, scale^2 I), handed out coordinate by coordinate: ``Gate.coordinates``.

    Which function of the data a coordinate is of may depend on the earlier ones.
    """

    def __init__(
        self, keys: np.ndarray, dim: int, scale: float, sensitivity: float, steps: Steps, tape: Any
    ) -> None:
        self.dim, self.scale, self.sensitivity = dim, scale, sensitivity
        self._noise = gaussian.normals(keys, 0, 1, dim)[:, 0, :]
        self._steps, self._tape, self._new = steps, tape, True

    @property
    def trials(self) -> int:
        return len(self._noise)

    def add(self, value: np.ndarray, number: int) -> np.ndarray:
        """``value`` [trials] plus the noise of coordinate ``number``."""
        if np.shape(value) != (self.trials,):
            raise PrivacyError(f"a coordinate of {self.trials} trials takes one number of each")
        self._steps.mark(number)
        column = np.array(value, dtype=float)[:, None]
        drawn = column + self.scale * self._noise[:, number : number + 1]
        if self._tape is not None:
            new, self._new = self._new, False
            drawn = self._tape.coordinate(column, self.scale, self.sensitivity, drawn, new)
        return drawn[:, 0]


class SparseStream:
    """Answers shown with noise where they are far from what was known: see ``Gate.sparse``.

    One draw of noise serves the test and the value shown, and a trial is over after its updates.
    """

    def __init__(
        self,
        noise: Keyed,
        scale: float,
        sensitivity: float,
        threshold: float,
        updates: int,
        steps: Steps,
        tape: Any,
    ) -> None:
        self.scale, self.sensitivity, self.threshold = scale, sensitivity, threshold
        self.updates, self._noise, self._steps, self._tape = updates, noise, steps, tape
        self._made = np.zeros(noise.trials, np.int64)

    @property
    def trials(self) -> int:
        return self._noise.trials

    @property
    def over(self) -> np.ndarray:
        """Which trials have made all their updates, [trials]; they answer from what is known."""
        return self._made >= self.updates

    def answer(
        self, value: np.ndarray, known: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers [trials] to query ``step`` and whether each is an update, [trials].

        ``value`` [trials] is of the data, ``known`` [trials] of what was released before. A trial
        that is over, whose value is not looked at, gets ``known``.
        """
        if np.shape(value) != (self.trials,) or np.shape(known) != (self.trials,):
            raise PrivacyError(f"answers for {self.trials} trials take one number of each")
        self._steps.mark(step)
        over = self.over
        column = np.where(over, known, value)[:, None]
        _, drawn = self._noise.add(column, LAPLACE, self.scale, 1, step)
        far = ~over & ~(np.abs(drawn[:, 0] - known) <= self.threshold)
        shown = np.stack([far.astype(float), np.where(far, drawn[:, 0], known)], axis=1)
        if self._tape is not None:
            shown = self._tape.sparse(column, known, self.scale, self.sensitivity, shown)
            far = shown[:, 0] > 0.0
        self._made += far
        return shown[:, 1], far


class BatchStream:
    """Noise on the sums over batches of records that no record shares: see ``Gate.disjoint``.

    The stream itself asks for each sum, over its own batch; each batch is used once.
    """

    def __init__(
        self,
        parts: Sequence[np.ndarray],
        kind: str,
        noise: Keyed | OnGrid,
        dim: int,
        scale: float,
        sensitivity: float,
        run: Steps,
        tape: Any,
    ) -> None:
        indices = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        if indices.size != np.unique(indices).size:
            raise PrivacyError("a record is in more than one of the disjoint batches")
        run.mark(0)
        self._parts = [np.array(part, dtype=np.int64) for part in parts]
        self._steps = Steps(len(self._parts), once=True)
        self.kind, self.dim, self.scale, self.sensitivity = kind, dim, scale, sensitivity
        self._noise, self._tape, self._new = noise, tape, True

    def release(self, total: Callable[[np.ndarray], np.ndarray], step: int) -> np.ndarray:
        """``total(indices)``, the sum [trials, dim] over the records of batch ``step``, with noise.

        ``total`` must look at the records with these indices and at no others.
        """
        self._steps.mark(step)
        value = total(self._parts[step])
        if np.shape(value) != (self._noise.trials, self.dim):
            shape = (self._noise.trials, self.dim)
            raise PrivacyError(f"a value of shape {np.shape(value)} at noise of shape {shape}")
        value, drawn = self._noise.add(value, self.kind, self.scale, self.dim, step)
        if self._tape is None:
            return drawn
        new, self._new = self._new, False
        return self._tape.disjoint(value, self.scale, self.sensitivity, drawn, new)


class ChannelStream:
    """What users' devices send: see ``Gate.channel``. An answer is keyed by (trial, answer number).

    ``coding`` is what a compiled loop needs to draw for itself.
    """

    def __init__(
        self,
        channel: Shape,
        event: Channel,
        bound: float,
        users: int,
        trials: int,
        keys: np.ndarray | None,
        source: _exact.Source,
        tape: Any,
    ) -> None:
        if not _LEAST_BOUND <= bound < np.inf:
            raise PrivacyError(f"a bound of {bound} on what a channel hides")
        self.channel, self.bound, self.users, self.trials = channel, bound, users, trials
        self.coding = channel.coding(bound)
        self._event, self._keys, self._source, self._tape = event, keys, source, tape
        self._asked = np.zeros(users, np.int32)
        self._sent = 0

    @property
    def messages(self) -> int:
        """How often each user answers, at most."""
        return self._event.messages

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
        drawn = channels.send(self.coding, value, self._words())
        if self._tape is None:
            return drawn
        return self._tape.channel(user, value, self._event, self.bound, drawn)

    @property
    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, for a compiled loop that asks every user; used up then."""
        if self._keys is None:
            raise PrivacyError("secure noise has no keys; use the plain loop")
        if self._sent:
            raise PrivacyError("some users have answered: no loop may ask all of them")
        self._asked[:] = self.messages
        self._sent = self.users * self.messages
        return opened(self._keys, self._tape)

    def _words(self) -> np.ndarray:
        number, self._sent = self._sent, self._sent + 1
        count = self.channel.blocks
        if self._keys is None:
            return self._source(2 * count * self.trials).reshape(self.trials, 2, count)
        return channels.keyed(self._keys, number, count)


class ChoiceStream:
    """Batches of record indices keyed by (trial, step)."""

    def __init__(
        self, keys: np.ndarray, population: int, batch: int, sampling: str, count: int, tape: Any
    ) -> None:
        self._keys, self.population, self.batch = keys, population, batch
        self.sampling, self.count, self._tape = sampling, count, tape

    def draw(self, trial: int, step: int) -> np.ndarray:
        """The indices of one trial's batch at one step, shape [b] (b varies under Poisson)."""
        drawn = indices.batch(
            self._keys[trial], step, self.population, self.batch, self.sampling == "poisson"
        )
        if self._tape is None:
            return drawn
        return self._tape.choice(self.population, self.batch, self.sampling, drawn)

    @property
    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, for a compiled loop."""
        return opened(self._keys, self._tape)


class LawStream:
    """Random numbers for a sampler of the law exp(-exponent * loss) on a set.

    The sampler turns uniforms into a point and passes the point through ``release``, where a tape
    sees it; that it has the law it claims is the business of the sampler's own tests.
    """

    def __init__(
        self, keys: np.ndarray, exponent: float, oscillation: float, steps: Steps, tape: Any
    ) -> None:
        self._keys, self.exponent, self.oscillation = keys, exponent, oscillation
        self._steps, self._tape = steps, tape

    @property
    def trials(self) -> int:
        return len(self._keys)

    def uniforms(self, trial: int, step: int, count: int, start: int = 0) -> np.ndarray:
        """Numbers ``start`` .. ``start + count - 1`` of a trial's step, in (0, 1), shape [count].

        A step has 2^33 numbers.
        """
        return exponential.uniforms(self._keys[trial], step, start, count)

    def each(self, step: int, number: int) -> np.ndarray:
        """Number ``number`` of a step of every trial, in (0, 1), shape [trials]."""
        return exponential.uniform_of_each(self._keys, step, number)

    def release(self, drawn: np.ndarray, step: int) -> np.ndarray:
        """What was sampled at a step, [trials, p]."""
        self._steps.mark(step)
        return drawn if self._tape is None else self._tape.law(*self._facts(), drawn)

    def _facts(self) -> tuple[float, float]:
        return self.exponent, self.oscillation


def opened(keys: np.ndarray, tape: Any) -> np.ndarray:
    """Keys for a loop that draws for itself; not while a tape is listening."""
    if tape is not None:
        raise PrivacyError("a compiled loop would draw past the tape; use the plain loop")
    return keys


def stream_key(seed: np.random.SeedSequence, number: int) -> np.ndarray:
    """The key [2], uint64, of a trial's stream number ``number``."""
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    return child.generate_state(2, np.uint64)
