"""A sweep on a Dask cluster.

    python dask_cluster.py [FOLDER] [ADDRESS] [RECORDS]

Without an address a cluster of two workers is started on this machine. With one, such as
tcp://HOST:8786, the workers of that scheduler compute; they need the same versions of dperm and of
its libraries, and a file system on which FOLDER has the same path.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

import dperm_cli


def main(folder: str = "sweep", address: str = "", records: str = "20000") -> None:
    """Run the sweep and print its table."""
    with ExitStack() as stack:
        if not address:
            from distributed import LocalCluster

            made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            address = stack.enter_context(made).scheduler_address
        study = dperm_cli.run(
            "dataset=synthetic_logistic",
            f"dataset.n={records}",
            mechanism=["noisy_gd", "objective_perturbation"],
            epsilon=[0.3, 1, 3],
            trials=5,
            backend="dask",
            address=address,
            workers=2,
            out=folder,
            progress=False,
        )
    print(study.table("mechanism,epsilon,excess_risk,band", style="md"))


if __name__ == "__main__":
    main(*sys.argv[1:])
