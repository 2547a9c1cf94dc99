"""How far is mechanism=auto from the best mechanism in hindsight?

    python benchmarks/bench_utility.py [--size SIZE] [--out FILE] [--seconds N] [--table]

Every cell is a problem (public or generated), a relation and an epsilon. All mechanisms that auto
chooses among, with the noise laws that it does not take, release ``--trials`` points each; the
regret of a cell is the median excess risk of auto's choice over the least median. FILE gets a line
for each cell as it is finished, and cells that stand in it are not run again, so that a run goes on
where the last one ended; ``--seconds`` ends it early. At the end: regrets for each set, what falls
when epsilon or n grows, and results above the floor. It prints, and exits with 0; ``--table``
prints the risks of every cell as CSV instead.

The size ``border`` has logistic cells in which noise is large and columns are few: there descent
and the perturbed objective change places, by how much there is to be learnt.

The size ``kinks`` has the hinge loss on 5000 and 20,000 records of covtype (DPERM_DATA_DIR).

The size ``radius`` compares ``constraint.radius=auto`` with fixed radii at the same budget, by
mechanism=auto throughout; excess risk there is over the optimum of the widest set compared.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.core import registry
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.mechanisms.shared import predicted_risk
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.compose import public_radius
from dperm_cli.solvers.optimum import solve, solve_or_load
from dperm_cli.views.choose import open_view

RELATIONS = ("add_remove", "replace_one")
EPSILONS = {
    "small": (0.1, 10.0),
    "medium": (0.1, 1.0, 10.0),
    "full": (0.1, 0.3, 1.0, 3.0, 10.0),
    "radius": (0.1, 1.0, 10.0),
    "border": (0.1, 0.3, 1.0),
    "kinks": (0.1, 1.0, 10.0),
}
RADII = (0.1, 1.0, 10.0, 40.0)
# per record: risks below this are rounding of the optimum
LEAST_RISK = 1e-6
TABLE = ("name", "loss", "n", "p", "radius", "signal", "relation", "epsilon", "released", "chosen",
         "risk")  # fmt: skip
NOT_CHOSEN = {
    "objective_perturbation": [{"noise": "gamma"}, {"noise": "gaussian"}],
    "sufficient_statistics": [{"noise": "wishart"}, {"noise": "gaussian"}],
    "huberized": [
        {"width": width, "inner": {"name": "objective_perturbation", "noise": noise}}
        for width in (0.03, 0.1, 0.3, 1.0)
        for noise in ("gamma", "gaussian")
    ],
}


@dataclass(frozen=True)
class Source:
    """Records: a shipped data set, or rows that are drawn here.

    ``spread`` is the condition number of the rows' covariance, ``signal`` the norm of the true
    parameter (times ``target`` for a regression), ``flips`` the share of labels that are noise, or
    the noise of targets over their bound.
    """

    name: str = "generated"
    loss: str = "logistic"
    radius: float = 10.0
    n: int = 0
    p: int = 0
    spread: float = 1.0
    signal: float = 5.0
    flips: float = 0.0
    target: float = 1.0
    body: str = "l2_ball"

    def make(self) -> Problem:
        """The problem."""
        data = self._load() if self.name != "generated" else self._draw()
        loss = registry.load("loss", self.loss)()
        cls = registry.load("constraint", self.body)
        return Problem(data, loss, cls(self.radius, loss.dimension(data.facts())))

    def _load(self) -> Data:
        folder = Path(os.environ["DPERM_DATA_DIR"]) if "DPERM_DATA_DIR" in os.environ else None
        data = registry.load("dataset", self.name)().load(folder)
        if not 0 < self.n < data.n:
            return data
        some = generator(seed_sequence(0, "bench rows", self.name)).permutation(data.n)[: self.n]
        named = f"{data.fingerprint} first {self.n}"
        x = data.x[some] if isinstance(data.x, np.ndarray) else data.x[some].toarray()
        return Data.of_records(
            data.name, data.task, x, data.y[some], data.row_bound, data.target_bound,
            fingerprint=named, classes=data.classes,
        )  # fmt: skip

    def _draw(self) -> Data:
        """Rows in the unit ball with axes of lengths from 1 to 1 / sqrt(spread)."""
        rng = generator(seed_sequence(0, "bench", repr(self)))
        x = rng.standard_normal((self.n, self.p)) * self.spread ** -np.linspace(0.0, 0.5, self.p)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        theta = rng.standard_normal(self.p)
        theta *= self.signal / np.linalg.norm(theta)
        z = x @ theta
        if self.loss == "squared":
            noisy = z + self.flips * rng.standard_normal(self.n)
            task, y = "regression", self.target * np.clip(noisy, -1.0, 1.0)
        else:
            task, y = "binary", np.where(rng.random(self.n) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
            y = np.where(rng.random(self.n) < self.flips, -y, y)
        return Data.of_records(
            "generated", task, x, y, 1.0, self.target if task == "regression" else 1.0,
            fingerprint=repr(self),
        )  # fmt: skip


@dataclass(frozen=True)
class CellResult:
    """What was measured: medians of the excess risk per record, by mechanism and setting."""

    source: Mapping[str, Any]
    relation: str
    epsilon: float
    floor: float
    chosen: str
    risks: Mapping[str, float]
    predicted: Mapping[str, float]

    @property
    def regret(self) -> float:
        """The median of what auto chose over the least of all."""
        return max(self.risks[self.chosen], LEAST_RISK) / max(min(self.risks.values()), LEAST_RISK)


def list_sources(size: str) -> list[Source]:
    """The problems of a size, the quick ones first."""
    if size == "small":
        return [
            Source("breast_cancer", radius=1.0),
            Source(n=2000, p=3),
            Source(n=5000, p=5, loss="squared", radius=2.0, signal=0.5, flips=0.1),
        ]
    if size == "radius":
        return [
            *(Source(n=n, p=p) for n in (300, 3000) for p in (2, 10)),
            *(Source(n=3000, p=5, signal=s) for s in (0.5, 50.0)),
            *(Source(n=n, p=5, loss="squared", flips=0.1, signal=s)
              for n in (500, 5000) for s in (0.3, 1.0)),
            Source("breast_cancer"),
            Source("diabetes", "squared"),
        ]  # fmt: skip
    if size == "border":
        return [
            Source(n=n, p=p, radius=radius, signal=signal)
            for n in (300, 2000)
            for p in (2, 3, 4, 6, 12)
            for radius in (1.0, 10.0)
            for signal in (0.5, 5.0, 50.0)
        ]
    if size == "kinks":
        return [
            Source("covtype", "hinge", radius, n=n)
            for n in (5000, 20_000)
            for radius in (1.0, 10.0)
        ]
    medium = [
        *(Source("breast_cancer", loss, r) for loss in ("logistic", "hinge") for r in (1.0, 10.0)),
        *(Source("diabetes", "squared", r) for r in (1.0, 10.0)),
        Source("digits", "logistic", 10.0),
        *(Source(n=n, p=p) for n in (300, 3000, 30000) for p in (2, 10, 50)),
        *(Source(n=5000, p=20, spread=c, flips=0.1) for c in (1e2, 1e4, 1e6)),
        *(Source(n=5000, p=20, signal=s) for s in (0.5, 50.0)),
        *(Source(n=5000, p=10, loss="hinge", signal=s) for s in (5.0, 50.0)),
        *(Source(n=3000, p=p, loss="squared", flips=0.1, signal=1.0) for p in (2, 10, 50)),
        *(Source(n=20000, p=10, loss="squared", spread=c, flips=0.1) for c in (1.0, 1e4)),
        *(Source(n=3000, p=10, loss="squared", flips=0.1, target=t) for t in (1e-2, 1e2)),
        Source(n=2000, p=30, body="l1_ball"),
        Source(n=400, p=1000),
        Source("cal_housing", "squared", 1.0),
        Source("cal_housing", "squared", 10.0),
    ]
    if size == "medium":
        return medium
    return [
        *medium,
        Source("yearpredictionmsd_10k", "squared", 1.0),
        Source("yearpredictionmsd_10k", "squared", 10.0),
        Source("a9a", "logistic", 10.0),
        Source("a9a", "hinge", 10.0),
        *(Source("covtype", loss, 10.0) for loss in ("logistic", "hinge")),
        *(Source(n=500000, p=p) for p in (2, 10, 50)),
        *(Source(n=2000, p=1000, loss=loss) for loss in ("logistic", "squared")),
    ]


def list_variants(mechanisms: Sequence[Mechanism]) -> dict[str, Mechanism]:
    """What auto chooses among and the settings that it leaves alone, by a label."""
    found = {}
    for one in mechanisms:
        name = registry.find_name(type(one))
        found[name] = one
        for setting in NOT_CHOSEN.get(name, ()):
            found[f"{name} {_say(setting)}"] = replace(one, **setting)
    return found


def _say(setting: Mapping[str, Any]) -> str:
    values = (one["noise"] if isinstance(one, dict) else one for one in setting.values())
    return " ".join(map(str, values))


def measure(source: Source, relation: str, epsilon: float, trials: int) -> CellResult:
    """Release all variants on one cell."""
    problem = _make(source)
    spec, optimum = problem.spec(), _find_optimum(source)
    budget = Budget(epsilon, 1.0 / spec.n**2, relation)
    auto = registry.load("mechanism", "auto")()
    made = auto.plan(spec, budget)
    risks = {}
    for label, one in list_variants(auto.among).items():
        found = predicted_risk.rank((one,), spec, budget)
        if not found.fits:
            continue
        plan = found.fits[0].plan
        # one mechanism draws the same noise under two labels
        name = label.partition(" ")[0]
        seeds = [seed_sequence(0, "bench", name, trial) for trial in range(trials)]
        theta = one.release(
            open_view(one, problem), plan, Gate(seeds, plan=(plan.events, relation))
        ).theta
        risks[label] = float(np.median(problem.objective(theta) - optimum)) / spec.n
    floor = float(problem.objective(problem.constraint.centre()) - optimum) / spec.n
    chosen = made.settings["chosen"]
    return CellResult(
        asdict(source), relation, epsilon, floor, chosen, risks, made.settings["predicted"]
    )


def measure_radii(source: Source, relation: str, epsilon: float, trials: int) -> CellResult:
    """Release auto's choice on balls of the radius of the public rule, and of fixed ones."""
    auto, facts = registry.load("mechanism", "auto")(), _make(source).data.facts()
    loss = registry.load("loss", source.loss)()
    budget = Budget(epsilon, 1.0 / facts.n**2, relation)
    asked: Any = SimpleNamespace(
        constraint_config={"name": source.body, "radius": "auto"}, loss=loss, mechanism=auto,
        mechanism_name="auto", kernel=None, population=None, relation=relation, privacy="approx",
        delta=budget.delta, epsilon=epsilon,
    )  # fmt: skip
    own = public_radius.resolve_radius(asked, facts).value
    optimum, points = _find_optimum(source, max(own, *RADII)), {}
    for label, radius in (("radius auto", own), *((f"radius {r:g}", r) for r in RADII)):
        problem = replace(_make(source), constraint=_make_set(source, facts, radius))
        plan = auto.plan(problem.spec(), budget)
        seeds = [seed_sequence(0, "bench", "radius", trial) for trial in range(trials)]
        gate = Gate(seeds, plan=(plan.events, relation))
        points[label] = auto.release(open_view(auto, problem), plan, gate).theta
    problem, n = _make(source), facts.n
    risks = {
        label: float(np.median(problem.objective(theta) - optimum)) / n
        for label, theta in points.items()
    }
    floor = float(problem.objective(problem.constraint.centre()) - optimum) / n
    return CellResult(
        asdict(source), relation, epsilon, floor, "radius auto", risks, {"radius auto": own}
    )


def _make_set(source: Source, facts: Any, radius: float) -> Any:
    loss = registry.load("loss", source.loss)()
    return registry.load("constraint", source.body)(radius, loss.dimension(facts))


@lru_cache(maxsize=1)
def _make(source: Source) -> Problem:
    return source.make()


@lru_cache(maxsize=1)
def _find_optimum(source: Source, radius: float | None = None) -> float:
    """The least objective of a source's records, on its set or on one of another radius."""
    problem, folder = _make(source), cache_dir()
    if radius is not None:  # the same records: those of a generated source hang on its own radius
        wide = _make_set(source, problem.data.facts(), radius)
        problem = replace(problem, constraint=wide)
    if folder is None:
        return solve(problem, relative_gap=1e-8).value
    return solve_or_load(problem, folder, relative_gap=1e-8).value


def run_cells(size: str, trials: int, path: Path | None, seconds: float) -> Iterator[CellResult]:
    """The cells of a size, those of the file first; the file gets the others."""
    done = {}
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            found = CellResult(**json.loads(line))
            done[_key(found.source, found.relation, found.epsilon)] = found
    end = time.monotonic() + seconds
    for source in list_sources(size):
        for relation in RELATIONS:
            for epsilon in EPSILONS[size]:
                key = _key(asdict(source), relation, epsilon)
                if key not in done:
                    if time.monotonic() > end:
                        return
                    run = measure_radii if size == "radius" else measure
                    done[key] = run(source, relation, epsilon, trials)
                    if path is not None:
                        with path.open("a") as file:
                            file.write(json.dumps(asdict(done[key])) + "\n")
                yield done[key]


def _key(source: Mapping[str, Any], relation: str, epsilon: float) -> str:
    return json.dumps([dict(source), relation, epsilon], sort_keys=True)


def summarise(found: Sequence[CellResult]) -> dict[str, dict[str, float]]:
    """For each set and all together: cells, geometric mean and largest regret, share up to 1.5.

    Cells whose least risk is below ``LEAST_RISK`` are left out.
    """
    groups: dict[str, list[float]] = {}
    for one in found:
        if min(one.risks.values()) < LEAST_RISK:
            continue
        for name in (f"{one.source['name']} {one.source['loss']}", "all"):
            groups.setdefault(name, []).append(one.regret)
    return {
        name: {
            "cells": len(regrets),
            "mean": math.exp(float(np.mean(np.log(regrets)))),
            "share": float(np.mean(np.array(regrets) <= 1.5)),
            "max": max(regrets),
        }
        for name, regrets in groups.items()
    }


def list_faults(found: Sequence[CellResult], room: float = 1.1) -> list[str]:
    """Results worse than the floor by over 5 %, or than with less epsilon by ``room``."""
    faults, least = [], {}
    for one in sorted(found, key=lambda one: one.epsilon):
        words = f"{one.source} {one.relation} epsilon {one.epsilon:g} ({one.chosen})"
        risk = one.risks[one.chosen]
        if risk > 1.05 * one.floor + LEAST_RISK:
            faults.append(f"{risk / one.floor:.3g} of the floor: {words}")
        key = _key(one.source, one.relation, 0.0)
        if risk > room * least.get(key, math.inf) + LEAST_RISK:
            faults.append(f"{risk / least[key]:.3g} of that at less epsilon: {words}")
        least[key] = min(risk, least.get(key, math.inf))
    return faults


def list_risks(found: Sequence[CellResult]) -> str:
    """CSV: a line for each cell and what was released there."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TABLE)
    for one in found:
        source = [one.source[name] for name in TABLE[:6]]
        for label, risk in one.risks.items():
            chosen = "yes" if label == one.chosen else "no"
            writer.writerow([*source, one.relation, one.epsilon, label, chosen, f"{risk:.4g}"])
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=EPSILONS, default="small")
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--out", type=Path, help="a file with a line for each cell that is done")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--table", action="store_true", help="print CSV of all risks instead")
    asked = parser.parse_args()
    found = []
    with threadpool_limits(1):
        for one in run_cells(asked.size, asked.trials, asked.out, asked.seconds):
            found.append(one)
            words = f"{one.source['name']} {one.source['loss']} {one.relation} {one.epsilon:g}"
            told = f"{words}: {one.chosen}, regret {one.regret:.3g}"
            print(told, file=sys.stderr if asked.table else sys.stdout, flush=True)
    if asked.table:
        print(list_risks(found), end="")
        return
    for name, row in summarise(found).items():
        print(f"{name:<32}" + "  ".join(f"{key} {value:.3g}" for key, value in row.items()))
    print("\n".join(list_faults(found)) or "nothing above the floor or falling with epsilon")


if __name__ == "__main__":
    main()
