"""``dperm check`` finds faults of every kind of plug-in, and says what to mend."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

import dperm_cli
from dperm_cli.audit.contracts import suite
from dperm_cli.core import plugin_sources
from dperm_cli.core.new_plugin import KINDS
from tests.contract.planted_faults import EXAMPLES, FAULTS, Fault, read_base


def check(path) -> suite.CheckReport:
    return suite.check(path)


@pytest.mark.in_turn
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, tmp_path):
    report = check(FAULTS[fault].write(tmp_path / "mine.py"))
    told = "\n".join(f"{one.promise}: {one.seen}" for one in report.broken)
    assert report.is_broken
    assert re.search(FAULTS[fault].seen, told), told
    assert all(one.mend for one in report.broken)


@pytest.mark.parametrize("base", [*KINDS, *sorted(path.name for path in EXAMPLES.glob("*.py"))])
def test_what_the_faults_are_planted_in_passes(base, tmp_path):
    report = check(Fault(base, (), "").write(tmp_path / "mine.py"))
    assert not report.broken
    assert len(report.findings) >= 6


def test_only_the_broken_plugin_of_a_file_is_blamed(tmp_path):
    """Its constants are those of mechanisms on it: these are tried on sound losses alone."""
    path = tmp_path / "mine.py"
    loss = FAULTS["a bound without its targets"].write(path).read_text()
    path.write_text(loss + read_base("mechanism").replace("class Mine(", "class Own("))
    assert {(one.kind, one.name) for one in check(path).broken} == {("loss", "mine")}


def test_a_report_puts_what_is_broken_last(tmp_path):
    path = FAULTS["a symmetry that there is not"].write(tmp_path / "mine.py")
    path.write_text(path.read_text() + read_base("dataset").replace("class Mine(", "class Own("))
    lines = str(check(path)).splitlines()
    (at,) = [i for i, line in enumerate(lines) if "BROKEN" in line and "promises of" not in line]
    assert lines[at + 1].startswith("          seen: ")
    assert lines[at + 2].startswith("          mend: ")
    assert lines[-1].startswith("20 promises of 2 plug-ins: ")
    assert lines[-1].endswith("1 BROKEN")
    assert lines.index("dataset own") < lines.index("constraint mine") < at


def test_a_class_of_this_process_is_checked(monkeypatch):
    """As one that a notebook's cell defines."""
    cell = ModuleType("cell")
    monkeypatch.setitem(sys.modules, "cell", cell)
    exec(read_base("dataset"), vars(cell))
    report = dperm_cli.check(cell.Mine)
    assert not report.is_broken
    assert {(one.kind, one.name) for one in report.findings} == {("dataset", "mine")}
    with pytest.raises(dperm_cli.InputError, match="no class of a plug-in"):
        dperm_cli.check(int)


def test_a_checked_file_is_not_kept(tmp_path):
    check(Fault("dataset", (), "").write(tmp_path / "mine.py"))
    assert "mine" not in plugin_sources.classes("dataset")


def test_an_error_names_the_line_of_the_file(tmp_path):
    path = FAULTS["a refusal in the release"].write(tmp_path / "mine.py")
    line = path.read_text().splitlines().index("            raise ValueError('no rows')") + 1
    assert any(f"(line {line})" in one.seen for one in check(path).broken)
