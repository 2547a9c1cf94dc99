"""The tables of docs/plugins.md name every event, and no method that is not there."""

from __future__ import annotations

import re

import pytest

from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.privacy import events
from dperm_cli.privacy.events.base import Event, NoiseEvent
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView
from tests.structure.commands import ROOT

PAGE = (ROOT / "docs" / "plugins.md").read_text("utf-8")
SECTION = PAGE.partition("## What a mechanism may use\n")[2].partition("\n## ")[0]
USED, EVENTS = SECTION.split("| event | released is |")
HAVE = {"the class": Mechanism, "`spec`": ProblemSpec, "`view`": CentralView, "`gate`": Gate}


def list_used():
    """(class, name) of each name in the first table."""
    owner = None
    for line in USED.splitlines():
        if not line.startswith("| ") or line.startswith("| in "):
            continue
        first, names, _ = (cell.strip() for cell in line.strip("|").split("|", 2))
        owner = next((held for start, held in HAVE.items() if first.startswith(start)), owner)
        yield from ((owner, name) for name in re.findall(r"`([a-z_]+)[(`]", names))


@pytest.mark.parametrize(("owner", "name"), list(list_used()))
def test_what_the_page_offers_is_there(owner, name):
    fields = getattr(owner, "__dataclass_fields__", {})
    assert hasattr(owner, name) or name in fields


def test_all_four_are_told_of():
    assert {owner for owner, _ in list_used()} == set(HAVE.values())


def test_every_event_is_on_the_page():
    shipped = {
        name for name, found in vars(events).items()
        if isinstance(found, type) and issubclass(found, Event) and found not in (Event, NoiseEvent)
    }  # fmt: skip
    assert set(re.findall(r"`([A-Z]\w+)`", EVENTS.partition("\n\n")[0])) == shipped
