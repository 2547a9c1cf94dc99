"""Web addresses, malicious or not, over 121 days: 2396130 records, 3231961 features, LIBSVM."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source


@dataclass(frozen=True, kw_only=True)
class UrlReputation(Registered):
    """Malicious (+1) or benign (-1); sparse rows. Parsing needs about 10 GiB of memory, once.

    >>> UrlReputation().size, UrlReputation.train.download_name
    ((2396130, 3231961), 'url_combined.bz2')
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: url (url_combined)"
    train: ClassVar[Source] = Source(
        names=("url_combined",), n=2396130, p=3231961, limit=1 << 33,
        url=f"{LIBSVM}/binary/url_combined.bz2", archive_limit=1 << 32,
    )  # fmt: skip
