"""What risk to expect before any private record is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dperm_cli.api.call_keywords import check_methods
from dperm_cli.api.html_text import as_html
from dperm_cli.api.requests import open_call
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts import plan_figure
from dperm_cli.results.tables import plan_table
from dperm_cli.runner.forecasts import choice_forecast
from dperm_cli.runner.forecasts.forecast import PlanQuestion, trace_risks
from dperm_cli.runner.verbs.plan_request import parse_request

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


def plan(
    *overrides: Any,
    plugins: Any = (),
    config_dir: Any = None,
    progress: bool = True,
    **keys: Any,
) -> RiskForecast:
    """The excess risk to expect of each mechanism, or the n or epsilon that a target needs.

    No data are read, but the public ones of ``like``.

    Args:
        overrides: Words of ``dperm plan``.
        plugins, config_dir, progress: As of ``run``.
        keys: Keys of ``dperm plan``: two of n, epsilon and target, and the problem.

    Raises:
        InputError: Something of it makes no sense.

    >>> found = plan(task="binary", n=5000, p=5, epsilon=1)
    >>> found.rows[0]["mechanism"], found.rows[0]["reads_data"]
    ('objective_perturbation', False)
    """
    with open_call(
        overrides, keys, plugins=plugins, config_dir=config_dir, progress=progress, sweeps=True
    ) as call:
        asked = parse_request([word for word in call.words if word != "-m"])
        return RiskForecast(asked.question)


@check_methods
class RiskForecast(Sequence[dict[str, Any]]):
    """What is foreseen: a dict for each mechanism that fits, the best first.

    Attributes:
        rows: The dicts, as ``dperm plan format=json`` prints them.
        refusals: Why each of the other mechanisms does not fit, by name.
        verdict: Whether a private choice pays, where ``tune`` names candidates.
    """

    def __init__(self, question: PlanQuestion) -> None:
        found = choice_forecast.answer(question)
        self.rows, self.refusals, self.verdict = found.rows, found.refusals, found.verdict
        self._question = question

    def frame(self) -> DataFrame:
        """One row for each mechanism."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def plot(self) -> Figure:
        """Foreseen risk against epsilon, or against n where that was sought."""
        from dperm_cli.results.charts.figure_drawing import draw_canvas

        if self.verdict:
            raise InputError("tune", "plot()", "has no figure: the rows say it all")
        points = trace_risks(self._question, self.rows)
        return draw_canvas(plan_figure.build_figure(points))

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        target = self._question.target
        return plan_table.format_table(self.rows, self.refusals, target, self.verdict)

    def _repr_html_(self) -> str:
        return as_html("Forecast", self.frame())
