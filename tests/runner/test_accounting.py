"""The accountant behind a ledger: claims against events, and totals."""

from __future__ import annotations

import json

import pytest

from dperm_cli.privacy import ledger
from dperm_cli.privacy.calibrate import gaussian_scale, mu
from dperm_cli.privacy.events import Approx, Gaussian, Laplace
from dperm_cli.runner.accounting import Accounting


def row(event, kind="approx", epsilon=1.0, delta=1e-6, **values):
    return {
        "events": json.dumps([ledger.plain(event)]), "guarantee": kind, "relation": "replace_one",
        "epsilon": epsilon, "delta": delta, "epsilon_accounted": epsilon,
        "delta_accounted": delta, "accountant": "told", "certificate": None, **values,
    }  # fmt: skip


GAUSSIAN = row(Gaussian(gaussian_scale(1.0, 1e-6, 2.0), 1.0))
LAPLACE = row(Laplace(4.0, 1.0), kind="pure", epsilon=0.5, delta=0.0)


def test_true_claims_hold():
    accounting = Accounting()
    assert accounting.fault(GAUSSIAN) is None
    assert accounting.fault(LAPLACE) is None


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
    gaussian = ledger.rebuilt(json.loads(GAUSSIAN["events"])[0])
    events = json.dumps([ledger.plain(event) for event in (gaussian, Approx(0.0, 1e-6))])
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
