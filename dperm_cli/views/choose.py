"""Choose the view of a problem that a mechanism gets."""

from __future__ import annotations

from typing import Any

from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import FeatureView, KernelView
from dperm_cli.views.local import LocalView


def is_local(mechanism: Any) -> bool:
    """Whether nobody but the users may see a record; local guarantees have no other meaning."""
    return mechanism.trust == "local" or "local" in mechanism.guarantees


def open_view(mechanism: Any, problem: Any, kernel: KernelProblem | None = None) -> Any:
    """The view that the mechanism's trust model and the problem's kind leave it.

    ``problem`` is one of parameters or of a kernel; with ``kernel``, one of parameters whose rows
    are that kernel's public features.
    """
    if isinstance(problem, KernelProblem):
        return KernelView(problem)
    if is_local(mechanism):
        return LocalView(problem)
    return CentralView(problem) if kernel is None else FeatureView(problem, kernel)
