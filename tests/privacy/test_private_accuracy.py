"""The accuracy on held-out records: what is charged, drawn and released."""

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.private_accuracy import plan_accuracy, release_accuracy

RELATIONS = ("replace_one", "add_remove")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_plans_keep_to_the_budget_and_use_it(relation, delta):
    plan = plan_accuracy(500, Budget(0.5, delta, relation))
    spent = account([plan.event], delta=delta, relation=relation).epsilon
    assert 0.49 < spent <= 0.5
    assert plan.event.sensitivity(relation) == 1.0
    assert isinstance(plan.event, Gaussian if delta == 0.1 else Laplace)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_neighbour_moves_the_counts_by_the_sensitivity(relation):
    """The same noise on neighbours: the outputs differ by what one record moves."""
    plan = plan_accuracy(50, Budget(0.5, 0.0, relation))
    labels = np.array(["a", "b"] * 25)

    def release(found, wanted):
        seeds = [np.random.SeedSequence(5)]
        out = release_accuracy(plan, found, wanted, Gate(seeds, plan=([plan.event], relation)))
        return np.array([out.right, out.wrong or 0])

    whole = release(labels, labels)
    if relation == "replace_one":
        other = release(np.append(labels[:-1], "a"), labels)
    else:
        other = release(labels[:-1], labels[:-1])
    assert np.abs(whole - other).sum() == plan.event.sensitivity(relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_secure_releases_are_near_and_their_intervals_hold(relation):
    plan = plan_accuracy(1000, Budget(1.0, 0.0, relation))
    labels = np.arange(1000) % 4
    found = np.where(np.arange(1000) < 800, labels, -1)
    drawn, held = [], 0
    for _ in range(200):
        out = release_accuracy(plan, found, labels, plan.open_secure_gate())
        drawn.append(out.right - 800)
        low, high = out.find_population_interval(0.01) if len(drawn) < 10 else (0.0, 1.0)
        held += low <= 0.8 <= high
        assert isinstance(out.right, int)
        assert abs(out.estimate - 0.8) < 0.06
    assert held == 200
    spread = np.mean(np.abs(drawn))
    assert 0.5 < spread < 1.7  # expected about .96; each side misses with chance below 1e-6


def test_intervals_on_records_need_their_number():
    labels = np.ones(100)
    plan = plan_accuracy(100, Budget(1.0, 0.0))
    out = release_accuracy(plan, labels, labels, plan.open_secure_gate())
    low, high = out.find_interval_on_records(1e-4)
    assert low <= 1.0 == high
    plan = plan_accuracy(100, Budget(1.0, 0.0, "add_remove"))
    out = release_accuracy(plan, labels, labels, plan.open_secure_gate())
    with pytest.raises(Unsupported, match="public number"):
        out.find_interval_on_records()


def test_empty_held_out_records_are_released_like_others_under_add_remove():
    plan = plan_accuracy(100, Budget(1.0, 0.0, "add_remove"))
    out = release_accuracy(plan, np.array([]), np.array([]), plan.open_secure_gate())
    assert out.find_population_interval() == (0.0, 1.0)


def test_a_gate_pays_once_and_only_for_its_own_event():
    plan = plan_accuracy(4, Budget(1.0, 0.0))
    gate, labels = plan.open_secure_gate(), np.ones(4)
    release_accuracy(plan, labels, labels, gate)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        release_accuracy(plan, labels, labels, gate)
    louder = plan_accuracy(4, Budget(2.0, 0.0))
    with pytest.raises(PrivacyError, match="no event of the plan"):
        release_accuracy(louder, labels, labels, plan.open_secure_gate())


def test_bad_input_is_refused():
    plan = plan_accuracy(4, Budget(1.0, 0.0))
    with pytest.raises(InputError, match="the plan is for 4 records"):
        release_accuracy(plan, np.ones(3), np.ones(3), plan.open_secure_gate())
    with pytest.raises(InputError, match="one for each label"):
        release_accuracy(plan, np.ones(4), np.ones(3), plan.open_secure_gate())
    with pytest.raises(InputError, match="records=0"):
        plan_accuracy(0, Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="central"):
        plan_accuracy(4, Budget(1.0, 0.0, trust="local"))
    with pytest.raises(Unsupported, match="has no grid"):
        plan_accuracy(2**31, Budget(1e6, 0.0))
