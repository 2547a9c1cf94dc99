"""What a reader asks of a study's figure: its axes, colours, panels, joined cells and size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.themes import DEFAULT_THEME, THEMES
from dperm_cli.results.records.aggregate import choose_repetitions, configuration_of
from dperm_cli.results.records.row_facts import Row

KEYS = ("x", "y", "hue", "facet", "aggregate", "theme", "show")
SHOWS = ("floor", "bounds", "orders", "calibration")


@dataclass(frozen=True)
class Quantity:
    """What the vertical axis can show.

    Args:
        column: The column of the summary that has its median.
        label: The name of the axis.
        band: The columns of its quantiles.
        is_risk: Whether floor and bounds speak of it, and zero is as good as it gets.
        is_per_record: Whether the columns are sums over the records, to be divided by n.
        linear: Whether the axis is a linear one.
    """

    column: str
    label: str
    band: tuple[str, str] | None = None
    is_risk: bool = False
    is_per_record: bool = False
    linear: bool = False


_RISK_BAND = ("excess_risk_q05", "excess_risk_q95")
QUANTITIES = {
    "excess_risk": Quantity(
        "excess_risk_median", "excess risk (sum over records)", _RISK_BAND, is_risk=True
    ),
    "excess_risk_per_record": Quantity(
        "excess_risk_median", "excess risk (per record)", _RISK_BAND, True, True
    ),
    "test_metric": Quantity(
        "test_metric", "held-out metric", ("test_metric_q05", "test_metric_q95"), linear=True
    ),
    "train_metric": Quantity(
        "train_metric", "training metric", ("train_metric_q05", "train_metric_q95"), linear=True
    ),
    "epsilon_accounted": Quantity("epsilon_accounted", "certified epsilon"),
    "noise_scale": Quantity("noise_scale", "noise scale (mechanism's unit)"),
    "steps": Quantity("steps", "steps"),
}
# Columns that can be an axis, a colour or a panel, beside the keys of the configuration.
_COLUMNS = (
    "epsilon", "n", "p", "delta", "mechanism", "dataset", "loss", "constraint", "calibration",
    "relation", "guarantee", "ridge", "lasso", "information", "noise_scale", "steps", "seed",
    "epsilon_accounted",
)  # fmt: skip
_ALIASES = {"constraint.radius": "constraint_radius"}
_LESS = ("out", "format", "force", "debug", "trials")


@dataclass(frozen=True)
class StudyView:
    """What a figure of a study shows. None leaves a choice to the study.

    Args:
        x: The horizontal axis; None is the number that was swept: epsilon, n, p, or another. Where
            that one has the colour or the panels, it is another one, or the mechanism.
        y: The vertical axis, one of QUANTITIES.
        hue: What has a colour and a mark; None is the mechanism.
        facet: What has a panel of its own; None is the problem. What else tells problems apart
            parts panels as well.
        aggregate: Keys over which cells are joined, see ``choose_repetitions``.
        theme: One of THEMES.
        show: What is drawn beside the curves, of SHOWS, or ``none``. None is the floor, where it
            is near. Of a metric, the floor is its baseline and the non-private optimum's.
    """

    x: str | None = None
    y: str = "excess_risk"
    hue: str | None = None
    facet: str | None = None
    aggregate: str | Sequence[str] | None = None
    theme: str = DEFAULT_THEME
    show: Sequence[str] | None = None

    def __post_init__(self) -> None:
        checks.choice("theme", self.theme, THEMES)
        checks.choice("y", self.y, QUANTITIES)
        for word in self.show or ():
            checks.choice("show", word, (*SHOWS, "none"))

    @property
    def quantity(self) -> Quantity:
        return QUANTITIES[self.y]

    @property
    def is_default(self) -> bool:
        """Whether nothing but the theme was asked for."""
        return self == StudyView(theme=self.theme)

    def check(self, rows: Sequence[Row]) -> None:
        """Check that the study has all that is asked for.

        Raises:
            InputError: x, hue, facet or aggregate is nothing that these summary rows have.
        """
        known = list_keys(rows)
        for name in ("x", "hue", "facet"):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise InputError(name, value, f"must be {_list_words(known)}", known)
            self._refuse_axis(name)
        choose_repetitions(self.aggregate, rows)

    def _refuse_axis(self, name: str) -> None:
        """Refuse a colour or panels of the axis that was asked for: each would have one place."""
        value = getattr(self, name)
        if name == "x" or self.x is None or value in (None, "mechanism"):
            return
        if find_column(value) == find_column(self.x):
            words = f"is the axis already (x={self.x}); leave x out, or take another {name}"
            raise InputError(name, value, words)


def read_view(settings: Mapping[str, str]) -> StudyView:
    """The view that words KEY=VALUE ask for; an empty value is what the study chooses.

    Raises:
        InputError: A value is not one of those that every study knows.
    """
    given: dict[str, Any] = {key: settings[key] for key in KEYS if settings.get(key)}
    if "show" in given:
        given["show"] = tuple(given["show"].split(","))
    return StudyView(**given)


def list_keys(rows: Iterable[Row]) -> list[str]:
    """The columns and keys of summary rows that an axis, a colour or a panel can stand for."""
    rows = list(rows)
    found = [name for name in _COLUMNS if any(row.get(name) is not None for row in rows)]
    found += [key for key, name in _ALIASES.items() if any(row.get(name) for row in rows)]
    keys = dict.fromkeys(key for row in rows for key in configuration_of(row))
    groups = {key.removesuffix(".name") for key in keys if key.endswith(".name")}
    known = [*found, *groups.difference(_LESS), *(k for k in keys if not k.endswith(".name"))]
    return [key for key in dict.fromkeys(known) if key not in _LESS]


def find_column(key: str) -> str:
    """The column of a key that has one of another name; any other key as it is."""
    return _ALIASES.get(key, key)


def find_value(row: Row, key: str, name: str) -> Any:
    """What a summary row has for a key: a number, a text, or None. ``name`` is its mechanism."""
    if key == "mechanism":
        return name
    flat = configuration_of(row)
    value = flat.get(key, flat.get(f"{key}.name"))
    if key == "mechanism.steps" and not isinstance(value, (int, float)):
        value = row.get("steps")  # the number that auto stands for
    column = row.get(find_column(key))
    if key in _COLUMNS or value is None:
        value = column if column is not None else value
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def _list_words(known: Sequence[str]) -> str:
    most = 24
    more = f", ... ({len(known) - most} more)" if len(known) > most else ""
    return f"one of {', '.join(known[:most])}{more}"
