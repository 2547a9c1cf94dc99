"""[BST14]'s lemmas as formulas, Table I, and the population bounds."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.bounds import all_bounds, bst14_lemmas, bst14_lower, bst14_population
from dperm_cli.bounds.base import QUANTITIES, list_bounds
from dperm_cli.bounds.bst14_table1 import CELLS, COLUMNS, ROWS, TableInputs, cell
from tests.conftest import small_problem
from tests.theory.bounds_data import bare

BY_ID = {bound.id: bound for bound in all_bounds.ALL}


def test_every_theorem_and_lemma_has_an_object():
    theorems = {
        "2.4(1)", "2.4(2)", "3.2", "3.4", "3.4 (time)", "4.3", "5.2", "5.3", "5.4", "5.5",
        "A.1", "B.2", "E.1(1)", "E.1(2)", "E.2(1)", "E.2(2)", "F.2(1)", "F.2(2)", "F.3(1)",
        "F.3(2)", "F.4(1)", "F.4(2)", "F.6(1)", "F.6(2)",
    }  # fmt: skip
    assert theorems <= {name.removeprefix("BST14 Thm ") for name in BY_ID}
    lemmas = {f"Lemma {n}" for n in ("2.2", "2.3", "4.2", "5.1(1)", "5.1(2)", "A.2", "A.3")}
    lemmas |= {f"Lemma 6.{k}" for k in range(1, 7)}
    assert lemmas <= set(bst14_lemmas.LEMMAS)
    assert len(BY_ID) == len(all_bounds.ALL)
    for bound in all_bounds.ALL:
        assert bound.kind in ("upper", "lower")
        assert bound.constant in ("explicit", "order")
        assert bound.quantity in QUANTITIES
        assert bound.value.__doc__, f"{bound.id}: no docstring with the statement"


def test_no_bound_speaks_of_a_mechanism_it_is_not_about():
    """Whatever the plan, only lower bounds apply to a mechanism nobody has heard of."""
    for delta in (0.0, 1e-6):
        at = bare(mechanism="unheard of", delta=delta, ridge=0.0)
        assert {b.kind for b in all_bounds.ALL if b.applies(at) is None} == {"lower"}


# --- Section 6


@pytest.mark.parametrize(
    ("epsilon", "n", "p", "steps", "attempts"),
    [
        (0.1, 50, 1, 5.7e10, 9), (0.1, 50, 2, 1.7e12, 10), (0.1, 1000, 5, 8.8e15, 75),
        (1.0, 50, 1, 7.4e10, 37), (1.0, 1000, 10, 4.8e17, 677),
    ],
)  # fmt: skip
def test_cost_of_the_grid_walk_on_the_unit_ball(epsilon, n, p, steps, attempts):
    """With the paper's constants: nobody can run it."""
    cost = bst14_lemmas.exponential_cost(n, p, epsilon, 2.0, 2.0, as_printed=True)
    assert float(f"{cost.steps:.2g}") == steps
    assert cost.attempts == attempts
    assert cost.most == cost.steps * attempts
    corrected = bst14_lemmas.exponential_cost(n, p, epsilon, 2.0, 2.0)
    # the oscillation over the cube is that of its diagonal
    assert cost.steps <= corrected.steps <= 1.1 * math.sqrt(p) * cost.steps


@pytest.mark.parametrize(("n", "p", "epsilon", "steps"), [(50, 2, 0.1, 8.3e6), (50, 1, 1.0, 3.1e6)])
def test_cost_on_a_box(n, p, epsilon, steps):
    # the cube itself, [-1, 1]^p: no penalty, distance epsilon / 3
    slope = n * epsilon / (6 * 2 * math.sqrt(p))
    found = bst14_lemmas.cube_steps(p, slope, 2.0, epsilon / 3, as_printed=True)
    assert float(f"{found:.2g}") == steps


def test_attempts_make_the_last_resort_harmless():
    """The two conditions of the proof of Lemma 6.5, at m and not at m - 1."""
    for p, slope, size, t in ((1, 2.0, 2.0, 0.3), (20, 0.1, 10.0, 0.1), (3, 5.0, 3.0, 1.0)):

        def enough(m, p=p, slope=slope, size=size, t=t):
            left = 2.0**-m * math.exp(2 * slope * size) * size**p
            room = math.exp(t / 2) * math.expm1(t / 2)
            return left <= room and 2.0**-m <= -math.expm1(-t / 4)

        m = bst14_lemmas.attempts(p, slope, size, t)
        assert enough(m)
        assert not enough(m - 1)
    # printed, in natural logarithms: not enough where the volume counts
    assert bst14_lemmas.attempts(20, 0.1, 10.0, 0.1, as_printed=True) < bst14_lemmas.attempts(
        20, 0.1, 10.0, 0.1
    )


def test_mixing_steps_integrate_lemma_6_2():
    phi, error, least = 0.01, 0.05, 1e-6
    x = np.geomspace(4 * least, 4 / error, 200_001)
    integral = np.sum(4.0 / (x * phi**2) * np.gradient(x))
    found = bst14_lemmas.mixing_steps(phi, error, math.log(least))
    assert found == pytest.approx(1 + integral, rel=1e-3)


def test_grid_resolves_the_density():
    # a cell's half diagonal times the Lipschitz constant: half of the distance, over two
    gamma = bst14_lemmas.grid_spacing(4, 3.0, 0.2)
    assert 3.0 * gamma * math.sqrt(4) / 2 == pytest.approx(0.2 / 4)


def test_order_of_thm_3_4():
    found = bst14_lemmas.exponential_cost_order(100, 3, 0.5, 2.0)
    assert found == pytest.approx(4 * 27 * 1e6 * max(3 * math.log(600), 100.0 * math.sqrt(3)))
    printed = bst14_lemmas.exponential_cost_order(100, 3, 0.5, 2.0, as_printed=True)
    assert printed == pytest.approx(4 * 27 * 1e6 * 100.0)
    at = bare(n=100, p=3, epsilon=0.5, sampler={"name": "grid_walk", "exponent": 1.0})
    assert BY_ID["BST14 Thm 3.4 (time)"].applies(at) is None
    assert BY_ID["BST14 Thm 3.4 (time)"].value(at) == pytest.approx(found)
    assert BY_ID["BST14 Thm 3.4"].value(at) == pytest.approx(2.0 * 3 / 0.5)
    assert "order_upper" in all_bounds.choose_best_bounds(at)
    assert BY_ID["BST14 Thm 3.4"].applies(bare(sampler={"name": "proximal"}))


@pytest.mark.parametrize(("shape", "p", "radius"), [("l2_ball", 3, 0.7), ("box", 2, 5.0)])
def test_steps_of_algorithm_7_do_not_depend_on_the_size_of_the_set(shape, p, radius):
    """A set and its image: n, p and epsilon alone count, [BST14, Alg. 7]'s exponent being there."""
    epsilon, bound = 0.5, BY_ID["BST14 Thm 3.4 (steps)"]
    at = bare(n=100, p=p, epsilon=epsilon, radius=radius, constraint=shape)
    law = {"name": "grid_walk", "exponent": epsilon / (6 * at.spec.constraint.diameter)}
    at = dataclasses.replace(at, settings={"sampler": law})
    assert bound.applies(at) is None
    side = 2 * math.sqrt(p) if shape == "box" else 2.0
    cost = bst14_lemmas.exponential_cost(100, p, epsilon, side, 2.0)
    assert bound.value(at) == cost.steps * cost.attempts
    other = {"sampler": {**law, "exponent": epsilon / 4}}
    assert "calibration=paper" in bound.applies(dataclasses.replace(at, settings=other))


# --- Appendices A and D


def test_huberization_costs_the_square_root_of_n():
    widths = np.geomspace(1e-6, 1.0, 400)
    for n in (100, 10**6):
        worst = [bst14_lemmas.huberized_risk(n, h) for h in widths]
        assert min(worst) == pytest.approx(math.sqrt(n), rel=0.05)
        for h in widths:
            parts = (bst14_lemmas.huberized_risk_d1(n, h), bst14_lemmas.huberized_risk_d2(n, h))
            assert bst14_lemmas.huberized_risk(n, h) == pytest.approx(max(parts))
    at = bare(
        n=100, p=1, mechanism="huberized", width=0.1, inner={"name": "objective_perturbation"}
    )
    assert BY_ID["BST14 Thm A.1"].applies(at) is None
    assert BY_ID["BST14 Thm A.1"].value(at) == pytest.approx(2.0 * 10.0)
    assert "order_lower" in all_bounds.choose_best_bounds(at)
    assert (
        all_bounds.choose_best_bounds(at)["order_lower_id"] == "BST14 Thm 5.2"
    )  # not a bound on all methods


@pytest.mark.stat
def test_amplification_holds_with_its_probability():
    """Runs with excess risks of a law as spread out as Markov allows; 5 standard errors."""
    rho, exponent, trials = 0.1, 3.0, 20_000
    k = bst14_lemmas.repetitions(rho)
    assert (k, bst14_lemmas.repetitions(0.05)) == (5, 6)
    rng = np.random.default_rng(0)
    risks = np.where(rng.random((trials, k)) < 0.49, 2.01, 0.0) + 0.02  # mean about 1
    weights = np.exp(-exponent * risks)
    pick = rng.random(trials)[:, None] * weights.sum(axis=1, keepdims=True)
    chosen = risks[np.arange(trials), np.argmax(np.cumsum(weights, axis=1) >= pick, axis=1)]
    level = bst14_lemmas.amplified_risk(float(risks.mean()), exponent, rho)
    assert np.mean(chosen > level) <= rho + 5 * math.sqrt(rho / trials)
    # without the selection's term the statement would be false: all runs may be the bad one
    assert np.mean(chosen > risks.mean()) > 0.02


# --- lower bounds as the paper has them


def test_orders_of_section_5():
    at = bare(n=100, p=9, epsilon=0.5)
    assert BY_ID["BST14 Thm 5.2"].value(at) == pytest.approx(2.0 * 18)
    assert BY_ID["BST14 Thm 5.2"].value(bare(n=5, p=9, epsilon=0.5)) == pytest.approx(10.0)
    approx = bare(n=100, p=9, epsilon=0.5, delta=1e-6)
    assert BY_ID["BST14 Thm 5.2"].applies(approx)
    assert BY_ID["BST14 Thm 5.3"].value(approx) == pytest.approx(2.0 * 6)
    curved = bare(n=100, p=9, epsilon=0.5, ridge=1.0)  # L = 2 with the ridge
    assert BY_ID["BST14 Thm 5.4"].applies(curved) is None
    assert BY_ID["BST14 Thm 5.4"].value(curved) == pytest.approx(4.0 * 18**2 / 100)
    assert BY_ID["BST14 Thm 5.5"].value(
        bare(n=100, p=9, epsilon=0.5, ridge=1.0, delta=1e-6)
    ) == pytest.approx(4.0 * 36 / 100)
    assert "order of L" in BY_ID["BST14 Thm 5.4"].applies(bare(ridge=0.01))


def test_constants_of_section_5():
    at = bare(n=1000, p=40, epsilon=0.1)  # M = 20
    assert BY_ID["BST14 Thm 5.2 (constants)"].value(at) == pytest.approx(20 / 1024)
    curved = bare(n=1000, p=40, epsilon=0.1, ridge=1.0)
    expected = 1000 * (20 / 1000) ** 2 / 1024
    assert BY_ID["BST14 Thm 5.4 (constants)"].value(curved) == pytest.approx(expected)
    # 2^{p/2 - 1} > e^{p/20} from p = 3 on: what the packing argument needs
    assert [2 ** (p / 2 - 1) > math.exp(p / 20) for p in (2, 3, 4, 50)] == [False, True, True, True]
    assert BY_ID["BST14 Thm 5.2 (constants)"].applies(bare(p=2))


SETS = {
    "caps": {"l2_ball", "box", "l1_ball"},
    "tracing": {"l2_ball", "box"},
    "BST14 Thm 5.2 (constants)": {"l2_ball"},
}


@pytest.mark.parametrize("name", SETS)
def test_sets_of_the_explicit_lower_bounds(name):
    bound = BY_ID[name]
    for shape in ("l2_ball", "box", "l1_ball", "simplex"):
        at = bare(p=5, constraint=shape)
        assert (bound.applies(at) is None) == (shape in SETS[name])
    assert "lasso" in bound.applies(bare(p=5, lasso=0.1))
    for shape in SETS[name] - {"l2_ball"}:
        assert "ridge" in bound.applies(bare(p=5, constraint=shape, ridge=0.1))


def test_lower_bounds_grow_with_the_radius_and_never_exceed_the_range():
    for ridge in (0.0, 0.3):
        for n in (1, 10, 1000):
            small, large = (bare(n=n, p=20, radius=r, ridge=ridge) for r in (0.5, 1.0))
            for bound in list_bounds(bst14_lower):
                if bound.constant == "explicit" and bound.applies(large) is None:
                    assert bound.value(small) <= bound.value(large) * (1 + 1e-9)
                    assert bound.value(large) <= n * (2.0 + ridge / 2)


# --- Table I


def test_table_has_twenty_cells_and_four_empty_ones():
    at = TableInputs(1000, 4, 0.5, 1e-6, strong_convexity=0.5)
    values = {(row, column): cell(row, column, at) for row in ROWS for column in COLUMNS}
    assert len(values) == 24
    assert len(CELLS) == 20
    empty = {key for key, value in values.items() if value is None}
    smooth = {row for row in ROWS if row.startswith("smooth")}
    assert empty == {(row, c) for row in smooth for c in ("pure_upper", "approx_upper")}
    with pytest.raises(KeyError):
        cell("lipschitz", "upper", at)


def test_cells_as_printed():
    n, p, eps, delta, curve = 10**6, 4, 0.5, 1e-7, 0.5
    at = TableInputs(n, p, eps, delta, strong_convexity=curve)
    one, log = math.log(1 / delta), math.log(n / delta)
    expected = {
        "lipschitz": (8e3, 8, 8, 4e3 * one, 4 * log**2, 4),
        "smooth": (8, None, 8, 4 * one, None, 4),
        "strongly_convex": (
            64 / (1e3 * curve), math.log(n) / curve * 64 / n, 64 / n,
            16 * one / (1e3 * curve), log**3 / curve * 16 / n, 16 / n,
        ),
        "smooth_strongly_convex": (
            64 / (n * curve), None, 64 / n, 16 * one / (n * curve), None, 16 / n,
        ),
    }  # fmt: skip
    for row, values in expected.items():
        for column, value in zip(COLUMNS, values, strict=True):
            assert cell(row, column, at) == (None if value is None else pytest.approx(value))


def test_cells_change_units_as_the_caption_says():
    at = TableInputs(10**6, 4, 0.5, 1e-7, strong_convexity=0.5)
    other = TableInputs(10**6, 4, 0.5, 1e-7, 3.0, 2.0, 0.5 * 3.0 / 2.0)
    for row, column in CELLS:
        assert cell(row, column, other) == pytest.approx(6.0 * cell(row, column, at))
    few = dataclasses.replace(other, n=1)
    assert cell("lipschitz", "pure_upper", few) == pytest.approx(6.0)


# --- Appendix F


def test_stability_bounds_the_generalisation_gap():
    """Randomised response about one record: the gap is TV times the range, exactly."""
    epsilon = 0.7
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    # d = +-1 with equal chances, n = 1, theta = d with probability ``keep``, l = 1{theta != d}
    gap = 0.5 - (1 - keep)
    assert gap <= bst14_population.stability_gap(epsilon, 0.0, 1.0)
    assert bst14_population.stability_gap(epsilon, 0.0, 1.0) == pytest.approx(2 * gap)
    assert bst14_population.stability_gap(1e4, 0.0, 3.0) == 3.0
    more = bst14_population.stability_gap(0.1, 0.01, 1.0)
    assert more == pytest.approx((math.expm1(0.1) + 0.02) / (math.exp(0.1) + 1))


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_population_bound_adds_the_gap_and_the_regulariser(relation):
    bound = BY_ID["BST14 Lemma F.5 (constants)"]
    law = {"exponent": 0.4, "kappa": 0.0, "dist_inf": 0.0}
    at = bare(n=500, p=3, epsilon=0.2, ridge=0.3, relation=relation, sampler=law)
    assert bound.applies(at) is None
    gap = math.tanh(0.1 if relation == "replace_one" else 0.2) * at.spec.variation
    expected = 3 / 0.4 / 500 + gap + 0.3 / 2
    assert bound.value(at) == pytest.approx(expected)
    assert "empirical" in bound.applies(bare(mechanism="unheard of"))
    # beside losses of range 2, no point is worse than the range of the sum
    vast = dataclasses.replace(at, settings={"sampler": {**law, "exponent": 1e-9}})
    assert bound.value(vast) == pytest.approx(2.0 + 0.15 + gap + 0.15)


def test_formulas_of_appendix_f():
    found = bst14_population.strongly_convex_population(3.0, 50, 2.0, 0.5, 0.2)
    assert found == pytest.approx(math.sqrt(2 * 4 / 25) * math.sqrt(3) + 4 * 4 / (0.2 * 25))
    assert bst14_population.regularized_population(0.1, 0.5, 2.0) == pytest.approx(1.1)
    at = bare(n=10_000, p=4, epsilon=0.02)
    assert BY_ID["BST14 Thm F.6(1)"].applies(at) is None  # epsilon = sqrt(p / n)
    assert BY_ID["BST14 Thm F.6(1)"].value(at) == pytest.approx(2.0 * 0.02)
    assert BY_ID["BST14 Thm F.6(1)"].applies(bare(n=10_000, p=4, epsilon=1.0))
    approx = bare(
        n=10**8, p=16, epsilon=2 * math.log(1e16) / 1e4, delta=1e-8, mechanism="noisy_sgd"
    )
    assert BY_ID["BST14 Thm F.6(2)"].applies(approx) is None
    assert BY_ID["BST14 Thm F.6(2)"].value(approx) == pytest.approx(2e-4 * 2 * math.log(1e16))
    assert not any(key.startswith("order_upper_id") and "F." in str(value)
                   for key, value in all_bounds.choose_best_bounds(approx).items())  # fmt: skip


def test_margin_losses_generalise_when_there_are_enough_records():
    spec = small_problem(n=40, p=3).spec()
    at = dataclasses.replace(bare(epsilon=1.0), spec=spec)
    bound = BY_ID["BST14 Thm F.4(1)"]
    assert bound.applies(at) is None
    few = dataclasses.replace(at, budget=dataclasses.replace(at.budget, epsilon=0.1))
    assert "more records" in bound.applies(few)
    assert "margin" in bound.applies(bare(epsilon=1.0))
    scale = spec.lipschitz * spec.constraint.diameter / math.sqrt(40)
    assert bound.value(at) == pytest.approx(scale * math.sqrt(math.log(10)))


def test_strongly_convex_population_orders():
    at = bare(n=100, p=9, epsilon=0.5, ridge=1.0, mechanism="localization")
    level, logs = 4.0 / (100 * 0.5 * 0.1), math.log(100) * math.log(10)
    assert BY_ID["BST14 Thm F.2(1)"].value(at) == pytest.approx(level * 9 * math.sqrt(logs))
    steep = 4.0 * 2.0 / math.sqrt(100 * 0.5 * 0.1)
    assert BY_ID["BST14 Thm F.3(1)"].value(at) == pytest.approx(steep * 3 * logs**0.25)
    approx = bare(n=100, p=16, epsilon=0.5, ridge=1.0, delta=1e-4, mechanism="noisy_sgd")
    log, tail = math.log(1e6), math.log(10)
    assert BY_ID["BST14 Thm F.2(2)"].value(approx) == pytest.approx(level * 4 * log**2 * tail)
    assert BY_ID["BST14 Thm F.3(2)"].value(approx) == pytest.approx(steep * 2 * log * tail)


# --- orders of the upper bounds


def test_orders_of_appendix_e_and_section_4():
    smooth = {"smoothness": 1.0, "mechanism": "objective_perturbation"}
    at = bare(n=100, p=9, epsilon=0.5, **smooth)
    assert BY_ID["BST14 Thm E.1(1)"].applies(at) is None
    assert BY_ID["BST14 Thm E.1(1)"].value(at) == pytest.approx(2.0 * 18)
    approx = bare(n=100, p=9, epsilon=0.5, delta=1e-6, noise="gaussian", **smooth)
    root = math.sqrt(9 * math.log(1e6))
    assert BY_ID["BST14 Thm E.1(2)"].value(approx) == pytest.approx(2.0 * root / 0.5)
    # the theorems are about a noise: Gamma noise stays what it is where delta > 0 is allowed
    other = bare(n=100, p=9, epsilon=0.5, delta=1e-6, noise="gamma", **smooth)
    for name, gaussian, gamma in (("E.1(1)", False, True), ("E.1(2)", True, False)):
        bound = BY_ID[f"BST14 Thm {name}"]
        assert [bound.applies(x) is None for x in (approx, other)] == [gaussian, gamma]
    curved = bare(n=100, p=9, epsilon=0.5, ridge=1.0, **smooth)
    assert BY_ID["BST14 Thm E.2(1)"].value(curved) == pytest.approx(4.0 * 81 / 25)
    both = bare(n=100, p=9, epsilon=0.5, ridge=1.0, delta=1e-6, noise="gaussian", **smooth)
    assert BY_ID["BST14 Thm E.2(2)"].value(both) == pytest.approx(4.0 * 9 * math.log(1e6) / 25)
    assert "smooth" in BY_ID["BST14 Thm E.1(1)"].applies(bare(mechanism="objective_perturbation"))
    local = bare(n=100, p=9, epsilon=0.5, ridge=1.0, mechanism="localization",
                 inner={"name": "exponential"})  # fmt: skip
    assert BY_ID["BST14 Thm 4.3"].applies(local) is None
    assert BY_ID["BST14 Thm 4.3"].value(local) == pytest.approx(4.0 * 81 * math.log(100) / 25)
    second = bare(n=100, p=9, epsilon=0.5, ridge=1.0, delta=1e-6, mechanism="localization",
                  inner={"name": "noisy_sgd"})  # fmt: skip
    assert BY_ID["BST14 Thm B.2"].applies(second) is None
    logs = math.log(1e6) * math.sqrt(math.log(100)) * math.log(1e8) ** 1.5
    assert BY_ID["BST14 Thm B.2"].value(second) == pytest.approx(4.0 * 9 * logs / 25)
