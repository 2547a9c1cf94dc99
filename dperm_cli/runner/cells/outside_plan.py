"""What a plan of a plug-in from outside may not do unseen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dperm_cli.core import plugin_sources
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, list_shipped
from dperm_cli.privacy.events.own_copies import copy_events

# The plug-ins, in words with their digests, whose plans followed records in this process.
_REMEMBERING: set[str] = set()


def copy_plan(plan: Plan) -> Plan:
    """The same plan with events and settings of its own, whatever becomes of the given one's."""
    if type(plan) is not Plan:
        raise PrivacyError(f"a plan is a Plan, and not <{type(plan).__name__}>")
    settings = copy.deepcopy(dict(plan.settings))
    return replace(plan, events=copy_events(plan.events), settings=settings)


def describe_plan(mechanism: Mechanism, spec: Any, budget: Budget) -> str:
    """What a mechanism plans, in words; the kind of its error where there is no plan."""
    try:
        plan = copy_plan(mechanism.plan(spec, budget))
    except Unsupported as reason:
        return str(reason)
    except Exception as error:  # whatever the code from outside raises
        return type(error).__name__
    events = [ledger_totals.to_dict(event) for event in plan.events]
    facts = plan.guarantee, plan.noise_scale, plan.steps, plan.settings, plan.certificate
    return repr([events, *facts])


@contextmanager
def watch_plans(plugins: str | None, list_plans: Callable[[], list[str]]) -> Iterator[None]:
    """Refuse plug-ins whose plans after the block, which sees records, are others than before.

    All later cells of this process are refused too: what such a plug-in keeps is still there.

    Args:
        plugins: The plug-ins in words, with their digests; None where there are none.
        list_plans: What is planned, in words.

    Raises:
        PrivacyError: The plans differ.
    """
    if plugins is None:
        yield
        return
    before = list_plans()
    try:
        if plugins not in _REMEMBERING:
            yield
    finally:
        if plugins in _REMEMBERING or list_plans() != before:
            _REMEMBERING.add(plugins)
            raise PrivacyError(
                "a plan changed after the records were seen: it has to follow from public facts "
                "alone. Keep nothing of a release in globals, classes or settings"
            )


def require_named(events: Iterable[Event]) -> None:
    """PrivacyError where a record would call an event by the name of another class, or of none."""
    shipped = list_shipped()
    for event in events:
        name = type(event).__name__
        known = shipped.get(name) or plugin_sources.find("event", name)
        if known is not type(event):
            raise PrivacyError(
                f"no record can name the event {name}: let it be a public class of a plug-in, "
                "called otherwise than a shipped event"
            )
        if isinstance(event.alternatives, tuple):
            require_named(_list_inside(event.alternatives))


def _list_inside(alternatives: tuple[Any, ...]) -> list[Event]:
    """The events of a selection's candidates."""
    return [event for some in alternatives for event in some]
