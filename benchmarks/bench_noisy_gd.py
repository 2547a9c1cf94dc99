"""How far are the defaults of noisy_gd from the best settings in hindsight?

    python benchmarks/bench_noisy_gd.py [--trials 20] [--only WORD ...] [--no-hindsight]

For each problem and epsilon: the median excess risk per record of the default, that of the best of
216 constant settings (steps x step size x momentum x averaging) chosen by looking at the
excess risk itself, which no private run may do, and their ratio. a9a is run when DPERM_DATA_DIR
is set. Not a timed assert: it prints, and exits with 0.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.core import registry
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd, descend
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.optimum import solve_or_load
from dperm_cli.views.central import CentralView

# data set, its options, loss, radius, relation
CELLS = [
    ("breast_cancer", {}, "logistic", 10.0, "add_remove"),
    ("breast_cancer", {}, "logistic", 1.0, "add_remove"),
    ("breast_cancer", {}, "logistic", 1.0, "replace_one"),
    ("breast_cancer", {}, "hinge", 10.0, "replace_one"),
    ("digits", {}, "logistic", 10.0, "add_remove"),
    ("digits", {}, "logistic", 1.0, "replace_one"),
    ("digits", {"contrast": "high"}, "logistic", 10.0, "replace_one"),
    ("digits", {"contrast": "high"}, "hinge", 1.0, "add_remove"),
    ("digits", {}, "hinge", 10.0, "replace_one"),
    ("diabetes", {}, "squared", 1.0, "add_remove"),
    ("diabetes", {}, "squared", 10.0, "replace_one"),
    ("diabetes", {}, "absolute", 10.0, "add_remove"),
    ("diabetes", {}, "absolute", 1.0, "replace_one"),
    ("synthetic_logistic", {}, "logistic", 10.0, "replace_one"),
    ("a9a", {}, "logistic", 10.0, "add_remove"),
]
EPSILONS = (0.1, 1.0, 10.0)
STEPS = (10, 30, 100, 300)
MOMENTA = (0.0, 0.9)
AVERAGING = ("last", "uniform", "suffix")
TIMES = 2.0 ** np.arange(-6, 3)  # total time, in units of D / (nu sqrt(p))
LARGE = 10**4  # records from which the grid is made of fewer times and trials
NARROW = 2.0 ** np.arange(-5, 0)


def problem_of(dataset: str, options: dict, loss: str, radius: float) -> Problem:
    folder = Path(os.environ["DPERM_DATA_DIR"]) if "DPERM_DATA_DIR" in os.environ else None
    data = registry.load("dataset", dataset)(**options).load(folder)
    ball = registry.load("constraint", "l2_ball")(radius=radius, p=data.p)
    return Problem(data, registry.load("loss", loss)(), ball)


def gate(trials: int, role: str) -> Gate:
    return Gate([seed_sequence(0, role, trial) for trial in range(trials)])


def medians(problem: Problem, theta: np.ndarray, best: float, groups: int = 1) -> np.ndarray:
    excess = (problem.objective(theta) - best) / problem.data.n
    return np.median(excess.reshape(groups, -1), axis=1)


def untuned(problem: Problem, budget: Budget, trials: int, best: float) -> tuple[float, float]:
    """(median excess per record, seconds a trial) of the default."""
    mechanism, start = NoisyGd(), time.perf_counter()
    plan = mechanism.plan(problem.spec(), budget)
    theta = mechanism.release(CentralView(problem), plan, gate(trials, "untuned")).theta
    seconds = (time.perf_counter() - start) / trials
    return float(medians(problem, theta, best)[0]), seconds


def hindsight(problem: Problem, budget: Budget, trials: int, best: float) -> tuple[float, str]:
    """The smallest median over the grid and its setting; all step sizes run at once."""
    spec, found = problem.spec(), (math.inf, "")
    times, trials = (NARROW, min(trials, 5)) if spec.n > LARGE else (TIMES, trials)
    for steps in STEPS:
        for momentum in MOMENTA:
            mechanism = NoisyGd(steps=steps, momentum=momentum, step_size=1.0)
            plan = mechanism.plan(spec, budget)
            unit = spec.constraint.diameter / (plan.noise_scale * math.sqrt(spec.p * steps))
            sizes = np.repeat(times * unit, trials)
            plan = dataclasses.replace(plan, settings={**plan.settings, "step_size": sizes})
            outputs = descend(CentralView(problem), plan, gate(len(sizes), "hindsight"))
            for averaging in AVERAGING:
                risks = medians(problem, outputs[averaging], best, len(times))
                at = int(np.argmin(risks))
                words = f"steps={steps} momentum={momentum:g} {averaging} time={times[at]:g}"
                found = min(found, (float(risks[at]), words))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="words a row must contain")
    parser.add_argument("--no-hindsight", action="store_true")
    options = parser.parse_args()
    folder, ratios = cache_dir() or Path(tempfile.gettempdir()), []
    print(f"{'problem':55s}  eps    floor  untuned     best ratio s/fit  best setting")
    for dataset, extra, loss, radius, relation in CELLS:
        words = f"{dataset} {' '.join(extra.values())} {loss} R={radius:g} {relation}"
        if not all(word in words.split() for word in options.only):
            continue
        if dataset == "a9a" and "DPERM_DATA_DIR" not in os.environ:
            continue
        problem = problem_of(dataset, extra, loss, radius)
        best = solve_or_load(problem, folder).value
        trials = min(options.trials, 10) if problem.data.n > LARGE else options.trials
        floor = medians(problem, problem.constraint.centre()[None], best)[0]
        for epsilon in EPSILONS:
            budget = Budget(epsilon, problem.data.n**-2.0, relation)
            risk, seconds = untuned(problem, budget, trials, best)
            line = f"{words:55s} {epsilon:4g} {floor:8.5f} {risk:8.5f}"
            if options.no_hindsight:
                print(f"{line} {'':8s} {'':5s} {seconds:.3f}", flush=True)
                continue
            tuned, setting = hindsight(problem, budget, trials, best)
            ratios.append(risk / tuned)
            print(f"{line} {tuned:8.5f} {ratios[-1]:5.2f} {seconds:.3f}  {setting}", flush=True)
    if ratios:
        mean = math.exp(float(np.mean(np.log(ratios))))
        print(f"ratio: geometric mean {mean:.2f}, largest {max(ratios):.2f}, {len(ratios)} rows")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
