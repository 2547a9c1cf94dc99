"""Programs that keep their claims pass the audit: dperm's own mechanisms, and OpenDP's Laplace.

``DPERM_OPENDP`` names the interpreter of an environment that has opendp.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.outside.records import read_kind
from dperm_cli.runner.audits.outside_audit import Question, audit_claim
from dperm_cli.runner.audits.outside_targets import make_target
from dperm_cli.runner.peers import environments
from dperm_cli.runner.peers.catalogue import find_peer

HERE = Path(__file__).parent
RECORDS = "numeric:p=1,norm=1,labels=-1|1,n=4"


def audit(words, claim, delta, records=RECORDS):
    """Pairs with zeros beside the changed record, which hide it least.

    Research noise and sums in floating point leave traces in the last bits: these are left out.
    """
    target = make_target(f"exec:{words}", delta, np.random.default_rng(0), workers=2)
    question = Question(
        claim, delta, kind=read_kind(records), runs=12_000, without=("low_bits", "values"),
        pairs=("zeros/opposite", "zeros/flip"), seconds=200.0,
    )  # fmt: skip
    return audit_claim(target, question)


def audit_own(name, told, claim):
    program = HERE / "own_fit.py"
    words = f"{sys.executable} {program} {{records}} {{runs}} {{seed}} {told} {name}"
    return audit(words, claim, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisy_gd", "objective_perturbation", "output_perturbation"])
def test_a_mechanism_of_dperm_keeps_its_claim(name):
    found = audit_own(name, 1.0, 1.0)
    assert found.verdict == "not shown", found.reasons
    assert np.isfinite(found.refutable)


@pytest.mark.slow
def test_a_mechanism_of_dperm_that_is_told_more_than_is_claimed_is_refuted():
    """The same audit has power: epsilon 4 is told and 1 is claimed."""
    assert audit_own("objective_perturbation", 4.0, 1.0).verdict == "violated"


@pytest.fixture
def python():
    found = os.environ.get("DPERM_OPENDP")
    made = environments.find_python(find_peer("opendp"), environments.find_folder())
    if not (found or made):
        pytest.skip("needs opendp: dperm peers install opendp")
    return found or str(made)


@pytest.mark.slow
@pytest.mark.nightly
def test_laplace_noise_of_opendp_keeps_its_claim_and_half_of_it_does_not(python):
    """A record moves the sum by 2."""
    words = f"{python} {HERE / 'opendp_laplace.py'} {{records}} {{runs}}"
    found = audit(f"{words} 2.0", 1.0, 0.0, "numeric:p=1,norm=1,n=4")
    assert found.verdict == "not shown", found.reasons
    assert np.isfinite(found.refutable)
    assert audit(f"{words} 1.0", 1.0, 0.0, "numeric:p=1,norm=1,n=4").verdict == "violated"
