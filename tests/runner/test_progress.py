"""What is said on stderr while something takes long."""

from __future__ import annotations

import pytest

from dperm_cli.core import progress as steps
from dperm_cli.runner.sweep import progress
from dperm_cli.runner.sweep.worker import Outcome


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_a_line_now_and_then(clock, capsys):
    with progress.SweepMeter.open(5) as shown:
        for second, key in enumerate("abc", 1):
            clock[0] = 6.0 * second
            shown.finish_cell(Outcome(key, "ok"), "a cell")
    lines = capsys.readouterr().err.splitlines()
    counts = "2 done, 0 looked up, 0 failed, 0 unsupported, 3 remaining"
    assert lines == [f"{counts}  [12 s]"]


def test_the_time_left_follows_what_has_run(clock, capsys):
    with progress.SweepMeter.open(100) as shown:
        for key in range(40):
            shown.finish_cell(Outcome(str(key), "ok", looked_up=True), "a cell")
        for key in range(10):
            clock[0] += 2.0
            shown.finish_cell(Outcome(f"ran {key}", "ok"), "a cell")
        assert shown.head().endswith("50 remaining, about 100 s left".replace("100 s", "2 min"))


def test_a_long_step_is_shown_with_its_cell(clock, capsys):
    with progress.SweepMeter.open(2) as shown:
        shown.show_cell("noisy_gd epsilon=1")
        clock[0] = 11.0
        steps.report("noisy_gd", 3, 4)
    (line,) = capsys.readouterr().err.splitlines()
    assert "2 remaining: noisy_gd epsilon=1: noisy_gd 75 %" in line


def test_steps_outside_a_sweep_have_a_name(clock, capsys):
    with progress.open_step_meter("describe"):
        clock[0] = 11.0
        steps.report("optimum", 1, 0)
    assert capsys.readouterr().err == "describe: optimum  [11 s]\n"
    steps.report("optimum", 2, 0)
    assert capsys.readouterr().err == ""


def test_the_first_failure_is_said_at_once(clock, capsys):
    with progress.SweepMeter.open(3) as shown:
        shown.finish_cell(Outcome("a", "failed", "why"), "this cell")
        assert capsys.readouterr().err == "failed: this cell: why\n"
        shown.finish_cell(Outcome("b", "failed", "why"), "that cell")
        assert capsys.readouterr().err == ""


def test_on_a_terminal_one_line_is_rewritten(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    with progress.SweepMeter.open(2) as shown:
        clock[0] = 1.0
        shown.finish_cell(Outcome("a", "ok"), "a cell")
    shown_text = capsys.readouterr().err
    assert shown_text.startswith("\r\x1b[K1 done")
    assert "\n" not in shown_text
    assert shown_text.endswith("\r\x1b[K")


def test_a_step_that_begins_is_shown_at_once(clock, capsys, monkeypatch):
    """And its name is: a long line loses its beginning."""
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    with progress.SweepMeter.open(2) as shown:
        shown.show_cell("a name of some length" * 5)
        steps.report("optimum", 0, 0)
        assert capsys.readouterr().err == ""
        steps.report("compiling", 0, 60)
        assert "length: compiling 0 %  [" in capsys.readouterr().err
        steps.report("compiling", 1, 60)
        assert capsys.readouterr().err == ""
