"""The one gate through which noise is drawn.

A mechanism never touches a random generator. It asks the gate for a stream, saying what the
stream is for: the scale of the noise and the sensitivity of the values it will be added to. A
plain loop then adds noise step by step with ``stream.add``; a compiled loop receives the stream's
keys and produces, for the same keys, the same numbers. A tape (see ``audit.replay``) sees
every value, scale and sensitivity that passes, and forbids the compiled path.

Noise is seeded (``Gate``: reproducible, float64, for research) or comes from the operating system
and lies on a grid (``Gate.secure``). The kinds are

=============  =======================================  ================  ==================
stream         density of the noise b                   sensitivity in    secure
=============  =======================================  ================  ==================
``gaussian``   exp(-|b|_2^2 / (2 scale^2))              L2                yes
``laplace``    exp(-|b|_1 / scale)                      L1                yes
``gamma_norm`` exp(-|b|_2 / scale)                      L2                no
``choice``     batches of record indices                                  no
``law``        uniforms for a sampler of exp(-c loss)                     no
``disjoint``   Gaussian or Gamma norm, on sums over disjoint batches      no
``channel``    answers of users' devices (``privacy.channels``)           discrete ones
``sparse``     Laplace, shown where an answer is far off                  no
=============  =======================================  ================  ==================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy import _exact
from dperm_cli.privacy._range import Noisy, kind_of, largest_norm, range_delta
from dperm_cli.privacy._streams import (
    GAMMA_NORM,
    GAUSSIAN,
    LAPLACE,
    BatchStream,
    ChannelStream,
    ChoiceStream,
    CoordinateStream,
    Keyed,
    LawStream,
    NoiseStream,
    OnGrid,
    SparseStream,
    Steps,
    stream_key,
)
from dperm_cli.privacy.channels import by_epsilon
from dperm_cli.privacy.events import (
    Channel,
    DisjointBatches,
    Event,
    Exponential,
    RegularizedExponential,
    SampledGaussian,
    SparseAnswers,
)
from dperm_cli.privacy.secure import Grid

__all__ = [
    "BatchStream",
    "ChannelStream",
    "ChoiceStream",
    "CoordinateStream",
    "Gate",
    "LawStream",
    "NoiseStream",
    "SparseStream",
    "Tape",
    "largest_norm",
    "range_delta",
]


class Tape(Protocol):
    """Observer of everything that passes the gate; may replace what is drawn.

    ``noise`` hears Gaussian noise. ``sensitivity`` is in the norm of the kind of noise. ``new``
    marks the first batch of a pass, or the first coordinate of a vector: its sensitivity is for
    all of them together. What
    ``sparse`` may replace is [trials, 2]: whether there was an update, and the answer.
    """

    def noise(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray
    ) -> np.ndarray: ...

    def laplace(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray
    ) -> np.ndarray: ...

    def gamma_norm(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray
    ) -> np.ndarray: ...

    def choice(
        self, population: int, batch: int, sampling: str, drawn: np.ndarray
    ) -> np.ndarray: ...

    def law(self, exponent: float, oscillation: float, drawn: np.ndarray) -> np.ndarray: ...

    def coordinate(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray, new: bool
    ) -> np.ndarray: ...

    def sparse(
        self,
        value: np.ndarray,
        known: np.ndarray,
        scale: float,
        sensitivity: float,
        drawn: np.ndarray,
    ) -> np.ndarray: ...

    def disjoint(
        self, value: np.ndarray, scale: float, sensitivity: float, drawn: np.ndarray, new: bool
    ) -> np.ndarray: ...

    def channel(
        self, user: int, value: np.ndarray, event: Channel, bound: float, drawn: np.ndarray
    ) -> np.ndarray: ...


class Gate:
    """Issues the noise of ``trials`` independent releases, one seed each.

    Streams are numbered in the order they are asked for; the key of a stream is derived from
    (trial's seed, stream number), so no two streams and no two trials share random numbers.
    With ``plan`` = (events, relation) every stream must be an event of the plan, each used once,
    and no step of a stream is drawn twice.
    """

    def __init__(
        self,
        seeds: Sequence[np.random.SeedSequence],
        tape: Tape | None = None,
        plan: tuple[Sequence[Event], str] | None = None,
    ) -> None:
        self._seeds = list(seeds)
        self._grid: Grid | None = None
        self._system = False  # draws channels' answers from the operating system's generator
        self._source: _exact.Source = _exact.system_words
        self.trials = len(self._seeds)
        self._streams = 0
        self.tape = tape
        self._unused = None if plan is None else list(plan[0])
        self._unsampled = None if plan is None else list(plan[0])
        self._relation = "" if plan is None else plan[1]

    @classmethod
    def secure(
        cls,
        trials: int,
        grid: Grid,
        plan: tuple[Sequence[Event], str],
        tape: Tape | None = None,
        source: _exact.Source = _exact.system_words,
    ) -> Gate:
        """A gate whose noise comes from the operating system and lies on a grid.

        Values are rounded to the grid, noise is exact on it, and sums are made of integers: what
        comes out is a multiple of ``grid.step`` whatever went in. ``plan`` holds the events of the
        rounded releases (``privacy.secure.on_grid``). ``source`` is for tests.
        """
        gate = cls([], tape, plan)
        gate.trials, gate._grid, gate._source = trials, grid, source
        return gate

    @classmethod
    def secure_channels(
        cls,
        trials: int,
        plan: tuple[Sequence[Event], str],
        tape: Tape | None = None,
        source: _exact.Source = _exact.system_words,
    ) -> Gate:
        """A gate for channels alone, whose answers come from the operating system's generator.

        The values that an answer can have do not depend on what it stands for, and its chances are
        whole numbers of 2^-64: there is nothing to round. ``source`` is for tests.
        """
        gate = cls([], tape, plan)
        gate.trials, gate._system, gate._source = trials, True, source
        return gate

    @property
    def compiled(self) -> bool:
        """Whether compiled loops may draw for themselves (seeded noise without a tape)."""
        return self.tape is None and self._grid is None and not self._system

    def gaussian(self, *, dim: int, count: int, scale: float, sensitivity: float) -> NoiseStream:
        """A stream of ``count`` draws from N(0, scale^2 I_dim) per trial.

        ``sensitivity`` bounds the L2 distance between the values of neighbouring data sets at any
        one step, given equal earlier outputs.
        """
        return self._noise(GAUSSIAN, dim, count, scale, sensitivity)

    def coordinates(self, *, dim: int, scale: float, sensitivity: float) -> CoordinateStream:
        """One draw from N(0, scale^2 I_dim) per trial, of which coordinates are asked one by one.

        ``sensitivity`` bounds the root of the sum, over all coordinates, of the squared distances
        between the values of neighbouring data sets, whatever coordinates are asked for. That makes
        it the release of one vector (event ``Gaussian``, count 1) if the values are coordinates of
        one vector in orthonormal directions, each chosen from public facts and earlier answers.
        """
        self._check_event(GAUSSIAN, 1, scale, sensitivity)
        return CoordinateStream(
            self._keys(), dim, scale, sensitivity, Steps(dim, once=True), self.tape
        )

    def laplace(self, *, dim: int, count: int, scale: float, sensitivity: float) -> NoiseStream:
        """``count`` draws of independent Laplace(scale) coordinates; sensitivity in L1."""
        return self._noise(LAPLACE, dim, count, scale, sensitivity)

    def gamma_norm(self, *, dim: int, count: int, scale: float, sensitivity: float) -> NoiseStream:
        """``count`` draws of a uniform direction times Gamma(dim, scale); sensitivity in L2."""
        return self._noise(GAMMA_NORM, dim, count, scale, sensitivity)

    def disjoint(
        self,
        parts: Sequence[np.ndarray],
        *,
        dim: int,
        scale: float,
        sensitivity: float,
        noise: str = GAUSSIAN,
    ) -> BatchStream:
        """One draw for each of the sums over disjoint batches of records.

        ``parts`` holds every batch's record indices; a record that is in two of them is refused.
        ``sensitivity`` bounds the L2 distances between neighbours' sums, added up over the batches.
        """

        def fits(event: Event) -> bool:
            if not isinstance(event, DisjointBatches) or event.scale != scale:
                return False
            same = (event.batches, event.count, event.noise) == (len(parts), 1, noise)
            return same and _close(event.sensitivity(self._relation), sensitivity)

        _check_scale(scale)
        words = f"{len(parts)} disjoint batches with {noise} noise of scale {scale:.6g}"
        _spend(self._unused, fits, f"{words} at sensitivity {sensitivity:.6g}")
        return BatchStream(
            parts, noise, self._draws(noise), dim, scale, sensitivity, self._steps(1), self.tape
        )

    def channel(
        self, *, shape: str, dim: int, epsilon: float, bound: float, users: int, messages: int = 1
    ) -> ChannelStream:
        """The answers of ``users`` devices, ``messages`` of each, by a channel of this epsilon.

        ``bound`` is on the norm, in the channel's own, of the vectors that answers stand for:
        longer ones are shortened. No user answers more often.
        """
        event = Channel(epsilon, messages, shape, dim)

        def fits(planned: Event) -> bool:
            return planned == event

        words = f"{messages} answers of a user by the {shape} channel of epsilon {epsilon:.6g}"
        _spend(self._unused, fits, f"{words} in {dim} dimensions")
        channel = by_epsilon(shape, dim, epsilon)
        if self._system and not channel.discrete:
            raise PrivacyError(f"answers of the {shape} channel have no secure form")
        keys = None if self._system else self._keys()
        return ChannelStream(
            channel, event, bound, users, self.trials, keys, self._source, self.tape
        )

    def sparse(
        self, *, queries: int, updates: int, scale: float, sensitivity: float, threshold: float
    ) -> SparseStream:
        """Up to ``queries`` answers a trial, ``updates`` of them with Laplace(scale) noise.

        ``sensitivity`` bounds how far the value of one query is apart on neighbouring data sets,
        given equal earlier answers. The event is ``SparseAnswers``.
        """

        def fits(event: Event) -> bool:
            facts = (queries, updates, scale, threshold, 1)
            return (
                isinstance(event, SparseAnswers)
                and facts
                == (event.queries, event.updates, event.scale, event.threshold, event.count)
                and _close(event.sensitivity(self._relation), sensitivity)
            )

        _check_scale(scale)
        words = f"{queries} sparse answers with {updates} updates at noise of scale {scale:.6g}"
        _spend(self._unused, fits, f"{words} and sensitivity {sensitivity:.6g}")
        keyed = Keyed(self._keys())
        steps = Steps(queries, once=True)
        return SparseStream(keyed, scale, sensitivity, threshold, updates, steps, self.tape)

    def choice(self, *, population: int, batch: int, sampling: str, count: int) -> ChoiceStream:
        """A stream of ``count`` random batches of record indices per trial."""

        def fits(event: Event) -> bool:
            facts = (population, batch, sampling, count)
            return isinstance(event, SampledGaussian) and facts == (
                event.population, event.batch, event.sampling, event.count
            )  # fmt: skip

        _spend(self._unsampled, fits, f"{count} batches of {batch} of {population} ({sampling})")
        return ChoiceStream(self._keys(), population, batch, sampling, count, self.tape)

    def law(self, *, exponent: float, oscillation: float, count: int = 1) -> LawStream:
        """Uniforms for ``count`` samples per trial of the law exp(-exponent * loss).

        ``oscillation`` bounds max - min over the set of the difference of the losses of
        neighbouring data sets: it is the sensitivity of the event ``Exponential``.
        """
        _check_scale(exponent)

        def fits(event: Event) -> bool:
            if not isinstance(event, Exponential) or event.exponent != exponent:
                return False
            return event.count == count and _close(event.sensitivity(self._relation), oscillation)

        _spend(self._unused, fits, f"{count} samples at exponent {exponent:.6g}")
        return LawStream(self._keys(), exponent, oscillation, self._steps(count), self.tape)

    def strong_law(self, *, scale: float, sensitivity: float, count: int = 1) -> LawStream:
        """Uniforms for ``count`` samples per trial of exp(-c L), c L being m-strongly convex.

        ``sensitivity`` bounds |grad L - grad L'| of neighbouring data sets on the set and ``scale``
        is sqrt(m) / c: one sample is (sensitivity / scale)-GDP [GLL22], the event
        ``RegularizedExponential`` with these two numbers. A tape hears them as ``law`` hears its
        own.
        """
        _check_scale(scale)

        def fits(event: Event) -> bool:
            if not isinstance(event, RegularizedExponential) or event.scale != scale:
                return False
            return event.count == count and _close(event.sensitivity(self._relation), sensitivity)

        words = f"{count} samples of a strongly convex law at scale {scale:.6g}"
        _spend(self._unused, fits, words)
        return LawStream(self._keys(), scale, sensitivity, self._steps(count), self.tape)

    def each(self) -> list[Gate]:
        """One gate for every trial, for releases whose set differs from trial to trial.

        Each may spend all that is left of the plan, and this gate nothing more. A trial's numbers
        are those of the streams that would have come next here, whatever the other trials ask for.
        """
        if self._grid is not None:
            raise PrivacyError("a gate on a grid cannot be split")
        keys: dict[int, np.ndarray] = {}
        parts: list[Gate] = [_OneTrial(self, trial, keys) for trial in range(self.trials)]
        if self._unused is not None:
            self._unused, self._unsampled = [], []
        return parts

    def _noise(
        self, kind: str, dim: int, count: int, scale: float, sensitivity: float
    ) -> NoiseStream:
        self._check_event(kind, count, scale, sensitivity)
        return NoiseStream(
            kind, self._draws(kind), dim, scale, sensitivity, self._steps(count), self.tape
        )

    def _check_event(self, kind: str, count: int, scale: float, sensitivity: float) -> None:
        _check_scale(scale)

        def fits(event: Event) -> bool:
            if not isinstance(event, Noisy) or kind_of(event) != kind or event.scale != scale:
                return False
            return event.count == count and _close(event.sensitivity(self._relation), sensitivity)

        words = f"{count} {kind} draws of scale {scale:.6g} at sensitivity {sensitivity:.6g}"
        _spend(self._unused, fits, words)

    def _draws(self, kind: str) -> Keyed | OnGrid:
        if self._grid is None:
            return Keyed(self._keys())  # refused by a gate for channels
        if kind == GAMMA_NORM:
            raise PrivacyError("noise of a Gamma norm has no secure form")
        return OnGrid(self.trials, self._grid.step, self._source)

    def _steps(self, count: int) -> Steps:
        return Steps(count, once=self._unused is not None)

    def _keys(self) -> np.ndarray:
        if self._grid is not None or self._system:
            raise PrivacyError("only noise on the grid is secure; this stream is seeded")
        number, self._streams = self._streams, self._streams + 1
        return np.stack([stream_key(seed, number) for seed in self._seeds])


class _OneTrial(Gate):
    """The rest of another gate, for one of its trials; ``keys`` is shared by its siblings."""

    def __init__(self, whole: Gate, trial: int, keys: dict[int, np.ndarray]) -> None:
        left = None if whole._unused is None else (tuple(whole._unused), whole._relation)
        super().__init__([], whole.tape, left)
        self._unsampled = None if whole._unsampled is None else list(whole._unsampled)
        self.trials = 1
        self._whole, self._trial, self._shared = whole, trial, keys
        self._streams = whole._streams

    def _keys(self) -> np.ndarray:
        number, self._streams = self._streams, self._streams + 1
        if number not in self._shared:
            self._whole._streams = number
            self._shared[number] = self._whole._keys()
        return self._shared[number][self._trial : self._trial + 1]


def _spend(unused: list[Event] | None, fits, words: str) -> None:
    """With a plan: take off the event that a stream carries out, or raise PrivacyError."""
    if unused is None:
        return
    for event in unused:
        if fits(event):
            unused.remove(event)
            return
    raise PrivacyError(f"{words} are no event of the plan that was accounted for")


def _close(declared: float, asked: float) -> bool:
    return math.isclose(declared, asked, rel_tol=1e-12)


def _check_scale(scale: float) -> None:
    if not (0 < scale < np.inf):
        raise PrivacyError(f"noise scale {scale} is not a positive finite number")
