"""The audit of foreign mechanisms finds the faults of small ones, and accuses no sound one."""

from __future__ import annotations

import pytest

from tests.audit_faults.faults import FAULTS
from tests.audit_faults.sound import SOUND

QUICK = ("noise_of_the_mean_on_the_sum", "fixed_seed", "one_class_fails", "nan_epsilon")
QUICK_SOUND = ("noisy_sum", "randomised_response", "constant", "refuses_bad_epsilon")


def check_found(subject):
    result = subject.audit()
    assert result.is_refuted, result
    assert result.reasons


def check_not_accused(subject, runs=None):
    result = subject.audit(runs=runs)
    assert not result.is_refuted, result.reasons
    assert result.bound <= subject.epsilon


@pytest.mark.parametrize("subject", [s for s in FAULTS if s.name in QUICK], ids=lambda s: s.name)
def test_a_fault_is_found(subject):
    check_found(subject)


@pytest.mark.slow
@pytest.mark.parametrize(
    "subject", [s for s in FAULTS if s.name not in QUICK], ids=lambda s: s.name
)
def test_every_fault_is_found(subject):
    check_found(subject)


@pytest.mark.parametrize(
    "subject", [s for s in SOUND if s.name in QUICK_SOUND], ids=lambda s: s.name
)
def test_a_sound_mechanism_is_not_accused(subject):
    check_not_accused(subject, runs=4000)


@pytest.mark.slow
@pytest.mark.parametrize("subject", SOUND, ids=lambda s: s.name)
def test_no_sound_mechanism_is_accused(subject):
    check_not_accused(subject)


def test_there_are_enough_of_both():
    assert len(FAULTS) >= 20
    assert len(SOUND) >= 20
    assert all(one.source for one in FAULTS)
    assert len({one.name for one in (*FAULTS, *SOUND)}) == len(FAULTS) + len(SOUND)


def test_an_attack_on_a_sound_mechanism_has_power():
    """The control: told twice the claim, the mechanism is refuted."""
    [told] = [one for one in SOUND if one.name == "refuses_bad_epsilon"]
    assert told.audit().control > told.epsilon
