"""The view of a kernel mechanism: public facts, and a minimiser to within a proved distance."""

from __future__ import annotations

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelProblem, KernelSpec
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView


class KernelView:
    """The trusted curator's view of a kernel problem: its public facts and its minimiser.

    Whatever is made of the minimiser's values passes the gate. It offers no records.

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
        """A function proved to be within ``distance`` of the minimiser, in the RKHS norm.

        PrivacyError where that cannot be proved: noise made for this distance would not protect it.
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
        """``values`` as they are: private scores [trials, m] of public points, or with ``radius``
        a private vector [trials, columns] that scores the points of a ball, for a law of the gate.

        An audit replaces this method to compare the scores of two neighbouring runs.
        """
        return values


class FeatureView(CentralView):
    """The view of a problem in coordinates, whose minimiser is the kernel's own.

    Not for a declared population: records that are nothing fill the data up there, and n lambda is
    not that of the kernel's own problem, whose minimiser would follow how many records there are.

    >>> issubclass(FeatureView, CentralView), [name for name in vars(FeatureView) if name[0] != "_"]
    (True, ['minimiser'])
    """

    def __init__(self, problem: Problem, kernel: KernelProblem) -> None:
        super().__init__(problem)
        self._kernel = kernel

    def minimiser(self, gap: float) -> np.ndarray:
        """Coordinates [dim] of a function proved to be within ``gap`` of the least objective; for
        an exact kernel, of its projection on the span of the queries.
        """
        found = self._kernel.solve(gap=gap)
        if not found.gap <= gap:
            raise PrivacyError(f"the minimiser was not proved to be found to a gap of {gap:.3g}, "
                               "as is needed; nothing is released")  # fmt: skip
        return found.theta
