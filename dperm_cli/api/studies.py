"""``run`` and ``load`` give a ``Study``: a folder of records, and what can be asked of it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import astuple
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dperm_cli.api.call_keywords import check_keywords, check_methods
from dperm_cli.api.html_text import MOST_ROWS, as_html
from dperm_cli.api.requests import open_call
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.results.charts import rank_diagram
from dperm_cli.results.claims.experiment_tables import read_about
from dperm_cli.results.kept_report import Report
from dperm_cli.results.records import given_names, study_frame
from dperm_cli.results.records.aggregate import split_words
from dperm_cli.results.records.row_facts import distinct, format_count, format_value
from dperm_cli.results.records.store import Snapshot
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import rankings, study_tables
from dperm_cli.results.tables.chosen_table import ChosenTable, TableRequest, read_request
from dperm_cli.results.tables.text_tables import fit_columns
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.studies import study_folder, study_report
from dperm_cli.runner.verbs import compare as comparing
from dperm_cli.runner.verbs.run import run_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_OWN = ("dperm_cli", "functools")
_REFUSED = ("unsupported", "failed")
_OF_RANKING = ("critical_difference", "p_value", "problems", "left_out")
_MOST_NAMED = 6  # values of a column that a study shows of itself


def run(
    *overrides: Any,
    plugins: Any = (),
    out: Any = None,
    config_dir: Any = None,
    X: Any = None,
    y: Any = None,
    progress: bool = True,
    **keys: Any,
) -> Study:
    """Run a study, or look it up: what ``dperm run`` does.

    Args:
        overrides: Words of ``dperm run``, such as ``"epsilon=[0.1,1]"``, or lists of them.
        plugins: Plug-ins from outside: files, installed packages, or classes.
        out: The folder; None is ``outputs/<study>`` under the working folder.
        config_dir: A folder of your own YAML files.
        X: Records of your own, [n, p]: an array, or a frame whose columns have names. Their
            bounds are declared by ``dataset={...}``, as those of a file.
        y: Their labels or targets, [n].
        progress: Whether it is shown on stderr.
        keys: Keys of ``dperm run`` with their values. A list is an axis, a map sets the keys of a
            group (``constraint={"name": "l1_ball", "radius": 2}``), and a mechanism, loss, set,
            data set or kernel may be an object or a class.

    Returns:
        The study. Cells that are unsupported or failed are rows of it.

    Raises:
        InputError: Something of it makes no sense; nothing was run or written.
        StorageError: The folder cannot be read or written.
        PrivacyError: A record of the folder contradicts its own events.

    >>> study = run(mechanism="noisy_gd", epsilon=[1, 10], trials=2, out="first")
    >>> len(study.frame())
    2
    """
    if out is not None:
        keys["out"] = out
    with open_call(
        overrides, keys, plugins=plugins, config_dir=config_dir, X=X, y=y, progress=progress
    ) as call:
        asked = study_plan.plan_requests(call.requests)
        folder = Path(asked.out)
        done = run_study(call.words, asked, lambda: study_report.report_run(folder))
        _check(done.report)
        return Study(folder)


@check_keywords
def load(folder: Any) -> Study:
    """Open the study in a folder: the ``out=`` of a run, or its name under ``outputs``.

    Raises:
        InputError: There is no study.

    >>> made = run(mechanism="noisy_gd", trials=2, out="second")
    >>> load("second") == made
    True
    """
    if isinstance(folder, Study):
        return folder
    return Study(study_folder.find_folder(str(folder)))


def _find_caller() -> int:
    """How many frames above its caller the first one outside the package is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN:
        level, frame = level + 1, frame.f_back
    return level


def _check(made: Report) -> None:
    if made.unwritten is not None:
        raise made.unwritten
    if made.faults:
        raise PrivacyError(f"the privacy ledger does not hold: {made.faults[0]}")


@check_methods
class Study:
    """The records of a study, and what can be asked of them.

    Attributes:
        folder: Where it lies.

    >>> study = run(mechanism="noisy_gd", trials=2, out="third")
    >>> study.frame()["mechanism"].tolist(), len(study.trials())
    (['noisy_gd'], 2)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._store = Snapshot(self.folder)
        self._cells = study_folder.list_cells(self._store)  # a later run may put others there

    @property
    def _loss(self) -> str:
        """What is to be said of records that are damaged or missing; empty where all are whole."""
        lost = self._count_gaps()
        verb = "is" if lost == 1 else "are"
        words = f"{lost} of {len(self._cells)} records {verb} damaged or missing"
        return f"{words}: see `dperm verify {self.folder}`" if lost else ""

    def _count_gaps(self) -> int:
        return sum(self._store.state(cell) != "whole" for cell in self._cells)

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        if self._loss:
            warnings.warn(self._loss, stacklevel=_find_caller())
        manifest = self._store.read_manifest() or {}
        return given_names.name_rows(self._store.read_all(self._cells), manifest)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return summarise(self._records)

    def frame(self) -> DataFrame:
        """One row a cell: docs/api.md has the columns and their units, and so has ``attrs``."""
        return study_frame.make_frame(self._rows)

    def trials(self) -> DataFrame:
        """One row a trial, as recorded but for names that you gave.

        A cell without a release has one row that says why.
        """
        return study_frame.make_trials(self._records)

    @property
    def failures(self) -> list[str]:
        """Why cells are unsupported or failed, a line each."""
        return [
            f"{row['mechanism']} on {row['dataset']}: {row['status']}: {row['reason']}"
            for row in self._rows
            if row["status"] in _REFUSED
        ]

    @cached_property
    def ledger(self) -> dict[str, Any]:
        """The privacy statement of all that the folder holds, as in ``ledger.json``.

        Raises:
            PrivacyError: A record contradicts its own events.
        """
        from dperm_cli.results.ledger import kept_ledger

        every = list(dict.fromkeys([*self._cells, *self._store.cells()]))
        found = kept_ledger.state(self._store, every, Accounting())
        if found.faults:
            raise PrivacyError(f"the privacy ledger does not hold: {found.faults[0]}")
        return found.found or {}

    def compare(self, other: Any) -> StudyComparison:
        """How risk, privacy and time differ in another study.

        Args:
            other: A study, or its folder.
        """
        return StudyComparison(comparing.compare_studies(self.folder, load(other).folder))

    def place(self) -> DataFrame:
        """Where the results stand among those of the leaderboard that come with dperm.

        Returns:
            A row for each result on a problem and the records of the leaderboard: its excess risk
            per record, its ``place`` among ``methods`` (1 is best), the ``best`` method there, and
            the ``ratio`` of both risks.

        Raises:
            InputError: No result is on a problem of the leaderboard.
        """
        import pandas as pd

        return pd.DataFrame(comparing.place_study(self.folder)[0])

    def plot(
        self,
        x: str | None = None,
        y: str = "excess_risk",
        hue: str | None = None,
        facet: str | None = None,
        aggregate: str | Sequence[str] | None = None,
        theme: str = "single",
        show: str | Sequence[str] | None = None,
    ) -> Figure:
        """A figure of the study, at the width of a column; see ``dperm report --help``.

        Args:
            x: The horizontal axis; None is the number that was swept.
            y: The vertical axis: ``excess_risk``, ``excess_risk_per_record``, ``test_metric``,
                ``train_metric``, ``epsilon_accounted``, ``noise_scale`` or ``steps``.
            hue: What has a colour and a mark; None is the mechanism.
            facet: What has a panel of its own; None is the problem.
            aggregate: Keys over which cells are joined, such as ``seed``.
            theme: ``single`` (3.3 inches), ``double`` (6.9), ``slide``.
            show: Of ``floor``, ``bounds``, ``orders``, ``calibration``, or ``none``.

        Raises:
            InputError: The study lacks what is asked for, or there is nothing to draw.
        """
        from dperm_cli.results.charts.study_figure import plot_study
        from dperm_cli.results.charts.study_view import StudyView

        words = (show,) if isinstance(show, str) else tuple(split_words("show", show))
        view = StudyView(x, y, hue, facet, aggregate, theme, words or None)
        try:
            return plot_study(self._rows, view)
        except InputError as error:
            if not self._loss:
                raise
            fault = InputError(error.key, error.value, f"{error.allowed} ({self._loss})")
        raise fault

    def table(
        self,
        columns: Any = None,
        rows: Any = None,
        style: str = "terminal",
        aggregate: Any = None,
        theme: str = "single",
    ) -> str:
        """The study's table, its numbers rounded by their uncertainty.

        Args:
            columns: Names of columns, such as ``["mechanism", "epsilon", "excess_risk", "band"]``,
                or ``all``; None for those that matter, as many as have room.
            rows: Values by column, such as ``{"mechanism": "noisy_gd", "epsilon": [1, 10]}``; cells
                that have others are left out.
            style: ``terminal``, ``md``, ``latex`` or ``html``.
            aggregate: ``seed`` joins cells that differ in seeds, folds or draws of data, which
                is done unasked; ``none`` does not.
            theme: Of LaTeX: ``single`` fits a column of a page, ``double`` both.
        """
        found = self._choose_table(read_request(columns, rows, aggregate))
        return study_tables.format_table(found, style, theme)

    def _choose_table(self, request: TableRequest) -> ChosenTable:
        about = read_about(self._store.read_manifest() or {})
        return study_tables.choose_table(self._records, self._rows, about, request)

    def rank(self, by: str = "mechanism") -> DataFrame:
        """Mean ranks by excess risk over the problems of the study, the best first.

        Who refuses is ranked last and counted. ``attrs`` has ``critical_difference``, ``p_value``
        and ``problems``; ``plot_ranks`` draws them.

        Args:
            by: What is ranked: a column or a key that differs within problems.

        Raises:
            InputError: No row has ``by``, or no problem was given to all names.
        """
        import pandas as pd

        found = rankings.rank_rows(self._rows, by)
        columns = [by, *rankings.COLUMNS]
        frame = pd.DataFrame([astuple(one) for one in found.names], columns=columns)
        frame.attrs = {name: getattr(found, name) for name in _OF_RANKING}
        return frame

    def plot_ranks(self, by: str = "mechanism", theme: str = "single") -> Figure:
        """The critical-difference diagram of ``rank``: grey bars join names that do not differ."""
        return rank_diagram.draw_ranking(rankings.rank_rows(self._rows, by), theme)

    def slopes(self) -> DataFrame:
        """Slopes of excess risk against epsilon, n and p on logarithmic axes, a row each.

        Columns ``low`` and ``high`` are the ends of a 95 % interval; points that are saturated
        do not count, and curves of less than three have no row.
        """
        import pandas as pd

        found = rankings.fit_slopes(self._rows)
        return pd.DataFrame(found, columns=list(rankings.SLOPE_COLUMNS))

    def __repr__(self) -> str:
        counts = [format_count(n, word) for word, n in self._count().items()]
        lost = self._count_gaps()
        counts += [f"{format_count(lost, 'record')} damaged or missing"] * bool(lost)
        lines = [f"Study({str(self.folder)!r}): {', '.join(counts)}"]
        for name in ("mechanism", "dataset", "epsilon"):
            found = [format_value(value) for value in distinct(self._rows, name)]
            more = [f"... ({len(found)})"] if len(found) > _MOST_NAMED else []
            lines.append(f"  {name}: {', '.join([*found[:_MOST_NAMED], *more])}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = fit_columns(self._choose_table(TableRequest())).keep_lines(MOST_ROWS)
        return as_html(f"Study {self.folder}", shown)

    def _count(self) -> dict[str, int]:
        statuses = [row["status"] for row in self._rows]
        words = {"cell": len(statuses)}
        return words | {f"{one} cell": statuses.count(one) for one in _REFUSED if one in statuses}

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.folder.resolve() == other.folder.resolve()

    def __hash__(self) -> int:
        return hash(self.folder.resolve())


@check_methods
class StudyComparison:
    """What ``dperm compare`` says of two studies.

    Attributes:
        found: Joined cells, and the labels of those that only one study has.
    """

    def __init__(self, compared: comparing.ComparedStudies) -> None:
        self.found = compared.found
        self._compared = compared

    @property
    def weaker(self) -> Sequence[str]:
        """The cells whose guarantee is weaker in the other study."""
        return [pair.label for pair in self.found.weaker]

    def __repr__(self) -> str:
        return self._compared.format()

    def _repr_html_(self) -> str:
        return as_html("Comparison", self._compared.format())
