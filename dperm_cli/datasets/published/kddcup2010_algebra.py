"""Student answers of the KDD Cup 2010 (algebra): 8407752 records, 20216830 features, LIBSVM."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source


@dataclass(frozen=True, kw_only=True)
class Kddcup2010Algebra(Registered):
    """Right (+1) or wrong (file label 0, -1) at the first attempt; sparse rows of indicators.

    With the published split. Parsing needs about 12 GiB of memory, once.

    >>> Kddcup2010Algebra().size, Kddcup2010Algebra.train.download_name
    ((8407752, 20216830), 'kdda.bz2')
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: kdd2010 (algebra)"
    signs: ClassVar = {0.0: -1.0, -1.0: -1.0, 1.0: 1.0}
    train: ClassVar[Source] = Source(
        names=("kdda",), n=8407752, p=20216830, limit=1 << 33,
        url=f"{LIBSVM}/binary/kdda.bz2", archive_limit=1 << 32,
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("kdda.t",), n=510302, p=20216830, limit=1 << 31,
        url=f"{LIBSVM}/binary/kdda.t.bz2",
    )  # fmt: skip
