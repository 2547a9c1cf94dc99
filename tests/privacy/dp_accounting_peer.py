"""A wrapper of the library dp-accounting, to compare the accountant with.

The library's conventions differ between its own accountants. Under REPLACE_ONE its loss
distributions double the sensitivity of a Gaussian event themselves and its Renyi accountant does
not, so one and the same event reads epsilon 1.0 in the one and 0.514 in the other. Here the factor
comes from ``event.sensitivity(relation)`` alone: whole-data steps go in with noise / sensitivity
and under a relation that the library does not rescale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting import rdp
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtr

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.events import (
    Approx,
    Event,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Pure,
    SampledGaussian,
)

# Losses beyond this many standard deviations are left out of a fixed-size step's grid.
_REACH = 9.0


def epsilon_pld(
    events: Sequence[Event], *, delta: float, relation: str, interval: float = 1e-4
) -> float:
    """epsilon by privacy loss distributions on a grid of losses of the given ``interval``.

    Exponential mechanisms enter as pure steps; fixed-size batches by their profile. ``Unsupported``
    for events that the library cannot express.
    """
    total = None
    for event in events:
        step = _loss_distribution(event, relation, interval)
        if event.count > 1:
            step = step.self_compose(event.count)
        total = step if total is None else total.compose(step)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(delta))


def epsilon_rdp(events: Sequence[Event], *, delta: float, relation: str) -> float:
    """epsilon by the library's Renyi accountant: looser, and with its own bounds for sampling.

    Fixed-size batches use [Wang-Balle-Kasiviswanathan 2019]; pure steps epsilon^2 / 2 and
    exponential mechanisms epsilon^2 / 8 of zero-concentrated privacy.
    """
    accountant = rdp.RdpAccountant(neighboring_relation=_relation(relation))
    for event in events:
        accountant.compose(_rdp_event(event, relation), event.count)
    return float(accountant.get_epsilon(delta))


def _relation(relation: str) -> Any:
    known = dp_accounting.NeighboringRelation
    return known.REPLACE_ONE if relation == "replace_one" else known.ADD_OR_REMOVE_ONE


def _loss_distribution(event: Event, relation: str, interval: float) -> Any:
    grid = {"value_discretization_interval": interval}
    if isinstance(event, SampledGaussian) and event.rate < 1.0:
        return _sampled_distribution(event, relation, interval)
    if isinstance(event, Gaussian | SampledGaussian | Laplace | GammaNorm):
        # the default relation (add or remove) leaves the sensitivity as it is given
        ratio = event.scale / _positive(event.sensitivity(relation))
        if isinstance(event, Laplace | GammaNorm):
            return pld.from_laplace_mechanism(ratio, **grid)
        return pld.from_gaussian_mechanism(ratio, **grid)
    epsilon, delta = _black_box(event, relation)
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    return pld.from_privacy_parameters(parameters, **grid)


def _positive(sensitivity: float) -> float:
    if not sensitivity > 0.0:
        raise Unsupported("the library has no step without sensitivity")
    return sensitivity


def _black_box(event: Event, relation: str) -> tuple[float, float]:
    if isinstance(event, Exponential):
        return event.exponent * event.sensitivity(relation), 0.0
    if isinstance(event, Pure | Approx):
        return event.level(relation)
    if isinstance(event, PerturbedObjective):
        return event.epsilon(relation), event.delta
    raise Unsupported(f"the library has no event for {type(event).__name__}")


def _sampled_distribution(event: SampledGaussian, relation: str, interval: float) -> Any:
    if event.sampling == "poisson":
        # here the library is given one record's norm, and doubles it itself under replace-one
        return pld.from_gaussian_mechanism(
            event.scale / _positive(event.record_norm),
            value_discretization_interval=interval,
            sampling_prob=event.rate,
            neighboring_relation=_relation(relation),
        )
    if relation != "replace_one":
        raise Unsupported("fixed-size batches have no add_remove guarantee")
    shift = _positive(event.sensitivity(relation)) / event.scale
    return pld.PrivacyLossDistribution(_fixed_pmf(event.rate, shift, interval))


def _fixed_pmf(rate: float, shift: float, interval: float) -> Any:
    """The grid law of a fixed-size step, from its profile at multiples of ``interval``."""
    top = math.log1p(rate * math.expm1(shift * (_REACH + shift) - shift**2 / 2.0))
    number = math.ceil(top / interval)
    steps = np.arange(-number, number + 1)
    losses = interval * np.arange(number + 1)
    right = _fixed_profile(losses, rate, shift)
    left = 1.0 - np.exp(-losses) + np.exp(-losses) * right
    profile = np.concatenate([left[:0:-1], right])
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, steps, profile)


def _fixed_profile(epsilon: np.ndarray, rate: float, shift: float) -> np.ndarray:
    """H_{e^epsilon}((1-q) N(0,1) + q N(s,1) || N(0,1)) at epsilon >= 0."""
    cut = shift / 2.0 + np.log1p(np.expm1(epsilon) / rate) / shift
    return (1.0 - rate - np.exp(epsilon)) * ndtr(-cut) + rate * ndtr(shift - cut)


def _rdp_event(event: Event, relation: str) -> Any:
    if isinstance(event, SampledGaussian) and event.rate < 1.0:
        noise = dp_accounting.GaussianDpEvent(event.scale / _positive(event.sensitivity(relation)))
        if event.sampling == "poisson" and relation == "add_remove":
            return dp_accounting.PoissonSampledDpEvent(event.rate, noise)
        if event.sampling == "fixed" and relation == "replace_one":
            return dp_accounting.SampledWithoutReplacementDpEvent(
                event.population, event.batch, noise
            )
        words = f"{event.sampling} under {relation}"
        raise Unsupported(f"the library has no Renyi bound for {words}")
    if isinstance(event, Gaussian | SampledGaussian):
        return dp_accounting.GaussianDpEvent(event.scale / _positive(event.sensitivity(relation)))
    if isinstance(event, Laplace | GammaNorm):
        return dp_accounting.LaplaceDpEvent(event.scale / _positive(event.sensitivity(relation)))
    if isinstance(event, Exponential):
        epsilon = event.exponent * event.sensitivity(relation)
        return dp_accounting.ZCDpEvent(rho=epsilon**2 / 8.0)
    if isinstance(event, Pure):
        return dp_accounting.ZCDpEvent(rho=event.level(relation)[0] ** 2 / 2.0)
    raise Unsupported(f"the library has no Renyi event for {type(event).__name__}")
