"""Reuters news (RCV1) as weighted terms: 20242 training and 677399 test records, from LIBSVM."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source


@dataclass(frozen=True, kw_only=True)
class Rcv1(Registered):
    """The categories CCAT and ECAT (+1) against GCAT and MCAT (-1); sparse rows.

    >>> Rcv1().size, [source.n for source in Rcv1.sources()]
    ((20242, 47236), [20242, 677399])
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: rcv1.binary"
    train: ClassVar[Source] = Source(
        names=("rcv1_train.binary",), n=20242, p=47236, limit=1 << 28,
        url=f"{LIBSVM}/binary/rcv1_train.binary.bz2",
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("rcv1_test.binary",), n=677399, p=47236, limit=1 << 31,
        url=f"{LIBSVM}/binary/rcv1_test.binary.bz2",
    )  # fmt: skip
