"""Find plug-ins: every file in a plug-in folder is one.

A room is a package such as ``mechanisms`` or ``losses``. Its plug-ins are the modules directly in
the package, or in the group folders that ``GROUPS`` names for it. Each module defines one public
class, the camel-case form of the module's name (``noisy_sgd`` -> ``NoisySgd``). The module ``base``
holds the room's base class. Other folders hold what several plug-ins share.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache, partial
from typing import Any, ClassVar

from dperm_cli.core import plugin_sources

ROOMS = {
    "dataset": "datasets",
    "loss": "losses",
    "constraint": "sets",
    "mechanism": "mechanisms",
    "sampler": "samplers",
    "kernel": "kernels",
}
GROUPS = {
    "dataset": ("published", "generated", "lower_bounds", "files"),
    "mechanism": (
        "gradient", "perturbation", "sampling", "kernel", "local", "compression", "combinators",
        "baseline",
    ),
}  # fmt: skip
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Plugin:
    """The root of the base classes of all plug-in rooms. A plug-in is named after its file.

    Attributes:
        group: The room's name in configurations, such as ``mechanism``; set by a base class.
        plugin_kind: The same name, by which ``plugin_sources`` knows plug-ins from outside.
        name: The plug-in's name; empty for classes that are no plug-ins.
    """

    group: ClassVar[str]
    plugin_kind: ClassVar[str] = ""
    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not isinstance(cls.group, str):
            raise TypeError(f"class {cls.__name__}: no field may be called group")
        cls.plugin_kind = cls.group
        stem = cls.__module__.rpartition(".")[2]
        own = find_modules(cls.group).get(stem) == cls.__module__
        if own and cls.__name__ == class_name(stem):
            cls.name = stem


def names(room: str) -> tuple[str, ...]:
    """The names of a room's plug-ins and of those added from outside; none is imported."""
    return tuple(sorted({*find_modules(room), *plugin_sources.classes(room)}))


@cache
def list_shipped(room: str) -> tuple[str, ...]:
    """The names of a room's own plug-ins, without importing any of them; () for another kind."""
    return tuple(sorted(find_modules(room))) if room in ROOMS else ()


@cache
def find_modules(room: str) -> dict[str, str]:
    """The module of every plug-in of a room, by the plug-in's name; none is imported."""
    found: dict[str, str] = {}
    for group in GROUPS.get(room, ("",)):
        folder = os.path.join(_PACKAGE, ROOMS[room], group)
        package = ".".join(filter(None, ("dperm_cli", ROOMS[room], group)))
        for file in os.listdir(folder):
            name = file.removesuffix(".py")
            if name != file and name != "base" and not name.startswith("_"):
                found[name] = f"{package}.{name}"
    return found


def load(room: str, name: str) -> type[Any]:
    """The class of a room's plug-in, or of one from outside (``plugin_sources``).

    Raises:
        InputError: there is no plug-in of this name; the message suggests the nearest one.
    """
    module = find_modules(room).get(name) if isinstance(name, str) else None
    if module is not None:
        imported = sys.modules.get(module) or importlib.import_module(module)
        return getattr(imported, class_name(name))
    found = plugin_sources.find(room, name) if isinstance(name, str) else None
    if found is None:
        raise plugin_sources.refuse_name(room, name, names(room))
    return found


def find_class(room: str, word: str) -> type[Any]:
    """The shipped class of this name (``Logistic``): what the room's package offers.

    Raises:
        AttributeError: There is none.
    """
    for name in list_shipped(room):
        if class_name(name) == word:
            return load(room, name)
    raise AttributeError(f"module 'dperm_cli.{ROOMS[room]}' has no attribute {word!r}")


def list_classes(room: str) -> list[str]:
    """The names of a room's shipped classes; none is imported."""
    return [class_name(name) for name in list_shipped(room)]


def look_up(room: str, name: str) -> bool:
    """Whether a room has a plug-in of this name, or an installed package has one."""
    return name in find_modules(room) or plugin_sources.find(room, name) is not None


for _room in ROOMS:
    plugin_sources.reserve_names(_room, partial(list_shipped, _room))


def list_protective() -> tuple[str, ...]:
    """The mechanisms that give a guarantee, without the baselines that give none."""
    found = names("mechanism")
    return tuple(name for name in found if load("mechanism", name).guarantees != ("none",))


def list_offering(room: str, capability: str) -> tuple[str, ...]:
    """The names of a room's plug-ins whose class has a value other than None for ``capability``."""
    added = plugin_sources.classes(room)
    found = [name for name in added if getattr(added[name], capability) is not None]
    return tuple(sorted([*_list_shipped_offering(room, capability), *found]))


@cache
def _list_shipped_offering(room: str, capability: str) -> tuple[str, ...]:
    shipped = list_shipped(room)
    return tuple(name for name in shipped if getattr(load(room, name), capability) is not None)


@cache
def list_audited(room: str, last: int = 9) -> tuple[str, ...]:
    """The shipped losses or sets that audits try, by their ``audit_place``, up to ``last``."""
    tried = _list_shipped_offering(room, "audit_place")
    places = {name: load(room, name).audit_place for name in tried}
    return tuple(sorted((name for name in places if places[name] <= last), key=places.__getitem__))


def find_name(cls: type[Any]) -> str:
    """The name of a plug-in's class: that of its file, or the one that it has from outside."""
    outside = plugin_sources.find_name(cls)
    return cls.__module__.rpartition(".")[2] if outside is None else outside[2]


@cache
def class_name(name: str) -> str:
    """``noisy_sgd`` -> ``NoisySgd``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
