"""All bounds, and the best of each kind at one setting."""

from __future__ import annotations

from dperm_cli.bounds._bound import Bound, Setting
from dperm_cli.bounds.bst14 import BOUNDS as BST14

ALL: tuple[Bound, ...] = BST14


def best(at: Setting) -> dict[str, object]:
    """The record's bound columns: smallest upper and largest lower bound of each sort.

    Explicit bounds fill ``bound_*``; bounds whose constant is open fill ``order_*`` with the
    constant taken as one, for figures that fit it and say so.
    """
    row: dict[str, object] = {}
    for kind, pick in (("upper", min), ("lower", max)):
        for constant, prefix in (("explicit", "bound"), ("order", "order")):
            fitting = [b for b in ALL if b.kind == kind and b.constant == constant]
            values = [(b.value(at), b.id) for b in fitting if b.applies(at) is None]
            if values:
                row[f"{prefix}_{kind}"], row[f"{prefix}_{kind}_id"] = pick(values)
    row["bound_constant"] = "explicit" if "bound_upper" in row else "none"
    return row
