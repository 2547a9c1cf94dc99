"""Fit diffprivlib's logistic regression on a file of records, many times: a program to be audited.

It runs in an environment that has diffprivlib, not in dperm's:

    dperm audit "exec:env/bin/python tests/audit_faults/diffprivlib_fit.py {records} {runs} 100"

The words are a csv file (two numbers and a label a line), the number of runs, the bound on the norm
of a row, C, and epsilon. A line of JSON is written for each run.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path


def main(records: str, runs: str, norm: str, c: str, epsilon: str) -> None:
    """Write the coefficients of independent fits."""
    import numpy as np
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    lines = [line for line in Path(records).read_text().splitlines() if line]
    table = np.array([[float(word) for word in line.split(",")] for line in lines])
    for _ in range(int(runs)):
        made = LogisticRegression(
            epsilon=float(epsilon), data_norm=float(norm), C=float(c), fit_intercept=False
        )
        made.fit(table[:, :-1], table[:, -1])
        print(json.dumps(made.coef_.ravel().tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
