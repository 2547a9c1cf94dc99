"""A problem in words: three groups of mechanisms, best first, in forty lines."""

from __future__ import annotations

import pytest

from dperm_cli.results.tables.problem_text import MOST_LINES, WIDTH, format_problem, is_change


def plan(epsilon, bound=None):
    row = {"epsilon": epsilon, "supported": True, "guarantee": "approx", "steps": 5}
    row |= {"noise_scale": 3.0 / epsilon, "bound_lower": 0.5, "bound_lower_id": "two-point"}
    return row if bound is None else {**row, "bound_upper": bound, "bound_upper_id": "Thm 9"}


def foreseen(name, risks, bounds, **choice):
    """Plans with predicted risks, one at each epsilon."""
    rows = [plan(e, bound) for e, bound in zip((1.0, 2.0), bounds, strict=True)]
    return {name: [{**row, "predicted_risk_per_record": risk, **choice}
                   for row, risk in zip(rows, risks, strict=True)]}  # fmt: skip


def refusal(reason):
    return [{"epsilon": e, "supported": False, "reason": reason} for e in (1.0, 2.0)]


def facts(mechanisms):
    numbers = ("lipschitz", "smoothness", "strong_convexity", "radius", "diameter", "width",
               "width_error", "optimum", "optimum_gap", "floor_excess_risk",
               "floor_excess_risk_per_record", "delta")  # fmt: skip
    return {**dict.fromkeys(numbers, 1.0), "dataset": "d", "task": "binary", "n": 9, "p": 2,
            "preprocessing": "as published", "loss": "hinge", "kernel": None,
            "constraint": "l2_ball", "relation": "add_remove", "epsilons": [1.0, 2.0],
            "metrics": {"metric": "r2", "train_metric": 0.1, "test_metric": None},
            "mechanisms": mechanisms}  # fmt: skip


def group(text, head):
    """The lines of a group."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head))
    ends = (i for i, line in enumerate(lines) if i > start and not line.startswith("  "))
    return lines[start + 1 : next(ends)]


def test_what_fits_stands_first_and_the_best_first():
    text = format_problem(facts({
        "unknown": [plan(1.0), plan(2.0)],
        "worse": [plan(1.0, 9.0), plan(2.0, 8.0)],
        "better": [plan(1.0, 9.5), plan(2.0, 7.0)],
        "needing": refusal("is not stable: set ridge above 0"),
        "hopeless": refusal("no channel is known"),
    }))  # fmt: skip
    found = [line.split()[0] for line in group(text, "what fits")]
    assert found == ["better", "worse", "unknown", "no"]
    assert "9.5 / 7" in group(text, "what fits")[0]
    assert [line.split(":")[0].strip() for line in group(text, "needs a change")] == ["needing"]
    assert [line.split(":")[0].strip() for line in group(text, "impossible")] == ["hopeless"]


def test_predicted_risks_come_before_bounds_and_after_the_choice():
    """A bound is the worst case: what is foreseen says more of the order."""
    text = format_problem(facts({
        "bounded": [plan(1.0, 1.0), plan(2.0, 0.5)],
        **foreseen("second", (0.9, 0.2), (90.0, 80.0)),
        **foreseen("first", (0.3, 0.1), (None, None)),
        **foreseen("auto", (0.3, 0.1), (None, None), chosen="first", runner_up="second"),
        **foreseen("none", (0.01, 0.01), (None, None), guarantee="none"),
    }))  # fmt: skip
    lines = group(text, "what fits")
    named = [line.split()[0] for line in lines if not line.startswith("    ")]
    assert named == ["auto", "first", "second", "bounded", "none", "no", "no"]
    assert "predicted 0.3 / 0.1; chooses first (runner-up second)" in lines[0]
    assert "predicted 0.9 / 0.2; upper bound 90 / 80 (Thm 9)" in lines[2]
    assert "predicted" not in lines[3]


@pytest.mark.parametrize("count", [1, 25, 90])
def test_predicted_risks_are_not_cut(count):
    """Where room ends, other words go first: those of auto never."""
    risks, long = (0.001234, 0.0005678), "a mechanism of a long name"
    many = {"auto": foreseen("a", risks, (None, None), chosen=long, runner_up=long)["a"]}
    for i in range(count):
        many |= foreseen(f"mechanism_{i}_of_a_long_name", risks, (12345.6, 7890.1))
    many |= {f"needs_{i}": refusal(f"{i} set a word") for i in range(30)}
    text = format_problem(facts(many))
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    chosen = f"chooses {long} (runner-up {long}); noise scale 3 / 1.5; 5 steps"
    assert chosen in " ".join(text.split())
    found = [line for line in group(text, "what fits") if " approx " in line]
    told = [line for line in found if not line.startswith("  no ")]
    assert [line for line in told if "predicted 0.00123 / 0.000568" not in line] == []
    assert len(told) > 1


def test_a_name_that_is_to_be_typed_stays():
    text = format_problem(facts({"a_1": refusal("a_1 is not smooth: use mechanism.inner=a_1")}))
    assert "  a_1: it is not smooth: use mechanism.inner=a_1" in text.splitlines()


def test_mechanisms_with_one_reason_share_a_line():
    many = {name: refusal(f"{name} needs a kernel: set kernel=rbf") for name in ("a_1", "b_2")}
    assert group(format_problem(facts(many)), "needs a change") == [
        "  a_1, b_2: it needs a kernel: set kernel=rbf"
    ]


def test_a_plan_at_some_epsilons_is_in_both_groups():
    rows = [plan(1.0, 3.0), *refusal("take less epsilon")[1:]]
    text = format_problem(facts({"partly": rows}))
    assert "3 / -" in group(text, "what fits")[0]
    assert group(text, "needs a change") == ["  partly at epsilon 2: take less epsilon"]


def test_what_fits_at_some_epsilons_is_not_called_impossible():
    rows = [plan(1.0, 3.0), *refusal("no sampler is known")[1:]]
    text = format_problem(facts({"partly": rows, "hopeless": refusal("no channel is known")}))
    assert group(text, "impossible here") == ["  hopeless: no channel is known"]
    assert group(text, "no plan at some epsilons") == ["  partly at epsilon 2: no sampler is known"]
    alone = format_problem(facts({"partly": rows}))
    assert "impossible here: none" in alone
    assert "no plan at some" not in format_problem(facts({"whole": [plan(1.0), plan(2.0)]}))


@pytest.mark.parametrize("risks", [(0.3, 0.1), None])
def test_bounds_beside_predictions_have_their_unit(risks):
    whole = [plan(1.0, 12200.0), plan(2.0, 900.0)]
    found = foreseen("a", risks, (12200.0, 900.0)) if risks else {"a": whole}
    text = " ".join(format_problem(facts(found)).split())
    assert ("predicted excess risk per record" in text) == bool(risks)
    assert "bound (a sum" in text
    assert "has a summed excess risk below 0.5 on every data set" in text


@pytest.mark.parametrize("count", [1, 25, 90])
def test_there_are_never_too_many_lines(count):
    reason = "set " + "a very long word " * 20
    many = {f"fits_{i}": [plan(1.0, 5.0), plan(2.0, 4.0)] for i in range(count)}
    many |= {f"needs_{i}": refusal(f"{i} {reason}") for i in range(count)}
    lines = format_problem(facts(many)).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    assert "not private releases" in lines[-1]
    assert any(line.startswith("needs a change") for line in lines)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("lasso must be 0", True),
        ("noisy_gd is proved for replace_one, not add_remove", True),
        ("it gives approx guarantees, not pure", True),
        ("squared has kinks; use mechanism=noisy_gd", False),
        ("answers have no secure form; use mechanism.channel=l_1", True),
        ("no channel keeps to this budget", False),
    ],
)
def test_a_reason_names_a_change_or_none(reason, changes):
    assert is_change(reason) is changes
