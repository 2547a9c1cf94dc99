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
=============  =======================================  ================  ==================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import exponential, gaussian
from dperm_cli.privacy import _exact
from dperm_cli.privacy._streams import (
    GAMMA_NORM,
    GAUSSIAN,
    LAPLACE,
    BatchStream,
    ChannelStream,
    ChoiceStream,
    Keyed,
    LawStream,
    NoiseStream,
    OnGrid,
    Steps,
    stream_key,
)
from dperm_cli.privacy.channels import by_epsilon
from dperm_cli.privacy.events import (
    Channel,
    DisjointBatches,
    Event,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    Laplace,
    PerturbedObjective,
    RegularizedExponential,
    SampledGaussian,
)
from dperm_cli.privacy.secure import Grid

__all__ = [
    "BatchStream",
    "ChannelStream",
    "ChoiceStream",
    "Gate",
    "LawStream",
    "NoiseStream",
    "Tape",
    "range_delta",
]

# The noise that carries out each event.
_KINDS = {
    Gaussian: GAUSSIAN,
    GaussianMatrix: GAUSSIAN,
    SampledGaussian: GAUSSIAN,
    Laplace: LAPLACE,
    GammaNorm: GAMMA_NORM,
}
Noisy = Gaussian | SampledGaussian | Laplace | GammaNorm | PerturbedObjective
# The chance of what one uniform leaves out, at most, with room for the tries of a rejection.
_UNSEEN = 2.0**-50


class Tape(Protocol):
    """Observer of everything that passes the gate; may replace what is drawn.

    ``noise`` hears Gaussian noise. ``sensitivity`` is in the norm of the kind of noise. ``new``
    marks the first batch of a pass: its sensitivity is for all of its batches together.
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
        _check_scale(scale)

        def fits(event: Event) -> bool:
            if not isinstance(event, Noisy) or _kind(event) != kind or event.scale != scale:
                return False
            return event.count == count and _close(event.sensitivity(self._relation), sensitivity)

        words = f"{count} {kind} draws of scale {scale:.6g} at sensitivity {sensitivity:.6g}"
        _spend(self._unused, fits, words)
        return NoiseStream(
            kind, self._draws(kind), dim, scale, sensitivity, self._steps(count), self.tape
        )

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


def _kind(event: Noisy) -> str:
    return event.noise if isinstance(event, PerturbedObjective) else _KINDS[type(event)]


def range_delta(events: Sequence[Event], relation: str, dim: int) -> float:
    """What the bounded range of the seeded generator can add to delta, in ``dim`` coordinates.

    An output that a neighbour's larger value makes possible may be impossible here. Normals come
    in m = ceil(dim / 2) pairs of radius at most R = ``gaussian.LARGEST``, and a pair shifted by t
    standard deviations leaves that range with chance at most h(t) = exp(-(R - t)^2 / 2), plus one
    atom exp(-R^2 / 2). h is convex up to R - 1, so that shifts of length s in all, spread over
    the pairs as one likes, add at most 2 m e^{-R^2/2} + sqrt(m) (h(s) - e^{-R^2/2}) a draw.
    Exponentials, of which Laplace and Gamma-norm noise are made, end at R = 9227 scales: the
    chance that one passes R - s is at most e^-(R - s), which is 0 in float64 up to s = 8400; a
    Gamma norm of p coordinates has p of them and normals of radius sqrt(2 R).
    Secure noise has no bounded range.

    A sampler of a strongly convex law turns uniforms of 52 bits into points: what it cannot draw
    has chance ``_UNSEEN`` (dim + 2) at most, and a neighbour that is s standard deviations off, as
    a Gaussian trade-off says, draws it with chance Phi(s + Phi^-1 of that) at most. Laws of pure
    events are statements about real numbers.
    """
    return sum((_out_of_range(event, relation, dim) for event in events), 0.0)


def _out_of_range(event: Event, relation: str, dim: int) -> float:
    if isinstance(event, DisjointBatches):
        # two of its sums move at most, neither by more than all of the sensitivity
        return 2.0 * _out_of_range(event.alone(), relation, dim)
    if isinstance(event, RegularizedExponential):
        shift = event.sensitivity(relation) / event.scale
        unseen = float(ndtr(shift + ndtri(min(0.5, _UNSEEN * (dim + 2.0)))))
        return event.count * unseen if shift > 0.0 else 0.0
    kind = _kind(event) if isinstance(event, Noisy) else ""
    if isinstance(event, GaussianMatrix):
        dim = dim * (dim + 1) // 2
    if isinstance(event, Noisy) and kind == GAUSSIAN:
        shift = event.sensitivity(relation) / event.scale
        rate = event.rate if isinstance(event, SampledGaussian) else 1.0
        return event.count * rate * _pairs_out_of_range(shift, (dim + 1) // 2)
    if isinstance(event, Noisy):
        room = exponential.LARGEST - event.sensitivity(relation) / event.scale
        # of the at most 2^23 coordinates of a draw, with two exponentials each
        return event.count * min(1.0, 2.0 * exponential.MOST * math.exp(-max(room, 0.0)))
    return 0.0


def _pairs_out_of_range(shift: float, pairs: int) -> float:
    room, atom = gaussian.LARGEST - shift, math.exp(-(gaussian.LARGEST**2) / 2.0)
    if not room > 1.0:
        return 1.0
    alone = math.exp(-room * room / 2.0) - atom
    return min(1.0, 2.0 * pairs * atom + math.sqrt(pairs) * alone) if shift > 0 else 0.0


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
