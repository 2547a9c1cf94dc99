"""What is said on stderr while something takes long."""

from __future__ import annotations

import re

import pytest

from dperm_cli.core import progress as steps
from dperm_cli.runner.sweep import progress
from dperm_cli.runner.sweep.outcomes import Outcome


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


@pytest.fixture
def on_terminal(monkeypatch):
    """Call it for a terminal of 100 letters behind the stderr of that moment."""

    def use(**more):
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", **more}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)

    return use


def drawn_lines(capsys):
    """What a terminal was told since the last call, without codes."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def test_a_terminal_gets_a_bar_with_rate_and_time_left(clock, capsys, on_terminal):
    on_terminal()
    with progress.SweepMeter.open(40) as shown:
        for key in range(10):
            clock[0] += 0.5
            shown.finish_cell(Outcome(str(key), "ok"), "a cell")
        line = drawn_lines(capsys)[-1]
        assert re.search(r"[━╸╺]{10}.* 10/40 2 cells/s, 15 s left$", line)
        assert len(line) <= 100
        clock[0] += 15.0
        shown.finish_cell(Outcome("slow", "failed", "why"), "a cell")
        assert "failed: a cell: why" in drawn_lines(capsys)
        clock[0] += 1.0
        shown.show_cell("the next")
        line = drawn_lines(capsys)[-1]
        assert line.startswith("the next")
        assert "11/40, 1 failed 1.91 s/cell" in line
    assert capsys.readouterr().err.endswith("\x1b[2K")  # nothing stays


def test_short_work_has_no_bar(clock, capsys, on_terminal):
    on_terminal()
    with progress.SweepMeter.open(2) as shown:
        clock[0] = 0.1
        shown.finish_cell(Outcome("a", "ok"), "a cell")
    assert capsys.readouterr().err == ""


def test_a_step_that_begins_is_shown_at_once(clock, capsys, on_terminal):
    """Compiling may come before its next word."""
    on_terminal()
    with progress.SweepMeter.open(2) as shown:
        shown.show_cell("a name")
        steps.report("optimum", 0, 0)
        assert capsys.readouterr().err == ""
        steps.report("compiling", 0, 60)
        assert drawn_lines(capsys)[-1].startswith("a name: compiling 0 %")
        steps.report("compiling", 1, 60)
        assert capsys.readouterr().err == ""


def test_a_dumb_terminal_gets_plain_lines(clock, capsys, on_terminal):
    on_terminal(TERM="dumb")
    with progress.SweepMeter.open(3) as shown:
        clock[0] = 11.0
        shown.finish_cell(Outcome("a", "ok"), "a cell")
    text = capsys.readouterr().err
    assert text.endswith("2 remaining  [11 s]\n")
    assert "\x1b" not in text


def test_no_colour_where_nobody_wants_it(clock, capsys, on_terminal):
    on_terminal(NO_COLOR="1")
    with progress.SweepMeter.open(3) as shown:
        clock[0] = 11.0
        shown.finish_cell(Outcome("a", "ok"), "a cell")
    assert not re.search(r"\x1b\[[0-9;]*[34][0-9;]*m", capsys.readouterr().err)
