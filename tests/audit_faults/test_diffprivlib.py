"""diffprivlib's logistic regression: refuted for rows of norm 100, not for rows of norm 1.

``DPERM_DIFFPRIVLIB`` names the interpreter of an environment that has diffprivlib 0.6.6.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.outside.records import read_kind
from dperm_cli.runner.audits.outside_audit import Question, audit_claim
from dperm_cli.runner.audits.outside_targets import make_target
from dperm_cli.runner.peers import environments
from dperm_cli.runner.peers.catalogue import find_peer

PROGRAM = Path(__file__).with_name("diffprivlib_fit.py")


@pytest.fixture
def python() -> str:
    found = os.environ.get("DPERM_DIFFPRIVLIB")
    made = environments.find_python(find_peer("diffprivlib"), environments.find_folder())
    if not (found or made):
        pytest.skip("needs diffprivlib: dperm peers install diffprivlib")
    return found or str(made)


def audit(python, norm, told, claim=1.5, runs=150_000, pairs=("zeros/zero",)):
    words = f"exec:{python} {PROGRAM} {{records}} {{runs}} {norm} 0.04 {told}"
    target = make_target(words, 0.0, np.random.default_rng(0), workers=2)
    question = Question(
        claim, kind=read_kind(f"numeric:p=1,norm={norm},labels=-1|1,n=4"), runs=runs,
        without=("low_bits", "values"), pairs=pairs,
    )  # fmt: skip
    return audit_claim(target, question)


@pytest.mark.slow
@pytest.mark.nightly
def test_rows_of_norm_100_are_refuted(python):
    """At most ten minutes on two cores; 1.5 is claimed."""
    found = audit(python, 100, 1.5)
    assert found.is_refuted
    assert found.bound >= 2.5


@pytest.mark.slow
@pytest.mark.nightly
def test_rows_of_norm_1_are_not(python):
    assert not audit(python, 1, 1.5, runs=20_000).is_refuted


@pytest.mark.slow
def test_nan_is_found(python):
    result = audit(python, 100, "nan", claim=math.nan, runs=400)
    assert result.verdict == "not a function of its claim"
