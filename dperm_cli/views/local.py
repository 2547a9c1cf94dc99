"""The view of a local mechanism: it sees users' answers, and each user its own record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import local_learning, sgd
from dperm_cli.loops.local_learning import Device, Learner
from dperm_cli.privacy.streams import ChannelStream
from dperm_cli.problem.problem import Problem, ProblemSpec


class LocalView:
    """All that a local mechanism may use: public facts, and the users' devices.

    A device that is asked about a point theta returns an answer through a private channel. There
    is no other access to the records: no rows, no labels, no sums. The devices are reached through
    one stream of the gate, which counts how often each user answers.

    >>> [name for name in vars(LocalView) if not name.startswith("_")]
    ['spec', 'devices']
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._open = problem, True

    @property
    def spec(self) -> ProblemSpec:
        """The public facts of the problem."""
        return self._problem.spec()

    def devices(self, stream: ChannelStream, row_norm: float = np.inf) -> Devices:
        """Open the devices of all users; possible once only.

        A device shortens its row to ``row_norm`` (for losses of a margin), computes a subgradient
        of its own loss without the regulariser, and sends that through the channel.

        Args:
            stream: the gate's stream with the channel; it counts as many users as there are
                records.
            row_norm: a bound on the rows, in the channel's norm.

        Returns:
            The devices, to be asked one at a time or by a compiled loop.

        Raises:
            PrivacyError: the devices were opened before, or the stream counts other users.
        """
        if not self._open or stream.users != self._problem.data.n:
            raise PrivacyError("the users are reached once, by one stream that counts all of them")
        self._open = False
        return Devices(self._problem, stream, row_norm)


class Devices:
    """The devices of all users.

    ``compiled`` says whether ``descend`` has compiled code for the loss.

    >>> [name for name in vars(Devices) if not name.startswith("_")]
    ['ask', 'descend']
    """

    def __init__(self, problem: Problem, stream: ChannelStream, row_norm: float) -> None:
        self._loss: Any = problem.loss
        self._data, self._stream, self._row_norm = problem.data, stream, row_norm
        code = self._loss.code if self._loss.location_code is None else self._loss.location_code
        self.compiled = code is not None
        if code is not None:
            self._rows = sgd.rows(problem.data.x, problem.data.y)
            self._device = Device(int(code), float(self._loss.width), float(row_norm))

    def ask(self, user: int, theta: np.ndarray) -> np.ndarray:
        """The answers [trials, p] of one user to the points theta [trials, p]."""
        return self._stream.send(user, self._gradient(user, theta))

    def _gradient(self, user: int, theta: np.ndarray) -> np.ndarray:
        """The subgradients [trials, p] of one user's loss, row shortened, at theta [trials, p]."""
        if self.compiled:
            shape, points = self._stream.channel.code, np.ascontiguousarray(theta)
            gradient = local_learning.subgradient
            return np.stack([gradient(self._rows, self._device, shape, user, at) for at in points])
        one = self._data.take(np.array([user]))
        if self._row_norm < np.inf:
            row = one.x if isinstance(one.x, np.ndarray) else one.x.toarray()
            length = float(np.linalg.norm(row[0], ord=self._stream.channel.norm))
            one = one.with_rows(row * min(1.0, self._row_norm / length if length > 0.0 else 1.0))
        return self._loss.gradient(theta, one)

    def descend(
        self, learner: Learner, theta0: np.ndarray, progress: Callable[[int, int], None]
    ) -> tuple[np.ndarray, np.ndarray]:
        """``loops.local_learning.run``: every user answers as often as was accounted for.

        One compiled loop runs users and learner. The learner's code reads the answers only.

        Args:
            learner: the update rule.
            theta0: the start [trials, p].
            progress: called with the steps done and the steps in all.

        Returns:
            What ``loops.local_learning.run`` returns.
        """
        return local_learning.run(
            self._rows, self._device, self._stream.sealed_draws, learner, theta0, progress=progress
        )
