"""Every row has the gap of its own problem: best proved upper over best proved lower bound."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import dperm_cli
from dperm_cli.bounds.all_bounds import choose_best_bounds
from dperm_cli.bounds.minimax_gap import LIPSCHITZ, find_gaps, find_lipschitz_upper
from dperm_cli.core import registry
from tests.theory.bounds_data import bare

GAP = ("minimax_upper", "minimax_upper_id", "minimax_factor")


def gap_of(at):
    return {key: value for key, value in choose_best_bounds(at).items() if key in GAP}


@pytest.mark.parametrize("constraint", ["l2_ball", "box", "l1_ball", "simplex"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_it_is_the_gap_that_dperm_gap_prints(constraint, epsilon, relation):
    at = bare(
        n=1000, p=30, epsilon=epsilon, delta=1e-6, relation=relation, constraint=constraint,
        mechanism="noisy_gd", step_size="auto", averaging="adaptive", momentum=0.9,
    )  # fmt: skip
    printed = next(one for one in find_gaps(at.spec, at.budget) if one.losses == LIPSCHITZ)
    found = gap_of(at)
    assert found["minimax_factor"] == pytest.approx(printed.factor)
    assert found["minimax_upper_id"] == printed.upper.name
    assert found["minimax_factor"] >= 1.0


@pytest.mark.parametrize("exponent", [1e6, 1e-6])
def test_a_bound_of_the_row_itself_does_not_count(exponent):
    """It may rest on what the row's loss alone has, and the lower bound is about linear losses."""
    sampler = {"exponent": exponent, "dist_inf": 0.0}
    at = bare(n=1000, p=3, mechanism="exponential", sampler=sampler)
    best = find_lipschitz_upper(at.spec, at.budget)
    assert gap_of(at)["minimax_upper"] == best.value
    assert gap_of(at)["minimax_upper_id"] == best.name
    factor = choose_best_bounds(at).get("bound_factor")
    assert (factor is None) if exponent > 1.0 else factor >= 1.0


def test_rows_of_easy_losses_have_no_factor_below_one(tmp_path):
    """The range of this squared loss is below the lower bound for linear losses as Lipschitz."""
    keys = {"dataset": "sparse_regression", "dataset.n": 200, "dataset.p": 5, "dataset.nonzeros": 2}
    keys |= {"mechanism": "sufficient_statistics", "epsilon": 1e-6, "trials": 1}
    row = dperm_cli.run(**keys, out=tmp_path / "out", progress=False).trials().iloc[0]
    assert row["bound_upper"] < row["bound_lower"]
    assert math.isnan(row["bound_factor"])
    assert row["minimax_factor"] >= 1.0


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", registry.list_shipped("constraint"))
def test_the_upper_bound_is_never_below_the_lower_one(name, ridge):
    try:
        at = bare(n=500, p=4, epsilon=1.0, delta=1e-6, ridge=ridge, constraint=name)
    except (TypeError, ValueError, dperm_cli.DpermError):
        pytest.skip(f"{name} needs more than a radius")
    found = gap_of(at)
    assert not found or found["minimax_factor"] >= 1.0


def test_it_is_left_out_under_local_trust():
    at = replace(bare(n=1000, p=3, mechanism="local_sgd"), kind="local")
    assert gap_of(at) == {}


def test_rows_and_tables_have_it(tmp_path):
    out = tmp_path / "out"
    study = dperm_cli.run(epsilon=[1, 10], trials=1, out=out, progress=False)
    assert (study.trials()["minimax_factor"] > 1.0).all()
    assert (study.frame()["minimax_factor"] > 1.0).all()
    text = study.table(style="terminal")
    assert any("gap" in line.split() for line in text.splitlines())
    assert "best proved upper bound of any mechanism" in text
