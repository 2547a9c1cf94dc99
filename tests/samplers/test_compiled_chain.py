"""The compiled chain of the proximal sampler: which laws it covers, its law, and its failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest

from dperm_cli.samplers import proximal
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.proximal import ConditionalDraw, Proximal
from dperm_cli.samplers.shared import compiled_chain
from dperm_cli.samplers.shared.potential import Records
from tests.samplers import Numbers, cell_p_value, problem, target
from tests.samplers.test_ball_intersections import two_balls
from tests.samplers.test_truncated_gaussian import build

LEVEL = 1e-4


def law(loss, n, body, epsilon, **regulariser):
    made = problem(loss, n, body, **regulariser)
    facts = target(made, epsilon)
    return made, facts, Records(made.loss, made.data, facts)


def chains(facts, potential, h, steps, count, start, seed):
    """Points after ``steps`` compiled steps from ``start``."""
    source = Numbers(seed)
    return np.array(
        [compiled_chain.run(potential, facts, h, steps, start, source) for _ in range(count)]
    )


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic", "l1_median", "l2_median"])
def test_the_same_chain_as_the_interpreted_one(loss):
    """Two steps from one point, 400 times each way: the laws agree."""
    body = build("l2_ball", 1.0, 3)
    _, facts, potential = law(loss, 40, body, 3.0, ridge=0.05, lasso=0.02)
    start, h, found = np.array([0.3, -0.2, 0.6]), 0.05, []
    step, source = ConditionalDraw(potential, body, h, facts.strong_convexity), Numbers(1)
    for _ in range(400):
        x, slope = start, np.zeros(3)
        for _ in range(2):
            x, slope = step(x + np.sqrt(h) * source.normal(3), slope, source)
        found.append(x)
    compiled = chains(facts, potential, h, 2, 400, start, seed=2)
    interpreted = np.array(found)
    for j in range(3):
        assert kstest(compiled[:, j], interpreted[:, j]).pvalue > LEVEL
    sizes = (np.linalg.norm(x, axis=1) for x in (compiled, interpreted))
    assert kstest(*sizes).pvalue > LEVEL


def test_a_chain_of_the_planned_length_on_a_localised_set():
    """What localization asks for: the plan is made at another centre than the draw."""
    planned = two_balls(1.0, np.zeros(2), 0.5)
    body = two_balls(1.0, np.array([0.6, 0.4]), 0.5)
    made, facts, potential = law("hinge", 40, body, 2.0, ridge=0.02)
    elsewhere = Target(replace(facts.spec, constraint=planned), facts.exponent)
    certificate = Proximal().plan(elsewhere, 0.01)
    assert certificate == Proximal().plan(facts, 0.01)
    assert certificate.facts["start"] == "centre"
    source = Numbers(3)
    found = np.array([Proximal().draw(potential, facts, certificate, source) for _ in range(400)])
    assert np.all(body.contains(found, 1e-9))
    assert cell_p_value(body, found, lambda z: -potential.value(z), 5, 40) > LEVEL
    assert made.data.n == 40


def test_rows_of_any_storage_are_the_same_chain():
    body = build("l2_ball", 1.0, 4)
    made, facts, dense = law("hinge", 30, body, 3.0)
    rows = Records(made.loss, replace(made.data, x=sparse.csr_array(made.data.x)), facts)
    start = np.zeros(4)
    whole = chains(facts, dense, 0.1, 20, 5, start, seed=4)
    assert np.array_equal(whole, chains(facts, rows, 0.1, 20, 5, start, seed=4))


def test_which_laws_are_covered():
    """By the loss, the set and the number of entries: nothing that a record could change."""
    for loss in ("hinge", "logistic", "absolute", "positive_part", "l1_median", "huberized_hinge"):
        assert compiled_chain.covers(law(loss, 20, build("l2_ball", 1.0, 3), 1.0)[1])
    assert compiled_chain.covers(law("hinge", 20, two_balls(1.0, np.zeros(3), 0.5), 1.0)[1])
    for name in ("box", "l1_ball", "simplex", "polytope"):
        assert not compiled_chain.covers(law("hinge", 20, build(name, 1.0, 3), 1.0)[1])
    facts = law("hinge", 20, build("l2_ball", 1.0, 3), 1.0)[1]
    large = replace(facts.spec, n=compiled_chain.MOST_ENTRIES)
    assert not compiled_chain.covers(replace(facts, spec=large))


def test_a_step_without_end_is_an_error():
    """Records that are not what was declared: f is steep beyond all bounds."""
    body = build("l2_ball", 1.0, 2)
    _, facts, potential = law("absolute", 10, body, 1.0)
    wrong = replace(facts, exponent=float("nan"))
    with pytest.raises(ArithmeticError, match="not a private outcome"):
        compiled_chain.run(potential, wrong, 0.1, 1, np.zeros(2), Numbers(5))


def test_the_first_case_of_the_manual_takes_seconds():
    """Hinge on the embedded data's shape at epsilon = 1, and logistic for n = 10^4, p = 50."""
    facts = law("hinge", 569, build("l2_ball", 10.0, 30), 0.98)[1]
    plan = Proximal().plan(facts, 0.01)
    assert plan.facts["seconds"] < 5.0
    assert plan.steps == proximal.count_needed_steps(facts, plan.facts["h"], 0.01)
    facts = law("logistic", 10_000, build("l2_ball", 1.0, 50), 0.098)[1]
    assert Proximal().plan(facts, 0.001).facts["seconds"] < 1.0
    for loss in ("absolute", "positive_part", "l1_median", "l2_median"):
        facts = law(loss, 500, build("l2_ball", 1.0, 10), 0.98)[1]
        assert Proximal().plan(facts, 0.01).facts["seconds"] < 60.0


def test_misses_are_ordered_and_grow_with_the_step():
    for loss in ("hinge", "absolute", "logistic", "l1_median", "l2_median"):
        facts = law(loss, 500, build("l2_ball", 1.0, 5), 0.98)[1]
        small, large = (proximal.estimate_tangent_gaps(facts, h) for h in (1e-4, 1e-2))
        assert small[0] <= small[1]
        assert small[0] < large[0]
        assert small[1] < large[1]
        assert 1.0 <= proximal.expected_tries(facts, 1e-4) < proximal.expected_tries(facts, 1e-2)
