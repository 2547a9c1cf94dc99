"""A made-up study: what the runner would hand to the store."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dperm_cli.results.records.store import Store
from dperm_cli.results.records.summary import summarise

FLOOR = 80.0


def trial_rows(
    cell: str = "abc", risks: tuple[float, ...] = (1.0, 2.0, 3.0), **values: Any
) -> list[dict[str, Any]]:
    """The rows of one finished cell on 100 records, one per risk."""
    n = values.get("n", 100)
    common = {
        "cell": cell, "status": "ok", "dataset": "digits", "task": "binary", "n": n, "p": 2,
        "loss": "logistic", "constraint": "l2_ball", "constraint_radius": 1,
        "ridge": 0.0, "lasso": 0.0,
        "mechanism": "noisy_gd", "calibration": "tight", "relation": "replace_one",
        "guarantee": "approx", "epsilon": 1.0, "delta": 1e-4, "epsilon_accounted": 0.99,
        "delta_accounted": 1e-4, "accountant": "Gaussian", "noise": "research",
        "noise_scale": 2.5, "steps": 30, "trials": len(risks), "optimum": 50.0,
        "optimum_gap": 1e-6, "floor_risk": 50.0 + FLOOR, "floor_excess_risk": FLOOR,
        "metric": "accuracy", "bound_constant": "none", "unsafe_scaling": False,
        "preprocessing": "unit rows", "seconds": 0.5, "seconds_optimum": 0.1,
    }  # fmt: skip
    return [
        {
            **common,
            "trial": trial,
            "excess_risk": risk,
            "excess_risk_per_record": risk / n,
            "train_metric": 0.9,
            "theta": [risk, -risk],
            **values,
        }
        for trial, risk in enumerate(risks)
    ]


def refused(cell: str, status: str = "unsupported", **values: Any) -> dict[str, Any]:
    """The one row of a cell that did not run."""
    return {
        "cell": cell, "status": status, "reason": "no pure guarantee", "dataset": "digits",
        "loss": "logistic", "constraint": "l2_ball", "mechanism": "noisy_sgd",
        "calibration": "tight", "relation": "replace_one", "epsilon": 0.1, **values,
    }  # fmt: skip


def study_rows(**values: Any) -> list[dict[str, Any]]:
    """Two calibrations at four epsilons with all kinds of bounds, and a refused cell."""
    rows: list[dict[str, Any]] = []
    for calibration, factor in (("tight", 1.0), ("paper", 5.0)):
        for i, epsilon in enumerate((0.1, 0.5, 2.0, 10.0)):
            level = min(factor * 4.0 / epsilon, FLOOR)
            rows += trial_rows(
                f"{calibration}{i}",
                tuple(level * math.exp(0.1 * k) for k in (-1, 0, 1)),
                **{
                    "calibration": calibration,
                    "epsilon": epsilon,
                    "epsilon_accounted": epsilon / factor,
                    "bound_upper": 900.0 / epsilon,
                    "bound_upper_id": "[BST14, Thm 2.4]",
                    "bound_constant": "explicit",
                    "bound_lower": 0.2 / epsilon,
                    "bound_lower_id": "[BST14, Thm 5.3]",
                    "bound_factor": 4500.0,
                    "order_upper": 40.0 / epsilon,
                    "order_upper_id": "[BST14, Thm 2.4]",
                    **values,
                },
            )
    return [*rows, refused("no")]


def stored(out: Any, rows: list[dict[str, Any]]) -> Store:
    """A store that holds the rows, with a manifest in their order."""
    store = Store(out)
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    for cell in cells:
        store.write(cell, [row for row in rows if row["cell"] == cell])
    store.write_manifest({"cells": cells})
    return store


@pytest.fixture
def summary(tmp_path):
    return summarise(stored(tmp_path / "fixture", study_rows()).read_all())
