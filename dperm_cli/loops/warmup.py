"""Compile every kernel once; the machine code is kept on disk."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.loops import (
    batch_indices,
    box_muller,
    dual_ascent,
    exact_noise,
    exact_scores,
    exponential_noise,
    gaussian_noise,
    gradient_sums,
    grid_walk,
    local_channels,
    local_learning,
    proximal_chain,
    row_maps,
    sgd,
    sparse_rows,
)
from dperm_cli.loops.sealed_noise import SealedAnswers, SealedBatches


def warmup() -> float:
    """Compile (or load) every compiled loop and return the seconds it took."""
    began = time.perf_counter()
    key = np.ones((1, 2), np.uint64)
    gaussian_noise.normals(key, 0, 1, 2)
    for poisson in (False, True):
        batch_indices.batch(key[0], 0, 3, 2, poisson)
    exponential_noise.laplaces(key, 0, 1)
    exponential_noise.gamma_norms(key, 0, 1)
    exponential_noise.wishart_differences(key, 0, 1)
    box_muller.normals(exponential_noise.uniforms(key[0], 0, 0, 2))
    exponential_noise.uniform_of_each(key, 0, 0)
    word, none = np.ones(64, np.uint64), np.empty(0, np.int64)
    exact_noise.fill(True, word, np.uint64(1 << 52), 22, none, 0)
    exact_noise.fill_strings(True, word, none, word[:0], none, 0)
    x, y, theta = np.eye(2), np.ones(2), np.zeros((1, 2))
    for matrix in (x, sparse.csr_array(x)):
        rows = sgd.rows(matrix, y)
        settings: dict[str, Any] = dict(loss_code=0, set_code=0, size=1.0)
        settings |= dict(eta_kind=sgd.CONSTANT, eta0=0.1)
        noise = SealedBatches(key, key, 1.0, 1, 2)
        sgd.run(matrix, y, theta, noise, threads=1, **settings)
        sgd.batch_gradient(rows, theta[0], np.zeros(1, np.int64), 0, 0.0)
        gradient_sums.sum_gradients(rows, theta, 0, 0.0)
        gradient_sums.sum_losses(rows, theta, 0, 0.0)
        if rows.has_csr:
            sparse_rows.add(matrix, sparse_rows.multiply(matrix, y))
        exact_scores.score_sum(rows, theta, 0, 0.0, 1.0, 1.0, np.zeros(1, np.int64))
        exact_noise.gradient_sum(rows, theta, 0, 0.0, 1.0, 1.0, np.zeros((1, 2), np.int64))
    sgd.update(theta[0], theta[0] + 1.0, sgd.learning_rate(sgd.CONSTANT, 0.1, 1.0), 0, 1.0)
    grid_walk.advance(np.ones((2, 2)), np.array([1, -1]), 0, np.array([0.9, 0.9]))
    records, ball = proximal_chain.pack_records(x, y), (np.zeros((1, 2)), np.ones(1))
    law = proximal_chain.Law(proximal_chain.LOGISTIC, 0.0, 1.0, 0.0, 0.0, *ball)
    proximal_chain.advance(records, law, 0.1, proximal_chain.Chain(theta[0]), 1, np.full(64, 0.5))
    row_maps.multiply_rows(x, x, 1.0, np.empty((2, 2)))
    row_maps.shorten_rows(np.eye(2), 1.0)
    row_maps.map_to_waves(x, x, 1.0, np.empty((2, 4)))
    _local(key)
    order, slopes = np.arange(2), np.zeros(2)
    for kind in (np.float64, np.float32):
        held = x.astype(kind)
        dual_ascent.ascend_rows(held, y, 1, 0.0, 1.0, np.ones(2), order, slopes, np.zeros(2))
        dual_ascent.ascend_gram(held, y, 1, 0.0, 1.0, order, slopes, np.zeros(2))
        dual_ascent.margins(held, x)
    return time.perf_counter() - began


def _local(key: np.ndarray) -> None:
    """One step of every map, from dense rows and from CSR ones; one answer of its own."""
    coding = local_channels.Coding(local_channels.L_INF, 1.0, 2.0, 0.5, np.uint64(1 << 62))
    local_channels.send(coding, np.zeros((1, 2)), local_channels.draw_words(key, 0, 1))
    device, learner = local_learning.Device(0, 0.0, np.inf), local_learning.Learner(
        local_learning.EUCLID, 0, 1.0, sgd.CONSTANT, 0.1, 0.0, 0.0, 2.0, False
    )  # fmt: skip
    for matrix in (np.eye(2), sparse.csr_array(np.eye(2))):
        rows = sgd.rows(matrix, np.ones(2))
        answers = SealedAnswers(key, coding, 2, 1)
        local_learning.run(rows, device, answers, learner, np.zeros((1, 2)))
        local_learning.subgradient(rows, device, coding.shape, 0, np.zeros(2))
    local_learning.learn(learner, 0, np.zeros(2), np.zeros(2), np.zeros(2))
