"""Turn the error rates of an attack into a lower bound on epsilon.

``Rates`` are confidence bounds. Five arguments turn them into an epsilon (``Argument``):

``threshold``: TPR <= e^epsilon FPR + delta, whatever the law.
``gaussian``: mu >= z(TPR) - z(FPR) for mu-GDP outputs, and epsilon at delta from mu.
``profile``: the events claim a delta at every epsilon', and TPR <= e^epsilon' FPR + delta(epsilon')
must hold at each. The bound is the epsilon of the smallest noise scale that the rates contradict.
``interval``: epsilon >= a - a', for outputs on an interval whose densities fall as exp(-a u) and as
exp(-a' u) from one end to the other; each exponent follows from the chance of one end's part.

``sign``: as ``threshold`` at delta 0, for the sign of a statistic: no runs go into choosing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.events import Event, Gaussian

ERROR = 1e-4  # chance of a false alarm: that the rates of one attack are not within their bounds
_SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)  # epsilon' of a profile, over the claimed epsilon
_LOUDER = math.log(1.3)  # a profile is also looked up with 1.3 times the noise
_WIDEST = 6.0  # and its noise is sought between e^-6 and e^6 times what was planned
_NEAR = 4e-3  # to this relative precision
_STEEPEST = 1e4
_END = 1.5  # a density exp(-a u) is best known from its mass below 1.5 / a


@dataclass(frozen=True)
class Rates:
    """An upper bound on the false and a lower bound on the true positive rate of one attack."""

    false: float
    true: float


def upper(count: Any, runs: int, error: float = ERROR) -> np.ndarray:
    """Upper confidence bound on a rate at level ``error`` / 2 [Clopper-Pearson 1934]."""
    count = np.asarray(count, dtype=float)
    bound = betaincinv(np.minimum(count + 1.0, runs), np.maximum(runs - count, 1.0), 1 - error / 2)
    return np.where(count >= runs, 1.0, bound)


def lower(count: Any, runs: int, error: float = ERROR) -> np.ndarray:
    """Lower confidence bound on a rate at level ``error`` / 2 [Clopper-Pearson 1934]."""
    count = np.asarray(count, dtype=float)
    bound = betaincinv(np.maximum(count, 1.0), np.minimum(runs - count + 1.0, runs), error / 2)
    return np.where(count <= 0, 0.0, bound)


class Argument:
    """How rates bound epsilon at one delta."""

    @property
    def attack(self) -> tuple[float, bool, bool] | None:
        """(threshold, swap, below) where these are fixed; None where runs have to choose them."""
        return None

    def promise(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        """What rises with the epsilon that these bounds on the rates would show, elementwise."""
        raise NotImplementedError

    def epsilon(self, rates: Rates) -> float:
        """The epsilon that these rates prove: what they promise, unless a subclass knows better."""
        return max(0.0, float(self.promise(np.asarray(rates.false), np.asarray(rates.true))))


def make_argument(
    kind: str, events: Sequence[Event], claim: float, delta: float, relation: str
) -> Argument:
    """The ``Argument`` of this kind for events that claim (claim, delta)."""
    if kind == "profile":
        return Profile(tuple(events), claim, delta, relation)
    if kind == "interval":
        return IntervalOutputs(min(0.5, _END / claim))
    if kind == "sign":
        return Signs()
    return GaussianOutputs(delta) if kind == "gaussian" else AnyOutputs(delta)


@dataclass(frozen=True)
class AnyOutputs(Argument):
    """epsilon >= ln((TPR - delta) / FPR)."""

    delta: float

    def promise(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(true - self.delta, 1e-300) / np.maximum(false, 1e-300))


@dataclass(frozen=True)
class Signs(AnyOutputs):
    """The same of one sign: nothing has to be chosen, and delta is 0.

    Positive is the first data set, whose statistic is mostly above 0.
    """

    delta: float = 0.0

    @property
    def attack(self) -> tuple[float, bool, bool]:
        return 0.0, True, False


@dataclass(frozen=True)
class GaussianOutputs(Argument):
    """mu >= z(TPR) - z(FPR)."""

    delta: float

    def promise(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        return ndtri(true) - ndtri(false)

    def epsilon(self, rates: Rates) -> float:
        mu = super().epsilon(rates)
        if not mu > 0.0:
            return 0.0
        return account((Gaussian(1.0 / mu, 1.0),), delta=self.delta, relation="add_remove").epsilon


@dataclass(frozen=True)
class IntervalOutputs(Argument):
    """epsilon >= a - a' for densities prop. to exp(-a u), exp(-a' u) on 0 <= u <= 1.

    The first data set's falls more steeply, and u <= ``cut`` tells them apart.
    """

    cut: float

    @property
    def attack(self) -> tuple[float, bool, bool]:
        return self.cut, True, True

    def promise(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        return _steepness(true, self.cut) - _steepness(false, self.cut)


def _steepness(rate: np.ndarray, cut: float) -> np.ndarray:
    """a with (1 - exp(-a cut)) / (1 - exp(-a)) = rate, elementwise, by bisection.

    The chance that u <= cut rises with a, from 0 to 1.
    """
    low, high = np.full(np.shape(rate), -_STEEPEST), np.full(np.shape(rate), _STEEPEST)
    for _ in range(100):
        a = 0.5 * (low + high)
        # of -a: mirrored, so that no exponential overflows
        size = np.maximum(np.abs(a), 1e-12)
        part = np.where(a >= 0.0, np.expm1(-size * cut), np.exp(-size * (1.0 - cut)) * np.expm1(
            -size * cut))  # fmt: skip
        less = part / np.expm1(-size) < rate
        low, high = np.where(less, a, low), np.where(less, high, a)
    return 0.5 * (low + high)


@dataclass(frozen=True)
class Profile(Argument):
    """What the events claim at every epsilon', with more or less noise than was planned."""

    events: tuple[Event, ...]
    claim: float
    delta: float
    relation: str

    @cached_property
    def table(self) -> np.ndarray:
        """Rows (epsilon', ln delta as planned, fall of ln delta with 1.3 times the noise)."""
        rows = []
        for share in _SHARES:
            epsilon = share * self.claim
            planned, louder = (math.log(self._delta(epsilon, f)) for f in (0.0, _LOUDER))
            rows.append((epsilon, planned, planned - louder))
        return np.array(rows)

    def promise(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        return np.max(self._quietness(false, true), axis=0)

    def epsilon(self, rates: Rates) -> float:
        false, true = np.array([rates.false]), np.array([rates.true])
        quiet = self._quietness(false, true)[:, 0]
        at = int(np.argmax(quiet))
        if not quiet[at] > -_WIDEST:
            return 0.0
        return self._at(rates, self.table[at, 0], -float(quiet[at]))

    def _quietness(self, false: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Minus the log factor of the noise at which each epsilon' is just respected, [e, ...]."""
        epsilon, planned, fall = (column[:, None] for column in self.table.T)
        seen = true - np.exp(epsilon) * false
        with np.errstate(invalid="ignore", divide="ignore"):
            found = _LOUDER * (np.log(np.maximum(seen, 1e-300)) - planned) / fall
        return np.where(seen > 0.0, found, -np.inf)

    def _at(self, rates: Rates, epsilon: float, guess: float) -> float:
        """The bound from one epsilon', by search from a guess of the log factor of the noise."""

        def is_contradicted(log_factor: float) -> bool:
            allowed = self._delta(epsilon, log_factor)
            return rates.true > math.exp(epsilon) * rates.false + allowed

        low = high = min(max(guess, -_WIDEST), _WIDEST)
        step = 4.0 * _NEAR
        while is_contradicted(low):
            high, low, step = low, low - step, 2.0 * step
            if low < -2.0 * _WIDEST:
                return math.inf
        while high == low or not is_contradicted(high):
            low, high, step = high, high + step, 2.0 * step
            if high > 2.0 * _WIDEST:
                return 0.0
        while high - low > _NEAR:
            middle = (low + high) / 2.0
            low, high = (low, middle) if is_contradicted(middle) else (middle, high)
        noisier = self._events(high)
        return account(noisier, delta=self.delta, relation=self.relation).epsilon

    def _delta(self, epsilon: float, log_factor: float) -> float:
        events = self._events(log_factor)
        return max(delta_of(events, epsilon=epsilon, relation=self.relation), 1e-300)

    def _events(self, log_factor: float) -> list[Event]:
        return [scale_noise(event, math.exp(log_factor)) for event in self.events]


def scale_noise(event: Event, factor: float) -> Event:
    """The same event with ``factor`` times the noise: its scale, or one over its exponent."""
    if event.alternatives:
        runs = [[scale_noise(one, factor) for one in events] for events in event.alternatives]
        return event.change_fields(candidates=runs)
    for name in ("scale", "exponent", "epsilon"):
        if hasattr(event, name):
            value = getattr(event, name)
            return event.change_fields(
                **{name: value * factor if name == "scale" else value / factor}
            )
    raise ValueError(f"{type(event).__name__} has no noise to scale")
