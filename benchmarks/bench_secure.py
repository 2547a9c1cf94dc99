"""What secure noise costs: excess risks with it over those with research noise.

    python benchmarks/bench_secure.py [--trials 400] [--only CASE] [--keep]

Each mechanism with a secure form runs on one generated problem (2,000 records, 5 columns) at
epsilon .1, 1 and 10, once with each noise. The ratio of mean excess risks is printed with its
standard error. ``--keep`` writes ``kept_secure.csv`` and its table in docs/secure_noise.md, with
``--only`` the lines of one case. Exit code 1 where a ratio is above 1.1 by more than two standard
errors.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import dperm_cli

KEPT = Path(__file__).parent / "kept_secure.csv"
PAGE = Path(__file__).parents[1] / "docs" / "secure_noise.md"
BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->"
HEAD = ("mechanism", "guarantee", "epsilon", "research", "secure", "ratio", "error")
EPSILONS = (0.1, 1.0, 10.0)
MOST = 1.1  # of a ratio
SIGNIFICANT = 2.0  # standard errors

PLAIN: dict[str, Any] = {"dataset": "synthetic_logistic", "dataset.n": 2000, "dataset.p": 5}
PROJECTED = {"mechanism.m": 3, "mechanism.inner": "noisy_gd"}
LOCAL = {"privacy": "local"}
QUADRATIC = {"dataset": "sparse_regression", "loss": "squared"}
# what each mechanism needs beside its name; noisy_sgd takes as many steps with either noise
CASES: dict[str, dict[str, Any]] = {
    "noisy_gd": {},
    "noisy_sgd": {"mechanism.steps": 200},
    "mirror_descent": {"constraint": "l1_ball"},
    "newton": {},
    "one_pass_sgd": {},
    "frank_wolfe": {"constraint": "l1_ball"},
    "sufficient_statistics": QUADRATIC | {"mechanism.noise": "gaussian"},
    "sufficient_statistics noise=auto": QUADRATIC,
    "output_perturbation": {"ridge": 0.1},
    "objective_perturbation": {},
    "approximate_minima_perturbation": {},
    "localization": {"ridge": 0.1},
    "high_probability": {},
    "huberized": {"loss": "hinge"},
    "projected": PROJECTED,
    "standard_projection": PROJECTED,
    "random_features": {"kernel": "rbf", "kernel.radius": 5},
    # on a finite map, as the optimum is then the same with either noise
    "kernel_release": {
        "kernel": "rbf",
        "ridge": 0.1,
        "kernel.features": "landmarks",
        "kernel.size": 20,
    },
    "local_sgd": LOCAL,
    "local_mirror_descent": LOCAL,
}


def measure(name: str, trials: int) -> list[tuple[str, ...]]:
    """A line of the table for each epsilon."""
    found: dict[str, list[np.ndarray]] = {}
    kinds: list[str] = []
    for noise in ("research", "secure"):
        with tempfile.TemporaryDirectory() as folder:
            study = dperm_cli.run(
                mechanism=name.split()[0], epsilon=list(EPSILONS), noise=noise, trials=trials,
                progress=False, out=f"{folder}/study", **(PLAIN | CASES[name]),
            )  # fmt: skip
            rows = study.trials()
        refused = rows[rows["status"] != "ok"]
        if len(refused):
            sys.exit(f"{name} with {noise} noise: {refused['reason'].iloc[0]}")
        at = [rows[rows["epsilon"] == epsilon] for epsilon in EPSILONS]
        found[noise] = [part["excess_risk"].to_numpy(dtype=float) for part in at]
        kinds = [str(part["guarantee"].iloc[0]) for part in at]
    lines = []
    for place, epsilon in enumerate(EPSILONS):
        research, secure = found["research"][place], found["secure"][place]
        ratio, error = divide_means(secure, research)
        numbers = (float(np.mean(research)), float(np.mean(secure)))
        lines.append(
            (name, kinds[place], f"{epsilon:g}", *(f"{v:.3g}" for v in numbers), f"{ratio:.3f}",
             f"{error:.3f}")
        )  # fmt: skip
    return lines


def divide_means(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """The ratio of two independent means, and its standard error to first order.

    >>> divide_means(np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    (2.0, 0.0)
    """
    ratio = float(np.mean(above) / np.mean(below))
    shares = [np.var(one, ddof=1) / len(one) / np.mean(one) ** 2 for one in (above, below)]
    return ratio, ratio * math.sqrt(float(sum(shares)))


def is_dear(line: tuple[str, ...]) -> bool:
    """Whether a line's ratio is above the most that is allowed, noise of the trials apart."""
    ratio, error = float(line[HEAD.index("ratio")]), float(line[HEAD.index("error")])
    return ratio > MOST + SIGNIFICANT * error


def format_table(lines: list[tuple[str, ...]]) -> str:
    """The table of docs/secure_noise.md: a line for each mechanism, its ratios by epsilon."""
    table = [
        ("mechanism", "guarantee", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
        ("---",) * 5,
    ]
    for name in dict.fromkeys(line[0] for line in lines):
        own = [line for line in lines if line[0] == name]
        kinds = " / ".join(dict.fromkeys(line[1] for line in own))
        table.append((f"`{name}`", kinds, *(f"{line[5]} ± {line[6]}" for line in own)))
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def read_kept() -> list[tuple[str, ...]]:
    """The lines of kept_secure.csv, without their head."""
    head, *lines = csv.reader(KEPT.read_text().splitlines())
    if tuple(head) != HEAD:
        sys.exit(f"{KEPT}: has the columns {', '.join(head)}, not {', '.join(HEAD)}")
    return [tuple(line) for line in lines]


def sort_lines(lines: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Lines in the order of the cases."""
    return sorted(lines, key=lambda line: list(CASES).index(line[0]))


def write_page(lines: list[tuple[str, ...]]) -> None:
    """Put the table between its marks in docs/secure_noise.md."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{format_table(lines)}\n{END}{rest.split(END)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--only", choices=CASES, default=None)
    parser.add_argument("--keep", action="store_true", help="write the table and its page")
    asked = parser.parse_args()
    lines: list[tuple[str, ...]] = []
    print(",".join(HEAD))
    for name in CASES if asked.only is None else [asked.only]:
        for line in measure(name, asked.trials):
            print(",".join(line), flush=True)
            lines.append(line)
    if asked.keep:
        if asked.only is not None:
            kept = read_kept() if KEPT.is_file() else []
            lines = sort_lines([*(one for one in kept if one[0] != asked.only), *lines])
        with open(KEPT, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *lines])
        write_page(lines)
    sys.exit(any(map(is_dear, lines)))


if __name__ == "__main__":
    main()
