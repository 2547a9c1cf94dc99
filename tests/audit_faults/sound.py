"""Mechanisms that keep their claims, with values and noise on a grid."""

from __future__ import annotations

import math

import numpy as np

from tests.audit_faults.subjects import Subject, clip, draw_laplace, minimise_logistic, to_grid


def noisy_sum(X, rng):
    """A clipped sum."""
    return clip(X).sum() + draw_laplace(rng, 2.0)


def noisy_sum_of_a_population(X, rng):
    """The same where a record may be missing."""
    return clip(X).sum() + draw_laplace(rng, 1.0)


def noisy_mean(X, rng):
    """A mean over a public number of records."""
    return (clip(X).sum() + draw_laplace(rng, 2.0)) / 4.0


def noisy_sums(X, rng):
    """One sum for each column, with noise for the l1 distance of two rows of norm 1."""
    return clip(X).sum(axis=0) + draw_laplace(rng, 2.0 * math.sqrt(2.0) + 0.01, 2)


def split_budget(X, rng):
    """Two answers with half of epsilon each."""
    rows = clip(X)
    return {"sum": rows.sum() + draw_laplace(rng, 4.0),
            "sizes": np.abs(rows).sum() + draw_laplace(rng, 2.0)}  # fmt: skip


def histogram(X, y, rng):
    """A bar for every label that there may be."""
    return [float((y == v).sum()) + draw_laplace(rng, 1.0) for v in (-1.0, 1.0)]


def label_count(X, y, rng):
    """How many records have a label."""
    return int((y > 0).sum()) + int(
        rng.geometric(1 - math.exp(-1.0)) - rng.geometric(1 - math.exp(-1.0))
    )


def randomised_response(X, y, rng):
    """Every record's own label, true with odds e."""
    return np.where(rng.random(len(y)) < math.e / (1.0 + math.e), y, -y)


def four_answers(X, y, rng):
    """Randomised response of four answers."""
    true = rng.random(len(y)) < math.e / (3.0 + math.e)
    return np.where(true, y, (y + rng.integers(1, 4, size=len(y))) % 4)


def exponential_choice(X, rng):
    """The exponential mechanism."""
    scores = np.maximum(clip(X), 0.0).sum(axis=0)
    weights = np.exp((scores - scores.max()) / 2.0)
    return int(rng.choice(len(scores), p=weights / weights.sum()))


def noisy_maximum(X, rng):
    """The place of the largest noisy score."""
    scores = np.maximum(clip(X), 0.0).sum(axis=0)
    return int(np.argmax(scores + rng.laplace(scale=2.0, size=len(scores))))


def sparse_vector(X, rng):
    """Which of two sums is the first above a threshold."""
    threshold = rng.laplace(scale=4.0)  # a row moves a sum by 2 at most
    for place, answer in enumerate(clip(X).sum(axis=0)):
        if answer + rng.laplace(scale=8.0) > threshold:
            return place
    return -1


def gaussian_sum(X, rng):
    """Gaussian noise that is enough for delta 1e-5."""
    return clip(X).sum() + to_grid(rng.normal(scale=2.0 * math.sqrt(2.0 * math.log(1.25e5))))


def objective_perturbation(X, y, rng):
    """Objective perturbation with the square of the norm in its Jacobian."""
    norm, ridge = 2.0, 8.0
    x = np.clip(X[:, 0], -norm, norm)
    left = 1.0 - math.log1p(0.25 * norm**2 / ridge)
    return minimise_logistic(x, y, ridge, rng.laplace(scale=2.0 * norm / left))


def random_batch(X, rng):
    """A batch drawn at random, of half the records."""
    amplified = math.log1p(2.0 * math.expm1(1.0))
    chosen = rng.permutation(len(X))[: len(X) // 2]
    return clip(X)[chosen].sum() + draw_laplace(rng, 2.0 / amplified)


def clipped_gradients(X, rng):
    """Clips each gradient, and not their mean."""
    return clip(8.0 * X).sum(axis=0) + draw_laplace(rng, 2.0, X.shape[1])


def constant(X):
    """Looks at nothing."""
    return 3.0


def sign_of_the_sum(X, rng):
    """Post-processing of a private sum, as a word."""
    return "positive" if clip(X).sum() + rng.laplace(scale=2.0) > 0 else "negative"


def private_median(X, rng):
    """The exponential mechanism on nine points; the score is how far the ranks are apart."""
    points, rows = np.linspace(-1, 1, 9), clip(X)[:, 0]
    scores = np.array([-abs(float((rows < t).sum() - (rows > t).sum())) / 2.0 for t in points])
    weights = np.exp((scores - scores.max()) / 2.0)
    return float(rng.choice(points, p=weights / weights.sum()))


def descent_in_three_steps(X, rng):
    """Three noisy steps with a third of epsilon each."""
    point = 0.0
    for _ in range(3):
        total = clip(point - X).sum() + draw_laplace(rng, 6.0)
        point -= 0.25 * total
    return point


def refuses_bad_epsilon(X, rng, epsilon):
    """Noise for the epsilon that it is told, and none for nan."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError("epsilon must be a finite number above 0")
    return clip(X).sum() + draw_laplace(rng, 2.0 / epsilon)


LABELLED = "numeric:p=1,norm=1,labels=-1|1,n=4"
SOUND = [
    Subject(noisy_sum),
    Subject(noisy_sum_of_a_population, relation="add_remove"),
    Subject(noisy_mean),
    Subject(noisy_sums, records="numeric:p=2,norm=1,n=4"),
    Subject(split_budget),
    Subject(histogram, relation="add_remove", records=LABELLED),
    Subject(label_count, relation="add_remove", records=LABELLED),
    Subject(randomised_response, records=LABELLED),
    Subject(four_answers, records="numeric:p=1,norm=1,labels=0|1|2|3,n=4"),
    Subject(exponential_choice, records="numeric:p=2,norm=1,n=4"),
    Subject(noisy_maximum, records="numeric:p=2,norm=1,n=4"),
    Subject(sparse_vector, records="numeric:p=2,norm=1,n=4"),
    Subject(gaussian_sum, delta=1e-5),
    Subject(objective_perturbation, records="numeric:p=1,norm=2,labels=-1|1,n=4"),
    Subject(random_batch),
    Subject(clipped_gradients),
    Subject(constant),
    Subject(sign_of_the_sum),
    Subject(private_median),
    Subject(descent_in_three_steps),
    Subject(refuses_bad_epsilon),
]
