"""Add OpenDP's Laplace noise to a sum of a file of records, many times: a program to be audited.

It runs in an environment that has opendp, not in dperm's. The words are a csv file (a number a
line), the number of runs, and the scale of the noise. A line of JSON is written for each run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(records: str, runs: str, scale: str) -> None:
    """Write noisy sums of numbers between -1 and 1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = [float(line) for line in Path(records).read_text().splitlines() if line]
    total = sum(min(1.0, max(-1.0, value)) for value in values)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measure = space >> dp.m.then_laplace(scale=float(scale))
    for _ in range(int(runs)):
        print(json.dumps(measure(total)))


if __name__ == "__main__":
    main(*sys.argv[1:])
