"""The one gate through which noise is drawn.

A mechanism never touches a random generator. It asks the gate for a stream, saying what the
stream is for: the scale of the noise and the sensitivity of the values it will be added to. A
plain loop then adds noise step by step with ``stream.add``; a compiled loop receives the stream's
keys and produces, for the same keys, the same numbers. A tape (see ``audit.replay``) sees
every value, scale and sensitivity that passes, and forbids the compiled path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import gaussian, indices
from dperm_cli.privacy.events import Event, SampledGaussian


class Tape(Protocol):
    """Observer of everything that passes the gate; may replace what is drawn."""

    def noise(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray
    ) -> np.ndarray: ...

    def choice(
        self, population: int, batch: int, sampling: str, drawn: np.ndarray
    ) -> np.ndarray: ...


class Gate:
    """Issues the noise of ``trials`` independent releases, one seed each.

    Streams are numbered in the order they are asked for; the key of a stream is derived from
    (trial's seed, stream number), so no two streams and no two trials share random numbers.
    With ``plan`` = (events, relation) every stream must be an event of the plan, each used once.
    """

    def __init__(
        self,
        seeds: Sequence[np.random.SeedSequence],
        tape: Tape | None = None,
        plan: tuple[Sequence[Event], str] | None = None,
    ) -> None:
        self._seeds = list(seeds)
        self._streams = 0
        self.tape = tape
        self._unused = None if plan is None else list(plan[0])
        self._relation = "" if plan is None else plan[1]

    @property
    def trials(self) -> int:
        return len(self._seeds)

    @property
    def compiled(self) -> bool:
        """Whether compiled loops may draw for themselves (not while a tape is listening)."""
        return self.tape is None

    def gaussian(self, *, dim: int, count: int, scale: float, sensitivity: float) -> NoiseStream:
        """A stream of ``count`` draws from N(0, scale^2 I_dim) per trial.

        ``sensitivity`` bounds the L2 distance between the values of neighbouring data sets at any
        one step, given equal earlier outputs.
        """
        _check_scale(scale)
        self._spend(scale, count, sensitivity)
        return NoiseStream(self._keys(), dim, count, scale, sensitivity, self.tape)

    def choice(self, *, population: int, batch: int, sampling: str, count: int) -> ChoiceStream:
        """A stream of ``count`` random batches of record indices per trial."""
        return ChoiceStream(self._keys(), population, batch, sampling, count, self.tape)

    def _spend(self, scale: float, count: int, sensitivity: float) -> None:
        """With a plan: take off the event that this stream carries out, or raise PrivacyError."""
        if self._unused is None:
            return
        for event in self._unused:
            declared = event.sensitivity(self._relation)
            fits = event.scale == scale and event.count == count
            if fits and math.isclose(declared, sensitivity, rel_tol=1e-12):
                self._unused.remove(event)
                return
        raise PrivacyError(
            f"{count} draws of scale {scale:.6g} at sensitivity {sensitivity:.6g} are no event of "
            "the plan that was accounted for"
        )

    def _keys(self) -> np.ndarray:
        number, self._streams = self._streams, self._streams + 1
        return np.stack([_stream_key(seed, number) for seed in self._seeds])


class NoiseStream:
    """Gaussian noise keyed by (trial, step); shape [trials, dim] at each step."""

    def __init__(
        self,
        keys: np.ndarray,
        dim: int,
        count: int,
        scale: float,
        sensitivity: float,
        tape: Tape | None,
    ) -> None:
        self._keys, self.dim, self.count = keys, dim, count
        self.scale, self.sensitivity, self._tape = scale, sensitivity, tape

    @property
    def trials(self) -> int:
        return len(self._keys)

    def add(self, value: np.ndarray, step: int) -> np.ndarray:
        """``value`` [trials, dim] plus this step's noise."""
        if not 0 <= step < self.count:
            raise PrivacyError(f"noise asked for step {step} of a stream of {self.count}")
        noise = gaussian.normals(self._keys, step, 1, self.dim)[:, 0, :]
        drawn = value + self.scale * noise
        if self._tape is None:
            return drawn
        return self._tape.noise(value, self.scale, self.sensitivity, drawn)

    @property
    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, for a compiled loop."""
        return _open(self._keys, self._tape)


class ChoiceStream:
    """Batches of record indices keyed by (trial, step)."""

    def __init__(
        self,
        keys: np.ndarray,
        population: int,
        batch: int,
        sampling: str,
        count: int,
        tape: Tape | None,
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
        return _open(self._keys, self._tape)


def range_delta(events: Sequence[Event], relation: str) -> float:
    """What the bounded range of the generator can add to delta.

    Its normals come in pairs of radius at most R = ``gaussian.LARGEST``, so an output that a
    neighbour's larger value makes possible may be impossible here: per draw with probability at
    most exp(-(R - s)^2 / 2) for a shift of s standard deviations, however it is spread over pairs.
    """
    total = 0.0
    for event in events:
        room = gaussian.LARGEST - event.sensitivity(relation) / event.scale
        chance = math.exp(-room * room / 2.0) if room > 0 else 1.0
        rate = event.rate if isinstance(event, SampledGaussian) else 1.0
        total += event.count * rate * chance
    return total


def _open(keys: np.ndarray, tape: Tape | None) -> np.ndarray:
    if tape is not None:
        raise PrivacyError("a compiled loop would draw past the tape; use the plain loop")
    return keys


def _check_scale(scale: float) -> None:
    if not (0 < scale < np.inf):
        raise PrivacyError(f"noise scale {scale} is not a positive finite number")


def _stream_key(seed: np.random.SeedSequence, number: int) -> np.ndarray:
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    return child.generate_state(2, np.uint64)
