"""How far proved epsilons are from those of float64, over random plans.

python -m tests.privacy.rigorous_distance              1,000 plans: the table of docs/rigorous.md
python -m tests.privacy.rigorous_distance 100 seed=3   fewer, from another seed
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np

from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.rigorous_level import ProvedLevel, prove_level
from dperm_cli.privacy.events import (
    Approx,
    DisjointBatches,
    Event,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    NegativeBinomialSelection,
    PerturbedObjective,
    Pure,
    SampledGaussian,
    SamplerError,
)

PLANS, SEED = 1000, 20
KINDS = (
    "Gaussian", "sum of pure steps", "one pure step", "equal pure steps", "perturbed objective",
    "selection", "Laplace steps", "Gaussian and pure steps", "long run of batches",
    "short run of batches",
)  # fmt: skip
# How often a kind is drawn; short runs take seconds each.
WEIGHTS = (18, 12, 10, 10, 14, 6, 10, 10, 7, 3)


@dataclass(frozen=True)
class Plan:
    """Random events with their delta and relation."""

    kind: str
    events: tuple[Event, ...]
    delta: float
    relation: str


@dataclass(frozen=True)
class Comparison:
    """The float64 epsilon of a plan, and the proved one."""

    plan: Plan
    epsilon: float
    proved: ProvedLevel

    @property
    def distance(self) -> float:
        """The proved epsilon over that of float64, less 1: above 0 where float64 says less."""
        assert self.proved.epsilon is not None
        return self.proved.epsilon / self.epsilon - 1.0


def draw_plan(rng: np.random.Generator) -> Plan:
    """A random plan of a random kind, of an epsilon between about 0.05 and 10."""
    kind = str(rng.choice(KINDS, p=np.array(WEIGHTS) / sum(WEIGHTS)))
    relation = str(rng.choice(["replace_one", "add_remove"]))
    delta = float(10 ** rng.uniform(-9, -3))
    epsilon = float(10 ** rng.uniform(-1.2, 0.9))
    if kind == "sum of pure steps":
        delta = 0.0
    if "batches" in kind:
        events = [_draw_batches(rng, kind, relation, epsilon, delta)]
    else:
        events = _draw_events(rng, kind, relation, epsilon, max(delta, 1e-9))
    return Plan(kind, tuple(events), delta, relation)


def _draw_events(
    rng: np.random.Generator, kind: str, relation: str, epsilon: float, delta: float
) -> list[Event]:
    size = 2.0 if relation == "replace_one" else 1.0
    norm = float(rng.uniform(0.1, 3.0))
    count = int(10 ** rng.uniform(0, 3))
    noise = size * norm / gaussian_profile.mu(epsilon, delta)
    gaussian = Gaussian(noise * math.sqrt(count), norm, count)
    step = epsilon / math.sqrt(count)
    if kind == "Gaussian":
        batches = DisjointBatches(noise * 2.0, norm, 7, partition="content")
        return [[gaussian], [gaussian, batches], [gaussian, SamplerError("inf", 1e-3)]][
            int(rng.integers(3))
        ]
    if kind == "sum of pure steps":
        return [Laplace(size * norm * count / epsilon, norm, count), Pure(0.1, 3, relation)]
    if kind == "one pure step":
        return [
            [Laplace(size * norm / epsilon, norm)],
            [GammaNorm(size * norm / epsilon, norm), Approx(0.0, delta / 3, 1, relation)],
            [Exponential(epsilon / (size * norm), norm)],
        ][int(rng.integers(3))]
    if kind == "equal pure steps":
        return [Pure(step, count, relation), Approx(0.0, delta / 3, 1, relation)]
    if kind == "perturbed objective":
        first = PerturbedObjective(
            "gaussian", 1.1 * noise, norm, float(rng.uniform(0.01, 0.3)), 1.0, delta / 2
        )
        solver = Gaussian(noise * float(10 ** rng.uniform(0.5, 2)), norm)
        gamma = PerturbedObjective("gamma_norm", size * norm / epsilon, norm, 0.25, 8.0)
        return [[first], [first, solver], [gamma]][int(rng.integers(3))]
    if kind == "selection":
        run = [Gaussian(3.0 * noise, norm), Gaussian(9.0 * noise, norm)]
        return [NegativeBinomialSelection([run], float(rng.uniform(0, 2)), 0.1)]
    if kind == "Laplace steps":
        reach = step / size
        return [Laplace(norm / reach, norm, count + 1), Exponential(reach, 1.0, count)]
    return [gaussian, Laplace(size * norm / step, norm, count), Pure(0.3 * epsilon, 1, relation)]


def _draw_batches(
    rng: np.random.Generator, kind: str, relation: str, epsilon: float, delta: float
) -> Event:
    """A run of noisy sums over random batches, of about the epsilon."""
    long = kind.startswith("long")
    count = int(10 ** (rng.uniform(3, 8) if long else rng.uniform(0, 2)))
    population = 10_000
    batch = int(10 ** (rng.uniform(0, 2.5) if long else rng.uniform(2, 3.5)))
    mu = gaussian_profile.mu(epsilon, max(delta, 1e-9))
    shift = math.sqrt(math.log1p(mu**2 * (population / batch) ** 2 / count))
    sampling = "fixed" if relation == "replace_one" and rng.random() < 0.6 else "poisson"
    size = 2.0 if sampling == "fixed" else 1.0
    return SampledGaussian(size / min(shift, 2.0), 1.0, batch, population, sampling, count)


def compare(plan: Plan) -> Comparison:
    """Account for a plan in both ways."""
    level = {"delta": plan.delta, "relation": plan.relation}
    return Comparison(
        plan, account(plan.events, **level).epsilon, prove_level(plan.events, **level)
    )


def draw_plans(number: int, seed: int = SEED) -> list[Plan]:
    """Random plans with a finite epsilon above 0."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < number:
        plan = draw_plan(rng)
        if 0.0 < account(plan.events, delta=plan.delta, relation=plan.relation).epsilon < math.inf:
            found.append(plan)
    return found


def format_table(found: Sequence[Comparison]) -> str:
    """A row of each kind of plan: how many, how many are proved, and the distances."""
    head = (
        "| plans | number | proved | float64 says less | by at most | float64 says more"
        " | median of \\|distance\\| | by at most |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    return head + "\n".join(
        _format_row(kind, [one for one in found if kind in (one.plan.kind, "all")])
        for kind in (*KINDS, "all")
    )


def _format_row(kind: str, found: Sequence[Comparison]) -> str:
    proved = [one.distance for one in found if one.proved.epsilon is not None]
    more, less = [d for d in proved if d > 0.0], [-d for d in proved if d < 0.0]
    cells = [
        kind, len(found), len(proved), len(more), _format(max(more, default=None)), len(less),
        _format(float(np.median(np.abs(proved))) if proved else None),
        _format(max(less, default=None)),
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def main(words: Sequence[str]) -> None:
    """Print the table."""
    seeds = [int(word.partition("=")[2]) for word in words if word.startswith("seed=")]
    numbers = [int(word) for word in words if "=" not in word]
    plans = draw_plans(*(numbers or [PLANS]), *(seeds or [SEED]))
    with Pool(2) as pool:
        found = pool.map(compare, plans, chunksize=5)
    print(format_table(found))
    for one in found:
        if one.proved.epsilon is None:
            print(f"not proved: {one.plan}: {one.proved.reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
