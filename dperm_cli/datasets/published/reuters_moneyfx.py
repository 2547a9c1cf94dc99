"""Reuters-21578, category money-fx, as weighted terms: 7770 training and 3299 test records."""

from __future__ import annotations

from typing import ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import Registered, Source
from dperm_cli.datasets.shared.row_pipeline import Centred


@dataclass(frozen=True, kw_only=True)
class ReutersMoneyfx(Registered):
    """In the category (+1) or not (-1), ModApte split; the published rows have norm 1.

    Only 6.9 % of the records are positive: accuracy alone says little (a constant answer reaches
    94.6 % on the test file). There is no stable address to download it from.

    >>> labels = ReutersMoneyfx.train.labels
    >>> labels[1], round(labels[1] / sum(labels.values()), 3)
    (538, 0.069)
    """

    upstream: ClassVar[str] = "the lasvm-reuters archive of Bottou, set money-fx"
    facts: ClassVar[tuple[str, ...]] = ("6.9 % positive records: see balanced measures too",)
    train: ClassVar[Source] = Source(
        names=("reuters_moneyfx.trn", "money-fx.trn"), n=7770, p=8315, nnz=339837,
        labels={-1: 7232, 1: 538}, limit=1 << 26, digest="c32b3afad094ef5dadbcee83e4e9a072",
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("reuters_moneyfx.tst", "money-fx.tst"), n=3299, p=8315, nnz=136821,
        labels={-1: 3120, 1: 179}, limit=1 << 26, digest="4e11033e038fe5019ec31dea30be772a",
    )  # fmt: skip

    centred: Centred = False
