"""Which metrics an evaluation releases: ``metrics=`` and ``groups=`` of ``dperm release``."""

from __future__ import annotations

from collections.abc import Callable

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared.column_kinds import Category
from dperm_cli.datasets.shared.table_schema import TableSchema
from dperm_cli.privacy.metrics.absolute_error import AbsoluteError
from dperm_cli.privacy.metrics.accuracy import Accuracy
from dperm_cli.privacy.metrics.area_under_curve import AreaUnderCurve
from dperm_cli.privacy.metrics.base import Metric
from dperm_cli.privacy.metrics.calibration import Calibration
from dperm_cli.privacy.metrics.coefficients import MOST, Coefficients
from dperm_cli.privacy.metrics.confusion import Confusion
from dperm_cli.privacy.metrics.groups import GroupAccuracy, GroupError
from dperm_cli.privacy.metrics.log_loss import LogLoss
from dperm_cli.privacy.metrics.squared_error import SquaredError

METRICS: dict[str, dict[str, Callable[[TableSchema], Metric]]] = {
    "binary": {
        "confusion": lambda schema: Confusion(schema.target.classes),
        "log_loss": lambda _: LogLoss(),
        "auc": lambda _: AreaUnderCurve(),
        "calibration": lambda _: Calibration(),
        "accuracy": lambda _: Accuracy(),
        "coefficients": lambda schema: Coefficients(schema.names),
    },
    "multiclass": {
        "confusion": lambda schema: Confusion(schema.target.classes),
        "log_loss": lambda _: LogLoss(),
        "accuracy": lambda _: Accuracy(),
    },
    "regression": {
        "r2": lambda _: SquaredError(),
        "mae": lambda _: AbsoluteError(),
        "coefficients": lambda schema: Coefficients(schema.names, squares=True),
    },
}
NEED_CHANCES = ("log_loss", "calibration")
# the confusion matrix has the first; the second takes much of the budget
NOT_BY_DEFAULT = ("accuracy", "coefficients")
NO_GROUP = "none of them"  # records whose cell is none of the declared words


@dataclass(frozen=True)
class MetricChoice:
    """What was asked for.

    Attributes:
        names: of the metrics; empty for those of the task.
        groups: the column that tells groups apart, or None.
    """

    names: tuple[str, ...] = ()
    groups: str | None = None

    @classmethod
    def parse(cls, metrics: str | None, groups: str | None) -> MetricChoice:
        """From the words of the command line: names between commas, in brackets or not.

        >>> MetricChoice.parse("[confusion, auc]", None).names
        ('confusion', 'auc')
        """
        if metrics is None:
            return cls((), groups)
        words = metrics.strip().removeprefix("[").removesuffix("]").split(",")
        return cls(tuple(word.strip() for word in words), groups)

    def build(self, schema: TableSchema, likelihood: bool) -> tuple[Metric, ...]:
        """The metrics for a schema's task.

        Args:
            schema: of the table.
            likelihood: whether the loss has probabilities.

        Raises:
            InputError: one is not for the task or the loss, or the groups' column is no category.
        """
        known = METRICS[schema.task]
        for name in self.names:
            if name not in known:
                allowed = f"is not for {schema.task}: one of {', '.join(known)}"
                raise InputError("metrics", name, allowed, tuple(known))
            if self.names.count(name) > 1:
                raise InputError("metrics", name, "is there twice")
            if name == "coefficients" and len(schema.names) > MOST:
                raise InputError("metrics", name, f"is for at most {MOST} coordinates of a row")
            if name in NEED_CHANCES and not likelihood:
                raise InputError("metrics", name, "needs a loss with probabilities: loss=logistic")
        names = self.names or tuple(
            name
            for name in known
            if name not in NOT_BY_DEFAULT and (likelihood or name not in NEED_CHANCES)
        )
        found = [known[name](schema) for name in names]
        if self.groups is not None:
            words = (*self._find_category(schema)[1], NO_GROUP)
            by = GroupError if schema.task == "regression" else GroupAccuracy
            found.append(by(words))
        return tuple(found)

    def find_places(self, schema: TableSchema) -> tuple[int, ...]:
        """The coordinates of the groups' column, in order; empty where none are told apart."""
        if self.groups is None:
            return ()
        names = self._find_category(schema)[0].names(self.groups)
        return tuple(schema.names.index(name) for name in names)

    def _find_category(self, schema: TableSchema) -> tuple[Category, tuple[str, ...]]:
        """The column's declaration, and the words of its coordinates."""
        columns = dict(schema.features)
        kind = columns.get(self.groups or "")
        if not isinstance(kind, Category):
            known = tuple(name for name, one in columns.items() if isinstance(one, Category))
            allowed = f"must be a category of the schema: {', '.join(known) or 'it has none'}"
            raise InputError("groups", self.groups, allowed, known)
        words = (name.partition("=")[2] for name in kind.names(""))
        return kind, tuple(words)
