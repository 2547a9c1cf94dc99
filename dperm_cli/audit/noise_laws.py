"""Check that the gate draws the noise that an event declares: its law and its independence.

A stream of the event is opened and noise is drawn around values of zero. The noise is compared with
the law that the event names: its distribution function and its mean square. It must be independent
between steps, trials and coordinates. Batches of records are counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.special import gamma, gammainc, kve, ndtr, poch
from scipy.stats import chi2, kstest, laplace

from dperm_cli.audit.law_comparison import find_tail
from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.core.symmetric import order_of
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid

LEVEL = 1e-9  # chance of a false alarm of one event
NUMBERS = 60_000  # about how many numbers are drawn for one event
_SECURE = 40_000  # the same for secure noise
_STEPS = 4  # steps that are drawn, at most
_SEEDED, _WIDEST = 400, 64  # trials, and most coordinates, of the gate with a seed for each trial
_RECORDS = 200  # batches of up to this many records are counted
_EACH = 12  # with up to this many records, each record is also tested by itself


def find_faults(
    event: Any, dim: int, relation: str, seed: int = 0, grid: Grid | None = None
) -> list[str]:
    """What is wrong with the noise of an event, as sentences.

    The law is tested on many trials whose keys come from one seed sequence. Independence is also
    tested on a gate as in a run, with a seed for every trial.

    Args:
        event: the event whose noise is drawn.
        dim: the number of coordinates of a draw.
        relation: ``replace_one`` or ``add_remove``.
        seed: the root of all random numbers.
        grid: the grid of secure noise, or None for seeded noise. Secure noise has the same law,
            rounded to steps that are too small for these tests.

    Returns:
        The faults; empty for an event that adds no noise.
    """
    if not event.noise_law:
        return []
    steps, dim = min(_STEPS, event.draws), event.fit_size(dim)
    plan = ((event,), relation)
    if grid is None:
        leaf = seed_sequence(seed, "audit", "noise law")
        gate = ManyTrialsGate(leaf, max(min(NUMBERS // (dim * steps), 20_000), 60), plan)
    else:
        gate = Gate.secure(max(_SECURE // (dim * steps), 60), grid, plan)
    noise = _draw_noise(gate, event, dim, steps)
    found = [*_check_law(noise / event.noise_scale, event.noise_law), *_check_independence(noise)]
    if grid is None:
        wide = event.fit_size(min(dim, _WIDEST))
        found += _find_shared_numbers(event, wide, steps, relation, seed)
    words = f"{'' if grid is None else 'secure '}{type(event).__name__} noise of {dim} coordinates"
    return [f"{words}: {fault}" for fault in dict.fromkeys(found)]


def _find_shared_numbers(event: Event, dim: int, steps: int, relation: str, seed: int) -> list[str]:
    """Steps, trials, coordinates or streams of a run's own gate that are not independent."""
    seeds = [seed_sequence(seed, "audit", "noise law", trial) for trial in range(_SEEDED)]
    # a second stream of the same event is drawn beside the first
    gate = Gate(seeds, plan=((event, event), relation))
    one, beside = (_draw_noise(gate, event, dim, steps) for _ in range(2))
    shared = ["draws of different streams go together"] if _are_correlated(one, beside) else []
    return _check_independence(one) + shared


def _draw_noise(gate: Gate, event: Event, dim: int, steps: int) -> np.ndarray:
    """Noise [steps, trials, dim]."""
    draw = make_noise_adder(gate, event, dim)
    return np.stack([draw(np.zeros((gate.trials, dim)), step) for step in range(steps)])


def batch_faults(event: Any, relation: str, seed: int = 0) -> list[str]:
    """What is wrong with the batches of an event that samples records, as sentences."""
    if not event.samples_records or event.population > _RECORDS:
        return []
    n, m, steps = event.population, event.batch, min(_STEPS, event.count)
    trials = 400
    leaves = [seed_sequence(seed, "audit", "batches", trial) for trial in range(trials)]
    stream = Gate(leaves, plan=((event,), relation)).stream(event, 1)
    member = np.zeros((steps, trials, n))
    for step, trial in itertools.product(range(steps), range(trials)):
        drawn = np.asarray(stream.draw(trial, step), dtype=np.int64)
        if len(np.unique(drawn)) != len(drawn) or np.any((drawn < 0) | (drawn >= n)):
            return ["a batch holds a record twice, or one that there is not"]
        if event.sampling == "fixed" and len(drawn) != m:
            return [f"a batch of {m} holds {len(drawn)} records"]
        member[step, trial, drawn] = 1.0
    return _check_counts(member, m / n, event.sampling == "poisson")


def _check_counts(member: np.ndarray, rate: float, poisson: bool) -> list[str]:
    """Every record must be drawn as often as it should, and draws must be independent.

    ``member`` [steps, trials, records] is 1 where the record is in the batch; ``rate`` is the
    probability of this.
    """
    steps, trials, n = member.shape
    if rate >= 1.0:
        return []
    variance = rate * (1.0 - rate)
    rest = 1.0 if poisson or n == 1 else n / (n - 1.0)
    total = np.sum(member, axis=(0, 1)) - steps * trials * rate
    freedom = n if poisson else n - 1
    square = float(np.sum(total**2) / (steps * trials * variance * rest))
    found = []
    if freedom and chi2.sf(square, freedom) < LEVEL:
        found.append("some records are drawn more often than others")
    sizes = np.sum(member, axis=2)
    if poisson:
        spread = float(np.sum((sizes - n * rate) ** 2) / (n * variance))
        if min(chi2.sf(spread, sizes.size), chi2.cdf(spread, sizes.size)) < LEVEL:
            found.append("the sizes of batches do not spread as they should")
    centred = (member - rate) / math.sqrt(variance)
    pairs = [centred[s] * centred[t] for s, t in itertools.combinations(range(steps), 2)]
    pairs.append(centred[:, 1:] * centred[:, :-1])  # a trial and the next one
    for product in pairs:
        z = float(np.sum(product)) / math.sqrt(product.size * rest)
        per = np.sum(product.reshape(-1, n), axis=0)
        far = float(np.max(np.abs(per))) / math.sqrt(product.size / n)
        if find_tail(z) < LEVEL or (n <= _EACH and n * find_tail(far / 1.5) < LEVEL):
            found.append("batches of different steps or trials go together")
            break
    return found


Draw = Callable[[np.ndarray, int], np.ndarray]


def make_noise_adder(gate: Gate, event: Event, dim: int) -> Draw:
    """A function (value [trials, dim], step) -> value plus noise, for an event that adds noise."""
    if event.law != "disjoint_batches":
        return gate.stream(event, dim).add
    stream = gate.stream(event, dim, parts=[np.array([i]) for i in range(event.draws)])
    return lambda value, step: stream.release(lambda batch: value, step)


def _check_law(noise: np.ndarray, kind: str) -> list[str]:
    """Compare noise [steps, trials, dim], in units of its scale, with the law called ``kind``."""
    dim = noise.shape[-1]
    if kind == "gamma_norm":
        radius = np.linalg.norm(noise, axis=-1).ravel()
        found = _check_one_law(radius, lambda x: gammainc(dim, x), poch(dim, 2), poch(dim, 4))
        direction = noise / np.maximum(np.linalg.norm(noise, axis=-1, keepdims=True), 1e-300)
        total = np.sum(direction.reshape(-1, dim), axis=0)
        square = float(total @ total) * dim / (noise.size / dim)
        if chi2.sf(square, dim) < LEVEL:
            found.append("its direction is not uniform")
        return found
    if kind == "wishart":
        return _check_wishart(noise)
    if kind == "laplace":
        return _check_one_law(noise.ravel(), laplace.cdf, 2.0, 24.0)
    found = _check_one_law(noise.ravel(), ndtr, 1.0, 3.0)
    for step, part in enumerate(noise):
        if _is_mean_square_wrong(part.ravel(), 1.0, 3.0):
            found.append(f"the size of step {step + 1} is not that of its scale")
    return found


def _check_wishart(noise: np.ndarray) -> list[str]:
    """Diagonal entries are differences of two Gamma((q + 1) / 2); off it, sums of products."""
    order = order_of(noise.shape[-1])
    rows, columns = np.triu_indices(order)
    diagonal = noise[..., rows == columns]
    shape = (order + 1) / 2.0
    x = np.linspace(0.0, 40.0 + 4.0 * shape, 100_001)
    density = np.empty_like(x)
    # the Bessel function has a pole at 0, which the power before it takes away
    density[1:] = x[1:] ** (shape - 0.5) * kve(shape - 0.5, x[1:]) * np.exp(-x[1:])
    density[0] = 2.0 ** (shape - 1.5) * gamma(shape - 0.5)
    half = cumulative_simpson(density, x=x, initial=0.0)
    half *= 0.5 / half[-1]
    square = order + 1.0
    fourth = 3.0 * square**2 + 6.0 * square
    found = _check_one_law(
        diagonal[..., 0].ravel(), lambda b: 0.5 + np.sign(b) * np.interp(np.abs(b), x, half),
        square, fourth,
    )  # fmt: skip
    for place in range(noise.shape[-1]):
        # several looks at one draw: each has its share of the chance of a false alarm
        if _is_mean_square_wrong(noise[..., place].ravel(), square, noise.shape[-1] * fourth):
            found.append(f"entry {place} of the triangle has another size than its event says")
    return found


def _check_one_law(
    sample: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], square: float, fourth: float
) -> list[str]:
    """Compare numbers with a distribution function and with its second moment ``square``."""
    if not np.all(np.isfinite(sample)):
        return ["not every number is finite"]
    found = []
    if _is_mean_square_wrong(sample, square, fourth):
        size = math.sqrt(float(np.mean(sample**2)) / square)
        found.append(f"it is {size:.4g} times as large as its event says")
    if kstest(sample, cdf, method="asymp").pvalue < LEVEL:
        found.append("its distribution is not that of its event")
    return found


def _is_mean_square_wrong(sample: np.ndarray, square: float, fourth: float) -> bool:
    """Whether the mean square differs from ``square``; ``fourth`` is the law's fourth moment."""
    spread = math.sqrt((fourth - square**2) / len(sample))
    return find_tail(abs(float(np.mean(sample**2)) - square) / (1.1 * spread)) < LEVEL


def _check_independence(noise: np.ndarray) -> list[str]:
    """Steps, neighbouring trials and neighbouring coordinates must not be correlated."""
    steps, _, dim = noise.shape
    unit = noise / math.sqrt(float(np.mean(noise**2)))
    found = []
    looks = [("steps", unit[s], unit[t]) for s, t in itertools.combinations(range(steps), 2)]
    looks.append(("trials", unit[:, 1:], unit[:, :-1]))
    if dim > 1:
        looks.append(("coordinates", unit[..., 1:], unit[..., :-1]))
    for name, one, other in looks:
        if _are_correlated(one, other):
            found.append(f"draws of different {name} go together")
    return list(dict.fromkeys(found))


def _are_correlated(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether the mean product of two arrays' numbers at the same place differs from 0."""
    product = one * other
    size = math.sqrt(float(np.sum(product**2))) or 1.0
    return find_tail(abs(float(np.sum(product))) / (1.1 * size)) < LEVEL
