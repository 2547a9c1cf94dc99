"""Notice code from outside that changes the package itself while it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType
from typing import Any

from dperm_cli.core.dataclass import LateInit
from dperm_cli.core.errors import InputError

_OWN = __name__.partition(".")[0]
_CODE = (
    type, FunctionType, BuiltinFunctionType, property, staticmethod, classmethod, LateInit
)  # fmt: skip
_ABSENT = object()


@contextmanager
def refuse_patches(key: str, label: str) -> Iterator[None]:
    """Refuse a plug-in that replaces functions or methods of the package, and put them back.

    Records made by replaced code would not say so: neither their digest nor a column covers it.

    Args:
        key: What the user typed the plug-in behind.
        label: How the user calls it.

    Raises:
        InputError: A function, class or method of the package is another one after the block.
    """
    before = [(owner, dict(vars(owner))) for owner in _list_owners()]
    changed: list[str] = []
    try:
        yield
    finally:
        for owner, members in before:
            changed += _restore(owner, members)
    if changed:
        words = f"changes dperm's own {', '.join(changed[:3])}; write a class below it instead"
        raise InputError(key, label, words)


def _list_owners() -> list[Any]:
    """The package's modules, and the classes that stand in them."""
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == _OWN and module is not None:
            found[id(module)] = module
            for made in list(vars(module).values()):
                if isinstance(made, type) and made.__module__.partition(".")[0] == _OWN:
                    found[id(made)] = made
    return list(found.values())


def _restore(owner: Any, members: dict[str, Any]) -> list[str]:
    """Undo what was done to a module or class; the names that were changed."""
    now, changed = dict(vars(owner)), []
    for name, made in now.items():
        old = members.get(name, _ABSENT)
        # modules load some of their names at first use
        added = old is _ABSENT and isinstance(owner, type) and isinstance(made, _CODE)
        is_first_use = isinstance(old, LateInit) and made is old.made
        if made is not old and not is_first_use and (isinstance(old, _CODE) or added):
            changed.append(f"{owner.__name__}.{name}")
            delattr(owner, name) if added else setattr(owner, name, old)
    for name, old in members.items():
        if name not in now and isinstance(old, _CODE):
            changed.append(f"{owner.__name__}.{name}")
            setattr(owner, name, old)
    return changed
