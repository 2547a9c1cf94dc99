"""Run an adapter on one problem: the program that an environment of a peer starts.

    python -I adapter_main.py ADAPTER.py PROBLEM.npz

It needs numpy and what the adapter imports, and nothing of dperm. Standard output has one line of
JSON: the points, their processor seconds, the memory at its peak, versions, or why there is none.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import runpy
import sys
import time
import warnings
from typing import Any


class Refused(Exception):
    """The method does not do this problem."""


def main(adapter: str, problem: str) -> dict[str, Any]:
    """What the adapter made of the problem, a point for each trial."""
    import numpy as np

    found = np.load(problem, allow_pickle=False)
    told = {name: found[name][()] for name in found.files}
    module = runpy.run_path(adapter, init_globals={"Refused": Refused})
    points, begin = [], time.process_time()
    for seed in told.pop("seeds"):
        try:
            point = module["fit"](told, np.random.default_rng(int(seed)))
        except Refused as reason:
            return {"status": "unsupported", "reason": str(reason)}
        points.append(np.asarray(point, dtype=float).ravel().tolist())
    optimum = module["find_optimum"](told) if "find_optimum" in module else None
    return {
        "status": "ok",
        "theta": points,
        "optimum": None if optimum is None else np.ravel(optimum).tolist(),
        "seconds": (time.process_time() - begin) / max(1, len(points)),
        "memory": measure_memory(),
        "versions": list_versions(module["ABOUT"]["packages"]),
    }


def measure_memory() -> float | None:
    """The peak of the process in MiB; None where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        found = [line.split()[1] for line in file if line.startswith("VmHWM")]
        return float(found[0]) / 1024.0 if found else None
    return None


def list_versions(packages: list[str]) -> str:
    """Python and packages with their versions, in words."""
    words = [f"python {platform.python_version()}"]
    return ", ".join([*words, *(f"{one} {importlib.metadata.version(one)}" for one in packages)])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try:
        line = main(*sys.argv[1:])
    except Exception as error:  # the caller has no other way to learn of it
        line = {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(line))
