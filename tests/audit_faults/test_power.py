"""How often the audit of foreign mechanisms is right: what is kept of it, and how it goes on."""

from __future__ import annotations

import re
from pathlib import Path

from dperm_cli.audit.outside.bounds import find_refutable
from tests.audit_faults import power
from tests.audit_faults.faults import FAULTS
from tests.audit_faults.sound import SOUND

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit_yours_power.md"


def test_the_page_has_every_fault_and_no_false_alarm():
    text = PAGE.read_text()
    found, faults = map(int, re.search(r"^(\d+) of (\d+) faults found", text, re.M).groups())
    assert all(f"| {one.name} | {one.source} |" in text for one in FAULTS)
    assert faults == len(FAULTS)
    assert found >= power.NEEDED * faults
    alarms, audits = map(
        int, re.search(r"^(\d+) false alarms in (\d+) audits", text, re.M).groups()
    )
    assert alarms == 0
    assert audits >= len(SOUND)


def test_the_page_has_what_runs_can_show_as_it_is_now():
    assert power.write_reach() in PAGE.read_text()


def test_more_runs_show_more():
    reach = [find_refutable(1.0, runs, 0.0, 1e-5) for runs in power.PAIR_RUNS]
    assert reach == sorted(reach, reverse=True)
    assert reach[-1] > 1.0


def test_an_audit_that_is_kept_is_not_made_again(tmp_path, monkeypatch):
    made = []

    def audit_once(subject, seed, runs):
        made.append((subject.name, seed))
        return False, f"| {subject.name} | not shown |"

    monkeypatch.setattr(power, "audit_once", audit_once)
    path = tmp_path / "kept.jsonl"
    first = power.Kept(path).audit(SOUND[0], 7, 100)
    assert power.Kept(path).audit(SOUND[0], 7, 100) == first
    power.Kept(path).audit(SOUND[0], 8, 100)
    power.Kept(None).audit(SOUND[0], 7, 100)
    assert made == [(SOUND[0].name, seed) for seed in (7, 8, 7)]


def test_a_false_alarm_stands_on_the_page():
    text = power.write_page(["| a | b | violated |"], ["| c | | violated |"], 3, 100, None)
    assert "1 of 1 faults found." in text
    assert "1 false alarms in 3 audits" in text
    assert "| c | | violated |" in text
