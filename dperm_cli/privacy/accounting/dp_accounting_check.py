"""dp-accounting behind one wrapper: a second opinion, never what a guarantee rests on.

The library's conventions differ between its own accountants. Under REPLACE_ONE its loss
distributions double the sensitivity of a Gaussian event themselves and its Renyi accountant does
not, so one and the same event reads epsilon 1.0 in the one and 0.514 in the other. Here the factor
comes from ``event.sensitivity(relation)`` alone: whole-data steps go in with noise / sensitivity
and under a relation that the library does not rescale.

It is an optional dependency (the extra ``accounting``), imported when first asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.budget import RELATIONS
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
    delta, total = _check_level(delta, relation), None
    for event in events:
        step = _loss_distribution(event, relation, interval)
        if _count(event) > 1:
            step = step.self_compose(_count(event))
        total = step if total is None else total.compose(step)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(delta))


def epsilon_rdp(events: Sequence[Event], *, delta: float, relation: str) -> float:
    """epsilon by the library's Renyi accountant: looser, and with its own bounds for sampling.

    Fixed-size batches use [Wang-Balle-Kasiviswanathan 2019]; pure steps epsilon^2 / 2 and
    exponential mechanisms epsilon^2 / 8 of zero-concentrated privacy.
    """
    delta = _check_level(delta, relation)
    accounting, rdp = _library("dp_accounting"), _library("dp_accounting.rdp")
    accountant = rdp.RdpAccountant(neighboring_relation=_relation(relation))
    for event in events:
        accountant.compose(_rdp_event(accounting, event, relation), _count(event))
    return float(accountant.get_epsilon(delta))


def _count(event: Event) -> int:
    return int(getattr(event, "count", 1))


def _check_level(delta: float, relation: str) -> float:
    checks.choice("privacy.relation", relation, RELATIONS)
    return checks.number("delta", delta, low=0.0, high=1.0, low_open=True, high_open=True)


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported("this comparison needs dp-accounting (the extra accounting)") from error


def _relation(relation: str) -> Any:
    known = _library("dp_accounting").NeighboringRelation
    return known.REPLACE_ONE if relation == "replace_one" else known.ADD_OR_REMOVE_ONE


def _loss_distribution(event: Event, relation: str, interval: float) -> Any:
    pld = _library("dp_accounting.pld.privacy_loss_distribution")
    grid = {"value_discretization_interval": interval}
    if isinstance(event, SampledGaussian) and event.rate < 1.0:
        return _sampled_distribution(pld, event, relation, interval)
    if isinstance(event, Gaussian | SampledGaussian | Laplace | GammaNorm):
        # the default relation (add or remove) leaves the sensitivity as it is given
        ratio = event.scale / _positive(event.sensitivity(relation))
        if isinstance(event, Laplace | GammaNorm):
            return pld.from_laplace_mechanism(ratio, **grid)
        return pld.from_gaussian_mechanism(ratio, **grid)
    epsilon, delta = _black_box(event, relation)
    parameters = _library("dp_accounting.pld.common").DifferentialPrivacyParameters(epsilon, delta)
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


def _sampled_distribution(pld: Any, event: SampledGaussian, relation: str, interval: float) -> Any:
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
    pmf = _library("dp_accounting.pld.pld_pmf")
    top = math.log1p(rate * math.expm1(shift * (_REACH + shift) - shift**2 / 2.0))
    number = math.ceil(top / interval)
    steps = np.arange(-number, number + 1)
    losses = interval * np.arange(number + 1)
    right = _fixed_profile(losses, rate, shift)
    left = 1.0 - np.exp(-losses) + np.exp(-losses) * right
    profile = np.concatenate([left[:0:-1], right])
    return pmf.create_pmf_pessimistic_connect_dots(interval, steps, profile)


def _fixed_profile(epsilon: np.ndarray, rate: float, shift: float) -> np.ndarray:
    """H_{e^epsilon}((1-q) N(0,1) + q N(s,1) || N(0,1)) at epsilon >= 0."""
    from scipy.special import ndtr

    cut = shift / 2.0 + np.log1p(np.expm1(epsilon) / rate) / shift
    return (1.0 - rate - np.exp(epsilon)) * ndtr(-cut) + rate * ndtr(shift - cut)


def _rdp_event(accounting: Any, event: Event, relation: str) -> Any:
    if isinstance(event, SampledGaussian) and event.rate < 1.0:
        noise = accounting.GaussianDpEvent(event.scale / _positive(event.sensitivity(relation)))
        if event.sampling == "poisson" and relation == "add_remove":
            return accounting.PoissonSampledDpEvent(event.rate, noise)
        if event.sampling == "fixed" and relation == "replace_one":
            return accounting.SampledWithoutReplacementDpEvent(event.population, event.batch, noise)
        raise Unsupported(f"the library has no Renyi bound for {event.sampling} under {relation}")
    if isinstance(event, Gaussian | SampledGaussian):
        return accounting.GaussianDpEvent(event.scale / _positive(event.sensitivity(relation)))
    if isinstance(event, Laplace | GammaNorm):
        return accounting.LaplaceDpEvent(event.scale / _positive(event.sensitivity(relation)))
    if isinstance(event, Exponential):
        epsilon = event.exponent * event.sensitivity(relation)
        return accounting.ZCDpEvent(rho=epsilon**2 / 8.0)
    if isinstance(event, Pure):
        return accounting.ZCDpEvent(rho=event.level(relation)[0] ** 2 / 2.0)
    raise Unsupported(f"the library has no Renyi event for {type(event).__name__}")
