"""The number of runs of a private selection: its law by the mean, and what it costs."""

from __future__ import annotations

import math

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import calibrate, gaussian_profile
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial, Poisson, RunNumberLaw


def find_negative_binomial(eta: float, runs: float) -> NegativeBinomial:
    """The negative binomial law without 0 that expects so many runs."""
    end = 1.0 - 1e-9
    if NegativeBinomial(eta, end).expected_runs >= runs:
        return NegativeBinomial(eta, end)

    def excess(log_gamma: float) -> float:
        return math.log(NegativeBinomial(eta, math.exp(log_gamma)).expected_runs / runs)

    low = math.log(0.5)
    while excess(low) < 0.0:
        low *= 2.0
    found = gaussian_profile.root(excess, low, math.log(end), 1e-12)
    return NegativeBinomial(eta, math.exp(found))


@dataclass(frozen=True)
class ChoiceCost:
    """What a private choice does to the noise of one run.

    Attributes:
        noise_factor: noise with the choice over noise without.
        risk_factors: by how much risk grows, from half to full quadratic dependence on the noise.
    """

    noise_factor: float
    risk_factors: tuple[float, float]

    def pays(self, best_over_default: float) -> bool | None:
        """Whether a choice pays where the best candidate has so much less risk than the default.

        None where that depends on the problem.
        """
        low, high = self.risk_factors
        return None if low < best_over_default < high else best_over_default >= high


def find_cost(
    epsilon: float, delta: float, runs: float = 3.0, share: float = 0.1, eta: float = 0.0
) -> ChoiceCost:
    """The cost of a choice by ``private_selection``, from the budget alone.

    Args:
        epsilon, delta: the budget; the law is Poisson, or negative binomial at delta = 0.
        runs: the expected number of runs.
        share: of one run for its score.
        eta: of the negative binomial law.
    """
    if delta == 0.0:
        factor = find_negative_binomial(eta, runs).pure_epsilon(1.0) / (1.0 - share)
    else:
        law: RunNumberLaw = Poisson(runs)
        base = calibrate.selection_mu(law, epsilon, delta)
        factor = calibrate.mu(epsilon, delta) / (math.sqrt(1.0 - share) * base)
    return ChoiceCost(factor, (factor, factor * factor))
