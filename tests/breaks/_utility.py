"""What the tests of issue 20 share: tables, one run as one row, and the names that were guessed.

The tests were written from the issue alone. A name that was built otherwise is mended here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

# --- names of the interface --------------------------------------------------------------------

CHOICE_KEYS = ("chosen", "runner_up", "predicted", "refused", "reason")  # in `settings` of auto
TUNING = "tuning"  # in `settings` of a private choice: {"epsilon": what it cost, ...}
RADIUS_REASON = "tuning"  # in `settings`, with chosen and reason, where constraint.radius=auto
PLAN_KEYS = ("mechanism", "n", "epsilon", "excess_risk_per_record", "q05", "q95", "seconds",
             "memory")  # fmt: skip
# columns of the summary
BASELINE, BASELINE_METRIC = "baseline", "baseline_metric"
OPTIMUM_METRIC, FLOOR_METRIC, NO_BETTER_THAN = "optimum_metric", "floor_metric", "no_better_than"
FLOOR, RISK = "floor_excess_risk_per_record", "excess_risk_per_record_median"
NEVER_CHOSEN = {"newton", "mirror_descent", "non_private", "auto"}


# --- tables ------------------------------------------------------------------------------------


def make_regression(n: int, p: int, seed: int = 0, row=1.0, target=1.0) -> tuple[Any, Any]:
    """Rows [n, p] of norm ``row`` and targets that follow them, within ``target``."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ np.linspace(-0.8, 0.8, p) + 0.1 * rng.standard_normal(n), -1.0, 1.0)
    return row * x, target * y


def make_binary(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows [n, p] of norm 1 and labels of -1 or 1 that follow the first column."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, np.where(x[:, 0] + 0.1 * rng.standard_normal(n) < 0.0, -1.0, 1.0)


def write_npz(path: Path, x: np.ndarray, y: np.ndarray) -> Path:
    """An archive of rows and targets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=x, y=y)
    return path


def npz_words(path: Path | str, task: str = "binary", target: float = 1.0) -> list[str]:
    """The words that name such an archive; rows are held to norm 1."""
    words = ["dataset=npz", f"dataset.path={path}", f"dataset.task={task}"]
    if task == "regression":
        words.append(f"dataset.target_bounds=[-{target:g},{target:g}]")
    return words


def table_words(folder: Path, task: str, n: int, p: int, seed: int = 0) -> list[str]:
    """The words of a new table of that task."""
    make = make_regression if task == "regression" else make_binary
    path = write_npz(folder / f"{task}-{n}-{p}-{seed}.npz", *make(n, p, seed))
    return npz_words(path, task)


# --- runs --------------------------------------------------------------------------------------


def run_rows(dperm, *words: str, code: int = 0) -> list[dict[str, Any]]:
    """The rows of the summary of a run; a sweep has ``-m`` among its words."""
    switches = [word for word in words if word == "-m"]
    rest = [word for word in words if word != "-m"]
    done = dperm("run", *switches, *rest, "format=json")
    assert done.code == code, done.err
    return done.rows


def run_row(dperm, *words: str) -> dict[str, Any]:
    """The row of a run of one cell that went well, within what it was allowed to spend."""
    (row,) = run_rows(dperm, *words)
    assert row["status"] == "ok", row["reason"]
    assert row["epsilon_accounted"] <= row["epsilon"] * (1.0 + 1e-9)
    assert (row["delta_accounted"] or 0.0) <= row["delta"]
    return row


def settings_of(row: dict[str, Any]) -> dict[str, Any]:
    """What a mechanism's plan says of itself."""
    return json.loads(row["settings"])


def choice_of(row: dict[str, Any]) -> dict[str, Any]:
    """What ``mechanism=auto`` says of its choice, its keys checked."""
    found = settings_of(row)
    assert set(CHOICE_KEYS) <= set(found), sorted(found)
    assert found["chosen"] not in NEVER_CHOSEN
    return found


def assert_one_line(done, *words: str) -> None:
    """Refused with exit code 2 and one line that has these words, nothing printed or written."""
    assert done.code == 2, done.err or done.out
    assert done.out == ""
    assert done.err.startswith("dperm: "), done.err
    assert done.err.count("\n") == 1, done.err
    for word in words:
        assert word in done.err, done.err
    assert not Path("outputs").exists()
