"""``dperm account rigorous=true`` and ``dperm verify rigorous=true``."""

from __future__ import annotations

import re
import sys
from decimal import Decimal

import pytest

from dperm_cli.results.tables.account_table import format_up

NOISY = ("mechanism=noisy_gd", "n=500", "epsilon=0.3", "delta=1e-6", "figure=false")
RUN = (
    "run", "-m", "dataset=median_cloud", "dataset.n=60", "mechanism=output_perturbation,noisy_gd",
    "ridge=0.1", "trials=2", "epsilon=1", "out=s",
)  # fmt: skip


def refuse_flint(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)


def test_account_prints_the_proved_epsilon_beside_the_certified_one(dperm):
    pytest.importorskip("flint")
    done = dperm("account", *NOISY, "rigorous=true", "format=json")
    assert done.code == 0, done.err
    (row,) = done.rows
    assert row["rigorous"] == "yes (closed form)"
    assert row["epsilon_rigorous"] == pytest.approx(row["epsilon_accounted"], rel=1e-11)
    done = dperm("account", *NOISY, "rigorous=true")
    assert "yes (closed form)" in done.out
    assert "proved: in ball arithmetic, and rounded up" in done.out
    assert "rigorous" not in dperm("account", *NOISY, "format=json").out


def test_account_says_what_it_cannot_prove(dperm):
    pytest.importorskip("flint")
    done = dperm("account", "mechanism=kernel_interactive", "rigorous=true", "format=json")
    (row,) = done.rows
    assert row["status"] == "unsupported"
    assert "epsilon_rigorous" not in row


def test_account_without_the_package_is_one_line(dperm, monkeypatch):
    refuse_flint(monkeypatch)
    done = dperm("account", *NOISY, "rigorous=true")
    assert done.code == 2
    assert done.out == ""
    assert done.err.strip().splitlines() == [
        "dperm: rigorous=True: needs the package python-flint: pip install 'dperm[rigorous]', "
        "or in a clone pip install '.[rigorous]'"
    ]
    assert dperm("account", *NOISY).code == 0


@pytest.mark.parametrize("value", ["1", "yes", "'true'"])
def test_another_value_is_refused(dperm, value):
    done = dperm("account", *NOISY, f"rigorous={value}")
    assert done.code == 2
    assert "must be true or false" in done.err


def test_verify_proves_the_epsilons_of_a_study(dperm, monkeypatch):
    pytest.importorskip("flint")
    assert dperm(*RUN).code == 0
    done = dperm("verify", "s", "rigorous=true")
    assert done.code == 0, done.err
    proved = [line for line in done.out.splitlines() if ", proved " in line]
    assert len(proved) == 2
    assert "rigorous: 2 proved of 2 sets of events in 2 records" in done.out
    assert "rigorous" not in dperm("verify", "s").out
    done = dperm("verify", "s", "rigorous=perhaps")
    assert done.code == 2
    assert "rigorous=perhaps" in done.err
    refuse_flint(monkeypatch)
    done = dperm("verify", "s", "rigorous=true")
    assert done.code == 2
    assert "pip install 'dperm[rigorous]'" in done.err


def test_verify_proves_the_epsilon_of_a_model(dperm):
    pytest.importorskip("flint")
    made = dperm(
        "run", "dataset=breast_cancer", "mechanism=noisy_gd", "epsilon=1", "trials=1",
        "save=m.npz",
    )  # fmt: skip
    assert made.code == 0, made.err
    done = dperm("verify", "m.npz", "rigorous=true")
    assert done.code == 0, done.err
    assert re.search(r"^rigorous: epsilon [01][.\d]*, yes \(closed form\)$", done.out, re.M)


@pytest.mark.parametrize("value", [0.33333333333333337, 2.0, 1e-9, 123456.78901, 4e9, 1.0 + 1e-15])
def test_printed_digits_are_rounded_up(value):
    printed = Decimal(format_up(value))
    assert Decimal(repr(value)) <= printed <= Decimal(repr(value)) * (1 + Decimal("1e-5"))
    assert len(format_up(value)) < 14
    assert (format_up(None), format_up(float("inf"))) == ("-", "inf")
