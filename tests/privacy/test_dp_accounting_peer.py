"""The wrapper of dp-accounting: its conventions are the wrapper's business, not the caller's."""

from __future__ import annotations

import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    Pure,
    SampledGaussian,
)
from tests.privacy.dp_accounting_peer import epsilon_pld, epsilon_rdp

FULL = [Gaussian(84.494, 1.0, 100)]


def own(events, relation="replace_one", delta=1e-6):
    return account(events, delta=delta, relation=relation).epsilon


def test_replace_one_is_doubled_exactly_once():
    # sigma = 84.494 per unit record norm, T = 100, delta = 1e-6
    pld = epsilon_pld(FULL, delta=1e-6, relation="replace_one")
    rdp = epsilon_rdp(FULL, delta=1e-6, relation="replace_one")
    assert pld == pytest.approx(0.999995, rel=2e-6)
    assert rdp == pytest.approx(1.078057, rel=1e-6)
    assert pld == pytest.approx(own(FULL), rel=1e-5)


def test_the_trap_is_there():
    # the same library event under the same relation means two things to its two accountants
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(84.494), 100)
    relation = dp.NeighboringRelation.REPLACE_ONE
    assert PLDAccountant(relation).compose(event).get_epsilon(1e-6) == pytest.approx(
        0.999995, rel=2e-6
    )
    renyi = RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(1e-6)
    assert renyi == pytest.approx(0.514320, rel=1e-5)
    # fed to a wrapper that forgot the factor, full-gradient descent would look half as costly
    assert renyi < 0.6 * epsilon_rdp(FULL, delta=1e-6, relation="replace_one")


@pytest.mark.parametrize(
    "event",
    [
        lambda factor: Gaussian(20.0, factor, 30),
        lambda factor: Laplace(30.0, factor, 30),
        lambda factor: GammaNorm(30.0, factor, 30),
    ],
)
@pytest.mark.parametrize("route", [epsilon_pld, epsilon_rdp])
def test_replace_one_is_add_remove_at_twice_the_norm(event, route):
    replaced = route([event(0.5)], delta=1e-5, relation="replace_one")
    removed = route([event(1.0)], delta=1e-5, relation="add_remove")
    assert replaced == pytest.approx(removed, rel=1e-3)
    assert replaced > 1.5 * route([event(0.5)], delta=1e-5, relation="add_remove")


def test_gap_replaces_the_doubled_norm():
    near = epsilon_pld([Gaussian(5.0, 1.0, gap=1.0)], delta=1e-5, relation="replace_one")
    assert near == pytest.approx(own([Gaussian(5.0, 0.5)], delta=1e-5), rel=1e-5)


@pytest.mark.parametrize(
    ("sampling", "relation"),
    [("poisson", "replace_one"), ("poisson", "add_remove"), ("fixed", "replace_one")],
)
def test_sampled_steps_agree_with_ours(sampling, relation):
    events = [SampledGaussian(2.0, 1.0, 1, 50, sampling, 200)]
    theirs = epsilon_pld(events, delta=1e-6, relation=relation)
    assert theirs == pytest.approx(own(events, relation), rel=1e-4)
    if (sampling, relation) == ("poisson", "replace_one"):
        with pytest.raises(Unsupported, match="poisson"):
            epsilon_rdp(events, delta=1e-6, relation=relation)
    else:
        assert epsilon_rdp(events, delta=1e-6, relation=relation) > theirs


def test_mixture_of_everything():
    events = [
        Gaussian(6.0, 1.0, 2),
        SampledGaussian(2.0, 1.0, 1, 50, "poisson", 20),
        Laplace(9.0, 1.0, 3),
        Pure(0.125, 2),
        Approx(0.25, 1e-7),
    ]
    theirs = epsilon_pld(events, delta=1e-6, relation="replace_one")
    assert theirs == pytest.approx(own(events), abs=3e-6)
    assert epsilon_pld([], delta=1e-6, relation="replace_one") == 0.0
    # an exponential mechanism is only a pure step to the library: ours is sharper
    events = [Exponential(0.125, 0.5, 20)]
    assert own(events) < 0.6 * epsilon_pld(events, delta=1e-6, relation="replace_one")
    assert own(events) <= epsilon_rdp(events, delta=1e-6, relation="replace_one") * (1 + 1e-6)


def test_black_boxes_are_converted_from_their_own_relation():
    boxes = [Pure(0.125, 2, "add_remove"), Approx(0.25, 1e-7, 1, "add_remove")]
    for relation in ("add_remove", "replace_one"):
        theirs = epsilon_pld(boxes, delta=1e-6, relation=relation)
        assert theirs == pytest.approx(own(boxes, relation), abs=3e-6)
    with pytest.raises(Unsupported, match="promises nothing"):
        epsilon_pld([Pure(0.125)], delta=1e-6, relation="add_remove")


def test_refusals():
    fixed = [SampledGaussian(2.0, 1.0, 1, 50, "fixed")]
    for route in (epsilon_pld, epsilon_rdp):
        for events, relation in (([Channel(1.0)], "replace_one"), (fixed, "add_remove")):
            with pytest.raises(Unsupported):
                route(events, delta=1e-6, relation=relation)
