"""Attacks on the privacy of choices: runs of a selection, copies of noise, what `auto` runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dperm_cli
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial, Poisson
from dperm_cli.privacy.events import (
    Gaussian,
    GaussianMoments,
    NegativeBinomialSelection,
    PoissonSelection,
)
from dperm_cli.privacy.gate import Gate
from dperm_cli.runner.audits import neighbour_runs
from dperm_cli.runner.cells import prepared_cell, run_cell
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from tests.breaks._utility import make_binary, make_regression, npz_words

RELATION = "replace_one"
NOISE = Gaussian(2.0, 1.0)


def open_gate(*events, trials=1):
    seeds = [seed_sequence(0, "break", trial) for trial in range(trials)]
    return Gate(seeds, plan=(events, RELATION))


# --- the gate ----------------------------------------------------------------------------------


def test_the_noise_of_a_step_hides_one_value():
    """Two values under one noise tell their difference; 0.5 was a step of its own, of noise 0."""
    stream = open_gate(NOISE).stream(NOISE, 3)
    stream.add(np.zeros((1, 3)), 0)
    for step in (0, 0.0, False, 0.5, math.nan):
        with pytest.raises(PrivacyError):
            stream.add(np.ones((1, 3)), step)


@pytest.mark.parametrize("number", [-1, -0.5, 0.5, math.nan])
def test_a_copy_of_noise_is_never_the_noise_itself(number):
    stream = open_gate(NOISE).stream(NOISE, 3)
    stream.add(np.zeros((1, 3)), 0)
    with pytest.raises(PrivacyError, match="copy"):
        stream.draw_copy(number)


def test_no_gate_opens_a_run_of_a_selection_that_it_was_not_asked_for():
    keys = np.array([[1, 2]], np.uint64)
    unpaid = PoissonSelection([[Gaussian(1e-9, 1.0)]], 3.0)
    paid = PoissonSelection([[NOISE]], 3.0)
    gate = open_gate(paid)
    for event in (unpaid, paid):
        with pytest.raises(PrivacyError, match="not asked for"):
            gate.open_run(keys, 0, event, 0)
    gate.stream(paid, 1)
    with pytest.raises(PrivacyError, match="not asked for"):
        gate.open_run(keys, 0, unpaid, 0)


def test_the_number_of_runs_cannot_be_raised():
    event = PoissonSelection([[NOISE]], 3.0)
    stream = open_gate(event, trials=5).stream(event, 1)
    with pytest.raises(ValueError, match="read-only"):
        stream.numbers[:] = 50


# --- laws as drawn -----------------------------------------------------------------------------


@pytest.mark.parametrize("law", [
    Poisson(1.0), Poisson(100.0), Poisson(740.0), Poisson(1000.0), NegativeBinomial(10.0, 0.01),
    NegativeBinomial(5.0, 0.01), NegativeBinomial(-0.5, 0.01), NegativeBinomial(0.0, 0.01),
], ids=repr)  # fmt: skip
def test_the_number_of_runs_has_its_law_for_any_mean(law):
    """A Poisson mean above 745 gave that many runs for certain; eta 10 with many runs gave one."""
    uniforms = (np.arange(2000) + 0.5) / 2000.0
    numbers = np.array([law.find_number(float(one)) for one in uniforms])
    assert np.all(chance_up_to(law, numbers) >= uniforms - 1e-9)
    above = numbers > numbers.min()
    assert np.all(chance_up_to(law, numbers[above] - 1) <= uniforms[above] + 1e-9)


def chance_up_to(law, numbers):
    """P(K <= k), from the chances as the paper states them."""
    if isinstance(law, Poisson):
        return stats.poisson(law.mean).cdf(numbers)
    k = np.arange(1, numbers.max() + 1)
    first = math.log1p(-law.gamma) - math.log(
        math.log(1.0 / law.gamma) if law.eta == 0.0 else (law.gamma**-law.eta - 1.0) / law.eta
    )
    steps = np.log1p(-law.gamma) + np.log((k[:-1] + law.eta) / (k[:-1] + 1.0))
    total = np.cumsum(np.exp(first + np.append(0.0, np.cumsum(steps))))
    return np.append(0.0, total)[numbers]


@pytest.mark.parametrize("event", [
    PoissonSelection([[NOISE, Gaussian(3.0, 0.5)]] * 3, 3.0),
    NegativeBinomialSelection([[NOISE, Gaussian(3.0, 0.5)]] * 3, 0.0, 0.2),
], ids=["poisson", "logarithmic"])  # fmt: skip
def test_runs_candidates_and_scores_have_the_laws_that_are_accounted_for(event):
    """2000 trials: a chi-square of K and of the candidates, Kolmogorov's test of both noises."""
    trials = 2000
    stream = open_gate(event, trials=trials).stream(event, 1)
    counts = np.bincount(np.minimum(stream.numbers, 8), minlength=9)
    law = stats.poisson(3.0) if isinstance(event.runs, Poisson) else stats.logser(0.8)
    chances = np.append(law.pmf(np.arange(8)), law.sf(7))
    seen = chances > 0.0
    assert counts[~seen].sum() == 0
    assert stats.chisquare(counts[seen], trials * chances[seen]).pvalue > 1e-4
    candidates, noise, scores = [], [], []
    for run in range(2):
        for candidate, who, gate in stream.open_runs(run):
            candidates += [candidate] * len(who)
            for kept, one in zip((noise, scores), event.candidates[candidate], strict=True):
                kept += list(gate.stream(one, 1).add(np.zeros((len(who), 1)), 0)[:, 0])
    assert stats.chisquare(np.bincount(candidates)).pvalue > 1e-4
    assert stats.kstest(noise, stats.norm(0.0, 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(scores, stats.norm(0.0, 3.0).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(noise, scores)[0, 1]) < 5.0 / math.sqrt(len(noise))


def test_the_halves_of_a_release_are_independent_and_have_twice_its_variance():
    trials, event = 4000, GaussianMoments(2.0, 1.0, gap=1.5)
    stream = open_gate(event, trials=trials).stream(event, 5)
    released = stream.add(np.zeros((trials, 5)), 0)
    copies = [stream.draw_copy(number) for number in range(2)]
    whole = np.hstack([released + copies[0], released - copies[0], copies[1]])
    found, expected = np.cov(whole.T), np.diag([8.0] * 10 + [4.0] * 5)
    assert np.max(np.abs(found - expected)) < 6.0 * 8.0 / math.sqrt(trials)


def log_delta_of_best(law, mu, epsilon):
    """ln delta of the best of K runs whose score is their output, by their densities."""
    t, step = np.linspace(-45.0, 45.0 + mu, 400_001, retstep=True)

    def log_density(shift):
        rest = stats.norm.sf(t - shift)
        if isinstance(law, Poisson):
            return stats.norm.logpdf(t - shift) + math.log(law.mean) - law.mean * rest
        whole = math.log(1.0 / law.gamma) if law.eta == 0.0 else (
            (law.gamma**-law.eta - 1.0) / law.eta)  # fmt: skip
        slope = -(law.eta + 1.0) * np.log(law.gamma + (1.0 - law.gamma) * rest)
        return stats.norm.logpdf(t - shift) + slope + math.log((1.0 - law.gamma) / whole)

    found, pair = -math.inf, (log_density(mu), log_density(0.0))
    for p, q in (pair, pair[::-1]):
        likelier = p > q + epsilon
        if np.any(likelier):
            rest = -np.expm1(q[likelier] + epsilon - p[likelier])
            terms = p[likelier] + np.log(rest)
            found = max(found, float(np.logaddexp.reduce(terms)) + math.log(step))
    return found


@pytest.mark.parametrize("law", [
    Poisson(1.0), Poisson(3.0), NegativeBinomial(0.0, 0.02), NegativeBinomial(-0.9, 1e-3),
    NegativeBinomial(1.0, 0.9999),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize(("epsilon", "delta"), [
    (1e-6, 1e-6), (1e-6, 0.4), (0.1, 0.2), (10.0, 1e-6), (100.0, 0.4), (1.0, 1e-300),
])  # fmt: skip
def test_the_best_of_runs_spends_no_more_than_is_said_at_the_ends_of_budgets(law, epsilon, delta):
    mu = calibrate.selection_mu(law, epsilon, delta)
    assert log_delta_of_best(law, mu, epsilon) <= math.log(delta) + 1e-3


# --- auto --------------------------------------------------------------------------------------


def test_two_candidates_of_one_name_are_refused():
    """What was planned was found again by its name: the first of that name ran."""
    among = [{"name": "noisy_gd", "steps": 5}, {"name": "noisy_gd", "steps": 100}]
    with pytest.raises(InputError, match="noisy_gd"):
        Auto(among=among)


def test_a_list_of_candidates_inside_another_mechanism_is_no_sweep():
    words = ["dataset=breast_cancer", "mechanism=high_probability", "mechanism.inner=auto",
             "mechanism.inner.among=[noisy_gd,objective_perturbation]"]  # fmt: skip
    (cell,) = study_plan.plan_study(parse(words)).cells
    assert len(cell.mechanism.inner.candidates) == 2
    swept = [*words[:2], "mechanism.inner=noisy_gd", "mechanism.inner.steps=[5,10]"]
    assert len(study_plan.plan_study(parse(swept)).cells) == 2
    unknown = [*words[:2], "mechanism.inner=nosuch", "mechanism.inner.steps=[5,10]"]
    with pytest.raises(InputError, match=r"mechanism\.inner=nosuch"):
        study_plan.plan_study(parse(unknown))


PLUG_IN = """
from dataclasses import dataclass
import numpy as np
from dperm_cli import Gaussian, Mechanism, Release

@dataclass(frozen=True)
class Mine(Mechanism):
    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def predict_risk(self, spec, plan):
        return 1e-9

    def release(self, view, plan, gate):
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = view.gradient_sum(start)
        LINE
        return Release(view.spec.constraint.project(start - 0.1 * total))
"""
DRAWN = "gate.stream(plan.events[0], view.spec.p).add(total, 0)"
AROUND = {
    "alone": {"mechanism": "mine"},
    "auto": {"mechanism": "auto", "mechanism.among": ["mine"]},
    "auto inside": {"mechanism": "huberized", "loss": "hinge",
                    "mechanism.inner": {"name": "auto", "among": ["mine"]}},
    "high_probability": {"mechanism": "high_probability", "mechanism.inner": "mine"},
    "private_selection": {"mechanism": "private_selection", "mechanism.inner": "mine"},
    "localization": {"mechanism": "localization", "mechanism.inner": "mine", "ridge": 0.1},
}  # fmt: skip


def run_plug_in(folder, line, keys):
    """Status and reason of a cell with this line in the plug-in's release."""
    path = folder / "mine.py"
    path.write_text(PLUG_IN.replace("LINE", line))
    study = dperm_cli.run(plugins=[path], out=folder / "study", dataset="breast_cancer", trials=3,
                          progress=False, **keys)  # fmt: skip
    (row,) = study.frame().to_dict("records")
    return row["status"], row["reason"]


@pytest.mark.parametrize("around", AROUND)
def test_a_release_without_noise_is_none_whatever_stands_around_it(around, tmp_path):
    """What draws for itself, as a choice among runs does, hid that the runs had no noise."""
    status, reason = run_plug_in(tmp_path, "pass", AROUND[around])
    assert status == "failed", status
    assert "no noise was drawn" in reason


@pytest.mark.parametrize("around", AROUND)
def test_a_release_with_its_noise_is_one(around, tmp_path):
    assert run_plug_in(tmp_path, f"total = {DRAWN}", AROUND[around])[0] == "ok"


@pytest.mark.parametrize(("line", "words"), [
    ("return Release(start + 0j * total)", "real numbers"),
    (f"return Release(1e3 * {DRAWN})", "outside the set"),
])  # fmt: skip
def test_what_auto_runs_is_held_to_what_it_is(line, words, tmp_path):
    line = line if DRAWN in line else f"{DRAWN}; {line}"
    status, reason = run_plug_in(tmp_path, line, AROUND["auto"])
    assert status == "failed"
    assert words in reason


@pytest.mark.parametrize("mechanism", [
    ["mechanism=one_pass_sgd"],
    ["mechanism=auto", "mechanism.among=[one_pass_sgd]"],
    ["mechanism=high_probability", "mechanism.inner={name: auto, among: [one_pass_sgd]}"],
    ["mechanism=private_selection", "mechanism.inner={name: auto, among: [one_pass_sgd]}"],
], ids=" ".join)  # fmt: skip
def test_other_batches_get_other_noise(mechanism, tmp_path):
    """Under add_remove a record's batch is named by the record as it was read: of two files whose
    rows are shortened to the same, one noise would cancel."""
    rng, found = np.random.default_rng(0), []
    x = rng.standard_normal((40, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(x[:, 0] < 0.0, -1.0, 1.0)
    for name, longer in (("one", 2.0), ("other", 4.0)):  # powers of 2: rows are equal bit by bit
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "a.npz", x=longer * x, y=y)
        words = ["dataset=npz", f"dataset.path={tmp_path / name / 'a.npz'}", "dataset.rows=unit",
                 "dataset.test_fraction=0", "dataset.intercept=false",
                 "privacy.relation=add_remove", "privacy.population=40", *mechanism]  # fmt: skip
        (cell,) = study_plan.plan_study(parse(words)).cells
        prepared = prepared_cell.prepare(cell, cell.dataset.load())
        budget, _ = prepared_cell.find_budget(prepared)
        plan, grid = run_cell.plan_of(prepared, budget)
        gate = run_cell.open_release(prepared, plan, budget, grid)[2]
        found.append((prepared.data, gate.keys()))
    (first, keys), (second, others) = found
    np.testing.assert_array_equal(first.x, second.x)
    assert not np.array_equal(first.names, second.names)
    assert not np.array_equal(keys, others)


# --- neighbours, end to end --------------------------------------------------------------------

RUNS = {
    "auto, its radius": ("regression", ["mechanism=auto", "constraint.radius=auto"]),
    "free validation": ("regression", ["mechanism=sufficient_statistics",
                        "tune={constraint.radius: [1e-12, 1, 1e12], ridge: [0, 0.1]}"]),
    "secure": ("binary", ["mechanism=auto", "noise=secure"]),
    "rounded loss": ("binary", ["mechanism=private_selection", "mechanism.inner=huberized",
                     "loss=hinge", "tune={constraint.radius: [0.1, 10]}"]),
    "auto, chosen among": ("binary", ["mechanism=private_selection", "mechanism.inner=auto",
                           "tune={ridge: [0.01, 0.1]}"]),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("relation", [RELATION, "add_remove"])
def test_neighbours_differ_in_what_is_released_alone(relation, name, tmp_path):
    task, words = RUNS[name]
    x, y = make_binary(30, 3) if task == "binary" else make_regression(30, 3)
    other = (np.delete(x, 3, axis=0), np.delete(y, 3))
    declared = ["privacy.population=100"]
    if relation == RELATION:
        changed = np.arange(30) == 3
        other, declared = (np.where(changed[:, None], -x, x), np.where(changed, -y, y)), []
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder, records in zip(folders, ((x, y), other), strict=True):
        folder.mkdir()
        Records(*records).write(folder / "records.npz")
    words = [*npz_words("records.npz", task), "trials=2", f"privacy.relation={relation}",
             *declared, *words]  # fmt: skip
    fault, one, second = neighbour_runs.run_on_both(words, *folders, cache=tmp_path / "cache")
    assert fault is None
    assert one.status == second.status == "ok"
