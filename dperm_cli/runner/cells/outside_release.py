"""What a release of a plug-in from outside may not do unseen."""

from __future__ import annotations

from dperm_cli.core.errors import DpermError
from dperm_cli.core.plugin_classes import is_shipped
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.privacy.gate import Gate


def check_drawn(mechanism: Mechanism, gate: Gate) -> None:
    """DpermError where a mechanism from outside has released without noise for any event."""
    if gate.is_untouched and not is_shipped(type(mechanism)):
        allowed = "released without asking the gate for any event of its plan: no noise was drawn"
        raise DpermError(f"{type(mechanism).__name__} {allowed}")
