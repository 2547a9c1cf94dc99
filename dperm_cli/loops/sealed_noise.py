"""The object that lets a compiled loop draw its own noise: keys, scale and kind together.

Only a stream of the gate makes these, for the event that was accounted for, so that no loop can be
given another scale, another number of steps or another batch than those that were paid for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dperm_cli.loops.local_channels import Coding


class SealedNoise(NamedTuple):
    """Gaussian noise of standard deviation ``scale``, ``steps`` draws of it a key.

    ``keys`` [K, 2] (uint64): one a chain.
    """

    keys: np.ndarray
    scale: float
    steps: int


class SealedBatches(NamedTuple):
    """Gaussian noise on sums over random batches: ``steps`` of them, one after another.

    ``noise_keys`` and ``index_keys`` [K, 2] (uint64) are of the noise and of the batches; a batch
    has ``batch`` of ``population`` records, or that many on average where ``poisson``.
    """

    noise_keys: np.ndarray
    index_keys: np.ndarray
    scale: float
    steps: int
    population: int
    batch: int = 1
    poisson: bool = False


class SealedAnswers(NamedTuple):
    """Answers of ``users`` devices by one channel, ``messages`` of each; ``keys`` [K, 2]."""

    keys: np.ndarray
    coding: Coding
    users: int
    messages: int
