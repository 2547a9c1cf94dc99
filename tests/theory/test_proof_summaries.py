"""Every proof page begins with a summary for students, and its one number is computed again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dperm_cli
from dperm_cli.bounds import hidden_directions
from dperm_cli.bounds.hidden_lower import Privacy, find_on_ball
from dperm_cli.bounds.jt13 import interactive_error
from dperm_cli.core import registry
from dperm_cli.losses.hinge import Hinge
from dperm_cli.losses.huberized_hinge import HuberizedHinge
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.adversary import kernel_pair
from dperm_cli.mechanisms.combinators.auto import AMONG
from dperm_cli.mechanisms.compression.standard_projection import PILOTS
from dperm_cli.privacy import channels
from dperm_cli.privacy.accounting.hidden_state import bound_last_iterate
from dperm_cli.privacy.accounting.shuffling import amplify
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, Regulariser, bare_spec
from dperm_cli.sets import make_ball

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "proofs").glob("*.md"))
LABELS = ("Released", "Neighbours", "Theorem", "One number")
SUMMARY = re.compile(
    r"# [^\n]+\n\n\*\*In short\.\*\*\n\n"
    + "".join(rf"- \*{label}:\* (?P<{label.replace(' ', '_')}>(?:[^\n]+\n)+?)" for label in LABELS)
    + r"\n"
)
PURE, BOTH, LOCAL = Budget(1.0, 0.0), Budget(1.0, 1e-6), Budget(2.0, 0.0)
SMOOTH = {"smoothness": 0.25}
RIDGE = {"regulariser": Regulariser(0.1)}


def plan(name: str, budget: Budget, spec=None, keys: dict | None = None, **facts):
    """A plan for 1000 records, five parameters, the unit ball and Lipschitz constant 1."""
    spec = spec or bare_spec(1000, 1.0, make_ball(1.0, 5), **facts)
    return registry.load("mechanism", name)(**(keys or {})).plan(spec, budget)


def find_moments_scale() -> float:
    data = Data.of_records("toy", "regression", np.eye(3), np.ones(3), 1.0, 1.0, fingerprint="")
    spec = Problem(data, Squared(), make_ball(1.0, 3)).spec()
    return plan("sufficient_statistics", BOTH, spec, {"noise": "gaussian"}).noise_scale


def find_rounding_cost() -> float:
    """The most that the huberized hinge of width 0.2 is above the hinge."""
    z = np.linspace(-3.0, 3.0, 6001)
    y = np.ones_like(z)
    return float(np.max(HuberizedHinge(width=0.2).value(z, y) - Hinge().value(z, y)))


def find_lower_bound() -> float:
    law = Privacy.of(Budget(1.0, 4.81e-6, "replace_one"), False)
    return find_on_ball(law, 456, 30, 1.0, 10.0).value


def select_steps() -> int:
    spec = bare_spec(9, 1.0, make_ball(10.0, 2))
    keys = {"candidates": {"constraint.radius": [1.0, 10.0]}}
    return plan("private_selection", BOTH, spec, keys).steps


def bound_phases() -> float:
    spec = bare_spec(1000, 1.0, make_ball(1.0, 5), **SMOOTH)
    mechanism = registry.load("mechanism", "phased_erm")()
    return mechanism.predict_risk(spec, mechanism.plan(spec, BOTH))


def count_sgd_steps() -> int:
    mechanism = registry.load("mechanism", "noisy_sgd")(batch=10)
    return mechanism.events(bare_spec(1000, 1.0, make_ball(1.0, 5)), 1400.0, BOTH)[0].count


def kernel_spec():
    return kernel_pair()[0].spec()


# What a page's number is; the others stand again in their pages, where other tests hold them.
NUMBERS = {
    "approximate_minima_perturbation": lambda: (
        plan("approximate_minima_perturbation", PURE, **SMOOTH).noise_scale
    ),
    "auto": lambda: len(AMONG),
    "exponential": lambda: (
        plan("exponential", PURE, bare_spec(1000, 1.0, make_ball(1.0, 1))).noise_scale
    ),
    "frank_wolfe": lambda: plan("frank_wolfe", BOTH, **SMOOTH).noise_scale,
    "high_probability": lambda: plan("high_probability", BOTH, keys={"rho": 0.1}).settings["runs"],
    "huberized": find_rounding_cost,
    "kernel_non_interactive": lambda: (
        plan("kernel_non_interactive", PURE, kernel_spec(), {"steps": 4}).noise_scale
    ),
    "kernel_release": lambda: plan("kernel_release", BOTH, kernel_spec()).noise_scale,
    "kernel_semi_interactive": lambda: (
        plan("kernel_semi_interactive", PURE, kernel_spec()).noise_scale
    ),
    "local_mirror_descent": lambda: plan("local_mirror_descent", LOCAL).settings["multiplier"],
    "local_sgd": lambda: plan("local_sgd", LOCAL).settings["multiplier"],
    "localization": lambda: plan("localization", BOTH, **RIDGE).settings["radius"],
    "mirror_descent": lambda: plan("mirror_descent", BOTH).noise_scale,
    "newton": lambda: plan("newton", BOTH, **SMOOTH).noise_scale,
    "noisy_gd": lambda: plan("noisy_gd", BOTH).noise_scale,
    "noisy_sgd": count_sgd_steps,
    "non_private": lambda: plan("non_private", BOTH).settings["gap"],
    "objective_perturbation": lambda: plan("objective_perturbation", PURE, **SMOOTH).noise_scale,
    "one_pass_sgd": lambda: plan("one_pass_sgd", PURE).settings["batches"],
    "output_perturbation": lambda: plan("output_perturbation", PURE, **RIDGE).noise_scale,
    "phased_erm": bound_phases,
    "private_selection": select_steps,
    "projected": lambda: registry.load("mechanism", "projected")().clip,
    "random_features": lambda: plan("random_features", PURE, **SMOOTH).noise_scale,
    "regularized_exponential": lambda: hidden_directions.find_mu(1.0, 1e-6),
    "standard_projection": lambda: PILOTS,
    "sufficient_statistics": find_moments_scale,
    "_accounting": lambda: (
        dperm_cli.account([dperm_cli.Gaussian(5.0, 1.0, gap=1.0)], delta=1e-6).epsilon
    ),
    "_cap_channels": lambda: channels.by_epsilon("privunit", 10, 4.0).second_moment - 1.0,
    "_hidden_state": lambda: bound_last_iterate(1000, 0.01, 2.0, 100.0, 1.0),
    "_shuffling": lambda: amplify(1.0, 10_000, 1e-6),
    "_hidden_directions": find_lower_bound,
    "_jt13": lambda: interactive_error(1.0),
    "_kernels": lambda: 2 * 1.0 / (0.1 * 500),
    "_losses": lambda: Logistic().smoothness,
    "_secure_noise": lambda: 2**8,
    "_secure_selections": lambda: 8 * (30 + 16) * 2.0**-53 * (10 + 10),
    "_upper_bounds": lambda: 2 * 5 * 1.0 * 2.0 / 1.0,
}


def read_number(page: str) -> str:
    found = SUMMARY.match(page)
    assert found, "the summary is missing, or its labels are others"
    (bold,) = re.findall(r"\*\*([^*]+)\*\*", found["One_number"])
    return bold


def find_faults(path: Path) -> list[str]:
    """What is wrong with a page's summary, in words."""
    page = path.read_text()
    match = SUMMARY.match(page)
    if not match:
        return [f"{path.stem}: no summary, or with other labels"]
    found, lines = [], match[0].splitlines()
    if len(lines) > 18 or max(map(len, lines)) > 120:
        found.append(f"{path.stem}: the summary is too long")
    again = path.stem in NUMBERS or path.stem == "_statements"
    if not again and read_number(page) not in page.removeprefix(match[0]):
        found.append(f"{path.stem}: nothing computes the number, and the page has it nowhere else")
    return found


def test_every_page_begins_with_a_summary():
    assert len(PAGES) > 40
    assert [fault for path in PAGES for fault in find_faults(path)] == []


@pytest.mark.parametrize("name", NUMBERS)
def test_its_number_is_computed_again(name):
    (path,) = [path for path in PAGES if path.stem == name]
    told = float(read_number(path.read_text()).replace(",", ""))
    assert told == pytest.approx(NUMBERS[name](), rel=0.01)


def test_the_statements_are_counted():
    (path,) = [path for path in PAGES if path.stem == "_statements"]
    rows = re.findall(r"^\| .* \| (?:explicit|order)\b", path.read_text(), re.MULTILINE)
    assert int(read_number(path.read_text())) == len(rows)


def test_a_page_without_a_summary_is_found():
    page = PAGES[0].read_text()
    assert SUMMARY.match(page)
    for word in ("**In short.**", *(f"*{label}:*" for label in LABELS)):
        assert not SUMMARY.match(page.replace(word, "", 1))
