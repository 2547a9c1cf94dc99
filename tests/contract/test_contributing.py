"""The mechanism shown in CONTRIBUTING.md works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


def one_step():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    module = ModuleType("one_step")
    sys.modules[module.__name__] = module  # where the types of its fields are looked up
    exec("from __future__ import annotations\n" + block, vars(module))
    return module.OneStep()


def test_the_recipe_is_private_and_replays():
    mechanism, problem = one_step(), small_problem(n=8)
    for relation in mechanism.relations:
        budget = Budget(1.0, 1e-5, relation)
        plan = mechanism.plan(problem.spec(), budget)
        accounted = account(plan.events, delta=1e-5, relation=relation)
        assert 0.999 < accounted.epsilon <= 1.0
        assert plan.guarantee.within(budget)
        seeds = [seed_sequence(0, "test", trial) for trial in range(3)]
        gate = Gate(seeds, plan=(plan.events, relation))
        theta = mechanism.release(CentralView(problem), plan, gate).theta
        assert theta.shape == (3, 3)
        other = np.zeros(3) if relation == "add_remove" else np.array([-1.0, 0.0, 0.0])
        verdict = replay(mechanism, plan, problem, replace_record(problem, 0, other, -1.0))
        assert verdict.private
        assert verdict.worst > 0


def test_the_recipes_own_attack_reaches_what_is_claimed_and_no_more():
    mechanism = one_step()
    for relation in mechanism.relations:
        budget = Budget(1.0, 1e-5, relation)
        adversary = mechanism.adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
        verdict = replay(adversary.mechanism, plan, adversary.first, adversary.second)
        assert verdict.private
        assert verdict.worst == pytest.approx(1.0)


def test_the_recipe_has_no_pure_form():
    with pytest.raises(Unsupported, match="delta > 0"):
        one_step().plan(small_problem(n=8).spec(), Budget(1.0, 0.0))
