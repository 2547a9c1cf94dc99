"""A release of a plug-in that stops, or draws no noise, tells nothing of the records."""

from __future__ import annotations

import pytest

import dperm_cli

TEXT = """
from dataclasses import dataclass
import numpy as np
from dperm_cli import Gaussian, Mechanism, Release, Unsupported

@dataclass(frozen=True)
class Mine(Mechanism):
    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view, plan, gate):
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = view.gradient_sum(start)
        LINE
        return Release(view.spec.constraint.project(start - 0.1 * total))
"""
KEYS = {"mechanism": "mine", "dataset": "breast_cancer", "trials": 2, "progress": False}


@pytest.fixture
def reason(tmp_path):
    def find(line):
        (tmp_path / "mine.py").write_text(TEXT.replace("LINE", line))
        study = dperm_cli.run(plugins=[tmp_path / "mine.py"], out=tmp_path / "study", **KEYS)
        (row,) = study.frame().to_dict("records")
        return row["status"], row["reason"]

    return find


@pytest.mark.parametrize("error", ["ValueError", "KeyError", "SystemExit", "Unsupported"])
def test_the_message_of_an_error_in_a_release_is_not_kept(reason, error):
    status, words = reason(f'raise {error}(f"a value {{total[0, 0]:.1f}}")')
    assert status == "failed"
    assert f"{error} (line 14 of mine.py)" in words
    assert "a value" not in words


def test_what_the_gate_refuses_is_told_without_what_was_asked_for(reason):
    """The numbers of an event that a plug-in makes may be those of a record."""
    status, words = reason("gate.stream(Gaussian(1e-9, 1.0), view.spec.p)")
    assert status == "failed"
    assert "PrivacyError" in words
    assert "1e-09" not in words


def test_a_release_without_noise_is_none(reason):
    status, words = reason("total = total + np.random.normal(size=total.shape)")
    assert status == "failed"
    assert "no noise was drawn" in words


@pytest.mark.parametrize("line", ["view.x[:] = 0", "view.y[:] = 0"])
def test_a_plug_in_cannot_change_the_records_of_the_next_cell(tmp_path, line):
    (tmp_path / "mine.py").write_text(TEXT.replace("LINE", line))
    keys = KEYS | {"mechanism": ["mine", "noisy_gd"], "plugins": [tmp_path / "mine.py"]}
    mixed = dperm_cli.run(out=tmp_path / "mixed", **keys).frame().set_index("mechanism")
    alone = dperm_cli.run(out=tmp_path / "alone", **KEYS | {"mechanism": "noisy_gd"}).frame()
    assert mixed.loc["mine", "status"] == "failed"
    assert "line 14 of mine.py" in mixed.loc["mine", "reason"]
    assert mixed.loc["noisy_gd", "excess_risk_median"] == alone.loc[0, "excess_risk_median"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("return Release(start + 1j * total)", "real numbers"),
        ("return Release(total > 0)", "real numbers"),
        ("return Release(start.astype(object))", "real numbers"),
        ("return Release(start.astype(str))", "real numbers"),
        ("return Release(start[:1])", "one point for each of 2 trials"),
        ("return Release(start[0])", "one point for each of 2 trials"),
        ("return None", "something else than a Release"),
    ],
)
def test_a_release_of_another_form_is_a_failed_row_that_shows_no_value(reason, line, words):
    draw = "gate.stream(plan.events[0], view.spec.p).add(total, 0)"
    status, said = reason(f"total = {draw}\n        {line}")
    assert status == "failed"
    assert words in said
    assert "array(" not in said


@pytest.mark.parametrize(
    ("line", "words"),
    [("total = total * 1e3", "outside the set"), ("total[0, 0] = np.inf", "is not finite")],
)
def test_a_point_outside_the_set_is_no_release(tmp_path, line, words):
    text = TEXT.replace("LINE", f"gate.stream(plan.events[0], view.spec.p).add(total, 0); {line}")
    text = text.replace("view.spec.constraint.project(start - 0.1 * total)", "start - total")
    (tmp_path / "mine.py").write_text(text)
    study = dperm_cli.run(plugins=[tmp_path / "mine.py"], out=tmp_path / "study", **KEYS)
    (row,) = study.frame().to_dict("records")
    assert row["status"] == "failed"
    assert words in row["reason"]


def test_the_name_of_a_type_of_error_is_not_kept_where_code_made_it(reason):
    status, words = reason('raise type(f"Value{total[0, 0]:.0f}", (KeyError,), {})()')
    assert status == "failed"
    assert words.startswith("KeyError (line 14 of mine.py)")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pass", "no noise was drawn"),
        ("return Release(gate.stream(plan.events[0], view.spec.p).add(total, 0) * 1e3)", "the set"),
    ],
)
def test_a_shipped_combinator_around_a_plug_in_is_judged_as_the_plug_in(tmp_path, line, words):
    (tmp_path / "mine.py").write_text(TEXT.replace("LINE", line))
    keys = KEYS | {"mechanism": "huberized", "mechanism.inner": "mine", "loss": "hinge"}
    study = dperm_cli.run(plugins=[tmp_path / "mine.py"], out=tmp_path / "study", **keys)
    (row,) = study.frame().to_dict("records")
    assert row["status"] == "failed"
    assert words in row["reason"]
