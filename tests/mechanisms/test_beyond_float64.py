"""Problems whose constants float64 cannot square are refused in planning, with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.base import MOST_MAGNITUDE
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem


def spec(radius, row_bound=1.0, ridge=0.1):
    rng = np.random.default_rng(0)
    x = row_bound * rng.uniform(-0.5, 0.5, (20, 3))
    data = Data.of_records("d", "binary", x, rng.choice([-1.0, 1.0], 20), row_bound, 1.0, "f")
    ball = registry.load("constraint", "l2_ball")(radius, 3)
    return Problem(data, registry.load("loss", "logistic")(), ball, ridge).spec()


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", registry.list_protective())
def test_no_plan_and_no_other_error(name, relation):
    mechanism = registry.load("mechanism", name)()
    for radius, row_bound in ((1e155, 1.0), (1e308, 1.0), (1.0, 1e155), (1e154, 1e154)):
        with pytest.raises(Unsupported, match=r"\w"):
            mechanism.plan(spec(radius, row_bound, 0.0), Budget(1.0, 1e-6, relation))


def test_the_reason_names_what_is_too_large():
    mechanism = registry.load("mechanism", "objective_perturbation")()
    with pytest.raises(Unsupported, match=r"diameter 2e\+155 .* at most 1e\+140"):
        mechanism.plan(spec(1e155), Budget(1.0, 1e-6, "replace_one"))


@pytest.mark.parametrize("name", ["objective_perturbation", "noisy_gd", "output_perturbation"])
def test_what_can_be_computed_with_is_planned(name):
    mechanism = registry.load("mechanism", name)()
    assert mechanism.plan(spec(MOST_MAGNITUDE / 1e3), Budget(1.0, 1e-6, "replace_one")).events
