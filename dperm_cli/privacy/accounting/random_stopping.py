"""Renyi bounds of private selection: the best of a random number of runs [PS22].

One run is mu-GDP and shows its output with a score. It is repeated K times, K drawn from a law that
does not look at the data, and the run of the best score is shown. With eps(a) = a mu^2 / 2, the
Renyi divergence of one run, that of the whole is at most

    truncated negative binomial K [PS22, Thm 2], for every a' >= 1:
        eps(a) + (1 + eta) (1 - 1/a') eps(a') + (1 + eta) ln(1 / gamma) / a' + ln(E K) / (a - 1)
    Poisson K of mean m [PS22, Thm 6]:
        eps(a) + m delta(ln(1 + 1 / (a - 1))) + ln(m) / (a - 1),

delta the profile of one run. A ``tilt`` is a - 1, and the bounds are on log E e^{tilt loss}.
"""

from __future__ import annotations

import math
from typing import Protocol

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import gaussian_profile

# Chances below this end the list of numbers of runs: no uniform number of 52 bits reaches them.
_LEAST_CHANCE = 2.0**-60


class RenyiBound(Protocol):
    """A step of which a bound on the moments of its loss is all that is known."""

    @property
    def largest_tilt(self) -> float:
        """A tilt above which no bound is known."""
        ...

    def log_m(self, tilt: float) -> float:
        """A bound on log E e^{tilt S}."""
        ...


class RunNumberLaw(Protocol):
    """The law of the number of runs of a private selection."""

    @property
    def expected_runs(self) -> float:
        """The mean number of runs."""
        ...

    def added_log_m(self, tilt: float, mu: float) -> float:
        """What the selection adds to log E e^{tilt S} of one run that is mu-GDP."""
        ...

    def find_number(self, uniform: float) -> int:
        """The number of runs whose chances, added up from the least number on, pass ``uniform``."""
        ...


@dataclass(frozen=True)
class NegativeBinomial:
    """The negative binomial law, 0 left out; ``eta`` = 1 is geometric, 0 logarithmic."""

    eta: float
    gamma: float

    @property
    def expected_runs(self) -> float:
        """eta (1 - gamma) / (gamma (1 - gamma^eta)), at eta = 0 its limit."""
        return (1.0 - self.gamma) / (self.gamma * self._total)

    @property
    def _total(self) -> float:
        """(1 - gamma^eta) / eta, at eta = 0 its limit ln(1 / gamma)."""
        log = math.log(self.gamma)
        return -log if self.eta == 0.0 else -math.expm1(self.eta * log) / self.eta

    def added_log_m(self, tilt: float, mu: float) -> float:
        """[PS22, Thm 2] at the best a', which is sqrt(2 ln(1 / gamma)) / mu or 1."""
        log = -math.log(self.gamma)
        other = max(1.0, math.sqrt(2.0 * log) / mu)
        added = (other - 1.0) * mu * mu / 2.0 + log / other
        return (1.0 + self.eta) * tilt * added + math.log(self.expected_runs)

    def pure_epsilon(self, epsilon: float) -> float:
        """What the whole spends where one run is pure [PS22, Cor. 3]; rounded up."""
        return (2.0 + self.eta) * epsilon * (1.0 + 1e-15)

    def find_number(self, uniform: float) -> int:
        """At least 1."""
        chance = (1.0 - self.gamma) * self.gamma**self.eta / self._total
        passed, number = chance, 1
        while passed <= uniform and (chance > _LEAST_CHANCE or number < self.expected_runs):
            chance *= (1.0 - self.gamma) * (number + self.eta) / (number + 1.0)
            passed, number = passed + chance, number + 1
        return number


@dataclass(frozen=True)
class Poisson:
    """The Poisson law of a ``mean``, 0 included."""

    mean: float

    @property
    def expected_runs(self) -> float:
        """The mean."""
        return self.mean

    def added_log_m(self, tilt: float, mu: float) -> float:
        """[PS22, Thm 6]."""
        level = math.log1p(1.0 / tilt)
        return tilt * self.mean * gaussian_profile.delta(level, mu) + math.log(self.mean)

    def find_number(self, uniform: float) -> int:
        """0 or more."""
        log_chance, number = -self.mean, 0  # of a large mean the first chances are no doubles
        passed = chance = math.exp(log_chance)
        while passed <= uniform and (chance > _LEAST_CHANCE or number < self.mean):
            number += 1
            log_chance += math.log(self.mean / number)
            chance = math.exp(log_chance)
            passed += chance
        return number


@dataclass(frozen=True)
class SelectionLoss:
    """The loss of ``count`` selections among runs that are each mu-GDP."""

    mu: float
    runs: RunNumberLaw
    count: int = 1

    largest_tilt = math.inf

    def log_m(self, tilt: float) -> float:
        """A bound on log E e^{tilt S}."""
        if self.mu == 0.0:
            return 0.0
        one = self.mu**2 / 2.0 * tilt * (1.0 + tilt)
        return self.count * (one + self.runs.added_log_m(tilt, self.mu))
