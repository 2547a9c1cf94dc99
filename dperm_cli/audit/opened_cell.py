"""``OpenedCell``: one configuration on one data set, ready to release, for the audit to examine.

A cell is opened by doing everything that a run does before its release: reading the data, planning
and accounting. ``ListeningTape`` records what a release draws through the gate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass

# To find noise that was drawn before: how many numbers of a draw are compared, to how many decimal
# places, and the largest rounding error (in noise scales) at which they can be compared.
_COMPARED, _DIGITS, _LOST = 8, 9, 1e-12

OK, UNSUPPORTED, FAILED = "ok", "unsupported", "failed"


class ListeningTape:
    """A tape that counts the draws of a release and changes none of them.

    Compiled loops are not used while a tape listens, so that every draw can be heard.

    Args:
        keep: also compare what is drawn. Draws of streams with few possible outcomes are left
            out, since they say nothing about the seed.

    Attributes:
        calls: how many draws were made.
        noise_digest: a hash of everything that was drawn; empty if there was nothing to compare.
        trials_alike: whether all trials drew the same numbers at every call.
        shared: whether two draws had the same random numbers.
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

    def take_draw(self, stream: Any, value: Any, drawn: Any, public: Any = None) -> Any:
        """Count a draw. Every stream calls this with what it drew, and uses what is returned."""
        self.calls += 1
        if self._keep and isinstance(drawn, np.ndarray) and not stream.few_outcomes:
            self._note(drawn)
            self._note_noise(stream, value, drawn)
        return drawn

    def _note_noise(self, stream: Any, value: Any, drawn: np.ndarray) -> None:
        """Set ``shared`` if the same noise, in units of its scale, was drawn before."""
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
        """Add a draw to the digest, and update which trials are still equal to the first one."""
        self._digest.update(np.ascontiguousarray(drawn).tobytes())
        if drawn.ndim != 2 or len(drawn) < 2:
            return
        same = np.array([np.array_equal(one, drawn[0]) for one in drawn[1:]])
        if self._alike is None:
            self._alike = same
        elif len(same) == len(self._alike):
            self._alike = self._alike & same
        else:  # a run of a private selection, which only some trials have
            self._alike = self._alike & np.all(same)


@dataclass(frozen=True)
class OpenedCell:
    """One configuration on one data set, prepared as in a run up to its release.

    Attributes:
        status: ``ok``, ``unsupported`` (the plan is refused) or ``failed``.
        reason: why there is no release, where the status is not ``ok``.
        mechanism, problem, plan: what a release is computed from. These and everything below are
            None or empty where the status is not ``ok``.
        spec: the public facts that the plan was made from.
        data: the records as the mechanism sees them.
        budget: what was asked for.
        guarantee: what is certified for the events of the plan.
        public: other values that must not depend on any record, by name.
        release: a function (trials, seed, tape=None) -> Release, with the view and gate of a run.
        view: a function () -> the view of a run.
        secure: whether the noise comes from the operating system, on a grid or as signs.
        step: the spacing of that grid, or None.
        recheck: a function that checks the plan against a budget, as a run does before it
            releases.
        planned: what the runner planned, for data sets that are opened after this one.
        noise_name: the name that the noise is keyed by, for the same purpose.
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
        """The number of parameters; 0 where a function in a kernel's space is learnt."""
        return self.spec.p if self.spec.space == "parameters" else 0

    def strip_records(self) -> OpenedCell:
        """A copy with public facts and the plan only, which may be sent to another process."""
        facts = {"spec": self.spec, "budget": self.budget, "planned": self.planned}
        return OpenedCell(self.status, self.reason, guarantee=self.guarantee, **facts)

    def draw(self, trials: int, seed: int, tape: Any = None) -> np.ndarray:
        """theta [trials, p] of independent releases."""
        return np.asarray(self.release(trials, seed, tape).theta, dtype=float)
