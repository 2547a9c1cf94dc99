"""Ask whether the claim of somebody else's mechanism holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from dperm_cli.api.call_keywords import check_keywords, check_methods
from dperm_cli.api.html_text import as_html
from dperm_cli.core import checks
from dperm_cli.core.files import write_files
from dperm_cli.runner.audits.claim_audit import ClaimReport, audit_by_method
from dperm_cli.runner.audits.outside_request import make_question
from dperm_cli.runner.audits.outside_targets import make_fresh_generator, make_target
from dperm_cli.runner.sweep.progress import show_progress

if TYPE_CHECKING:
    from pandas import DataFrame


@check_keywords
def audit_fit(
    fit: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    relation: str = "replace_one",
    records: str = "numeric:p=1",
    method: str = "pairs",
    runs: int | None = None,
    minutes: float = 10.0,
    workers: int = 1,
    seed: int = 0,
    beyond: bool = False,
    without: Any = (),
    pairs: Any = (),
    out: Any = None,
    progress: bool = True,
) -> FitAudit:
    """Try to refute a claim of privacy: what ``dperm audit module:object`` does.

    Args:
        fit: A callable of rows [n, p] and labels [n], a class or an object with ``fit``, or a word:
            ``module:object``, ``FILE.py:object``, ``exec:COMMAND``.
        epsilon, delta, relation: What is claimed.
        records: What a record is, such as ``"numeric:p=3,norm=1,labels=-1|1"``.
        method: ``"pairs"``: many runs on tables that differ in a record. ``"canaries"``: few runs,
            each on a table of which coins decide every record.
        runs, minutes: How long to look, at most: 40,000 runs, or 16 with canaries.
        workers: Programs that run at once.
        seed: Of the data sets that are tried.
        beyond: Whether records are tried that ``records`` excludes.
        without: Pairs and statistics to leave out.
        pairs: Pairs to try, by their names or parts of them; all unless given.
        out: A folder that keeps the runs and a script which shows a violation again.
        progress: Whether it is shown.

    Raises:
        InputError: Something of it makes no sense, or every run failed.

    >>> import numpy as np
    >>> def mean(X):  # the noise is that of a mean of numbers in [0, 1], and these are in [-1, 1]
    ...     return X.mean() + np.random.default_rng().laplace(scale=1 / len(X))
    >>> found = audit_fit(mean, epsilon=1, runs=4000, without=("low_bits",), progress=False)
    >>> found.verdict, 1 < found.bound < 2
    ('violated', True)
    """
    question = make_question(
        epsilon=epsilon, delta=delta, relation=relation, records=records, method=method,
        runs=runs, minutes=minutes, seed=seed, beyond=checks.boolean("beyond", beyond),
        without=(without,) if isinstance(without, str) else tuple(without),
        pairs=(pairs,) if isinstance(pairs, str) else tuple(pairs),
    )  # fmt: skip
    count = checks.integer("workers", workers, low=1, high=256)
    folder = None if out is None else Path(checks.folder("out", str(out)))
    target = make_target(fit, question.delta, make_fresh_generator(), count)
    with threadpool_limits(1), show_progress(progress):
        found = audit_by_method(target, question, folder)
    if folder is not None:
        write_files(folder, found.files)
    return FitAudit(found)


@check_methods
class FitAudit:
    """What an audit of a claim found.

    Attributes:
        verdict: ``violated``, ``not a function of its claim`` or ``not shown``.
        reasons: Why, a sentence each.
        bound: Epsilon is at least this much.
        row: Everything, as ``dperm audit format=json`` prints it.
    """

    def __init__(self, found: ClaimReport) -> None:
        self.row = dict(found.row)
        self.verdict, self.reasons = self.row["verdict"], list(self.row["reasons"])
        self.bound = self.row["bound"]
        self._found = found

    @property
    def is_refuted(self) -> bool:
        """Whether the claim does not hold."""
        return self._found.is_refuted

    @property
    def has_power(self) -> bool:
        """Whether so many runs could have refuted the claim."""
        return bool(self.row["has_power"])

    def frame(self) -> DataFrame:
        """One row for each attack that was judged."""
        import pandas as pd

        return pd.DataFrame(self.row["attacks"])

    def __repr__(self) -> str:
        return self._found.text

    def _repr_html_(self) -> str:
        return as_html("Audit", repr(self))
