"""The view of a kernel mechanism: public facts, and a minimiser with a proved error."""

from __future__ import annotations

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelProblem, KernelSpec
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView


class KernelView:
    """The trusted curator's view of a kernel problem: its public facts and its minimiser.

    It offers no records. Every value computed from the minimiser must pass the gate before it is
    released.

    >>> [name for name in vars(KernelView) if not name.startswith("_")]
    ['spec', 'find_minimiser', 'observe_scores']
    """

    def __init__(self, problem: KernelProblem) -> None:
        self._problem = problem

    @property
    def spec(self) -> KernelSpec:
        """The public facts of the problem."""
        return self._problem.spec()

    def find_minimiser(self, distance: float) -> Fit:
        """A function that is proved to be close to the minimiser.

        Args:
            distance: the largest distance from the minimiser, in the RKHS norm.

        Raises:
            PrivacyError: this distance cannot be proved. Noise made for it would not suffice.
        """
        found = self._problem.solve(distance)
        if not found.distance <= distance:
            # the message leaves out the distance reached: it depends on the records
            raise PrivacyError(
                f"the minimiser was not proved to be found to {distance:.3g}, which the noise is "
                "made for; nothing is released, and that this happened is not a private outcome"
            )
        return found

    def observe_scores(self, values: np.ndarray, radius: float | None = None) -> np.ndarray:
        """Return ``values`` unchanged; an audit replaces this method to compare two runs.

        Args:
            values: private scores [trials, m] of public points; or, with ``radius``, a private
                vector [trials, columns] that scores the points of a ball by inner products.
            radius: the radius of that ball, or None.
        """
        return values


class FeatureView(CentralView):
    """The view of a kernel problem written in coordinates of a public feature map.

    It is not for data filled up with empty records (a declared population): there n lambda differs
    from that of the kernel's own problem, so that its minimiser would reveal the number of records.

    >>> issubclass(FeatureView, CentralView), [name for name in vars(FeatureView) if name[0] != "_"]
    (True, ['minimiser'])
    """

    def __init__(self, problem: Problem, kernel: KernelProblem) -> None:
        super().__init__(problem)
        self._kernel = kernel

    def minimiser(self, gap: float) -> np.ndarray:
        """Coordinates [p] of a function close to the minimiser of the kernel's own problem.

        For an exact kernel they are those of its projection on the span of the queries.

        Args:
            gap: how far the function's objective may be above the least one.

        Raises:
            PrivacyError: this gap cannot be proved.
        """
        found = self._kernel.solve(gap=gap)
        if not found.gap <= gap:
            raise PrivacyError(f"the minimiser was not proved to be found to a gap of {gap:.3g}, "
                               "as is needed; nothing is released")  # fmt: skip
        return found.theta
