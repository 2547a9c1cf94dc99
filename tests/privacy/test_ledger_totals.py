"""The ledger's arithmetic: events to plain values and back, recomputation, composition."""

from __future__ import annotations

import json
import math

import pytest

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.calibrate import gaussian_scale, mu
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import (
    Channel,
    Disclosure,
    Gaussian,
    Laplace,
    Pure,
    SampledGaussian,
    classes,
)
from tests.privacy._events import EVENTS

RELATION = "replace_one"


def released(kind, event, times=1, relation=RELATION, epsilon=1.0, delta=1e-6):
    guarantee = Guarantee(kind, epsilon, delta if kind == "approx" else 0.0, relation, "told")
    return ledger_totals.SpentRelease(guarantee, (event,), times)


def test_every_kind_of_event_is_tried():
    assert {type(event) for event in EVENTS.values()} == set(classes().values())


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_an_event_survives_json_and_is_put_in_words(event):
    assert (
        ledger_totals.rebuild_event(json.loads(json.dumps(ledger_totals.to_dict(event)))) == event
    )
    facts = ledger_totals.describe(event, RELATION)
    assert facts["count"] == event.draws
    assert len(facts["words"]) > 10
    assert not set("{}") & set(facts["words"])


def test_words_carry_the_numbers():
    event = SampledGaussian(50.0, 40.0, 2, 80, "poisson", 7)
    words = ledger_totals.describe(event, RELATION)["words"]
    for number in ("7 x", "2 out of 80", "standard deviation 50", "at most 80 (L2 norm)"):
        assert number in words


@pytest.mark.parametrize(
    "entry",
    [
        {"event": "Magic", "scale": 1.0},
        {"scale": 1.0},
        {"event": "Gaussian", "scale": 1.0},
        {"event": "Gaussian", "scale": -1.0, "record_norm": 1.0},
        {"event": "Gaussian", "scale": math.nan, "record_norm": 1.0},
        {"event": "Gaussian", "scale": "1", "record_norm": 1.0},
        {"event": "__class__"},
    ],
)
def test_what_is_no_event_is_refused(entry):
    with pytest.raises(ValueError, match=r"no privacy event|Gaussian: "):
        ledger_totals.rebuild_event(entry)


def test_recomputed_is_what_the_accountant_says():
    event = Gaussian(84.494, 1.0, 100)
    found = ledger_totals.recompute(
        [event], kind="approx", delta=1e-6, relation=RELATION, certificate="exact"
    )
    assert found.epsilon == pytest.approx(1.0, abs=1e-5)
    assert (found.kind, found.delta, found.certificate) == ("approx", 1e-6, "exact")
    halved = ledger_totals.recompute(
        [event], kind="approx", delta=1e-6, relation="add_remove", certificate=None
    )
    assert mu(halved.epsilon, 1e-6) == pytest.approx(mu(found.epsilon, 1e-6) / 2)


def test_a_claim_above_the_budget_is_refused():
    budget = Budget(1.0, 1e-6)
    good = Guarantee("approx", 1.0, 1e-6, RELATION, "told")
    ledger_totals.require_within_budget(budget, good)
    for kind, epsilon, delta, relation in (
        ("approx", 1.0 + 1e-12, 1e-6, RELATION),
        ("approx", 1.0, 2e-6, RELATION),
        ("approx", 0.5, 1e-6, "add_remove"),
        ("none", 0.0, 0.0, RELATION),
        ("approx", math.nan, 1e-6, RELATION),
    ):
        bad = Guarantee(kind, epsilon, delta, relation, "told")
        with pytest.raises(PrivacyError, match="refused to release: told"):
            ledger_totals.require_within_budget(budget, good, bad)


def test_the_last_bits_of_an_epsilon_do_not_decide_who_is_named():
    """A claim of another machine, an ulp below what the events give here, is the same claim."""
    events = (Laplace(20.0, 0.5, 80), Laplace(5.0, 0.5))
    found = account(events, delta=1e-6, relation="replace_one")
    for epsilon in (found.epsilon, math.nextafter(found.epsilon, 0.0), 0.999 * found.epsilon):
        claim = Guarantee("approx", epsilon, 1e-6, "replace_one", "the claim")
        total = ledger_totals.compose([ledger_totals.SpentRelease(claim, events)], 1e-6)
        same = epsilon > 0.9995 * found.epsilon
        assert (total.source == found.accountant) is same
        assert total.epsilon == (found.epsilon if same else epsilon)


def test_gaussian_releases_compose_as_mu_squared():
    scale = gaussian_scale(1.0, 1e-6, 2.0)
    found = ledger_totals.compose([released("approx", Gaussian(scale, 1.0), 4)], 1e-6)
    assert found.kind == "approx"
    assert mu(found.epsilon, 1e-6) == pytest.approx(2.0 * mu(1.0, 1e-6))


def test_pure_releases_add_up_and_stay_pure():
    found = ledger_totals.compose(
        [released("pure", Laplace(4.0, 1.0), 3), released("pure", Pure(0.25))], 1e-6
    )
    assert (found.kind, found.delta) == ("pure", 0.0)
    assert found.epsilon == pytest.approx(3 * 0.5 + 0.25)


def test_the_weakest_kind_wins():
    gaussian, pure = Gaussian(gaussian_scale(1.0, 1e-6, 2.0), 1.0), Pure(0.25)
    found = ledger_totals.compose([released("pure", pure), released("approx", gaussian)], 1e-6)
    assert (found.kind, found.delta) == ("approx", 1e-6)
    # no less than either, no more than their sum
    assert 1.0 < found.epsilon <= 1.25 + 1e-9
    nothing = ledger_totals.compose([released("pure", pure), released("none", Disclosure())], 1e-6)
    assert (nothing.kind, nothing.epsilon) == ("none", math.inf)


def test_local_messages_add_up_and_beside_others_count_as_what_they_are():
    found = ledger_totals.compose([released("local", Channel(0.5, 2), 3, epsilon=1.0)], 1e-6)
    assert (found.kind, found.epsilon) == ("local", pytest.approx(3.0))
    both = [released("local", Channel(0.5, 2), 3), released("approx", Gaussian(9.0, 1.0))]
    found = ledger_totals.compose(both, 1e-6)
    assert (found.kind, found.source) == ("approx", ledger_totals.BASIC)
    assert (found.epsilon, found.delta) == (pytest.approx(4.0), pytest.approx(1e-6))


def test_two_relations_do_not_add():
    one, other = (released("pure", Pure(0.1), relation=r) for r in ("replace_one", "add_remove"))
    with pytest.raises(ValueError, match="one relation"):
        ledger_totals.compose([one, other], 1e-6)


def test_a_sampled_release_repeated_costs_what_a_longer_one_does():
    event = SampledGaussian(600.0, 100.0, 1, 100, "fixed", 500)
    longer = SampledGaussian(600.0, 100.0, 1, 100, "fixed", 2500)
    found = ledger_totals.compose([released("approx", event, 5)], 1e-5)
    expected = account([longer], delta=1e-5, relation=RELATION).epsilon
    assert found.epsilon == pytest.approx(expected)
