"""Random batches of records from the operating system's generator, with exact chances.

Every choice is made of whole numbers: an index below n is a word that is drawn again where it would
favour some indices, and a record is in a Poisson batch of mean m where such an index is below m.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.privacy.secure_noise import Source

_WORDS = 4096  # asked for at once


class SystemBatches:
    """Batches of one stream: each is drawn anew, whatever the trial and the step.

    Args:
        population: number of records.
        batch: records in a batch, the mean number where ``poisson``.
        poisson: whether each record is in a batch on its own, with chance batch / population.
        source: number of words -> random words, uint64.

    >>> from dperm_cli.privacy.secure_noise import system_words
    >>> len(set(SystemBatches(10, 4, False, system_words).draw(0, 0).tolist()))
    4
    """

    def __init__(self, population: int, batch: int, poisson: bool, source: Source) -> None:
        self._population, self._batch, self._poisson = population, batch, poisson
        self._source = source
        self._kept = np.empty(0, np.uint64)

    def draw(self, trial: int, step: int) -> np.ndarray:
        """The record numbers of a batch, all different, int64 [b]."""
        if self._poisson:
            return np.flatnonzero(self._below_population(self._population) < self._batch)
        chosen: dict[int, None] = {}
        while len(chosen) < self._batch:
            found = self._below_population(self._batch - len(chosen))
            chosen.update(dict.fromkeys(found.tolist()))
        return np.fromiter(chosen, np.int64, len(chosen))

    def _below_population(self, count: int) -> np.ndarray:
        """Independent uniform numbers below the population, int64 [count]."""
        out, done = np.empty(count, np.int64), 0
        size = np.uint64(self._population)
        first_refused = np.uint64(2**64 // self._population * self._population - 1)
        while done < count:
            if not len(self._kept):
                self._kept = self._source(max(_WORDS, count - done))
            words, self._kept = self._kept[: count - done], self._kept[count - done :]
            found = words[words <= first_refused] % size
            out[done : done + len(found)] = found
            done += len(found)
        return out
