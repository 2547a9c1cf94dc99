"""The harness behind ``make audit-power``: how faults are planted, judged and written down."""

from __future__ import annotations

import pytest

from tests.mutants import power
from tests.mutants.edits import apply_edit
from tests.mutants.planted import FAULTS, HARMLESS, Planted

FAULT = Planted("a fault", "module.f", "a", "b", "Because.", ("run", "mechanism=noisy_gd"))


def test_a_fault_is_planted_once_and_nothing_else_changes(tmp_path):
    fault = FAULTS[0]
    power.plant(fault, tmp_path)
    file, source = apply_edit(power.ROOT / "dperm_cli", fault.symbol, fault.old, fault.new)
    assert (tmp_path / "dperm_cli" / file).read_text() == source
    assert source != (power.ROOT / "dperm_cli" / file).read_text()
    other = tmp_path / "dperm_cli" / "cli.py"
    assert other.read_bytes() == (power.ROOT / "dperm_cli" / "cli.py").read_bytes()
    # compiled loops are found by the time of their source
    assert other.stat().st_mtime == (power.ROOT / "dperm_cli" / "cli.py").stat().st_mtime
    assert (tmp_path / "conf" / "config.yaml").exists()


def test_an_edit_of_what_is_not_there_is_refused(tmp_path):
    gone = FAULT._replace(symbol="cli.main", old="no_such_name")
    with pytest.raises(ValueError, match="found 0 times, not once: no_such_name"):
        power.plant(gone, tmp_path)


def test_every_fault_says_which_mechanisms_it_is_in():
    assert all(power.mechanisms(edit) for edit in (*FAULTS, *HARMLESS))
    nested = FAULT._replace(run=("run", "mechanism=projected", "mechanism.inner=noisy_gd"))
    assert power.mechanisms(nested) == ["noisy_gd", "projected"]


@pytest.mark.parametrize(
    ("code", "harmless", "found", "right"),
    [(1, False, True, True), (0, False, False, False), (0, True, False, True),
     (1, True, True, False), (2, False, None, False), (2, True, None, False),
     (None, False, None, False), (None, True, None, False)],
)  # fmt: skip
def test_outcomes_are_judged_by_exit_code(code, harmless, found, right, monkeypatch):
    said = "cell 1/2 noisy_gd  [1 s]\nnoisy_gd: epsilon is at least 2 | more\n"
    monkeypatch.setattr(power, "plant", lambda edit, copy: None)
    asked = []
    monkeypatch.setattr(power, "_run", lambda words, *a: (asked.append(words), (code, said))[1])
    outcome = power.measure(FAULT, harmless, 5.0)
    assert outcome.found is found
    assert outcome.right is right
    assert ("stop=first" in asked[0]) is not harmless
    assert "mechanism=noisy_gd" in asked[0]
    if code is not None:
        assert outcome.said == "noisy_gd: epsilon is at least 2 | more"


def test_the_table_counts():
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


@pytest.mark.slow
def test_a_correct_tree_is_not_accused_and_a_leaky_one_is(tmp_path):
    assert power.measure(None, harmless=True).right
    power.plant(None, tmp_path)
    path = tmp_path / "dperm_cli" / "mechanisms" / "gradient" / "tree_aggregation.py"
    text = path.read_text()
    assert text.count("            for level in range(self.levels + 1)") == 1
    # the root of the tree is released and not accounted for
    leaky = text.replace("range(self.levels + 1)", "range(self.levels)")
    leaky = leaky.replace("enumerate(plan.events)", "enumerate((*plan.events, plan.events[-1]))")
    path.write_text(leaky)
    words = [power.sys.executable, "-m", "dperm_cli", "audit", "mechanism=tree_aggregation",
             "workers=1", "stop=first"]  # fmt: skip
    environment = power.os.environ | {"PYTHONPATH": str(tmp_path)}
    code, said = power._run(words, str(tmp_path), environment, 300.0)
    assert code == 1
    assert "tree_aggregation" in said
