"""Usenet articles about real and simulated subjects: 72309 records, 20958 terms, from LIBSVM."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source


@dataclass(frozen=True, kw_only=True)
class RealSim(Registered):
    """Real (+1) against simulated (-1) autos and aviation; sparse rows.

    >>> RealSim().size, RealSim.train.download_name
    ((72309, 20958), 'real-sim.bz2')
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: real-sim"
    train: ClassVar[Source] = Source(
        names=("real-sim", "real_sim"), n=72309, p=20958, limit=1 << 29,
        url=f"{LIBSVM}/binary/real-sim.bz2",
    )  # fmt: skip
