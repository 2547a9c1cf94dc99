"""The declared grid that `dperm audit` walks without a configuration: settings as a run takes them.

For every mechanism there are factors with a few values each, in ``declared_grid.yaml``. A pairwise
covering design of them (``covering_design``) is audited. The first value of a factor is the least
demanding one. A value that a mechanism has no use for is found by planning, and is listed with the
reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dperm_cli.core import registry

POPULATION = 9  # where a population is declared
VERY_WIDE = 430  # above 2 (n + 200) + 3: a plan of 200 steps then works in the rows' coordinates
CLASSES = 3
LONGEST_DRAW = 2.0  # seconds that a sampler may plan for: an audit draws many times

LOSSES, SETS = registry.list_audited("loss"), registry.list_audited("constraint")
PLAIN = tuple(name for name in LOSSES if not registry.load("loss", name).width)
KERNEL_LOSSES = tuple(
    name for name in PLAIN if registry.load("loss", name).radial_slope_bound is not None
)
KINKED = next(name for name in LOSSES if registry.load("loss", name).pieces is not None)
QUADRATIC = next(name for name in LOSSES if registry.load("loss", name).quadratic)

_TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
_LAWFUL = {"radius": 1e12, "ridge": 0.0, "loss": LOSSES[0]}

# By mechanism, settings that must stand in a row of its design: the paths that a plan chooses from
# several settings at once, where no boundary and no adaptive step hides the size of the noise.
FIRST: dict[str, tuple[Mapping[str, Any], ...]] = {
    "noisy_gd": (
        {"p": VERY_WIDE, "mechanism.step_size": 1e-3, "mechanism.averaging": "last", **_LAWFUL},
        {"p": VERY_WIDE, "mechanism.step_size": "auto", "constraint": SETS[0]},
        {"p": VERY_WIDE, "storage": "sparse", "mechanism.step_size": 1e-3, "loss": KINKED},
        {"noise": "secure", "mechanism.step_size": 1e-3, **_LAWFUL},
        {"noise": "secure", "storage": "sparse", "relation": "declared population"},
    ),
    "noisy_sgd": (
        {"p": 20, "mechanism.output": "last", **_LAWFUL},
        {"p": 20, "mechanism.output": "last", "loss": KINKED, "storage": "sparse", "ridge": 0.1},
        {"p": 20, "mechanism.sampling": "poisson", "mechanism.batch": 2, "loss": QUADRATIC},
        {"p": 20, "mechanism.sampling": "poisson", "mechanism.output": "last", **_LAWFUL,
         "ridge": 0.1},
        {"p": 8, "storage": "sparse", "mechanism.output": "last", **_LAWFUL, "ridge": 0.1},
    ),
    "objective_perturbation": (
        {"p": VERY_WIDE, "radius": 1e12, "ridge": 0.1, "delta": 0.0},
        {"p": 20, "radius": 1e12, "ridge": 2.0, "delta": 0.0},
        {"p": VERY_WIDE, "radius": 1e12, "ridge": 0.1, "delta": 1e-5},
    ),
}  # fmt: skip


def find_task(loss: str) -> str:
    """The task of the records that a loss is audited with."""
    return registry.load("loss", loss).tasks[0]


def factors(name: str) -> dict[str, Sequence[Any]]:
    """The factors of a mechanism: the common ones, and its own."""
    made = registry.load("mechanism", name)
    if made.space == "kernel" or made.features is not None:
        common = _TABLES["kernel"] | {"loss": KERNEL_LOSSES}
    else:
        common = _TABLES["common"] | {"loss": LOSSES, "constraint": SETS}
    if made.features is not None:
        common.pop("features")
    return common | _TABLES["mechanisms"].get(name, {})


def settings(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a run for a value of every factor, but for the files of the data set."""
    task = find_task(row["loss"])
    found: dict[str, Any] = {
        "mechanism": name,
        "dataset": "npz" if row["storage"] == "dense" else "svmlight",
        "dataset.task": task,
        "dataset.row_bound": row["row_bound"],
        "loss": row["loss"],
        "ridge": row["ridge"],
        "epsilon": row["epsilon"],
        "delta": row["delta"],
    }
    found |= _dataset(row, task)
    if row["relation"] != "replace_one":
        found["privacy.relation"] = "add_remove"
    if row["relation"] == "declared population":
        found["privacy.population"] = POPULATION
    if registry.load("mechanism", name).guarantees == ("local",):
        found["privacy"] = "local"
        found.pop("delta")
    if "kernel" in row:
        found["kernel"] = row["kernel"]
        if row.get("features", "auto") != "auto":
            found |= {"kernel.features": row["features"], "kernel.size": 3}
    if row.get("map", "none") != "none":
        found |= {"kernel": "rbf", "kernel.size": 4}
    elif "constraint" in row:
        found |= {"constraint": row["constraint"], "constraint.radius": row["radius"]}
    found |= {key: row[key] for key in ("noise", "lasso", "sampler") if key in row}
    if row.get("sampler") in ("auto", "proximal"):
        found["sampler.most_seconds"] = LONGEST_DRAW
    return found | {key: value for key, value in row.items() if "." in key}


def _dataset(row: Mapping[str, Any], task: str) -> dict[str, Any]:
    """How the rows of the data set are read."""
    rule = row.get("rows", "clip")
    found: dict[str, Any] = {"dataset.rows": "unit" if rule == "unit" else "clip"}
    if rule == "bounds":
        found |= {"dataset.scaling": "bounds", "dataset.bounds": [-row["row_bound"],
                                                                 row["row_bound"]]}  # fmt: skip
    found["dataset.intercept"] = rule == "intercept"
    if row.get("norm", 2) != 2:
        found["dataset.norm"] = row["norm"]
    if row["storage"] == "sparse":
        found["dataset.n_features"] = row["p"]
    if task == "regression":
        found["dataset.target_bounds"] = [-1.0, 1.0]
    if task == "multiclass":
        found["dataset.labels"] = [str(label) for label in range(CLASSES)]
    return found
