"""The harness behind ``make audit-power``: how faults are planted, judged and written down."""

from __future__ import annotations

import pytest

from tests.mutants import power
from tests.mutants.patches import BROKEN, HARMLESS, Patch


def test_the_shipped_list_is_in_the_format():
    broken, harmless = power.patches(power.SHIPPED)
    assert broken == BROKEN
    assert harmless == HARMLESS


def test_a_fault_is_planted_once_and_nothing_else_changes(tmp_path):
    patch = BROKEN[0]
    power.plant(patch, tmp_path)
    path = tmp_path / "dperm_cli" / patch.file
    original = (power.ROOT / "dperm_cli" / patch.file).read_text()
    assert path.read_text() == original.replace(patch.old, patch.new)
    other = tmp_path / "dperm_cli" / "cli.py"
    assert other.read_bytes() == (power.ROOT / "dperm_cli" / "cli.py").read_bytes()
    # compiled loops are found by the time of their source
    assert other.stat().st_mtime == (power.ROOT / "dperm_cli" / "cli.py").stat().st_mtime
    assert (tmp_path / "conf" / "config.yaml").exists()


def test_a_text_that_has_moved_is_refused(tmp_path):
    with pytest.raises(ValueError, match="stands 0 times"):
        power.plant(Patch("gone", "cli.py", "no such text anywhere", "", ""), tmp_path)


@pytest.mark.parametrize(
    ("code", "harmless", "found", "right"),
    [(1, False, True, True), (0, False, False, False), (0, True, False, True),
     (1, True, True, False), (2, False, False, False), (None, False, None, False),
     (None, True, None, False)],
)  # fmt: skip
def test_outcomes_are_judged_by_exit_code(code, harmless, found, right, monkeypatch):
    said = "cell 1/2 noisy_gd  [1 s]\nnoisy_gd: epsilon is at least 2 | more\n"
    monkeypatch.setattr(power, "plant", lambda patch, copy: None)
    asked = []
    monkeypatch.setattr(power, "_run", lambda words, *a: (asked.append(words), (code, said))[1])
    outcome = power.measure(Patch("a fault", "f.py", "a", "b", ""), harmless, 5.0)
    assert outcome.found is found
    assert outcome.right is right
    assert ("stop=first" in asked[0]) is not harmless
    assert "mechanism=all" in asked[0]
    if code is not None:
        assert outcome.said == "noisy_gd: epsilon is at least 2 | more"


def test_the_table_counts(tmp_path):
    outcomes = [
        power.Outcome("one | two", False, True, 12.0, "a | b"),
        power.Outcome("missed", False, None, 600.0, ""),
        power.Outcome("sums in another order", True, False, 300.0, "exit 0"),
    ]
    text = power.table(outcomes, 600.0)
    assert "| one / two |  | yes | 12 | a / b |" in text
    assert "| missed |  | no end | 600 |" in text
    last = "1 of 2 faults found, 0 false alarms in 1 harmless changes."
    assert text.splitlines()[-1] == last
