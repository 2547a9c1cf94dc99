"""The accountant behind a ledger: claims against events, and totals."""

from __future__ import annotations

import json

import pytest

from dperm_cli.privacy import ledger
from dperm_cli.privacy.calibrate import gaussian_scale, mu
from dperm_cli.privacy.events import Gaussian, Laplace
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
