"""Worked examples of counts: shuffled answers, and bounds and words found with privacy."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from dperm_cli.privacy.accounting.shuffling import amplify, delta_of, find_local_epsilon
from dperm_cli.privacy.preparation import plan_preparation
from tests.theory.worked_examples.pages import Worked, agree, works_out


def find_hockey_stick(local: float, users: int, epsilon: float) -> float:
    """delta between the two laws of Theorem 1, by all outcomes of the counts."""
    alpha, q, total = math.exp(local) / (math.exp(local) + 1), math.exp(-local), 0.0
    for clones in range(users):
        first = np.arange(clones + 2)
        same, moved = (binom.pmf(first - step, clones, 0.5) for step in (1, 0))
        one = alpha * same + (1 - alpha) * moved
        other = (1 - alpha) * same + alpha * moved
        more = np.maximum(one - math.exp(epsilon) * other, 0.0)
        total += float(binom.pmf(clones, users - 1, q) * np.sum(more))
    return total


@works_out("_shuffling")
def shuffle_three_answers() -> Worked:
    clones = [float(binom.pmf(c, 2, math.exp(-1.0))) for c in range(3)]
    alone = (math.e - math.exp(0.5)) / (math.e + 1)
    share = math.expm1(1.5) / (math.expm1(1.0) * (1 + math.exp(0.5)))
    halves = [alone / 2**c for c in range(3)]
    delta = sum(w * half for w, half in zip(clones, halves, strict=True))
    agree(find_hockey_stick(1.0, 3, 0.5), delta)
    agree(delta, delta_of(1.0, 3, 0.5))
    less = [amplify(1.0, n, 1e-6) for n in (1000, 10_000, 1_000_000)]
    agree(find_hockey_stick(1.0, 1000, less[0]), 1e-6, 1e-5)
    local = [find_local_epsilon(1.0, n**-2.0, n) for n in (1000, 10_000, 1_000_000)]
    return Worked(
        (1.0, 3, 0.5, 1e-6, 1000, 10_000, 1_000_000, 0),
        (*clones, alone, share, *halves, delta, *less, *local),
    )


@works_out("_preparation")
def find_bounds_and_words() -> Worked:
    plan = plan_preparation(2, 1, 1, 0.5, 1e-6, "replace_one")
    scale = agree(2 * 3 / 0.5, plan.event.scale)
    word = agree(1 + 1 + scale * math.log(1 / 2e-6), plan.word_threshold)
    bins = 2 * 64 * 2
    taken = agree(0.5 + scale * math.log(bins / 0.02), plan.bin_threshold)
    return Worked((0.5, 1e-6, 2e-6, 64, 0.02), (scale, word, float(bins), taken))
