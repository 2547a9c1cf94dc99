"""What can be asked before anything is released: plans, accounts, audits, descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dperm_cli.api.call_keywords import check_methods
from dperm_cli.api.html_text import as_html
from dperm_cli.api.requests import open_call
from dperm_cli.core.errors import InputError
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy import events as privacy_events
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Event
from dperm_cli.results.charts import problem_portrait
from dperm_cli.results.tables import account_table, problem_text
from dperm_cli.runner.audit_findings import Findings
from dperm_cli.runner.audit_request import parse as parse_audit
from dperm_cli.runner.audits import audit_tables, fuzz
from dperm_cli.runner.cells import prepared_cell, run_cell
from dperm_cli.runner.cells.cell_budget import check
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.verbs import account as accounting
from dperm_cli.runner.verbs import audit as auditing
from dperm_cli.runner.verbs import describe as describing
from dperm_cli.runner.verbs.account_request import parse_request as parse_account
from dperm_cli.runner.verbs.run import hold_machine, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


def plans(
    *overrides: Any,
    plugins: Any = (),
    config_dir: Any = None,
    X: Any = None,
    y: Any = None,
    progress: bool = True,
    **keys: Any,
) -> PlanList:
    """The plans of a run's cells: what each would do to the records. Nothing is released.

    The records are read for the public facts that a plan follows from, and nothing is written.

    Args:
        overrides, plugins, config_dir, X, y, progress, keys: As of ``run``.

    Returns:
        A list with a plan for each cell, in the order of the axes; it shows a line for each.

    Raises:
        InputError: Something of it makes no sense.
        Unsupported: A mechanism has no guarantee for what was asked.

    >>> [plan] = plans(mechanism="noisy_gd", epsilon=1)
    >>> plan.guarantee.epsilon <= 1
    True
    """
    with open_call(
        overrides, keys, plugins=plugins, config_dir=config_dir, X=X, y=y, progress=progress
    ) as call:
        study = study_plan.plan_requests(call.requests)
        with hold_machine(study):
            prepared = prepare(study.cells, study.keys.data_storage)
            return PlanList(
                (_plan(item) for item in prepared),
                [f"{item.cell.name_of('mechanism')} on {item.data.name}" for item in prepared],
            )


class PlanList(list[Plan]):
    """Plans, which show themselves with what they are of.

    Attributes:
        labels: The mechanism and the data set of each, in words.
    """

    def __init__(self, plans: Iterable[Plan] = (), labels: Sequence[str] = ()) -> None:
        super().__init__(plans)
        self.labels = list(labels)

    def __repr__(self) -> str:
        labels = self.labels if len(self.labels) == len(self) else [""] * len(self)
        lines = [f"{name}: {plan!r}".lstrip(": ") for name, plan in zip(labels, self, strict=True)]
        return "\n".join(lines) or "[]"

    def _repr_html_(self) -> str:
        import pandas as pd

        labels = self.labels if len(self.labels) == len(self) else [""] * len(self)
        rows = [
            {
                "": name,
                "guarantee": plan.guarantee.kind,
                "epsilon": plan.guarantee.epsilon,
                "delta": plan.guarantee.delta,
                "noise_scale": plan.noise_scale,
                "steps": plan.steps,
            }
            for name, plan in zip(labels, self, strict=True)
        ]
        return as_html("Plans", pd.DataFrame(rows))


def _plan(item: Prepared) -> Plan:
    budget, kind = prepared_cell.find_budget(item)
    plan, _ = run_cell.plan_of(prepared_cell.make_feature_rows(item), budget)
    check(plan, budget, kind, item.cell.mechanism.is_unprotected)
    return plan


def account(
    *events: Any,
    delta: Any = None,
    relation: str = "replace_one",
    plugins: Any = (),
    progress: bool = True,
    **keys: Any,
) -> Guarantee | AccountTable:
    """What events cost together; or, with words or keys, what ``dperm account`` tells.

    Args:
        events: Events, or a sequence of them. Or words of ``dperm account``.
        delta: Of the guarantee; None is 0 for events.
        relation: Which data sets are neighbours.
        plugins, progress: As of ``run``.
        keys: Keys of ``dperm account``; a list is an axis.

    Returns:
        Of events their guarantee, else the table.

    Raises:
        InputError: Something of it makes no sense.
        Unsupported: An event has no proof for the relation.

    >>> from dperm_cli import Gaussian
    >>> found = account(Gaussian(5.0, 1.0, gap=1.0), delta=1e-6)
    >>> round(found.epsilon, 5)
    0.83412
    """
    listed = _list_events(events)
    if listed and not keys:
        level = 0.0 if delta is None else delta
        kind = privacy_events.kind(listed)
        if kind != "local" and kind != "none":
            kind = "approx" if level > 0.0 else "pure"
        return ledger_totals.recompute(
            listed, kind=kind, delta=level, relation=relation, certificate=None
        )
    if listed:
        key = next(iter(keys))
        raise InputError(key, keys[key], "cannot stand beside events")
    if delta is not None:
        keys["delta"] = delta
    if relation != "replace_one":
        keys["privacy.relation"] = relation
    with open_call(events, keys, plugins=plugins, progress=progress, sweeps=True) as call:
        asked = parse_account([word for word in call.words if word != "-m"])
        return AccountTable(accounting.make_rows(asked.asks))


def _list_events(given: Sequence[Any]) -> list[Event]:
    flat: list[Any] = []
    for one in given:
        flat += list(one) if isinstance(one, list | tuple) else [one]
    return flat if flat and all(isinstance(one, Event) for one in flat) else []


@check_methods
class AccountTable(Sequence[dict[str, Any]]):
    """The rows of ``dperm account``: a dict each."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = list(rows)

    def frame(self) -> DataFrame:
        """One row for each line."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return account_table.format_table(self.rows).rstrip()

    def _repr_html_(self) -> str:
        return as_html("Privacy account", self.frame().drop(columns="events", errors="ignore"))


def audit(
    *overrides: Any,
    plugins: Any = (),
    config_dir: Any = None,
    X: Any = None,
    y: Any = None,
    progress: bool = True,
    **keys: Any,
) -> AuditReport:
    """Attack the plan of a run, or every mechanism: what ``dperm audit`` does.

    Args:
        overrides: Words of ``dperm audit``, such as ``"--quick"``.
        plugins, config_dir, X, y, progress: As of ``run``.
        keys: Keys of ``dperm audit`` with their values; ``workers`` is 1 unless given.

    Raises:
        InputError: Something of it makes no sense.

    >>> report = audit("--quick", mechanism="noisy_gd", epsilon=1, part="adversary")
    >>> report.passed
    True
    """
    with open_call(
        overrides, keys, plugins=plugins, config_dir=config_dir, X=X, y=y, progress=progress,
        sweeps=True, switches=("--quick",),
    ) as call:  # fmt: skip
        words = [word for word in call.words if word != "-m"]
        if fuzz.is_asked(words):
            raise InputError("fuzz", "...", "is for `dperm audit`")
        if not any(word.startswith("workers=") for word in words):
            words.append("workers=1")  # a notebook has threads, and must not be copied unasked
        asked = parse_audit(words)
        found = auditing.find_all(asked)
        return AuditReport(found, auditing.make_rows(found, asked.seed))


@check_methods
class AuditReport:
    """What an audit found.

    Attributes:
        rows: A dict for each attack.
        faults: What is wrong, a line each.
        notes: What was left out, and why.
    """

    def __init__(self, found: Findings, rows: list[dict[str, Any]]) -> None:
        self.rows, self.faults = rows, found.faults
        self.notes = [*found.notes, *found.unattacked]
        self._found = found

    @property
    def passed(self) -> bool:
        """Whether something of every mechanism was attacked, and nothing broke."""
        return self._found.is_passed

    def frame(self) -> DataFrame:
        """One row for each attack."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "NOT passed"
        lines = [f"audit {verdict}", audit_tables.format_findings(self._found)]
        return "\n".join([*lines, *self.faults, *self.notes])

    def _repr_html_(self) -> str:
        return as_html("Audit", repr(self))


def describe(
    *overrides: Any,
    plugins: Any = (),
    config_dir: Any = None,
    X: Any = None,
    y: Any = None,
    progress: bool = True,
    **keys: Any,
) -> Description:
    """What is known of a problem before any budget is spent: what ``dperm describe`` tells.

    Args:
        overrides, plugins, config_dir, X, y, progress, keys: As of ``run``.

    Raises:
        InputError: Something of it makes no sense, or it is several problems.

    >>> found = describe(dataset="breast_cancer", mechanism="noisy_gd", epsilon=1)
    >>> found.facts["n"]
    456
    """
    with open_call(
        overrides, keys, plugins=plugins, config_dir=config_dir, X=X, y=y, progress=progress
    ) as call:
        study = study_plan.plan_requests(call.requests)
        with hold_machine(study):
            return Description(describing.describe_study(study, call.requests).facts)


@check_methods
class Description:
    """What is known of a problem. Optimum, floor and metrics are no private releases.

    Attributes:
        facts: By name, as ``dperm describe format=json`` prints them.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def frame(self) -> DataFrame:
        """One row for each mechanism and epsilon: noise and bounds, or why there is no plan."""
        import pandas as pd

        return pd.DataFrame(list(self._list_rows()))

    def plot(self) -> Figure:
        """Losses of the records, and what bounds and floor leave to each epsilon."""
        from dperm_cli.results.charts.figure_drawing import draw_canvas

        return draw_canvas(problem_portrait.make_figure(self.facts))

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        for name, rows in self.facts["mechanisms"].items():
            yield from ({"mechanism": name, **row} for row in rows)

    def __repr__(self) -> str:
        return problem_text.format_problem(self.facts)

    def _repr_html_(self) -> str:
        return as_html("Problem", repr(self))
