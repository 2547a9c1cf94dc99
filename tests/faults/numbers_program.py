"""What this processor, Python and these libraries compute, as JSON on stdout.

It runs in an environment of the fault matrix, and imports nothing from the tests but what is said
on its command line: generators and their keys.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

# Each kind of optimum (smooth, with kinks, over a ball, a simplex or a box) and of noise.
SWEEPS = {
    "gradients": ["dataset=synthetic_logistic", "dataset.n=300", "mechanism=noisy_gd,noisy_sgd"],
    "perturbed": ["dataset=breast_cancer", "loss=logistic,huberized_hinge",
                  "mechanism=output_perturbation,objective_perturbation", "ridge=0.01"],
    "kinks": ["dataset=breast_cancer", "loss=hinge", "mechanism=noisy_gd",
              "constraint=l2_ball,box"],
    "sparse": ["dataset=sparse_regression", "dataset.n=200", "dataset.n_test=50",
               "constraint=l1_ball", "mechanism=frank_wolfe,noisy_gd"],
    "location": ["dataset=median_cloud", "loss=l1_median,l2_median", "mechanism=noisy_gd"],
}  # fmt: skip
# What has to be equal, whatever the processor, and what may differ in its last bits.
KEYED = ("cell", "data_fingerprint", "seed", "steps", "epsilon", "guarantee", "status")
CLOSE = ("optimum", "floor_risk", "excess_risk_median", "excess_risk_mean", "train_metric",
         "noise_scale", "epsilon_accounted")  # fmt: skip
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "clarabel")


def digest(array):
    import numpy as np
    from scipy import sparse

    if array is None:
        return None
    if sparse.issparse(array):
        return [digest(part) for part in (array.data, array.indices, array.indptr)]
    array = np.ascontiguousarray(array)
    return [str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]


def generate(asked: dict) -> dict:
    """generator -> part -> digest of what it makes."""
    from dperm_cli.core import registry

    found = {}
    for name, keys in asked.items():
        data = registry.load("dataset", name)(**keys).load(None)
        parts = ("x", "y", "x_test", "y_test", "names", "minimiser", "phi")
        found[name] = {part: digest(getattr(data, part)) for part in parts}
        found[name]["fingerprint"] = data.fingerprint
    return found


def compute(words: list[str], folder: Path) -> list[dict[str, str]]:
    """The rows of the table of a sweep."""
    from dperm_cli.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(["run", "-m", *words, "trials=3", f"out={folder}"])
    if code:
        raise SystemExit(f"exit code {code}: {said.getvalue()[-1500:]}")
    with open(folder / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def list_kernels() -> list[str]:
    """The processor that each BLAS library computes for, by its own word."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return sorted({str(one["architecture"]) for one in threadpool_info() if "architecture" in one})


def main(asked: dict) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: compute(words, Path(folder, name)) for name, words in SWEEPS.items()}
    return {
        "kernels": list_kernels(),
        "versions": {"python": platform.python_version()} | {n: version(n) for n in LIBRARIES},
        "generated": generate(asked),
        "keyed": {k: [{c: r.get(c) for c in KEYED} for r in rows[k]] for k in rows},
        "close": {k: [{c: r.get(c) for c in CLOSE} for r in rows[k]] for k in rows},
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
