"""What a fit and an evaluation on disjoint records cost together."""

import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.disjoint_parts import account_parts
from dperm_cli.privacy.events import Gaussian, Laplace

FIT, CHECK = [Gaussian(8.0, 1.0)], [Gaussian(4.0, 1.0, gap=1.0)]


def find_epsilon(events, relation):
    return account(events, delta=1e-6, relation=relation).epsilon


def find_together(fit, check, partition, relation):
    level = account_parts(fit, check, partition=partition, delta=1e-6, relation=relation)
    assert level.relation == relation
    return level.epsilon


def test_by_place_the_larger_part_is_the_cost():
    for fit, check in [(FIT, CHECK), (CHECK, [Gaussian(2.0, 1.0)])]:
        larger = max(find_epsilon(fit, "replace_one"), find_epsilon(check, "replace_one"))
        assert find_together(fit, check, "place", "replace_one") == larger
        assert larger < find_epsilon([*fit, *check], "replace_one")


def test_by_content_a_replaced_record_may_leave_one_part_and_enter_the_other():
    moved = find_epsilon([*FIT, *CHECK], "add_remove")
    alone = max(find_epsilon(FIT, "replace_one"), find_epsilon(CHECK, "replace_one"))
    assert moved > alone
    assert find_together(FIT, CHECK, "content", "replace_one") == moved
    heavy = [Gaussian(1.0, 1.0)]
    assert find_together(heavy, CHECK, "content", "replace_one") == find_epsilon(
        heavy, "replace_one"
    )


def test_by_content_a_record_that_comes_is_in_one_part():
    larger = find_epsilon(CHECK, "add_remove")
    assert find_together(FIT, CHECK, "content", "add_remove") == larger


def test_what_is_not_proved_is_refused():
    with pytest.raises(Unsupported, match="by place"):
        find_together(FIT, CHECK, "place", "add_remove")
    only = [Laplace(4.0, 1.0, relation="replace_one")]
    find_together(FIT, only, "place", "replace_one")
    with pytest.raises(Unsupported, match="proved under replace_one"):
        find_together(FIT, only, "content", "replace_one")
    with pytest.raises(InputError, match="one of place, content"):
        find_together(FIT, CHECK, "time", "replace_one")
