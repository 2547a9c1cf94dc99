"""Events at the gate and in the ledger: what pays for what, streams, words, plain values."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.events import Gaussian, GaussianMatrix
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from tests.privacy._events import EVENTS, NAMES, REMOVE, REPLACE, proved


@pytest.mark.parametrize("name", NAMES)
def test_it_pays_for_itself_and_for_nothing_else(name):
    """Any field of another value is another event, but for the rounding of a sensitivity."""
    event = EVENTS[name]
    assert event.fits(event, REPLACE)
    words = {"relation": REPLACE, "sampling": "full", "noise": None, "partition": None,
             "shape": "l_1", "distance": None}  # fmt: skip
    words |= {"noise": _other(event, "noise", ("gaussian", "gamma_norm")),
              "partition": _other(event, "partition", ("place", "content")),
              "sampling": _other(event, "sampling", ("fixed", "poisson")),
              "rule": _other(event, "rule", ("exponential", "permute_and_flip")),
              "distance": _other(event, "distance", ("inf", "tv"))}  # fmt: skip
    if name in ("Pure", "Approx"):
        words["relation"] = REMOVE
    tried = 0
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name == "gap":
            other = 1e-3
        elif isinstance(value, str):
            other = words[field.name]
        elif isinstance(value, tuple):
            other = value * 2
        else:
            other = value + 1 if isinstance(value, int) else (value * 1.01 or 1e-9)
        try:
            changed = event.change_fields(**{field.name: other})
        except InputError:  # as a delta of Gamma norms
            continue
        tried += 1
        if field.name == "gap" and changed.sensitivity(REPLACE) == event.sensitivity(REPLACE):
            continue  # its proof has no use for one
        assert not changed.fits(event, REPLACE), field.name
        assert not event.fits(changed, REPLACE), field.name
    assert tried >= len(dataclasses.fields(event)) - 2
    for other in EVENTS.values():
        assert other is event or not other.fits(event, REPLACE)
    if hasattr(event, "record_norm"):
        near = event.change_fields(record_norm=event.record_norm * (1.0 + 1e-15))
        assert near.fits(event, REPLACE)


def _other(event, name, among):
    mine = getattr(event, name, among[0])
    return next(word for word in among if word != mine)


def test_equal_moves_of_another_bound_are_the_same_event():
    """2 L and a gap of as much: two ways to say one sensitivity."""
    planned = Gaussian(1.0, 3.0)
    assert Gaussian(1.0, 5.0, gap=6.0).fits(planned, REPLACE)
    assert not Gaussian(1.0, 5.0, gap=6.0).fits(planned, REMOVE)
    assert not GaussianMatrix(1.0, 3.0).fits(planned, REPLACE)
    assert not planned.fits(GaussianMatrix(1.0, 3.0), REPLACE)


FACTS = {"DisjointBatches": {"parts": [np.array([k]) for k in range(5)]},
         "Channel": {"bound": 1.0, "users": 3}}  # fmt: skip
NOT_DRAWN = ("Pure", "Approx", "SamplerError", "Disclosure")


@pytest.mark.parametrize("name", NAMES)
def test_the_gate_opens_the_stream_of_an_event_of_its_plan_once(name):
    event, plain = EVENTS[name], name.split()[0]
    if plain == "DisjointBatches":
        event = event.change_fields(count=1)  # every pass has a stream of its own
    gate = Gate([seed_sequence(0, "events")], plan=((event,), REPLACE))
    if plain in NOT_DRAWN:
        with pytest.raises(PrivacyError, match=f"nothing to draw for {plain}"):
            gate.stream(event, 4)
        return
    if plain == "ListChoice":
        with pytest.raises(PrivacyError, match="secure gate alone"):
            gate.stream(event, 4)
        gate = Gate.secure(1, Grid(-10), ((event,), REPLACE))
    stream = gate.stream(event, 4, **FACTS.get(plain, {}))
    assert (stream.event, stream.relation, stream.number) == (event, REPLACE, 0)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        gate.stream(event, 4, **FACTS.get(plain, {}))


@pytest.mark.parametrize("name", NAMES)
def test_words_name_the_sensitivity_of_the_relation(name):
    event = EVENTS[name]
    for relation in proved(event):
        words, moves = event.words(relation), event.sensitivity(relation)
        assert len(words) > 10
        assert not set("{}") & set(words)
        assert words.startswith(f"{event.draws} x ") == (event.draws > 1)
        assert moves is None or f"at most {moves:.6g}" in words


@pytest.mark.parametrize("name", NAMES)
def test_a_ledger_writes_it_and_rebuilds_it(name):
    event = EVENTS[name]
    forms = [event]
    for change in ({"relation": REPLACE}, {"relation": REMOVE}, {"gap": 1.5}):
        fields = {field.name for field in dataclasses.fields(event)}
        forms += [event.change_fields(**change)] if set(change) <= fields else []
    for form in forms:
        written = ledger_totals.to_dict(form)
        assert ledger_totals.rebuild_event(json.loads(json.dumps(written))) == form
        # what holds under both relations needs no word for it
        assert written.get("relation", "") == getattr(form, "relation", "")
        assert ("relation" in written) == bool(getattr(form, "relation", ""))


def test_a_ledger_takes_no_relation_partition_or_noise_that_there_is_not():
    for change in ({"relation": "both"}, {"partition": "random"}, {"noise": "laplace"}):
        entry = ledger_totals.to_dict(EVENTS["DisjointBatches"]) | change
        with pytest.raises(ValueError, match=next(iter(change))):
            ledger_totals.rebuild_event(entry)
    for name in ("Event", "Noisy", "PrivacyLoss"):
        with pytest.raises(ValueError, match="no privacy event"):
            ledger_totals.rebuild_event({"event": name})


BATCHES = ("DisjointBatches", "SampledGaussian")


def test_which_have_a_form_on_a_grid():
    for name, event in EVENTS.items():
        if name in ("Gaussian", "Laplace", "GammaNorm") or name.startswith(BATCHES):
            assert event.grid_diagonal(9) == (9.0 if name == "Laplace" else 3.0)
        elif name == "GaussianMoments":
            assert event.grid_diagonal(9) == math.sqrt(45 + 9)  # a triangle of 9 and a vector
        elif name == "WishartDifference":
            assert event.grid_diagonal(9) == math.sqrt(10 * 55)  # of order 10, nuclear norm
        elif name == "GaussianMatrix":
            assert event.grid_diagonal(9) == math.sqrt(45)
        elif name.startswith("ListChoice"):
            assert event.grid_diagonal(9) == 0.0  # its rounding is in its oscillation
        else:
            with pytest.raises(Unsupported, match="secure form"):
                event.grid_diagonal(9)
