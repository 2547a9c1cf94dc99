"""mechanism=auto: what it chooses from public facts, and that the chosen one does all the work."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.combinators.auto import Auto, build_candidates
from dperm_cli.mechanisms.shared import predicted_risk
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Bounds
from dperm_cli.problem.problem import Regulariser, make_spec
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

RELATIONS = ("replace_one", "add_remove")


def make_facts(loss="logistic", n=3000, p=10, radius=10.0, body=None, ridge=0.0):
    form = registry.load("loss", loss)()
    task = form.tasks[0]
    bounds = Bounds(row=1.0, target=1.0, radius=radius, columns=p)
    return make_spec(n, form, body or make_ball(radius, p), Regulariser(ridge), task, bounds)


def budget(n=3000, epsilon=1.0, relation="replace_one", pure=False):
    return Budget(epsilon, 0.0 if pure else 1.0 / n**2, relation)


def choose(spec, level, **keys):
    return Auto(**keys).plan(spec, level).settings["chosen"]


def released(mechanism, problem, plan):
    gate = Gate([seed_sequence(0, "test", i) for i in range(3)], plan=(plan.events, "replace_one"))
    return mechanism.release(CentralView(problem), plan, gate).theta


# --- what is chosen -------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("p", [3, 100])
def test_the_squared_loss_is_learnt_from_its_statistics(relation, pure, p):
    level = budget(epsilon=1.0, relation=relation, pure=pure)
    assert choose(make_facts("squared", p=p), level) == "sufficient_statistics"


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_decides_between_descent_and_the_perturbed_objective(relation):
    """Much data or few columns: the exact minimiser; much noise in many columns: descent."""
    many = budget(n=10**6, relation=relation)
    assert choose(make_facts(n=10**6, p=50), many) == "objective_perturbation"
    assert choose(make_facts(n=1000, p=3), budget(relation=relation)) == "objective_perturbation"
    few = budget(n=1000, relation=relation)
    assert choose(make_facts(n=1000, p=64), few) == "noisy_gd"


@pytest.mark.parametrize(
    ("loss", "chosen"), [("logistic", "objective_perturbation"), ("hinge", "huberized")]
)
def test_without_delta_it_is_a_perturbed_minimiser(loss, chosen):
    plan = Auto().plan(make_facts(loss), budget(pure=True))
    assert plan.settings["chosen"] == chosen
    assert plan.guarantee.kind == "pure"
    assert plan.guarantee.within(Budget(1.0, 0.0))


def test_a_kink_in_many_columns_is_descended():
    assert choose(make_facts("hinge", p=64), budget()) == "noisy_gd"
    assert choose(make_facts("absolute"), budget()) == "noisy_gd"


def test_locations_have_a_mechanism_with_and_without_delta():
    spec = make_facts("l2_median", p=3, radius=1.0)
    assert choose(spec, budget()) == "noisy_gd"
    assert Auto().plan(spec, budget(pure=True)).guarantee.kind == "pure"


def test_bounded_entries_on_an_l1_ball_are_for_frank_wolfe():
    body = registry.load("constraint", "l1_ball")(1.0, 100)
    spec = make_facts(p=100, n=1000, radius=1.0, body=body)
    level = budget(n=1000)
    assert choose(spec, level) != "frank_wolfe"
    bounded = replace(spec, bounds=replace(spec.bounds, row=10.0), row_bound=10.0, entry_bound=1.0)
    assert choose(bounded, level) == "frank_wolfe"


def test_noise_on_a_grid_leaves_those_that_have_it():
    spec = make_facts("squared")
    assert not Auto().secure
    assert Auto(on_grid=True).secure
    plan = Auto(on_grid=True).plan(spec, budget())
    assert plan.settings["chosen"] == "sufficient_statistics"
    assert plan.settings["inner"]["noise"] == Auto().plan(spec, budget()).settings["inner"]["noise"]
    pure = Auto(on_grid=True).plan(spec, budget(pure=True))
    assert pure.settings["inner"]["noise"] == "wishart"
    logistic = Auto(on_grid=True).plan(make_facts(), budget())
    assert logistic.settings["chosen"] == "objective_perturbation"


def test_what_nobody_can_do_names_everybody_and_why():
    few = ("noisy_gd", "sufficient_statistics", "output_perturbation")
    among = build_candidates("mechanism.among", few)
    with pytest.raises(Unsupported) as refused:
        Auto(on_grid=True, among=among).plan(make_facts(), budget(pure=True))
    for name in few:
        assert name in str(refused.value)
    assert "noisy_gd: gives approx guarantees, not pure" in str(refused.value)


@pytest.mark.parametrize("name", ["newton", "mirror_descent", "auto"])
def test_what_has_no_prediction_is_never_a_candidate(name):
    assert name not in {registry.find_name(type(one)) for one in Auto().among}
    with pytest.raises(InputError) as refused:
        Auto(among=["noisy_gd", name])
    assert refused.value.key == "mechanism.among"


def test_rounding_around_what_has_no_prediction_is_refused_with_its_reason():
    found = Auto(among=["noisy_gd", {"name": "huberized", "width": 0.1, "inner": "newton"}])
    spec = small_problem(loss="hinge").spec()
    ranking = found.rank(spec, Budget(1.0, 1e-6))
    assert [one.name for one in ranking.fits] == ["noisy_gd"]
    assert ranking.refusals["huberized"] == "the risk of its inner mechanism is not predicted"


def test_candidates_may_be_named():
    spec = make_facts("squared")
    assert choose(spec, budget(), among=["noisy_gd"]) == "noisy_gd"
    quick = Auto(among=[{"name": "noisy_gd", "steps": 7}]).plan(spec, budget())
    assert quick.settings["inner"]["name"] == "noisy_gd"
    assert quick.steps == 7
    for wrong in ([], "noisy_gd", ["nosy_gd"], [{"steps": 3}], [{"name": "noisy_gd", "step": 3}]):
        with pytest.raises(InputError, match=r"mechanism\.among"):
            Auto(among=wrong)


# --- predictions ----------------------------------------------------------------------------------


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_predictions_fall_with_epsilon_and_with_records(loss, relation):
    def predict(n, epsilon):
        level = Budget(epsilon, 1e-9, relation)
        return predicted_risk.rank(Auto().among, make_facts(loss, n=n), level).fits

    for wider in (
        [predict(3000, epsilon) for epsilon in (0.1, 1.0, 10.0)],
        [predict(n, 1.0) for n in (300, 3000, 30000)],
    ):
        for name in ("noisy_gd", wider[0][0].name):
            risks = [next(one.risk for one in fits if one.name == name) for fits in wider]
            assert risks == sorted(risks, reverse=True)
            assert risks[0] > 1.5 * risks[-1]


def test_a_plan_says_what_was_compared():
    settings = Auto().plan(make_facts(), budget()).settings
    risks = list(settings["predicted"].values())
    assert risks == sorted(risks)
    assert [settings["chosen"], settings["runner_up"]] == list(settings["predicted"])[:2]
    assert settings["chosen"] in settings["reason"]
    assert settings["runner_up"] in settings["reason"]
    known = {registry.find_name(type(one)) for one in Auto().among}
    assert {*settings["predicted"], *settings["refused"]} == known
    assert json.loads(json.dumps(settings)) == settings


def test_predictions_do_not_follow_units():
    """Rows, targets and radius in other units are the same problem: risks change by their unit."""
    form = registry.load("loss", "squared")()

    def predict(row, target):
        radius = 2.0 * target / row
        bounds = Bounds(row=row, target=target, radius=radius, columns=5)
        spec = make_spec(1000, form, make_ball(radius, 5), Regulariser(), "regression", bounds)
        fits = predicted_risk.rank(Auto().among, spec, budget(1000)).fits
        return {one.name: one.risk / target**2 for one in fits}

    assert predict(1.0, 1.0) == pytest.approx(predict(3.0, 40.0), rel=1e-3)


# --- the chosen one does the work -----------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
@pytest.mark.parametrize("pure", [False, True])
def test_plan_and_release_are_those_of_the_chosen_mechanism(loss, pure):
    problem, auto, level = small_problem(loss=loss), Auto(), budget(40, pure=pure)
    plan = auto.plan(problem.spec(), level)
    name = plan.settings["chosen"]
    one = next(each for each in auto.among if registry.find_name(type(each)) == name)
    own = one.plan(problem.spec(), level)
    assert (plan.events, plan.guarantee, plan.noise_scale) == (
        own.events, own.guarantee, own.noise_scale,
    )  # fmt: skip
    np.testing.assert_array_equal(released(auto, problem, plan), released(one, problem, own))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_replay(loss):
    problem = small_problem(loss=loss, n=6)
    plan = Auto().plan(problem.spec(), Budget(1.0, 1e-5))
    other = replace_record(problem, 2, np.array([0.0, -1.0, 0.0]), -1.0)
    found = replay(Auto(), plan, problem, other)
    assert found.private, found.faults


def test_only_a_budget_chooses():
    with pytest.raises(Unsupported, match="give epsilon"):
        Auto().events(make_facts(), 1.0, budget())
    with pytest.raises(Unsupported, match="calibration=paper"):
        Auto(calibration="paper").plan(make_facts(), budget())
