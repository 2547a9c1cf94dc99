"""Choose the view through which a mechanism gets access to a problem."""

from __future__ import annotations

from typing import Any

from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import FeatureView, KernelView
from dperm_cli.views.local import LocalView


def is_local(mechanism: Any) -> bool:
    """Whether only users may see their records: local trust, or a local guarantee."""
    return mechanism.trust == "local" or "local" in mechanism.guarantees


def open_view(mechanism: Any, problem: Any, kernel: KernelProblem | None = None) -> Any:
    """The view for the mechanism's trust model and the kind of problem.

    Args:
        mechanism: the mechanism that releases.
        problem: a ``KernelProblem``, or a problem with parameters.
        kernel: where the rows of ``problem`` are a kernel's public features, that kernel's own
            problem.

    Returns:
        A ``KernelView``, ``LocalView``, ``CentralView`` or ``FeatureView``.
    """
    if isinstance(problem, KernelProblem):
        return KernelView(problem)
    if is_local(mechanism):
        return LocalView(problem)
    return CentralView(problem) if kernel is None else FeatureView(problem, kernel)
