"""Are the forecasts of `dperm plan` right? Predictions are filed first, and judged by runs after.

    python benchmarks/judge_plan.py predict ROUND   # files forecasts, in predictions.csv
    python benchmarks/judge_plan.py judge ROUND     # runs the cells, writes judgement.csv beside it

With names of problems behind it, each verb does so for these alone and keeps the other rows. The
first round has its files in benchmarks/plan_predictions/, the second in round_2/ there.

Every problem is cut in two halves at random. One is public: `like=` simulates on it. The other is
what `dperm run` sees. Forecasts without `like=` know its n and p alone. None of the problems of a
round was used to fit the constants that dperm_cli/runner/forecasts had in that round. The first
ones were fitted on breast_cancer, diabetes and two generated sets; the ranges without `like=` that
the second round judges (likely_range.py) on the first round and on utility_medium.csv.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dperm_cli
from dperm_cli.core.files import write_files
from dperm_cli.runner.forecasts.forecast import make_forecast
from dperm_cli.runner.verbs.plan_request import parse_request

FOLDER = Path(__file__).parent / "plan_predictions"
FOLDERS = {"1": FOLDER, "2": FOLDER / "round_2"}
PUBLISHED = {"1": ("cal_housing", "a9a", "yearpredictionmsd_10k"), "2": ("covtype", "kddcup99")}
MOST_RECORDS = 40_000  # of a published set, at random
# task, records of a half, columns, power of the spectrum, strength of the signal
GENERATED = {
    "1": (
        ("binary", 1000, 4, 0.0, 1.5), ("binary", 20_000, 15, 1.5, 4.0),
        ("binary", 6000, 40, 0.5, 2.0), ("regression", 800, 6, 0.5, 0.9),
        ("regression", 10_000, 20, 1.5, 0.5), ("regression", 40_000, 10, 0.0, 0.7),
    ),
    "2": (
        ("binary", 500, 3, 1.0, 1.0), ("binary", 3000, 25, 0.0, 0.5),
        ("binary", 12_000, 60, 1.0, 3.0), ("binary", 30_000, 8, 3.0, 2.0),
        ("regression", 500, 4, 0.0, 0.5), ("regression", 4000, 30, 1.0, 0.8),
        ("regression", 20_000, 12, 3.0, 0.6), ("regression", 8000, 60, 0.5, 0.3),
    ),
}  # fmt: skip
RADII, RELATIONS, EPSILONS = (1.0, 10.0), ("replace_one", "add_remove"), (0.1, 1.0, 10.0)
TRIALS = 20
LEAST_RISK = 1e-6  # per record: below it the gap of an optimum may be as large; not judged
WAYS = ("like", "facts")
KEYS = ("problem", "radius", "relation", "epsilon", "mechanism", "n", "p")
NUMBERS = tuple(f"{way}_{name}" for way in WAYS for name in ("median", "low", "high"))


def main() -> None:
    """Predict, or judge what was predicted."""
    if len(sys.argv) < 3 or sys.argv[1] not in VERBS or sys.argv[2] not in FOLDERS:
        sys.exit((__doc__ or "").split("\n\n")[1])
    verb, number, *names = sys.argv[1:]
    VERBS[verb](number, names or list_problems(number))


def predict(number: str, names: list[str]) -> None:
    """File a forecast of the mechanism that would be chosen, for every cell."""
    found = [row for row in _read(number, "predictions.csv") if row["problem"] not in names]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found += _predict_problem(Path(folder), name)
            _write(number, "predictions.csv", KEYS + NUMBERS, found)
    print(f"{len(found)} cells, sha256 {_hash_predictions(number)}")


def judge(number: str, names: list[str]) -> None:
    """Run the cells of the filed predictions, and tell how far off these are."""
    rows = [row for row in _read(number, "predictions.csv") if can_be_judged(row)]
    judged = _read(number, "judgement.csv")
    kept = {tuple(row[key] for key in KEYS + NUMBERS): row for row in judged}
    for row in rows:
        if row["problem"] not in names:  # judged before, of this very prediction
            row |= kept.get(tuple(row[key] for key in KEYS + NUMBERS), {})
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys(row["problem"] for row in rows):
            if name not in names:
                continue
            task, _, private = make_halves(Path(folder), name)
            for row in rows:
                if row["problem"] == name:
                    row["measured"] = _measure(row, task, private, folder)
            rows_done = [row for row in rows if "measured" in row]
            _write(number, "judgement.csv", (*KEYS, *NUMBERS, "measured"), rows_done)
    print(f"predictions: sha256 {_hash_predictions(number)}")
    for way in WAYS:
        print(tell([row for row in rows if "measured" in row], way))


def can_be_judged(row: dict[str, Any]) -> bool:
    """Whether the risk that is foreseen with ``like=`` is above the gap of an optimum."""
    return float(row["like_median"]) >= LEAST_RISK


def tell(rows: list[dict[str, Any]], way: str) -> str:
    """Shares of cells by how far medians are off, and how many the band holds."""
    middle, low, high, true = (
        np.array([float(row[name]) for row in rows])
        for name in (f"{way}_median", f"{way}_low", f"{way}_high", "measured")
    )
    off = np.abs(np.log(middle / true))
    width = high / low
    return (
        f"{way}: {len(rows)} cells, within 1.5x {np.mean(off <= math.log(1.5)):.2f}, within 2x "
        f"{np.mean(off <= math.log(2.0)):.2f}, within 3x {np.mean(off <= math.log(3.0)):.2f}; band "
        f"holds {np.mean((low <= true) & (true <= high)):.2f}, its width has median "
        f"{np.median(width):.1f}, at most 6 in {np.mean(width <= 6.0):.2f}"
    )


def list_problems(number: str) -> list[str]:
    """Names of all problems of a round."""
    return [*("-".join(map(str, one)) for one in GENERATED[number]), *PUBLISHED[number]]


def make_halves(folder: Path, name: str) -> tuple[str, Path, Path]:
    """The task, and files of a public and a private half."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    generated = "-" in name
    task, x, y = _generate(name, rng) if generated else _load(name)
    order = rng.permutation(len(y))
    half = (len(y) if generated else min(len(y), MOST_RECORDS)) // 2
    paths = []
    for place in range(2):
        kept = order[place * half : (place + 1) * half]
        paths.append(folder / f"{name}-{place}.npz")
        np.savez(paths[-1], x=x[kept], y=y[kept])
    return task, paths[0], paths[1]


def _load(name: str) -> tuple[str, np.ndarray, np.ndarray]:
    data = dperm_cli.load_data(name)
    x = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
    return data.task, x, data.y / data.target_bound


def _generate(name: str, rng: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """Rows of unequal norms whose principal axes are no coordinate axes."""
    task, *numbers = name.split("-")
    n, p, power, strength = 2 * int(numbers[0]), int(numbers[1]), *map(float, numbers[2:])
    axes = np.linalg.qr(rng.standard_normal((p, p)))[0]
    x = rng.standard_normal((n, p)) * np.arange(1, p + 1) ** (-0.5 * power) @ axes
    x *= (rng.uniform(0.4, 1.0, n) / np.linalg.norm(x, axis=1))[:, None]
    margins = x @ rng.standard_normal(p)
    margins /= margins.std()
    if task == "binary":
        return task, x, np.where(rng.logistic(size=n) < strength * margins, 1.0, -1.0)
    noise = math.sqrt(1.0 - strength) * rng.standard_normal(n)
    return task, x, np.clip(0.35 * (math.sqrt(strength) * margins + noise), -1.0, 1.0)


def _name_file(key: str, path: Path, task: str) -> list[str]:
    words = [f"{key}=npz", f"{key}.path={path}", f"{key}.task={task}", f"{key}.intercept=false"]
    return [*words, f"{key}.target_bounds=[-1,1]"] if task == "regression" else words


def _predict_problem(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    task, public, _ = make_halves(folder, name)
    for radius in RADII:
        both = [f"constraint.radius={radius}", "epsilon=1"]
        like = parse_request([*_name_file("like", public, task), "like_is_public=true", *both])
        known = like.question.simulate()
        n, p = known.facts.n, known.facts.p
        alone = parse_request([f"task={task}", f"n={n}", f"p={p}", *both]).question.simulate()
        for relation, epsilon in itertools.product(RELATIONS, EPSILONS):
            asked = [replace(one, n=n, epsilon=epsilon, relation=relation)
                     for one in (known, alone)]  # fmt: skip
            ranked, others = (make_forecast(one, attacks=False).rows for one in asked)
            first = ranked[0]
            second = next(row for row in others if row["mechanism"] == first["mechanism"])
            cell = {"problem": name, "radius": radius, "relation": relation, "epsilon": epsilon,
                    "mechanism": first["mechanism"], "n": n, "p": p}  # fmt: skip
            for way, row in zip(WAYS, (first, second), strict=True):
                cell |= {f"{way}_median": f"{row['excess_risk_per_record']:.6g}",
                         f"{way}_low": f"{row['median_low']:.6g}",
                         f"{way}_high": f"{row['median_high']:.6g}"}  # fmt: skip
            yield cell


def _measure(row: dict[str, Any], task: str, private: Path, folder: str) -> float:
    """Median excess risk per record of the cell."""
    study = dperm_cli.run(
        *_name_file("dataset", private, task), f"constraint.radius={row['radius']}",
        f"mechanism={row['mechanism']}", f"epsilon={row['epsilon']}", f"trials={TRIALS}",
        f"privacy.relation={row['relation']}", f"out={folder}/study", progress=False,
    )  # fmt: skip
    found = study.frame()
    (this,) = found[found["mechanism"] == row["mechanism"]].to_dict("records")
    print(row["problem"], row["mechanism"], row["epsilon"], file=sys.stderr)
    return float(this["excess_risk_per_record_median"])


def _read(number: str, name: str) -> list[dict[str, Any]]:
    """The rows of a file of a round, none where there is no such file."""
    path = FOLDERS[number] / name
    return list(csv.DictReader(io.StringIO(path.read_text()))) if path.exists() else []


def _write(number: str, name: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_files(FOLDERS[number], {name: text.getvalue().encode()})


def _hash_predictions(number: str) -> str:
    return hashlib.sha256((FOLDERS[number] / "predictions.csv").read_bytes()).hexdigest()


VERBS = {"predict": predict, "judge": judge}


if __name__ == "__main__":
    main()
