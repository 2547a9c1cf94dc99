"""Fit one of dperm's mechanisms on a file of records, many times: a program to be audited.

    dperm audit "exec:python own_fit.py {records} {runs} {seed} {epsilon} noisy_gd" claim.epsilon=1

The words are a csv file (numbers and a label a line), the number of runs, a seed, epsilon, and the
mechanism. A line of JSON is written for each run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import dperm_cli
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.central import CentralView

DELTA = 1e-6
AT_ONCE = 2000


def main(records: str, runs: str, seed: str, epsilon: str, name: str) -> None:
    """Write the points of independent releases."""
    lines = [line for line in Path(records).read_text().splitlines() if line]
    table = np.array([[float(word) for word in line.split(",")] for line in lines])
    problem = dperm_cli.make_problem(
        X=table[:, :-1], y=table[:, -1], constraint={"radius": 2},
        dataset={"scaling": "none", "intercept": False, "test_fraction": 0},
        ridge=0.5 if name == "output_perturbation" else 0,
    )  # fmt: skip
    mechanism = registry.load("mechanism", name)()
    plan = mechanism.plan(problem.spec(), Budget(float(epsilon), DELTA, "replace_one"))
    for first in range(0, int(runs), AT_ONCE):
        trials = range(first, min(first + AT_ONCE, int(runs)))
        seeds = [seed_sequence(int(seed), "audit", trial) for trial in trials]
        gate = Gate(seeds, plan=(plan.events, "replace_one"))
        for point in mechanism.release(CentralView(problem), plan, gate).theta:
            print(json.dumps(point.tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
