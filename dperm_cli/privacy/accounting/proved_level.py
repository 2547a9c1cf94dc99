"""An epsilon that ball arithmetic proves, or why there is none."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported


@dataclass(frozen=True)
class ProvedLevel:
    """An epsilon that is proved, or the reason that there is none.

    Attributes
    ----------
    epsilon : a proved upper bound on the exact epsilon; None where nothing is proved.
    method : how it was found: ``sum``, ``closed form``, ``contour`` or ``moments``.
    reason : why nothing is proved; None where something is.
    """

    epsilon: float | None
    method: str | None = None
    reason: str | None = None

    @property
    def words(self) -> str:
        """``yes`` with the method, or ``not rigorous`` with the reason."""
        return f"yes ({self.method})" if self.reason is None else f"not rigorous: {self.reason}"


class NotRigorous(Unsupported):
    """A bound that is known in float64 only."""
