"""Twenty newsgroups as word counts: 15935 messages, 62061 words, from LIBSVM."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Source, WithClasses

# Records per class, 1 to 20.
SIZES = (
    797, 780, 797, 796, 796, 797, 799, 798, 799, 792,
    798, 797, 798, 798, 799, 799, 800, 799, 799, 797,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class News20(WithClasses):
    """Groups 1 to 10 (+1) against 11 to 20 (-1), or all twenty classes.

    The file has numbers only, no names of groups; 1715 words never occur. Rows stay sparse.

    >>> News20().size, News20().task, len(News20.class_labels)
    ((15935, 62061), 'binary', 20)
    """

    upstream: ClassVar[str] = "LIBSVM data page, multi-class: news20"
    signs: ClassVar = {float(k): 1.0 if k <= 10 else -1.0 for k in range(1, 21)}
    class_labels: ClassVar[tuple[float, ...]] = tuple(float(k) for k in range(1, 21))
    train: ClassVar[Source] = Source(
        names=("news20",), n=15935, p=62061, nnz=1272569, labels=dict(enumerate(SIZES, start=1)),
        limit=1 << 26, url=f"{LIBSVM}/multiclass/news20.bz2",
        digest="d4aaaa8e3b2c1e1e335d5dd61cac0f08",
    )  # fmt: skip
