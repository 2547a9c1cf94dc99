"""What mechanisms with a secure form release lies on the grid, on both neighbouring data sets."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.kernels.shared.feature_maps import Fourier
from dperm_cli.losses.shared.score_units import find_units
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
from dperm_cli.mechanisms.local.local_mirror_descent import LocalMirrorDescent
from dperm_cli.mechanisms.local.local_sgd import LocalSgd
from dperm_cli.mechanisms.sampling.exponential import Exponential
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan, secure_channel_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_direction import GRID_BITS
from dperm_cli.samplers.net import Net
from dperm_cli.views.choose import open_view
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import off_grid, with_rows

# name, keys, facts of the problem, delta
FORMS = {
    "noisy_gd": ({"steps": 20}, {}, 1e-6),
    "noisy_sgd": ({"steps": 20}, {}, 1e-6),
    "noisy_sgd in batches": ({"steps": 20, "batch": 7, "sampling": "poisson"}, {}, 1e-6),
    "mirror_descent": ({"steps": 20}, {"constraint": "l1_ball"}, 1e-6),
    "newton": ({"steps": 20}, {}, 1e-6),
    "one_pass_sgd": ({"batches": 3, "noise": "gamma"}, {}, 0.0),
    "frank_wolfe": ({"steps": 10, "oracle": "noise"}, {}, 1e-6),
    "sufficient_statistics": ({"noise": "gaussian"}, {"loss": "squared"}, 1e-6),
    "sufficient_statistics by wishart": ({"noise": "wishart"}, {"loss": "squared"}, 0.0),
    "output_perturbation": ({}, {"ridge": 0.2}, 0.0),
    "objective_perturbation": ({}, {}, 1e-6),
    "approximate_minima_perturbation": ({}, {}, 1e-6),
    "localization": ({"inner": NoisyGd(steps=20)}, {"ridge": 0.2}, 1e-6),
    "localization in one pass": ({"inner": OnePassSgd(batches=3)}, {"ridge": 0.2}, 0.0),
    "high_probability": ({"inner": NoisyGd(steps=20), "rho": 0.5}, {}, 1e-6),
    "huberized": ({"inner": NoisyGd(steps=20)}, {"loss": "hinge"}, 1e-6),
    "projected": ({"inner": NoisyGd(steps=20), "m": 2}, {}, 1e-6),
    "standard_projection": ({"inner": NoisyGd(steps=20), "m": 2}, {}, 1e-6),
    "random_features": ({"inner": NoisyGd(steps=20)}, {"p": 8}, 1e-6),
    "random_features in one pass": ({"inner": OnePassSgd(batches=3)}, {"p": 8}, 0.0),
    "kernel_release": ({"on_grid": True}, {"ridge": 0.2}, 1e-6),
    "auto": ({"on_grid": True}, {}, 1e-6),
}
LISTS = ("exponential",)  # all that it draws is a number of a public list of points
LOCAL = [
    (cls, channel) for cls in (LocalSgd, LocalMirrorDescent) for channel in ("l_inf", "l_1", "l_2")
]


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


def change_label(problem):
    y = problem.data.y.copy()
    y[4] = -y[4]
    return with_rows(problem, problem.data.x, y)


def count_off_grid(name, trials):
    """(numbers that a mechanism's noise made, how many are no multiples of the step)."""
    keys, facts, delta = FORMS[name]
    cls = registry.load("mechanism", name.partition(" ")[0])
    problem = small_problem(**({"n": 40, "p": 5} | facts))
    if cls.features == "fourier":
        raw = np.random.default_rng(0).standard_normal((40, 3))
        rows = Fourier(registry.load("kernel", "rbf")(), 3, problem.p // 2).apply(raw)
        problem = with_rows(problem, rows, problem.data.y)
    mechanism = cls(**keys).choose_secure_form(Budget(1.0, delta))
    plan, grid = make_secure_plan(mechanism, problem.spec(), Budget(1.0, delta), problem.loss)
    assert account(plan.events, delta=delta, relation="replace_one").epsilon <= 1.0 + 1e-12
    numbers = outside = 0
    for one in (problem, change_label(problem)):
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


def count_off_list(trials):
    """(numbers of the points that are chosen from a list, how many are of no point of it)."""
    problem, budget = small_problem(n=40, p=3), Budget(1.0, 0.0)
    mechanism = Exponential(sampler=Net(covering=0.3)).choose_secure_form(budget)
    plan, grid = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    points = plan.sampler.sampler.list_points(plan.sampler.target)
    listed = {point.tobytes() for point in points + 0.0}
    numbers = outside = 0
    for one in (problem, change_label(problem)):
        tape = ChoiceListener()
        gate = Gate.secure(trials, grid, (plan.events, "replace_one"), tape)
        theta = mechanism.release(GridView(one, grid), plan, gate).theta
        assert len(np.unique(theta, axis=0)) > 1
        numbers += theta.size
        outside += 3 * sum(point.tobytes() not in listed for point in theta + 0.0)
        ((scores, chosen),) = tape.choices
        assert np.all((chosen >= 0) & (chosen < len(points)))
        unit = find_units(problem.spec()).size
        assert off_grid(scores, unit) == 0
    return numbers, outside


class ChoiceListener:
    """Keeps the scores of a list's points, and the numbers of those that were chosen."""

    def __init__(self):
        self.choices = list[tuple[np.ndarray, np.ndarray]]()

    def take_draw(self, stream, value, drawn, public):
        self.choices.append((value, drawn))
        return drawn


def test_what_is_chosen_from_a_list_is_of_the_list():
    numbers, outside = count_off_list(10)
    assert (numbers, outside) == (60, 0)


@pytest.mark.slow
def test_of_a_hundred_thousand_numbers_chosen_from_a_list_none_is_another():
    numbers, outside = count_off_list(17_000)
    assert outside == 0
    assert numbers >= 100_000


def count_odd_answers(cls, channel, trials):
    """(numbers in users' answers, how many are none of those that the channel can send).

    A channel of signs sends 0, size or -size, the l_2 channel multiples of 2^-40 of its size.
    """
    problem, budget = small_problem("hinge", n=40, p=5), Budget(2.0, 0.0, trust="local")
    mechanism = cls(channel=channel)
    plan = secure_channel_plan(mechanism.plan(problem.spec(), budget))
    (event,) = plan.events
    numbers = odd = 0
    for one in (problem, change_label(problem)):
        tape = AnswerListener()
        gate = Gate.secure(trials, None, (plan.events, "replace_one"), tape)
        theta = mechanism.release(open_view(mechanism, one), plan, gate).theta
        assert np.all(problem.constraint.contains(theta))
        for size, answer in tape.answers:
            unit = 2.0**-GRID_BITS if channel == "l_2" else 1.0
            whole = np.rint(answer / (unit * size))
            numbers += answer.size
            odd += int(np.sum((whole * unit * size != answer) | (np.abs(whole * unit) > 1.0)))
    assert numbers == 2 * trials * problem.data.n * event.dim
    return numbers, odd


class AnswerListener:
    """Keeps the answers of users, each with the size that its channel gives to a sign."""

    def __init__(self):
        self.answers = list[tuple[float, np.ndarray]]()

    def take_draw(self, stream, value, drawn, public):
        self.answers.append((stream.coding.size, np.array(drawn)))
        return drawn


@pytest.mark.parametrize(("cls", "channel"), LOCAL)
def test_no_answer_of_a_user_is_odd(cls, channel):
    _, odd = count_odd_answers(cls, channel, 2)
    assert odd == 0


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "channel"), LOCAL)
def test_of_a_hundred_thousand_numbers_in_answers_none_is_odd(cls, channel):
    numbers, odd = count_odd_answers(cls, channel, 251)
    assert odd == 0
    assert numbers >= 100_000


def test_every_secure_form_is_here():
    """A mechanism that says it has one is listed above; combinators say so for an inner one."""
    shipped = [
        (name, registry.load("mechanism", name)) for name in registry.list_shipped("mechanism")
    ]
    secure = {name for name, cls in shipped
              if cls.secure or getattr(cls, "secure_as_inner", False)}  # fmt: skip
    local = {registry.find_name(cls) for cls, _ in LOCAL}
    assert secure <= {name.partition(" ")[0] for name in FORMS} | set(LISTS) | local
