"""docs/ledger.md shows a real entry: its numbers follow from its events."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.calibrate import mu

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
ENTRY, TOTAL, CHOICE = (json.loads(b) for b in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


def events():
    names = ("event", "scale", "record_norm", "count", "gap")
    return [
        ledger_totals.rebuild_event({name: event[name] for name in names})
        for event in ENTRY["events"]
    ]


def test_the_entry_is_what_its_events_give():
    accounted = ENTRY["accounted"]
    again = ledger_totals.recompute(
        events(), kind="approx", delta=accounted["delta"], relation=ENTRY["relation"],
        certificate=None,
    )  # fmt: skip
    assert again.epsilon == pytest.approx(accounted["epsilon"], rel=1e-9)
    (event,) = events()
    written = ENTRY["events"][0]
    assert ledger_totals.describe(event, ENTRY["relation"]).items() <= written.items()
    assert f"= {written['sensitivity'] * math.sqrt(200) / event.scale:.6f}" in PAGE


def test_the_totals_are_compositions():
    delta = ENTRY["accounted"]["delta"]
    once = math.hypot(mu(0.5, delta), mu(1.0, delta))
    assert mu(TOTAL["one_trial_of_each_cell"]["epsilon"], delta) == pytest.approx(once, rel=1e-9)
    assert mu(TOTAL["all_trials"]["epsilon"], delta) == pytest.approx(once * 5**0.5, rel=1e-9)
    assert CHOICE["total"] == TOTAL["one_trial_of_each_cell"]
