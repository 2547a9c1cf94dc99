"""Keys that were added later leave the cells that do not use them as they were."""

from __future__ import annotations

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.cell_schema import ADDED_KEYS
from dperm_cli.runner.compose.command_line import parse


def cells(*arguments):
    return study_plan.plan_study(parse(list(arguments))).cells


def test_a_default_is_no_part_of_a_cell_s_identity():
    (bare,) = cells()
    (zero,) = cells("lasso=0")
    (some,) = cells("lasso=0.5")
    assert not ADDED_KEYS.keys() & bare.config.keys()
    assert bare.config == zero.config
    assert bare.identity() == zero.identity() != some.identity()
    assert some.config["lasso"] == 0.5
    assert (bare.lasso, some.lasso) == (0.0, 0.5)
    assert [c.lasso for c in cells("lasso=[0,0.0,0.1]")] == [0.0, 0.1]


@pytest.mark.parametrize("value", ["-1", "nan", "true", "much"])
def test_a_wrong_lasso_is_refused(value):
    with pytest.raises(InputError, match="lasso"):
        cells(f"lasso={value}")
