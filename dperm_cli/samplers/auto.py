"""The sampler that is chosen when none is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import AllowHeuristic, Certificate, MostSeconds, Sampler, Target

ORDER = ("closed_form", "rejection", "tangent_cells", "proximal")
LAST_RESORT = "hit_and_run"
LEAST_ACCEPTANCE = 1e-3
MOST_CELL_DIMENSION = 3


@dataclass(frozen=True)
class Auto(Sampler):
    """Exact samplers first, the general one last, each only where its certificate allows it.

    Closed forms; rejection where its acceptance is at least ``LEAST_ACCEPTANCE`` for every data
    set within the bounds; tangent cells up to dimension 3; the proximal chain where its worst case
    ends within ``most_seconds`` a draw. Order, certificates and refusals follow from public facts:
    a choice that looked at the records would show in the output.

    >>> [sampler.name for sampler in Auto().candidates()]
    ['closed_form', 'rejection', 'tangent_cells', 'proximal']
    """

    most_seconds: MostSeconds = 180.0
    allow_heuristic: AllowHeuristic = False

    def candidates(self) -> Iterator[Any]:
        """Samplers in the order they are tried, with their own defaults."""
        names = [*ORDER, *([LAST_RESORT] if self.allow_heuristic else [])]
        for name in names:
            if name in registry.names("sampler"):
                yield self._make_sampler(registry.load("sampler", name))

    def accept(self, target: Target, certificate: Certificate) -> None:
        """``Unsupported`` where a sampler with a certificate should still be passed over."""
        name, facts = certificate.sampler, certificate.facts
        if name == "rejection" and facts.get("acceptance", 1.0) < LEAST_ACCEPTANCE:
            raise Unsupported(f"accepts only {facts['acceptance']:.2g} of its proposals")
        if name == "tangent_cells" and target.dimension > MOST_CELL_DIMENSION:
            raise Unsupported(f"is for {MOST_CELL_DIMENSION} dimensions at most")

    def _make_sampler(self, cls: type[Any]) -> Any:
        known = {field.name for field in fields(cls)}
        own = {"allow_heuristic": self.allow_heuristic, "most_seconds": self.most_seconds}
        return cls(**{key: value for key, value in own.items() if key in known})
