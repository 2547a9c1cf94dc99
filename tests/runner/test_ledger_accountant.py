"""The accountant behind a ledger: claims against events, and totals."""

from __future__ import annotations

import json
import math

import pytest

from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.calibrate import gaussian_scale, mu
from dperm_cli.privacy.events import (
    Approx,
    Disclosure,
    DisjointBatches,
    GammaNorm,
    Gaussian,
    Laplace,
    Pure,
)
from dperm_cli.privacy.gate import range_delta
from dperm_cli.runner.cells import ledger_accountant
from dperm_cli.runner.cells.ledger_accountant import Accounting


def row(event, kind="approx", epsilon=1.0, delta=1e-6, **values):
    return {
        "events": json.dumps([ledger_totals.to_dict(event)]), "guarantee": kind,
        "relation": "replace_one", "epsilon": epsilon, "delta": delta, "epsilon_accounted": epsilon,
        "delta_accounted": delta, "accountant": "told", "certificate": None, **values,
    }  # fmt: skip


GAUSSIAN = row(Gaussian(gaussian_scale(1.0, 1e-6, 2.0), 1.0))
LAPLACE = row(Laplace(4.0, 1.0), kind="pure", epsilon=0.5, delta=0.0)


def test_true_claims_hold():
    assert Accounting().fault(GAUSSIAN) is None
    assert Accounting().fault(LAPLACE) is None


@pytest.mark.parametrize("change", [0.99, 1.01, 1 + 1e-5])
def test_other_epsilons_do_not(change):
    forged = {**GAUSSIAN, "epsilon_accounted": change, "epsilon": 2.0}
    assert "its events give 1" in (Accounting().fault(forged) or "")


def test_totals_are_at_the_largest_delta():
    found = Accounting().total(
        [(GAUSSIAN, 4), ({**GAUSSIAN, "delta_accounted": 1e-5}, 5)], "replace_one"
    )
    assert (found["kind"], found["delta"]) == ("approx", 1e-5)
    assert mu(found["epsilon"], 1e-5) == pytest.approx(3 * mu(1.0, 1e-6))
    assert Accounting().total([(LAPLACE, 3)], "replace_one")["epsilon"] == pytest.approx(1.5)


def test_where_the_largest_delta_is_spent_outright_a_total_is_at_the_sum_of_deltas():
    """Half of each release's delta is spent outright: two of them spend what one has."""
    gaussian = ledger_totals.rebuild_event(json.loads(GAUSSIAN["events"])[0])
    events = json.dumps([ledger_totals.to_dict(event) for event in (gaussian, Approx(0.0, 1e-6))])
    held = {**GAUSSIAN, "delta_accounted": 2e-6, "events": events}
    one, two, three = (Accounting().total([(held, times)], "replace_one") for times in (1, 2, 3))
    assert (one["epsilon"], one["delta"]) == (pytest.approx(1.0), 2e-6)
    assert (two["delta"], three["delta"]) == (pytest.approx(4e-6), pytest.approx(6e-6))
    # what is left at 6e-6 after 3e-6 outright is the Gaussians' own
    assert mu(three["epsilon"], 3e-6) == pytest.approx(3**0.5 * mu(1.0, 1e-6))
    assert three["epsilon"] < 3.0
    # the sum of epsilons where the law of all together gives none
    nothing = {**held, "epsilon_accounted": 0.5, "delta_accounted": 1e-6}
    many = Accounting().total([(nothing, 5)], "replace_one")
    assert many["delta"] == pytest.approx(5e-6)
    assert many["epsilon"] == pytest.approx(2.5)
    # at a delta of 1 nothing is promised, whatever epsilon stands there
    assert Accounting().total([(held, 600_000)], "replace_one")["epsilon"] == float("inf")


def test_events_come_with_sensitivity_and_words():
    (event,) = Accounting().events(LAPLACE)
    assert (event["sensitivity"], event["scale"], event["count"]) == (2.0, 4.0, 1)
    assert event["record_norm"] == 1.0
    assert "Laplace noise of scale 4" in event["words"]


def test_releases_under_both_relations_add_up_under_replace_one():
    """A sum released under add_remove moves by twice as much when a record is replaced."""
    other = row(Gaussian(gaussian_scale(1.0, 1e-6, 1.0), 1.0), relation="add_remove")
    found = Accounting().total([(GAUSSIAN, 2), (other, 2)], "replace_one")
    expected = (2 * mu(1.0, 1e-6) ** 2 + 2 * (2 * mu(1.0, 1e-6)) ** 2) ** 0.5
    assert mu(found["epsilon"], 1e-6) == pytest.approx(expected)


# --- a replace_one total takes releases under add_remove too --------------------------------------

REMOVED = "add_remove"


def total_of(event, epsilon, delta=0.0, times=1, **values):
    """(epsilon, delta) of one add_remove release of these events in a total under replace_one."""
    kind = "approx" if delta else "pure"
    events = event if isinstance(event, list) else [event]
    one = row(events[0], kind, epsilon, delta, relation=REMOVED, **values)
    one["events"] = json.dumps([ledger_totals.to_dict(e) for e in events])
    found = Accounting().total([(one, times)], "replace_one")
    return found["epsilon"], found["delta"]


def test_a_pass_over_batches_by_content_moves_two_of_them():
    """Break 4: such a pass was added up as if a replaced record moved one gradient gap."""
    gamma = DisjointBatches(1.0, 1.0, 4, "gamma_norm", gap=1.0, partition="content")
    assert total_of(gamma, 1.0) == (pytest.approx(2.0), 0.0)
    assert total_of(gamma, 1.0, times=3) == (pytest.approx(6.0), 0.0)
    gaussian = DisjointBatches(5.0, 1.0, 4, gap=0.1, partition="content")
    epsilon, _ = total_of(gaussian, 1.0, 1e-6)
    assert mu(epsilon, 1e-6) == pytest.approx(2**0.5 / 5.0)
    epsilon, _ = total_of(gaussian.change_fields(gap=1.7), 1.0, 1e-6)
    assert mu(epsilon, 1e-6) == pytest.approx(1.7 / 5.0)


@pytest.mark.parametrize(
    "event",
    [
        DisjointBatches(1.0, 1.0, 4, "gamma_norm"),  # by place, as old records say
        GammaNorm(1.0, 1.0, relation=REMOVED),
    ],
)
def test_an_event_without_a_rule_enters_by_its_releases_claim(event):
    assert total_of(event, 1.0) == (pytest.approx(2.0), 0.0)
    event = event.change_fields(noise="gaussian") if hasattr(event, "noise") else event
    epsilon, delta = total_of(event, 1.0, 1e-6)
    assert (epsilon, delta) == (pytest.approx(2.0), pytest.approx((1.0 + math.e) * 1e-6))


def test_a_black_box_enters_as_a_record_removed_and_one_added():
    assert total_of(Pure(0.7, 2, REMOVED), 1.4) == (pytest.approx(2.8), 0.0)
    box = Approx(0.5, 1e-7, 1, REMOVED)
    epsilon, delta = total_of([box, Approx(0.0, 1e-8, 1, REMOVED)], 0.5, 1e-6)
    # all of it is less than the delta of the claim: the epsilon is that of the accountant
    spent = (1.0 + math.exp(0.5)) * 1e-7 + 2e-8
    assert delta == 1e-6
    left = account([Pure(1.0)], delta=(1e-6 - spent) / (1.0 - spent), relation="replace_one")
    assert epsilon == pytest.approx(left.epsilon, rel=1e-6)


def test_a_release_under_replace_one_never_enters_an_add_remove_total():
    for releases in ([(GAUSSIAN, 1)], [(LAPLACE, 2)], [(GAUSSIAN, 1), (LAPLACE, 1)]):
        with pytest.raises(ValueError, match="promises nothing under add_remove"):
            Accounting().total(releases, REMOVED)
    own = row(Gaussian(gaussian_scale(1.0, 1e-6, 1.0), 1.0), relation=REMOVED)
    with pytest.raises(ValueError, match="promises nothing"):
        Accounting().total([(own, 1), (GAUSSIAN, 1)], REMOVED)
    assert Accounting().total([(own, 1)], REMOVED)["epsilon"] == pytest.approx(1.0)


def test_the_bounded_range_is_that_of_the_total_and_not_of_the_release():
    """1.7 standard deviations apart nothing is held of delta; 3.4 apart the range may show."""
    event, delta = Gaussian(1.0, 1.7), 1e-6
    own, both = (range_delta([event], relation, 2) for relation in (REMOVED, "replace_one"))
    assert own < 1e-3 * delta < both < delta / 4

    def entered(size, relation="replace_one", **values):
        one = row(Gaussian(1.0, size), relation=REMOVED, **{"noise": "research", "p": 2, **values})
        return ledger_accountant.events_under(one, relation)

    assert entered(1.7) == (event, Approx(0.0, both, 1, "replace_one"))
    # of an unknown number of parameters there may be many
    assert entered(1.7, p=None)[1].delta > 1e3 * both
    # noise on a grid has no bounded range, and a total of the releases' own relation is as planned
    assert entered(1.7, noise="secure") == entered(1.7, REMOVED) == (event,)
    assert entered(0.1) == (Gaussian(1.0, 0.1),)
    # so little noise that a replaced record shows for certain
    assert entered(9.0)[1] == Disclosure()
    for size, finite in ((1.7, True), (9.0, False)):
        found, _ = total_of(Gaussian(1.0, size), 30.0, delta, noise="research", p=2)
        assert math.isfinite(found) is finite
    epsilon, _ = total_of(Gaussian(1.0, 9.0), 30.0, delta, noise="secure", p=2)
    assert math.isfinite(epsilon)
