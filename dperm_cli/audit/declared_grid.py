"""The declared grid that `dperm audit` walks without a configuration: settings as a run takes them.

For every mechanism there are factors with a few values each; a pairwise covering design of them is
audited (``covering``). The first value of a factor is the least demanding one. A value that a
mechanism has no use for is found by planning, and is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.core import registry

RECORDS = 6  # of a data set, where the design says nothing else
POPULATION = 9  # where a population is declared
VERY_WIDE = 430  # above 2 (n + 200) + 3: a plan of 200 steps then works in the rows' coordinates
CLASSES = 3
LONGEST_DRAW = 2.0  # seconds that a sampler may plan for: an audit draws many times

LOSSES, SETS = registry.list_audited("loss"), registry.list_audited("constraint")
PLAIN = tuple(name for name in LOSSES if not registry.load("loss", name).width)
KERNEL_LOSSES = tuple(name for name in PLAIN if registry.load("loss", name).most_pull is not None)
KINKED = next(name for name in LOSSES if registry.load("loss", name).pieces is not None)
QUADRATIC = next(name for name in LOSSES if registry.load("loss", name).quadratic)

COMMON: dict[str, tuple[Any, ...]] = {
    "p": (3, 1, 8, 20),
    "loss": LOSSES,
    "row_bound": (1.0, 0.3, 12.0, 100.0),
    "radius": (10.0, 1.0, 1e6, 1e12),
    "constraint": SETS,
    "relation": ("replace_one", "add_remove", "declared population"),
    "ridge": (0.1, 0.0, 2.0),
    "delta": (1e-5, "auto", 0.0),
    "epsilon": (1.0, 0.2, 6.0),
    "rows": ("clip", "unit", "bounds", "intercept"),
    "storage": ("dense", "sparse"),
    "noise": ("research", "secure"),
    "lasso": (0.0, 0.05),
    "n": (RECORDS, 1),
    "norm": (2, "inf"),
    "map": ("none", "fourier"),
}  # fmt: skip

KERNEL: dict[str, tuple[Any, ...]] = {
    "p": (3, 1, 8, 20),
    "loss": KERNEL_LOSSES,
    "kernel": ("rbf", "linear", "polynomial", "laplacian"),
    "row_bound": (1.0, 0.3, 12.0, 100.0),
    "relation": ("replace_one", "add_remove", "declared population"),
    "ridge": (0.5, 0.01, 5.0),
    "delta": (1e-5, "auto", 0.0),
    "epsilon": (1.0, 0.2, 6.0),
    "storage": ("dense", "sparse"),
    "features": ("auto", "landmarks"),
    "n": (RECORDS, 1),
}

INNER = ("output_perturbation", "objective_perturbation", "noisy_gd", "noisy_sgd", "one_pass_sgd")

# Keys of the mechanisms themselves, and values of common factors that they need for a path.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "approximate_minima_perturbation": {"mechanism.share": (0.01, 0.3)},
    "exponential": {
        "sampler": ("auto", "closed_form", "rejection", "tangent_cells", "proximal", "net"),
    },
    "frank_wolfe": {"mechanism.oracle": ("auto", "choice", "noise")},
    "high_probability": {"mechanism.inner": ("noisy_gd", "noisy_sgd", "output_perturbation")},
    "huberized": {"mechanism.inner": ("objective_perturbation", "noisy_gd", "output_perturbation")},
    "kernel_interactive": {"mechanism.calibration": ("auto", "paper")},
    "kernel_non_interactive": {"mechanism.sampling": ("auto", "net", "log_concave")},
    "kernel_semi_interactive": {
        "mechanism.perturbation": ("laplace", "gaussian", "interactive"),
        "mechanism.norm_share": (0.0, 0.2),
    },
    "local_mirror_descent": {
        "mechanism.channel": ("l_inf", "l_1", "l_2"), "mechanism.answers": (1, 3),
        "mechanism.output": ("average", "last"), "mechanism.map": ("auto", "power"),
    },
    "local_sgd": {
        "mechanism.channel": ("l_1", "l_inf", "l_2"), "mechanism.answers": (1, 3),
        "mechanism.output": ("average", "last"), "mechanism.step_rule": ("constant", "decreasing"),
    },
    "localization": {"mechanism.inner": ("noisy_gd", "noisy_sgd", "output_perturbation")},
    "mirror_descent": {
        "mechanism.step_size": ("auto", "theory"), "mechanism.output": ("average", "last"),
    },
    "newton": {
        "mechanism.curvature": ("matrix", "direction"), "mechanism.output": ("last", "suffix"),
    },
    "noisy_gd": {
        "mechanism.step_size": ("auto", "theory", 1e-3),
        "mechanism.averaging": ("auto", "last", "uniform", "suffix"),
    },
    "noisy_sgd": {
        "mechanism.sampling": ("fixed", "poisson"), "mechanism.batch": (1, 2),
        "mechanism.output": ("last", "average", "suffix_average"),
        "mechanism.learning_rate": ("auto", "convex"),
    },
    "objective_perturbation": {
        "mechanism.noise": ("auto", "gamma"), "mechanism.strength": ("auto", 0.1),
    },
    "one_pass_sgd": {
        "mechanism.noise": ("auto", "gamma"), "mechanism.batches": (3, "auto"),
        "mechanism.output": ("average", "last"),
    },
    "output_perturbation": {"mechanism.noise": ("auto", "gamma")},
    "projected": {
        "mechanism.inner": INNER, "mechanism.m": ("balanced", 1, 2),
        "mechanism.phi": ("gaussian", "rademacher", "sparse_sign", "fast"),
    },
    "random_features": {
        "mechanism.inner": INNER, "kernel": ("rbf", "laplacian"), "kernel.size": (4, 16),
    },
    "regularized_exponential": {
        "mechanism.kappa": ("auto", 2.0), "sampler": ("auto", "tangent_cells", "proximal"),
    },
    "standard_projection": {
        "mechanism.inner": INNER, "mechanism.m": ("balanced", 1, 2),
        "mechanism.phi": ("gaussian", "rademacher"),
    },
}  # fmt: skip

_LAWFUL = {"radius": 1e12, "ridge": 0.0, "loss": LOSSES[0]}

# Rows that must be in the design: the paths that a plan chooses from several settings at once,
# where no boundary and no adaptive step hides the size of the noise.
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


def factors(name: str, kernel: bool, features: bool = False) -> dict[str, tuple[Any, ...]]:
    """The factors of a mechanism: the common ones, and its own.

    Args:
        name: of the mechanism.
        kernel: whether it works on a kernel's minimiser.
        features: whether it works on the finite map of a kernel.
    """
    common = dict(KERNEL if kernel or features else COMMON)
    if features:
        common.pop("features")
    return common | OPTIONS.get(name, {})


def list_required(name: str) -> tuple[Mapping[str, Any], ...]:
    """Settings that the design of a mechanism must have."""
    return FIRST.get(name, ())


def settings(name: str, row: Mapping[str, Any], local: bool = False) -> dict[str, Any]:
    """The keys of a run, but for the files of the data set.

    Args:
        name: of the mechanism.
        row: a value of every factor.
        local: whether nobody but the users may see a record: their privacy is another kind.
    """
    loss, task = row["loss"], find_task(row["loss"])
    found: dict[str, Any] = {
        "mechanism": name,
        "dataset": "npz" if row["storage"] == "dense" else "svmlight",
        "dataset.task": task,
        "dataset.row_bound": row["row_bound"],
        "loss": loss,
        "ridge": row["ridge"],
        "epsilon": row["epsilon"],
        "delta": row["delta"],
    }
    found |= _dataset(row, task)
    if row["relation"] != "replace_one":
        found["privacy.relation"] = "add_remove"
    if row["relation"] == "declared population":
        found["privacy.population"] = POPULATION
    if local:
        found["privacy"] = "local"
        found.pop("delta")
    if "constraint" in row:
        found |= {"constraint": row["constraint"], "constraint.radius": row["radius"]}
    if "kernel" in row:
        found["kernel"] = row["kernel"]
        if row.get("features", "auto") != "auto":
            found |= {"kernel.features": row["features"], "kernel.size": 3}
    if row.get("map", "none") != "none":
        found |= {"kernel": "rbf", "kernel.features": row["map"], "kernel.size": 4}
        found = {key: v for key, v in found.items() if not key.startswith("constraint")}
    for key in ("noise", "lasso", "sampler"):
        if key in row:
            found[key] = row[key]
    if row.get("sampler") in ("auto", "proximal"):
        found["sampler.most_seconds"] = LONGEST_DRAW
    found |= {key: value for key, value in row.items() if "." in key}
    if found.get("kernel.size") and "features" not in row:
        found.pop("kernel.features", None)
    return {key: value for key, value in found.items() if value is not None}


def _dataset(row: Mapping[str, Any], task: str) -> dict[str, Any]:
    """How the rows of the data set are read."""
    rule = row.get("rows", "clip")
    found: dict[str, Any] = {"dataset.rows": "unit" if rule == "unit" else "clip"}
    if rule == "bounds":
        found |= {"dataset.scaling": "bounds", "dataset.bounds": [-row["row_bound"],
                                                                 row["row_bound"]]}  # fmt: skip
    if rule == "intercept":
        found["dataset.intercept"] = True
    if row.get("norm", 2) != 2:
        found["dataset.norm"] = row["norm"]
    if row["storage"] == "sparse":
        found["dataset.n_features"] = row["p"]
    if task == "regression":
        found["dataset.target_bounds"] = [-1.0, 1.0]
    if task == "multiclass":
        found["dataset.labels"] = [str(label) for label in range(CLASSES)]
    return found
