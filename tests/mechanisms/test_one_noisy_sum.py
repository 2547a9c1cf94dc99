"""The second stage of localization's audits can be attacked by itself."""

from __future__ import annotations

import pytest

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replay
from dperm_cli.mechanisms.shared.one_noisy_sum import OneSum
from dperm_cli.privacy.budget import Budget

pytestmark = [
    pytest.mark.parametrize("relation", ["replace_one", "add_remove"]),
    pytest.mark.parametrize("delta", [0.0, 1e-5]),
]


def test_its_own_pair_moves_the_sum_by_the_whole_sensitivity(relation, delta):
    budget = Budget(1.0, delta, relation)
    attack = OneSum().adversary(budget)
    plan = attack.mechanism.plan(attack.first.spec(), budget)
    found = replay(attack.mechanism, plan, attack.first, attack.second)
    assert found.faults == ()
    assert found.worst == pytest.approx(1.0, rel=1e-9)


@pytest.mark.stat
def test_audit(relation, delta):
    """At least 0.8 of the claim is shown, and half the noise is noticed."""
    budget = Budget(1.0, delta, relation)
    found = statistical_attack.attack(OneSum().adversary(budget), budget)
    assert found.faults == ()
    assert found.is_control_caught
    assert found.tightness >= 0.8
