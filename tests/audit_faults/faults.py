"""Mechanisms with a fault each. ``source`` says where it was found, or ``constructed``."""

from __future__ import annotations

import math
import warnings

import numpy as np

from tests.audit_faults.subjects import Subject, clip, draw_laplace, minimise_logistic, to_grid


def wrong_jacobian_power(X, y, rng):
    """Objective perturbation that takes the curvature for linear in the norm of a row."""
    norm, ridge = 100.0, 400.0
    left = 0.5 - math.log1p(0.25 * norm / ridge)  # the curvature is 0.25 norm^2
    return minimise_logistic(X[:, 0], y, ridge, rng.laplace(scale=2.0 * norm / left))


def intercept_outside_the_norm(X, y, rng):
    """Noise for the norm of a row without the 1 that stands for the intercept."""
    rows = np.column_stack([clip(X, 0.125), np.ones(len(X))])
    total = (rows * np.sign(y)[:, None]).sum(axis=0)
    return total + draw_laplace(rng, 2 * 0.125, 2)


def nan_epsilon(X, rng, epsilon):
    """Neither ``epsilon < 0`` nor ``epsilon == 0`` is true of nan."""
    if epsilon < 0 or epsilon == 0:
        raise ValueError("epsilon must be positive")
    scale = 2.0 / epsilon if epsilon > 0 else 0.0
    return clip(X).sum() + draw_laplace(rng, scale)


def noise_reused(X, rng):
    """One draw for two answers: their difference has no noise."""
    noise = draw_laplace(rng, 8.0)
    return [clip(X).sum() + noise, np.abs(clip(X)).sum() + noise]


def budget_not_split(X, rng):
    """Three answers, each with the whole epsilon."""
    rows = clip(X)
    answers = [rows.sum(), (rows > 0).sum() * 2.0, (rows < 0).sum() * 2.0]
    return [answer + draw_laplace(rng, 2.0) for answer in answers]


def batch_in_order(X, rng):
    """The newest quarter of the records, accounted as a batch that was drawn at random."""
    amplified = math.log1p(4.0 * math.expm1(1.0))
    return clip(X[-len(X) // 4 :]).sum() + draw_laplace(rng, 2.0 / amplified)


def laplace_low_bits(X, rng):
    """Noise of a floating-point logarithm, added in floating point."""
    return np.clip(X, -1, 1).sum() + rng.laplace(scale=2.0)


def bounds_from_the_data(X, rng):
    """The range of the records at hand, for clipping and for the noise."""
    low, high = float(X.min()), float(X.max())
    return to_grid(X.mean()) + draw_laplace(rng, (high - low) / len(X))


def stop_on_the_loss(X, rng):
    """Noisy steps until the exact loss is small: how many there are is no private number."""
    point, path = 0.0, []
    for _ in range(6):
        point -= 0.5 * (point - clip(X).mean()) + draw_laplace(rng, 12.0 / len(X))
        path.append(point)
        if float(np.mean((X - point) ** 2)) < 1.0:
            break
    return path


def categories_that_occur(X, y, rng):
    """A histogram that has no bar where there is no record."""
    return {str(v): float((y == v).sum()) + draw_laplace(rng, 2.0) for v in np.unique(y)}


def one_class_fails(X, y, rng):
    """An error where the labels are all equal, and none on the neighbour."""
    if len(np.unique(y)) < 2:
        raise ValueError("this solver needs samples of at least 2 classes")
    return clip(X).sum() + draw_laplace(rng, 2.0)


def warning_shows_a_record(X, rng):
    """The largest value in a warning."""
    warnings.warn(
        f"the largest row has norm {np.abs(X).max():.3f}, total {X.sum():.3f}", stacklevel=1
    )
    return clip(X).sum() + draw_laplace(rng, 2.0)


def fixed_seed(X):
    """The same noise in every run."""
    return clip(X).sum() + draw_laplace(np.random.default_rng(0), 2.0)


def seed_of_one_byte(X, rng):
    """256 different noises."""
    own = np.random.default_rng(int(rng.integers(256)))
    return clip(X).sum() * math.pi + own.laplace(scale=2.0 * math.pi)


def sparse_vector_without_noise(X, rng):
    """The threshold is noisy, the answers that are compared with it are not."""
    threshold = rng.laplace(scale=2.0)
    return [bool(answer > threshold) for answer in clip(X).sum(axis=0)]


def exponential_without_two(X, rng):
    """The exponential mechanism without the factor 2 that the sum of the weights costs."""
    scores = np.maximum(clip(X), 0.0).sum(axis=0)
    weights = np.exp(scores - scores.max())
    return int(rng.choice(len(scores), p=weights / weights.sum()))


def gaussian_without_delta(X, rng):
    """sigma = sensitivity / epsilon."""
    return clip(X).sum() + to_grid(rng.normal(scale=2.0))


def normalised_by_the_largest(X, rng):
    """Rows over the largest of them: one record moves all the others."""
    largest = float(np.abs(X).max())
    return clip(X / largest if largest > 0 else X).sum() + draw_laplace(rng, 2.0)


def mean_is_clipped(X, rng):
    """Clips the mean of the gradients, and not each of them."""
    return clip((8.0 * X).mean(axis=0)) + draw_laplace(rng, 2.0 / len(X), X.shape[1])


def odds_of_two_answers(X, y, rng):
    """Randomised response of four answers with the odds of two."""
    true = rng.random(len(y)) < math.e / (1.0 + math.e)
    other = (y + rng.integers(1, 4, size=len(y))) % 4
    return np.where(true, y, other)


def noise_of_the_mean_on_the_sum(X, rng):
    """The sensitivity of the mean, for a sum."""
    return clip(X).sum() + draw_laplace(rng, 2.0 / len(X))


def noise_of_one_sign(X, rng):
    """Exponential noise: nothing below the true sum is ever released."""
    return clip(X).sum() + np.abs(draw_laplace(rng, 2.0))


LABELLED = "numeric:p=1,norm=1,labels=-1|1,n=4"
FAULTS = [
    Subject(wrong_jacobian_power, "diffprivlib 0.6.6, LogisticRegression",
            epsilon=0.5, records="numeric:p=1,norm=100,labels=-1|1,n=4", runs=60_000),
    Subject(intercept_outside_the_norm, "the same family of logistic regressions",
            records="numeric:p=1,norm=0.125,labels=-1|1,n=4"),
    Subject(nan_epsilon, "a check written as epsilon < 0 in published mechanisms"),
    Subject(noise_reused, "constructed"),
    Subject(budget_not_split, "constructed"),
    Subject(batch_in_order, "Chua et al. 2024, How private are DP-SGD implementations?",
            records="numeric:p=1,norm=1,n=8"),
    Subject(laplace_low_bits, "Mironov 2012"),
    Subject(bounds_from_the_data, "preprocessing by the minimum and maximum, in several packages"),
    Subject(stop_on_the_loss, "constructed"),
    Subject(categories_that_occur, "constructed", records=LABELLED, relation="add_remove"),
    Subject(one_class_fails, "classifiers on top of scikit-learn", records=LABELLED),
    Subject(warning_shows_a_record, "constructed"),
    Subject(fixed_seed, "constructed"),
    Subject(seed_of_one_byte, "a published benchmark: 2,000 runs, 256 outputs", runs=40_000),
    Subject(sparse_vector_without_noise, "Lyu, Su and Li 2017, one of the variants",
            records="numeric:p=2,norm=1,n=4"),
    Subject(exponential_without_two, "constructed", records="numeric:p=2,norm=1,n=4"),
    Subject(gaussian_without_delta, "constructed", delta=1e-5, runs=120_000),
    Subject(normalised_by_the_largest, "preprocessing by the largest row", runs=40_000),
    Subject(mean_is_clipped, "constructed"),
    Subject(odds_of_two_answers, "constructed", records="numeric:p=1,norm=1,labels=0|1|2|3,n=4"),
    Subject(noise_of_the_mean_on_the_sum, "constructed"),
    Subject(noise_of_one_sign, "constructed"),
]  # fmt: skip
