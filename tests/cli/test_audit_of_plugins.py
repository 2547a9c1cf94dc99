"""What ``dperm audit`` says of a plug-in that it could not attack: no violation, and no pass."""

from __future__ import annotations

import pytest

import dperm_cli
from dperm_cli.audit.mechanism_audit import Verdict
from dperm_cli.core import registry
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.privacy.budget import Budget
from dperm_cli.runner.audit_findings import Findings, attack_instance
from dperm_cli.runner.audits.audit_grid import GridWalk
from dperm_cli.runner.verbs import audit
from tests.core.test_plugin_sources import MINE

BEFORE = "    def events(self, spec, scale, budget):"
OWN = "    def adversary(self, budget):\n        {line}\n\n" + BEFORE
# an adversary that cannot be made, one without a plan, one that sees nothing
RAISES = OWN.format(line='raise NotImplementedError("later")')
REFUSES = OWN.format(line='from dperm_cli import Unsupported; raise Unsupported("not today")')
BLIND = OWN.format(
    line="from dperm_cli.mechanisms.adversary import Adversary, linear_pair\n        "
    "return Adversary(*linear_pair(budget.relation), self, kind='profile', floor=0.1,\n"
    "                         statistic=lambda theta: 0 * theta[:, 0])"
)
NEVER = (
    "    def check(self, spec, budget):\n        from dperm_cli import Unsupported\n"
    f'        raise Unsupported("not today")\n\n{BEFORE}'
)
WORDS = ("--quick", "part=adversary", "workers=1", "mechanism=one_step")


@pytest.fixture
def audit_with(dperm, tmp_path):
    def call(change, *words):
        (tmp_path / "mine.py").write_text(MINE.read_text().replace(BEFORE, change))
        return dperm("audit", "--plugin", "mine.py", *words, "format=json")

    return call


@pytest.mark.parametrize(
    ("change", "word", "reason"),
    [
        (RAISES, "not attacked", "raised NotImplementedError: later"),
        (REFUSES, "not attacked", "not today"),
        (BLIND, "weak attack", "half the noise was not noticed"),
    ],
    ids=["raises", "refuses", "blind"],
)
def test_an_adversary_that_fails_is_no_violation(change, word, reason, audit_with):
    found = audit_with(change, *WORDS)
    assert {row["verdict"] for row in found.rows} == {word}
    for row in found.rows:
        assert row["faults"] == []
        assert reason in "; ".join(row["not_attacked"])
    nothing = word == "not attacked"
    assert found.code == (1 if nothing else 0)
    assert ("one_step: nothing was attacked" in found.err) == nothing
    assert "violation" not in found.out + found.err


def test_a_grid_of_which_nothing_can_be_run_is_no_violation(audit_with):
    found = audit_with(NEVER, "--quick", "part=grid", "workers=1", "mechanism=one_step")
    assert found.code == 1
    assert "one_step: nothing was attacked: no case of the grid can be run: not today" in found.err
    (row,) = [row for row in found.rows if row.get("settings") == "no settings"]
    assert (row["verdict"], row["faults"]) == ("not attacked", [])


def test_python_says_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE.read_text().replace(BEFORE, RAISES))
    keys = {"mechanism": "one_step", "part": "adversary"}
    report = dperm_cli.audit("--quick", **keys, plugins=["mine.py"], progress=False)
    assert report.faults == []
    assert not report.passed
    assert "not attacked" in repr(report)


def test_a_leak_of_a_plugin_is_a_violation(dperm, tmp_path):
    text = MINE.read_text().replace(
        ".add(view.gradient_sum(start), 0)", ".add(3 * view.gradient_sum(start), 0)"
    )
    assert text != MINE.read_text()
    (tmp_path / "mine.py").write_text(text)
    found = dperm("audit", "--plugin", "mine.py", *WORDS, "format=json")
    assert found.code == 1
    assert {row["verdict"] for row in found.rows} == {"violation"}


@pytest.mark.parametrize("fault", ["raises", "blind"])
def test_a_shipped_mechanism_without_a_working_adversary_fails(fault, monkeypatch):
    cls = registry.load("mechanism", "noisy_gd")

    def fail(self, budget):
        raise NotImplementedError("later")

    def look_away(self, budget):
        pair = linear_pair(budget.relation)
        return Adversary(*pair, self, lambda theta: 0 * theta[:, 0], kind="profile")

    monkeypatch.setattr(cls, "adversary", fail if fault == "raises" else look_away)
    verdict = attack_instance("noisy_gd", cls(), Budget(1.0, 1e-5), 0, True)
    assert isinstance(verdict, Verdict)
    assert verdict.row()["verdict"] == "violation"
    assert Findings([verdict], [], []).faults


def test_a_shipped_mechanism_without_a_case_of_the_grid_fails():
    walk = GridWalk("noisy_gd", (), (("p=3", "not today"),))
    report = audit._no_case(walk)
    assert report.verdict == "violation"
    assert Findings([], [report], [walk]).faults
