"""The text of an error that code from outside raises may show records: it is kept nowhere."""

from __future__ import annotations

import json

import pytest

from tests.core.test_plugin_sources import CLOUD, MINE, OTHERS

SECRET = "row 7 is 0.123456"
RAISE = f'raise ValueError("{SECRET}")'
REFUSE = f'from dperm_cli import InputError; raise InputError("rows", "{SECRET}", "is odd")'
BORROW = f'from dperm_cli import L2Ball; L2Ball("{SECRET}", 1)'
UNSUPPORTED = f'from dperm_cli import Unsupported; raise Unsupported("{SECRET}")'
MINE_WORDS = ("mechanism=one_step", "loss=quantile", "dataset=diabetes", "constraint.radius=1")
CLOUD_WORDS = ("mechanism=noisy_gd", "loss=logistic", "dataset=cloud", "constraint.radius=1")
KERNEL_WORDS = (
    *("mechanism=kernel_release", "kernel=affine", "dataset=diabetes", "loss=squared"),
    "dataset.test_fraction=0.2",
)
# what stands before the line that fails: (file, line, words of a run, exit code)
IN_CELLS = {
    "a mechanism's events": (MINE, "    def events(self, spec, scale, budget):", MINE_WORDS),
    "a release": (MINE, "    def release(self, view, plan, gate):", MINE_WORDS),
    "a loss in the optimum": (MINE, "    def value(self, z, y):", MINE_WORDS),
    "a loss's slope": (MINE, "    def slope(self, z, y):", MINE_WORDS),
}
IN_LOADING = {
    "a kernel": (OTHERS, "    def gram(self, a, b):", KERNEL_WORDS),
    "a data set": (CLOUD, "    def load(self, data_dir=None):", CLOUD_WORDS),
}


@pytest.fixture
def run_failing(dperm, tmp_path):
    """Run a file with a line that fails; gives the outcome and all that was written."""

    def call(place, line, *more):
        file, before, words = place
        text = file.read_text()
        assert before in text
        (tmp_path / "mine.py").write_text(text.replace(before, f"{before}\n        {line}"))
        run = ["run", "--plugin", "mine.py", *words, "trials=1", "ridge=0.1", "out=study"]
        found = dperm(*run, "format=json", *more)
        made = sorted(path for path in (tmp_path / "study").rglob("*") if path.is_file())
        return found, b"".join(path.read_bytes() for path in made)

    return call


@pytest.mark.parametrize("line", [RAISE, REFUSE, BORROW], ids=["raise", "refuse", "borrow"])
@pytest.mark.parametrize("place", IN_CELLS.values(), ids=IN_CELLS)
def test_a_failed_cell_names_type_and_line_alone(place, line, run_failing):
    found, made = run_failing(place, line)
    assert found.code == 1
    (row,) = [json.loads(one) for one in found.out.splitlines()]
    assert row["status"] == "failed"
    kind = "ValueError" if line == RAISE else "InputError"
    assert f"{kind} (line " in row["reason"]
    assert "of mine.py)" in row["reason"]
    assert SECRET not in found.out + found.err
    assert SECRET.encode() not in made


@pytest.mark.parametrize("place", list(IN_CELLS.values())[1:], ids=list(IN_CELLS)[1:])
def test_who_has_seen_records_is_not_unsupported(place, run_failing):
    found, made = run_failing(place, UNSUPPORTED)
    (row,) = [json.loads(one) for one in found.out.splitlines()]
    assert row["status"] == "failed"
    assert SECRET not in found.out + found.err
    assert SECRET.encode() not in made


def test_a_plan_sees_public_facts_and_may_say_why_there_is_none(run_failing):
    found, _ = run_failing(IN_CELLS["a mechanism's events"], UNSUPPORTED)
    (row,) = [json.loads(one) for one in found.out.splitlines()]
    assert (row["status"], row["reason"]) == ("unsupported", SECRET)


@pytest.mark.parametrize("line", [RAISE, REFUSE, BORROW, UNSUPPORTED])
@pytest.mark.parametrize("place", IN_LOADING.values(), ids=IN_LOADING)
def test_what_fails_before_the_first_cell_is_one_line(place, line, run_failing):
    found, made = run_failing(place, line)
    assert (found.code, found.out, made) == (2, "", b"")
    (said,) = found.err.splitlines()
    assert "of mine.py)" in said
    assert "Error (line " in said or "Unsupported (line " in said
    assert SECRET not in said


@pytest.mark.parametrize("place", IN_CELLS.values(), ids=IN_CELLS)
def test_debug_shows_the_words_on_the_terminal_alone(place, run_failing):
    found, made = run_failing(place, RAISE, "--debug")
    assert SECRET in found.err
    assert SECRET not in found.out
    assert SECRET.encode() not in made


def test_debug_raises_what_loading_raises(run_failing):
    with pytest.raises(ValueError, match=SECRET):
        run_failing(IN_LOADING["a data set"], RAISE, "--debug")


@pytest.mark.parametrize(("verb", "more"), [
    ("describe", ["mechanism=noisy_gd"]),
    ("audit", ["mechanism=noisy_gd"]),
    ("ask", ["mechanism=kernel_release", "kernel=rbf"]),
])  # fmt: skip
def test_other_verbs_show_no_traceback(verb, more, dperm, tmp_path):
    before = "    def load(self, data_dir=None):"
    text = CLOUD.read_text().replace(before, f"{before}\n        {RAISE}")
    (tmp_path / "mine.py").write_text(text)
    found = dperm(verb, "--plugin", "mine.py", "dataset=cloud", "loss=logistic", *more)
    assert found.code == 2
    (said,) = found.err.splitlines()
    assert "ValueError" in said
    assert SECRET not in said
