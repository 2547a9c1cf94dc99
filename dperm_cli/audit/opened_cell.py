"""``OpenedCell``: one configuration on one data set, prepared as in a run up to its release."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# numbers of two draws that are compared, to how many digits, and what rounding may take of those
_COMPARED, _DIGITS, _LOST = 8, 9, 1e-12

OK, UNSUPPORTED, FAILED = "ok", "unsupported", "failed"


class ListeningTape:
    """A tape that hears everything and changes nothing: compiled loops are closed to it.

    With ``keep`` it remembers what was drawn: ``kept`` as a digest, ``trials_alike`` whether all
    trials drew the same all the way, ``shared`` whether two draws had the same random numbers.
    Draws of streams with few outcomes are left out: they tell nothing of a seed.
    """

    def __init__(self, keep: bool = False) -> None:
        self.calls, self._keep = 0, keep
        self._seen: set[tuple[float, ...]] = set()
        self.shared = False
        self._digest = hashlib.blake2b(digest_size=16)
        self._alike: np.ndarray | None = None

    @property
    def noise_digest(self) -> str:
        return self._digest.hexdigest() if self._alike is not None else ""

    @property
    def trials_alike(self) -> bool:
        """Whether all trials were told the same at every call."""
        return self._alike is not None and bool(np.all(self._alike))

    def hear(self, stream: Any, value: Any, drawn: Any, public: Any = None) -> Any:
        """Called by every stream with what was drawn; returns it."""
        self.calls += 1
        if self._keep and isinstance(drawn, np.ndarray) and not stream.few_outcomes:
            self._note(drawn)
            self._note_noise(stream, value, drawn)
        return drawn

    def _note_noise(self, stream: Any, value: Any, drawn: np.ndarray) -> None:
        """Whether noise like this, in units of its scale, was heard before."""
        if not (stream.tells_noise and isinstance(value, np.ndarray)):
            return
        noise = (drawn - value) / stream.scale
        lost = np.finfo(float).eps * float(np.max(np.abs(drawn), initial=0.0)) / stream.scale
        if not lost < _LOST or not np.any(noise):
            return
        # trial by trial, as other streams may be asked for; on a line one number says too little
        rows = noise if noise.ndim == 2 and noise.shape[1] > 1 else noise.reshape(1, -1)
        for row in rows:
            if row.size > 1:
                key = tuple(np.round(row[:_COMPARED], _DIGITS))
                self.shared = self.shared or key in self._seen
                self._seen.add(key)

    def _note(self, drawn: np.ndarray) -> None:
        self._digest.update(np.ascontiguousarray(drawn).tobytes())
        if drawn.ndim != 2 or len(drawn) < 2:
            return
        same = np.array([np.array_equal(one, drawn[0]) for one in drawn[1:]])
        self._alike = same if self._alike is None else self._alike & same


@dataclass(frozen=True)
class OpenedCell:
    """What a run would do on one data set.

    Attributes
    ----------
    status, reason : ``ok``, or why there is no release: ``unsupported`` by the plan, or ``failed``.
    mechanism, problem, plan : what a release is made of. These and all below are None where the
        status is not ``ok``.
    spec : the public facts that were planned with.
    data : the records as the mechanism meets them.
    budget, guarantee : what was asked for and what the events of the plan certify.
    public : whatever else must not depend on a record, by name.
    release : (trials, seed, tape=None) -> Release, through the view and gate of a run.
    view : () -> the view of a run.
    secure : whether the noise comes from the operating system, on a grid or as signs.
    step : of the grid, or None.
    recheck : holds the plan to a budget, as a run does before it releases.
    planned, noise_name : what the runner planned, and what names the noise, for data sets that are
        opened after this one.
    """

    status: str
    reason: str = ""
    mechanism: Any = None
    problem: Any = None
    spec: Any = None
    data: Any = None
    plan: Any = None
    budget: Any = None
    guarantee: Any = None
    public: Mapping[str, Any] = field(default_factory=dict)
    release: Any = None
    view: Any = None
    secure: bool = False
    step: float | None = None
    planned: Any = None
    noise_name: str = ""
    recheck: Any = None

    @property
    def coordinates(self) -> int:
        """The number of parameters; 0 where functions of a kernel are learnt."""
        return self.spec.p if self.spec.space == "parameters" else 0

    def strip_records(self) -> OpenedCell:
        """Facts and plan alone, without the records: what another process may be given."""
        facts = {"spec": self.spec, "budget": self.budget, "planned": self.planned}
        return OpenedCell(self.status, self.reason, guarantee=self.guarantee, **facts)

    def draw(self, trials: int, seed: int, tape: Any = None) -> np.ndarray:
        """theta [trials, p] of independent releases."""
        return np.asarray(self.release(trials, seed, tape).theta, dtype=float)
