"""The checks that catch mutants, as functions that raise when something is wrong.

Most are tests of this suite, called with the arguments that matter here.
"""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np

from tests.mutants import checks_files, checks_paths

BOTH = ("replace_one", "add_remove")


def attack(name, epsilon=10.0):
    """At epsilon 10 the bounds are tight, so that 10,000 runs a side are enough; where only counts
    of outcomes speak, they reach to about 5."""
    from dperm_cli.audit import error_rates, statistical_attack
    from dperm_cli.core import registry
    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.budget import Budget

    for relation in BOTH:
        budget = Budget(epsilon, 1e-5, relation)
        adversary = registry.load("mechanism", name)().adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
        how = error_rates.make_argument(adversary.kind, plan.events, epsilon, 1e-5, relation)
        leaf = seed_sequence(1, "mutants", relation)
        bound = statistical_attack.lower_bound(adversary, plan, how, 20_000, leaf)
        assert bound <= epsilon, f"epsilon is at least {bound:.4g}"


def replay(name):
    from dperm_cli.audit.random_neighbours import search
    from dperm_cli.audit.replay import replay as one
    from dperm_cli.core import registry
    from dperm_cli.privacy.budget import Budget

    for relation in BOTH:
        budget = Budget(1.0, 1e-5, relation)
        mechanism = registry.load("mechanism", name)()
        adversary = mechanism.adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
        found = one(adversary.mechanism, plan, adversary.first, adversary.second)
        assert found.private, found.faults
        found = search((mechanism, adversary.mechanism), budget, 24)
        assert found.private, found.faults


def exact_loss():
    from dperm_cli.audit import exact_loss as exact
    from dperm_cli.core import registry
    from dperm_cli.privacy.budget import Budget

    budget = Budget(1.0, 1e-5)
    adversary = registry.load("mechanism", "noisy_gd")().adversary(budget)
    plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    ratio = exact.noise_loss(plan.events[0], 1.0, 1e-5, "replace_one")
    assert exact.POWER <= ratio <= 1.0 + exact.WITHIN, ratio


def public_facts():
    """Neighbours share the facts that mechanisms plan with."""
    from dperm_cli.audit.random_neighbours import make_pairs

    for relation in BOTH:
        for first, second, _ in make_pairs(relation, 48, 0):
            assert first.spec() == second.spec()


def population():
    from dperm_cli.problem.data import pad_with_zeros
    from tests.conftest import small_problem

    data = small_problem(n=8).data
    fewer = data.take(np.arange(7))
    assert pad_with_zeros(data, 10).n == pad_with_zeros(fewer, 10).n == 10


def guarantee():
    from tests.contract import test_mechanisms as contract

    for name in ("noisy_gd", "noisy_sgd"):
        for epsilon in (0.5, 1.0, 3.0):
            contract.guaranteed(name, "logistic", epsilon)


def gate():
    from tests.contract import test_mechanisms as contract

    contract.test_the_gate_holds_a_mechanism_to_its_plan("noisy_gd")


def objective_loss():
    """The worst records that a search finds stay within epsilon, curvature or not."""
    from tests.audit import test_objective_loss as ours

    ours.test_the_largest_log_ratio_is_within_epsilon("huberized_hinge", 1, None)
    ours.test_long_rows_are_within_epsilon_too()


def certificates():
    """What is found of a minimiser is what the noise is made for, or nothing is released."""
    import pytest

    from dperm_cli.core.errors import PrivacyError
    from dperm_cli.mechanisms.shared import noisy_minimiser
    from dperm_cli.views import central
    from tests.conftest import small_problem

    problem = small_problem(ridge=0.5)
    view = central.CentralView(problem)
    theta, solve, locate = np.zeros(3), central.optimum.solve, central.perturbed_minimiser.locate
    central.optimum.solve = lambda *_, **__: SimpleNamespace(theta=theta, gap=1.0, lower=0.0)
    central.perturbed_minimiser.locate = lambda *_: (np.zeros((1, 3)), np.ones(1))
    try:
        assert view.minimiser(2.0) is theta
        assert view.find_perturbed_minimisers(np.ones((1, 3)), 1.0, 2.0).shape == (1, 3)
        with pytest.raises(PrivacyError, match="gap"):
            view.minimiser(0.5)
        with pytest.raises(PrivacyError, match="needed"):
            view.find_perturbed_minimisers(np.ones((1, 3)), 1.0, 0.5)
    finally:
        central.optimum.solve, central.perturbed_minimiser.locate = solve, locate
    spec = problem.spec()
    modulus, found = spec.n * spec.strong_convexity, noisy_minimiser.stability(spec)
    error = (2.0 * found.certificate / modulus) ** 0.5
    assert found.gap >= spec.gradient_gap / modulus + 2.0 * error * (1.0 - 1e-9)
    assert found.record >= spec.lipschitz / modulus + 2.0 * error * (1.0 - 1e-9)


def compiled_loop():
    from tests.mechanisms import test_noisy_sgd as ours

    ours.test_compiled_loop_is_bitwise_the_plain_loop("hinge", "l2_ball", "last")
    ours.test_batches_are_bitwise_the_plain_loop("poisson", 4)


def independence():
    """No two of steps, streams and trials share noise: 1e-6 for all correlations together."""
    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.events import Gaussian
    from dperm_cli.privacy.gate import Gate

    trials = 400
    gate = Gate([seed_sequence(3, "mutants", trial) for trial in range(trials)])
    zero = np.zeros((trials, 8))
    streams = [gate.stream(Gaussian(1.0, 0.5, 2), 8) for _ in range(2)]
    draws = [stream.add(zero, step) for stream in streams for step in range(2)]
    draws.append(np.roll(draws[0], 1, axis=0))  # against the trial before
    for one, two in combinations(draws, 2):
        # 10 pairs; 5.3 standard errors
        assert abs(np.mean(one * two)) < 5.3 / np.sqrt(zero.size)


def noise_law():
    from tests.statistical import test_noise

    test_noise.test_noisy_gd_adds_sigma()


def batches():
    """Pairs of records are drawn alike often, afresh at every step: chi-square, level 1e-6."""
    from scipy.stats import chi2

    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.events import SampledGaussian
    from dperm_cli.privacy.gate import Gate

    trials, steps, n = 200, 4, 5
    gate = Gate([seed_sequence(4, "mutants", trial) for trial in range(trials)])
    stream = gate.stream(SampledGaussian(1.0, 1.0, 2, n, "fixed", steps), 1)
    pairs = {pair: i for i, pair in enumerate(combinations(range(n), 2))}
    seen = np.array(
        [[pairs.get(tuple(sorted(stream.draw(k, t))), -1) for t in range(steps)]
         for k in range(trials)]
    )  # fmt: skip
    assert np.all(seen >= 0), "a record twice in a batch"
    cells, limit = len(pairs), chi2.isf(1e-6 / (2 * steps), len(pairs) - 1)
    counts = [np.bincount(seen[:, t], minlength=cells) for t in range(steps)]
    counts += [np.bincount((seen[:, t] - seen[:, 0]) % cells, minlength=cells)
               for t in range(1, steps)]  # fmt: skip
    for count in counts:
        assert np.sum((count - trials / cells) ** 2) * cells / trials < limit


def budget():
    from dperm_cli.privacy.budget import Budget, Guarantee

    asked = Budget(1.0, 1e-5)
    good = Guarantee("approx", 1.0, 1e-5, "replace_one", "test")
    assert good.within(asked)
    assert not good.within(Budget(1.0, 0.0))
    assert not good.within(Budget(1.0, 1e-5, "add_remove"))
    for epsilon in (float("nan"), 1.1):
        assert not Guarantee("approx", epsilon, 1e-5, "replace_one", "test").within(asked)
    assert not Guarantee("approx", 1.0, float("nan"), "replace_one", "test").within(asked)
    assert not Guarantee("approx", 1.0, 0.0, "replace_one", "test").within(Budget(1.0, 0.0))


def inputs():
    from tests.core import test_checks

    for value in (float("nan"), float("inf"), 0.0, -1):
        test_checks.test_positive_refuses(value)


def row_rule():
    from dperm_cli.datasets.shared.row_rules import bound_rows

    rows = np.array([[0.3, 0.4], [1.2, 0.9], [30.0, 40.0]])
    for rule in ("clip", "none", "unit"):
        norms = np.linalg.norm(bound_rows(rows, rule, 1.0), axis=1)
        assert np.all(norms <= 1.0)


def clip():
    """Rows that Phi makes twice too long move the sum by no more than was declared."""
    from dperm_cli.audit.replay import replay as one
    from dperm_cli.core import registry
    from dperm_cli.privacy.budget import Budget

    for relation in BOTH:
        budget = Budget(1.0, 1e-5, relation)
        adversary = registry.load("mechanism", "projected")().adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
        found = one(adversary.mechanism, plan, adversary.first, adversary.second)
        assert found.private, found.faults


def local_channels():
    from dperm_cli.audit.channel_loss import share
    from dperm_cli.privacy.events import Channel
    from tests.mechanisms import test_local_sgd as tests

    for shape in ("l_inf", "l_1", "l_2"):
        assert 0.99 <= share(Channel(0.5, 1, shape, 3)) <= 1.0 + 1e-9
    tests.test_nobody_is_asked_more_often_than_was_accounted_for(1, False)
    tests.test_epsilon_is_shared_among_answers("l_inf", 7)
    tests.test_the_gate_wants_the_channel_of_the_plan()
    tests.test_information_alone_gives_a_channel_and_an_epsilon("l_inf")


def noise_laws():
    from dperm_cli.mechanisms import Localization, ObjectivePerturbation, OutputPerturbation
    from tests.mechanisms import test_noise_law as ours

    ours.test_the_rule_of_one_release()
    ours.test_one_release_crosses_where_the_scales_say(OutputPerturbation(), (1.0, 1e-6))
    ours.test_an_objective_crosses_where_its_gaussian_form_says((1.0, 1e-6), "replace_one")
    ours.test_auto_takes_the_smaller_noise_after_each_split(ObjectivePerturbation, 4)
    ours.test_an_inner_mechanism_takes_the_smaller_after_the_split(Localization, 12)
    ours.test_a_gamma_norm_spends_no_delta(OutputPerturbation("gamma"))


CHECKS = (
    {
        "noise laws": noise_laws,
        "local channels": local_channels,
        "attack noisy_gd": lambda: attack("noisy_gd"),
        "attack noisy_sgd": lambda: attack("noisy_sgd"),
        "replay noisy_gd": lambda: replay("noisy_gd"),
        "replay noisy_sgd": lambda: replay("noisy_sgd"),
        "attack exponential": lambda: attack("exponential"),
        "attack objective_perturbation": lambda: attack("objective_perturbation"),
        "replay exponential": lambda: replay("exponential"),
        "objective loss": objective_loss,
        "certificates": certificates,
        "clip": clip,
        "exact loss": exact_loss,
        "public facts": public_facts,
        "population": population,
        "guarantee": guarantee,
        "gate": gate,
        "compiled loop": compiled_loop,
        "independence": independence,
        "noise law": noise_law,
        "batches": batches,
        "budget": budget,
        "inputs": inputs,
        "row rule": row_rule,
    }
    | checks_paths.CHECKS
    | checks_files.CHECKS
)
