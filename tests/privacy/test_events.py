"""Events: what each class owns, under which relations it is proved, and how it is converted."""

from __future__ import annotations

import dataclasses
import math

import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import fields_of
from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.subsampled_laws import SampledStep
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    DisjointBatches,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    Laplace,
    PerturbedObjective,
    PrivacyLoss,
    Pure,
    RegularizedExponential,
    SampledGaussian,
    SamplerError,
    SparseAnswers,
    classes,
    kind,
    replaced_level,
)
from tests.privacy._events import EVENTS, NAMES, REMOVE, REPLACE, proved


def test_every_class_of_event_is_tried():
    assert {type(event) for event in EVENTS.values()} == set(classes().values())
    assert {name.split()[0] for name in EVENTS} == set(classes())


NOISE = (Gaussian, Laplace, GammaNorm, RegularizedExponential, Exponential)


@pytest.mark.parametrize("event", NOISE)
def test_sensitivity_doubles_under_replace_one_unless_the_gap_is_smaller(event):
    assert event(2.0, 3.0).sensitivity("replace_one") == 6.0
    assert event(2.0, 3.0).sensitivity("add_remove") == 3.0
    assert event(2.0, 3.0, gap=4.0).sensitivity("replace_one") == 4.0
    assert event(2.0, 3.0, gap=9.0).sensitivity("replace_one") == 6.0
    assert event(2.0, 3.0, gap=4.0).sensitivity("add_remove") == 3.0


def test_sampled_rate_and_sensitivity():
    event = SampledGaussian(1.0, 3.0, 5, 20, "fixed")
    assert event.rate == 0.25
    assert (event.sensitivity("replace_one"), event.sensitivity("add_remove")) == (6.0, 3.0)


@pytest.mark.parametrize("event", classes().values())
def test_events_are_frozen_and_say_what_is_released(event):
    assert event.__dataclass_params__.frozen
    assert event.__doc__
    assert not event.__doc__.startswith(event.__name__ + "(")
    for field in fields_of(event).values():
        assert set(field.types) <= {float, int, str}  # plain values in a ledger


BAD = [
    *[(lambda e=e: e(math.nan, 1.0), "scale") for e in NOISE[:-1]],
    (lambda: Exponential(math.nan, 1.0), "exponent"),
    *[(lambda e=e: e(0.0, 1.0), "scale") for e in NOISE[:-1]],
    *[(lambda e=e: e(1.0, -1.0), "record_norm") for e in NOISE[:-1]],
    *[(lambda e=e: e(1.0, 1.0, 0), "count") for e in NOISE],
    *[(lambda e=e: e(1.0, 1.0, gap=math.nan), "gap") for e in NOISE],
    (lambda: Exponential(-1.0, 1.0), "exponent"),
    (lambda: Exponential(1.0, math.inf), "record_oscillation"),
    (lambda: SampledGaussian(1.0, 1.0, 11, 10, "fixed"), "batch"),
    (lambda: SampledGaussian(1.0, 1.0, 1, 10, "shuffle"), "sampling"),
    (lambda: SampledGaussian(1.0, math.nan, 1, 10, "fixed"), "record_norm"),
    (lambda: Pure(math.inf), "epsilon"),
    (lambda: Pure(1.0, 0), "count"),
    (lambda: Approx(math.nan, 0.1), "epsilon"),
    (lambda: Approx(1.0, 1.0), "delta"),
    (lambda: Approx(1.0, math.nan), "delta"),
    (lambda: Channel(1.0, 0), "messages"),
    (lambda: Channel(True), "epsilon"),
    (lambda: SamplerError("kl", 0.1), "distance"),
    (lambda: SamplerError("tv", -0.1), "amount"),
]


@pytest.mark.parametrize(("make", "key"), BAD)
def test_bad_events_name_their_field(make, key):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], "pure"),
        ([Laplace(1.0, 1.0), GammaNorm(1.0, 1.0), Exponential(1.0, 1.0), Pure(1.0)], "pure"),
        ([Laplace(1.0, 1.0), SamplerError("inf", 0.1)], "pure"),
        ([Laplace(1.0, 1.0), SamplerError("tv", 0.1)], "approx"),
        ([Pure(1.0), Gaussian(1.0, 1.0)], "approx"),
        ([Pure(1.0), SampledGaussian(1.0, 1.0, 1, 10, "fixed")], "approx"),
        ([RegularizedExponential(1.0, 1.0)], "approx"),
        ([Pure(1.0), Approx(1.0, 0.0)], "pure"),
        ([Pure(1.0), Approx(1.0, 1e-9)], "approx"),
        ([Channel(1.0), Channel(2.0, 3)], "local"),
        ([Channel(1.0), Disclosure()], "none"),
        ([Gaussian(1.0, 1.0), Disclosure()], "none"),
    ],
)
def test_kind_is_the_weakest(events, expected):
    assert kind(events) == expected


def test_local_composes_with_local_only():
    with pytest.raises(Unsupported, match="local"):
        kind([Channel(1.0), Pure(1.0)])


# --- how far one record moves it ------------------------------------------------------------------

L, G = 3.0, 4.1  # a record's contribution and the gap, which is less than sqrt(2) L
CONTENT = {"partition": "content"}
TABLE = [
    # sums over all
    (Gaussian(1.0, L, gap=G), G, L),
    (Gaussian(1.0, L), 2 * L, L),
    (GaussianMatrix(1.0, L, gap=G), G, L),
    (Laplace(1.0, L, gap=G), G, L),
    (GammaNorm(1.0, L, gap=9.0), 2 * L, L),
    (SampledGaussian(1.0, L, 1, 9, "poisson"), 2 * L, L),
    (RegularizedExponential(1.0, L, gap=G), G, L),
    (Exponential(1.0, L, gap=G), G, L),
    (SparseAnswers(1.0, L, 1.0, 1, 2, gap=G), G, L),
    # its proof has no use for the gap where noise is Gaussian
    (PerturbedObjective("gamma_norm", 1.0, L, 0.1, 1.0, gap=G), G, L),
    (PerturbedObjective("gaussian", 1.0, L, 0.1, 1.0, 1e-6, gap=G), 2 * L, L),
    # batches by place: as a sum, or nothing at all
    (DisjointBatches(1.0, L, 5, gap=G), G, None),
    (DisjointBatches(1.0, L, 5, "gamma_norm", gap=G), G, None),
    (DisjointBatches(1.0, L, 5, "gamma_norm"), 2 * L, None),
    # by content: two batches, or both records in one
    (DisjointBatches(1.0, L, 5, "gamma_norm", gap=G, **CONTENT), 2 * L, L),
    (DisjointBatches(1.0, L, 5, gap=G, **CONTENT), math.sqrt(2.0) * L, L),
    (DisjointBatches(1.0, L, 5, gap=5.0, **CONTENT), 5.0, L),
    (DisjointBatches(1.0, L, 5, gap=0.0, **CONTENT), math.sqrt(2.0) * L, L),
    (DisjointBatches(1.0, L, 5, gap=9.0, **CONTENT), 2 * L, L),
    (DisjointBatches(1.0, L, 5, **CONTENT), 2 * L, L),
]


@pytest.mark.parametrize(("event", "replaced", "removed"), TABLE)
def test_the_sensitivity_of_a_relation_and_a_partition(event, replaced, removed):
    assert event.sensitivity(REPLACE) == pytest.approx(replaced)
    if removed is None:
        for ask in (event.sensitivity, event.ratio, event.loss, event.meter, event.words):
            with pytest.raises(Unsupported, match="batches by place"):
                ask(REMOVE)
    else:
        assert event.sensitivity(REMOVE) == removed


@pytest.mark.parametrize("name", NAMES)
def test_what_is_proved_under_one_relation_is_refused_under_the_other(name):
    event = EVENTS[name]
    if not hasattr(event, "record_norm") and not hasattr(event, "record_oscillation"):
        return
    for own, other in (RELATIONS, RELATIONS[::-1]):
        if other not in proved(event) or own not in proved(event):
            continue
        bound = event.change_fields(relation=own)
        assert bound.loss(own) == event.loss(own)
        assert bound.sensitivity(own) == event.sensitivity(own)
        for ask in (bound.sensitivity, bound.loss, bound.meter, bound.words):
            with pytest.raises(Unsupported, match=f"proved under {own} and not under {other}"):
                ask(other)
        with pytest.raises(Unsupported):
            account([bound], delta=1e-6, relation=other)
    with pytest.raises(InputError, match="relation"):
        event.change_fields(relation="replace_many")


def test_which_relations_are_proved():
    one = {"SampledGaussian fixed", "DisjointBatches", "Pure", "Approx", "Channel"}
    assert {name for name, event in EVENTS.items() if proved(event) == [REPLACE]} == one
    assert all(
        proved(event) == list(RELATIONS) for name, event in EVENTS.items() if name not in one
    )


# --- what it spends -------------------------------------------------------------------------------

SPENT = {
    "Gaussian": PrivacyLoss(mu2=2 * 0.75**2),
    "GaussianMatrix": PrivacyLoss(mu2=2 * 0.75**2),
    "GaussianMoments": PrivacyLoss(mu2=2 * 0.75**2),
    "WishartDifference": PrivacyLoss(bounded=bounded_laws.laplace(6.0 / 80.0, 2)),
    "Laplace": PrivacyLoss(bounded=bounded_laws.laplace(6.0 / 80.0, 2)),
    "GammaNorm": PrivacyLoss(bounded=bounded_laws.laplace(6.0 / 80.0, 2)),
    # one record's norm: a Poisson batch gains or loses one
    "SampledGaussian": PrivacyLoss(sampled=SampledStep(1 / 40, 3.0 / 8.0, "poisson", 7)),
    "SampledGaussian fixed": PrivacyLoss(sampled=SampledStep(1 / 40, 6.0 / 8.0, "fixed", 7)),
    "DisjointBatches": PrivacyLoss(mu2=2 * 0.75**2),
    "DisjointBatches content": PrivacyLoss(bounded=bounded_laws.laplace(0.75, 1)),
    "Exponential": PrivacyLoss(bounded=bounded_laws.bounded_range(0.12, 2)),
    "RegularizedExponential": PrivacyLoss(mu2=2 * 0.75**2),
    "Pure": PrivacyLoss(bounded=bounded_laws.pure(0.1, 4)),
    "Approx": PrivacyLoss(bounded=bounded_laws.pure(0.1, 2), log_failure=2 * math.log1p(-1e-8)),
    "Channel": PrivacyLoss(bounded=bounded_laws.pure(0.1, 3), local=True),
    "SamplerError": PrivacyLoss(distance=5e-9),
    "SamplerError inf": PrivacyLoss(ratio=5e-3),
    "Disclosure": PrivacyLoss(exposed=True),
}


@pytest.mark.parametrize("name", SPENT)
def test_what_it_spends_under_replace_one(name):
    found, expected = (dataclasses.asdict(x) for x in (EVENTS[name].loss(REPLACE), SPENT[name]))
    assert {key: found[key] for key in found if key != "mu2"} == {
        key: expected[key] for key in expected if key != "mu2"
    }
    assert found["mu2"] == pytest.approx(expected["mu2"])


def test_sums_spend_half_as_much_when_records_come_or_go():
    for name in ("Gaussian", "GaussianMatrix", "RegularizedExponential"):
        assert EVENTS[name].loss(REMOVE).mu2 == pytest.approx(EVENTS[name].loss(REPLACE).mu2 / 4.0)
    for name in ("Laplace", "GammaNorm", "Exponential", "SparseAnswers", "DisjointBatches content"):
        reach = [EVENTS[name].loss(relation).bounded.reach for relation in RELATIONS]
        assert reach[1] == pytest.approx(reach[0] / 2.0)
    sampled = EVENTS["SampledGaussian"]
    assert sampled.loss(REMOVE) == sampled.loss(REPLACE)  # the accountant knows the two laws
    whole = sampled.change_fields(batch=80)
    assert whole.loss(REPLACE) == PrivacyLoss(mu2=pytest.approx(7 * 0.75**2))
    assert whole.loss(REMOVE) == PrivacyLoss(mu2=pytest.approx(7 * 0.375**2))


def test_a_perturbed_objective_spends_its_jacobian_and_its_noise():
    pure = EVENTS["PerturbedObjective"]
    jacobian = 2.0 * math.log1p(0.25 / 8.0)
    assert pure.loss(REPLACE).bounded.reach == pytest.approx(jacobian + 6.0 / 80.0)
    assert pure.loss(REMOVE).bounded.reach == pytest.approx(jacobian + 3.0 / 80.0)
    gaussian = EVENTS["PerturbedObjective gaussian"]
    spent = gaussian.loss(REPLACE)
    assert spent.log_failure == pytest.approx(math.log1p(-1e-7))
    assert spent.bounded.reach == gaussian.epsilon(REPLACE)


def test_sparse_answers_spend_what_all_of_them_would_or_what_their_updates_do():
    event = EVENTS["SparseAnswers"]
    loss = event.loss(REPLACE)
    assert loss.bounded == bounded_laws.laplace(6.0 / 80.0, 40)
    assert (loss.updates.reach, loss.updates.count) == (6.0 / 80.0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_independent_runs_add_up(name):
    """Three runs as one event spend what three events do, under every relation."""
    event = EVENTS[name]
    for relation in proved(event):
        three = account([event] * 3, delta=1e-5, relation=relation).epsilon
        one = account([event.repeat(3)], delta=1e-5, relation=relation).epsilon
        assert one == pytest.approx(three, rel=1e-9)
    assert event.repeat(3).draws == (1 if name == "Disclosure" else 3 * event.draws)
    assert event.repeat(1) == event


@pytest.mark.parametrize("name", NAMES)
def test_as_one_sum_it_spends_the_same(name):
    event = EVENTS[name]
    for relation in proved(event):
        one = event.as_one_sum(relation)
        assert isinstance(one, Gaussian | GammaNorm) or one is event
        found, expected = (
            account([e], delta=1e-5, relation=relation).epsilon for e in (one, event)
        )
        assert found == pytest.approx(expected, rel=1e-12)


KINDS = {"Gaussian": "approx", "GaussianMatrix": "approx",
         "GaussianMoments": "approx", "SampledGaussian": "approx",
         "SampledGaussian fixed": "approx", "DisjointBatches": "approx",
         "RegularizedExponential": "approx", "PerturbedObjective gaussian": "approx",
         "Approx": "approx", "SamplerError": "approx", "Channel": "local",
         "Disclosure": "none"}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_kind_of_each_class_is_what_delta_zero_allows(name):
    event = EVENTS[name]
    assert event.kind() == KINDS.get(name, "pure")
    spent = account([event], delta=0.0, relation=REPLACE).epsilon
    assert math.isfinite(spent) == (event.kind() in ("pure", "local"))


def test_what_moves_nothing_is_pure():
    for event in (Gaussian(1.0, 0.0), SampledGaussian(1.0, 0.0, 1, 9, "fixed"),
                  RegularizedExponential(1.0, 0.0), DisjointBatches(1.0, 0.0, 3)):  # fmt: skip
        assert event.kind() == "pure"
        assert account([event], delta=0.0, relation=REPLACE).epsilon == 0.0


# --- black boxes from one relation to the other ---------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 4.0])
def test_a_box_is_converted_as_a_record_removed_and_one_added(epsilon):
    """delta(A) <= e^eps P'(A) + delta, twice over: (2 eps, (1 + e^eps) delta)."""
    pure, box = Pure(epsilon, 3, REMOVE), Approx(epsilon, 1e-6, 3, REMOVE)
    assert (pure.level(REMOVE), box.level(REMOVE)) == ((epsilon, 0.0), (epsilon, 1e-6))
    wide = (1.0 + math.exp(epsilon)) * 1e-6
    assert pure.level(REPLACE) == (2.0 * epsilon, 0.0)
    assert box.level(REPLACE) == pytest.approx((2.0 * epsilon, wide))
    assert pure.loss(REPLACE) == Pure(2.0 * epsilon, 3).loss(REPLACE)
    assert box.loss(REPLACE) == Approx(2.0 * epsilon, box.level(REPLACE)[1], 3).loss(REPLACE)
    for event in (Pure(epsilon), Approx(epsilon, 1e-6)):
        assert event.relation == REPLACE
        with pytest.raises(Unsupported, match="promises nothing under add_remove"):
            event.loss(REMOVE)
        with pytest.raises(Unsupported):
            account([event], delta=0.1, relation=REMOVE)


def test_what_delta_holds_at_epsilon_zero_doubles():
    held = Approx(0.0, 3e-8, 1, REMOVE)
    assert held.level(REPLACE) == (0.0, 6e-8)
    assert account([held], delta=5.9e-8, relation=REPLACE).epsilon == math.inf
    assert account([held], delta=6.1e-8, relation=REPLACE).epsilon == 0.0


def test_a_box_that_would_be_certain_to_fail_protects_nothing():
    box = Approx(20.0, 1e-6, 1, REMOVE)
    assert box.level(REPLACE) == (40.0, 1.0)
    assert box.loss(REPLACE) == PrivacyLoss(exposed=True)
    assert account([box], delta=0.5, relation=REPLACE).epsilon == math.inf
    # nor does the largest epsilon overflow
    assert replaced_level(1e300, 1e-6) == (2e300, 1.0)
    assert replaced_level(1e300, 0.0) == (2e300, 0.0)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_conversion_covers_a_mechanism_whose_law_is_known(mu):
    """mu-GDP when a record goes, 2 mu when one is replaced: never more than the box's number."""
    event = Gaussian(1.0 / mu, 1.0)
    for delta in (1e-9, 1e-6, 1e-3):
        own = account([event], delta=delta, relation=REMOVE).epsilon
        epsilon, wide = replaced_level(own, delta)
        if wide < 1.0:
            assert account([event], delta=wide, relation=REPLACE).epsilon <= epsilon * (1 + 1e-9)
