"""Interfaces between the gate, its events and streams, and a tape that listens."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Tape(Protocol):
    """Observer of everything that passes the gate; may replace what is drawn.

    ``value`` is what the noise hides: [trials, dim]; None for what hides nothing, as the record
    numbers of a batch, and ``streams.LAW`` for a draw from a law, with which no value passes.
    ``public`` must be equal on neighbouring runs. ``stream`` has the event, its number and a new
    ``meter()``.
    """

    def take_draw(
        self, stream: Any, value: Any, drawn: np.ndarray, public: tuple[Any, ...]
    ) -> np.ndarray: ...


class NoiseSource(Protocol):
    """The side of a gate that streams see: its facts, and random numbers for one stream.

    Attributes:
        trials: How many independent releases are drawn.
        relation: The neighbouring relation of the plan.
        tape: What listens, if anything does.
        system: Whether channels' answers come from the operating system's generator.
        source: That generator: a number of words -> uint64 words.
    """

    trials: int
    relation: str
    tape: Tape | None
    system: bool
    source: Any

    def draws(self, kind: str, own_grid: int | None = None) -> Any:
        """The noise of a new stream: ``streams.KeyedNoise`` or ``grid_noise.GridNoise``."""

    def steps(self, number: int) -> Any:
        """The ``streams.StepRecord`` of a new stream."""

    def keys(self) -> np.ndarray:
        """The keys [trials, 2], uint64, of a new stream."""
        ...

    def batches(self, population: int, batch: int, poisson: bool) -> Any:
        """The batches of a new stream: ``streams.KeyedBatches`` or ``SystemBatches``."""

    def words(self) -> Any:
        """The operating system's generator, of a secure gate alone."""

    def open_run(self, keys: np.ndarray, run: int, selection: Any, candidate: int) -> Any:
        """A gate for the events of one run of a private selection that was asked for."""
        ...

    def next_number(self) -> int:
        """The number of a new stream, in the order of asking."""
        ...
