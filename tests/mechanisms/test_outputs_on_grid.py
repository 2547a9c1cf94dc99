"""What mechanisms with a secure form release lies on the grid, on both neighbouring data sets."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import off_grid, with_rows

# name, keys, facts of the problem, delta
FORMS = {
    "noisy_gd": ({"steps": 20}, {}, 1e-6),
    "noisy_sgd": ({"steps": 20}, {}, 1e-6),
    "noisy_sgd in batches": ({"steps": 20, "batch": 7, "sampling": "poisson"}, {}, 1e-6),
    "mirror_descent": ({"steps": 20}, {"constraint": "l1_ball"}, 1e-6),
    "one_pass_sgd": ({"batches": 3, "noise": "gamma"}, {}, 0.0),
    "frank_wolfe": ({"steps": 10, "oracle": "noise"}, {}, 1e-6),
    "sufficient_statistics": ({}, {"loss": "squared"}, 1e-6),
    "output_perturbation": ({}, {"ridge": 0.2}, 0.0),
    "objective_perturbation": ({}, {}, 1e-6),
    "approximate_minima_perturbation": ({}, {}, 1e-6),
    "localization": ({"inner": NoisyGd(steps=20)}, {"ridge": 0.2}, 1e-6),
    "localization in one pass": ({"inner": OnePassSgd(batches=3)}, {"ridge": 0.2}, 0.0),
    "high_probability": ({"inner": NoisyGd(steps=20), "rho": 0.5}, {}, 1e-6),
    "huberized": ({"inner": NoisyGd(steps=20)}, {"loss": "hinge"}, 1e-6),
    "projected": ({"inner": NoisyGd(steps=20), "m": 2}, {}, 1e-6),
    "standard_projection": ({"inner": NoisyGd(steps=20), "m": 2}, {}, 1e-6),
    "auto": ({"on_grid": True}, {}, 1e-6),
}
PLAIN = "random_features", "exponential"  # the first has a kernel; all that the second draws is one


class DrawListener:
    """Keeps what noise was added to, and what came out of that.

    The linear term of a perturbed objective never leaves: its stream does not tell its noise.
    """

    def __init__(self):
        self.sides = list[np.ndarray]()

    def take_draw(self, stream, value, drawn, public):
        if stream.tells_noise:
            self.sides += [np.ravel(side) for side in (value, drawn) if side is not None]
        return drawn


def count_off_grid(name, trials):
    """(numbers that a mechanism's noise made, how many are no multiples of the step)."""
    keys, facts, delta = FORMS[name]
    cls = registry.load("mechanism", name.partition(" ")[0])
    problem = small_problem(n=40, p=5, **facts)
    mechanism = cls(**keys).choose_secure_form(Budget(1.0, delta))
    plan, grid = make_secure_plan(mechanism, problem.spec(), Budget(1.0, delta), problem.loss)
    assert account(plan.events, delta=delta, relation="replace_one").epsilon <= 1.0 + 1e-12
    y = problem.data.y.copy()
    y[4] = -y[4]
    numbers = outside = 0
    for one in (problem, with_rows(problem, problem.data.x, y)):
        tape = DrawListener()
        gate = Gate.secure(trials, grid, (plan.events, "replace_one"), tape)
        theta = mechanism.release(GridView(one, grid), plan, gate).theta
        assert np.all(problem.constraint.contains(theta))
        numbers += sum(side.size for side in tape.sides)
        outside += sum(off_grid(side, grid.step) for side in tape.sides)
    return numbers, outside


@pytest.mark.parametrize("name", FORMS)
def test_nothing_is_off_the_grid(name):
    numbers, outside = count_off_grid(name, 3)
    assert outside == 0
    assert numbers >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_of_a_hundred_thousand_numbers_none_is_off_the_grid(name):
    one, _ = count_off_grid(name, 3)
    numbers, outside = count_off_grid(name, -(-300_000 // one) + 3)
    assert outside == 0
    assert numbers >= 100_000


def test_every_secure_form_is_here():
    """A mechanism that says it has one is listed above; combinators say so for an inner one."""
    shipped = [
        (name, registry.load("mechanism", name)) for name in registry.list_shipped("mechanism")
    ]
    secure = {name for name, cls in shipped if cls.trust == "central" and (
        cls.secure or getattr(cls, "secure_as_inner", False))}  # fmt: skip
    assert secure <= {name.partition(" ")[0] for name in FORMS} | set(PLAIN)
