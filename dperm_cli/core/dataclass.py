"""Classes like those of ``dataclasses``, which cost little to define.

Python compiles six methods of each data class while it is defined, in a millisecond. A command
imports 200 of ours and makes objects of a fourth of them: that was a quarter of the time of
``dperm account``. Here ``__init__`` is compiled when it is first looked up, and the other methods
are ordinary functions.

``dataclasses.fields``, ``replace``, ``asdict`` and ``is_dataclass`` know these classes, and a class
of Python's own can inherit from them.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")
_COMPILING = threading.RLock()
_OTHER_FIELDS = ("InitVar", "KW_ONLY")  # what annotations of these classes do not hold


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_MADE_ANEW = _Factory()  # the default of an argument whose value a function makes for each object


@overload
def dataclass(cls: type[_T], /) -> type[_T]: ...
@overload
def dataclass(
    *, frozen: bool = ..., eq: bool = ..., kw_only: bool = ...
) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    cls: type[_T] | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
) -> Any:
    """Make a class what ``dataclasses.dataclass`` makes it.

    Args:
        cls: The class, with annotated fields. ``InitVar`` and ``KW_ONLY`` are not supported.
        frozen: Whether attributes of its objects cannot be set.
        eq: Whether objects are equal where their fields are.
        kw_only: Whether its own fields are set by name alone.

    Returns:
        The same class; without ``cls``, a decorator.

    Raises:
        TypeError: A base class is frozen and this one is not, or the other way round; a field
            without a default follows one that has one; a frozen class sets attributes itself.
        ValueError: A default that all objects would share and could change.
    """
    if cls is None:
        return lambda one: _define(one, frozen, eq, kw_only)
    return _define(cls, frozen, eq, kw_only)


def _define(cls: Any, frozen: bool, eq: bool, kw_only: bool) -> Any:
    for base in cls.__mro__[1:]:
        params = vars(base).get("__dataclass_params__")
        if params is not None and params.frozen is not frozen:
            words = f"frozen={frozen}, and its base {base.__name__} has frozen={params.frozen}"
            raise TypeError(f"{cls.__name__}: {words}")
    own = inspect.get_annotations(cls)
    model = _make_model(cls, own, kw_only)
    made: dict[str, Any] = {
        "__dataclass_fields__": model.__dataclass_fields__,
        "__dataclass_params__": _find_params(frozen, eq, kw_only),
    }
    fields = dataclasses.fields(model)
    _check_order(cls, fields)
    ours = {
        "__match_args__": model.__match_args__,
        "__init__": LateInit(cls, frozen),
        "__repr__": _make_repr([f.name for f in fields if f.repr]),
    }
    if "__replace__" in vars(model):  # since Python 3.13
        ours["__replace__"] = model.__replace__
    if eq:
        ours["__eq__"] = _make_eq([f.name for f in fields if f.compare])
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        # a class with __eq__ and no __hash__ of its own has None there
        has_none = "__eq__" in vars(cls) and vars(cls).get("__hash__", MISSING) is None
        where = made if has_none else ours
        where["__hash__"] = _make_hash(hashed) if frozen else None
    if frozen:
        if "__setattr__" in vars(cls) or "__delattr__" in vars(cls):
            raise TypeError(f"{cls.__name__}: a frozen class sets no attributes")
        made |= _forbid_changes(cls, frozenset(f.name for f in fields))
    for name in own:
        if isinstance(vars(cls).get(name), Field):  # its default stands in its place, if it has one
            if (default := vars(cls)[name].default) is MISSING:
                delattr(cls, name)
            else:
                made[name] = default
    for name, value in (made | {k: v for k, v in ours.items() if k not in vars(cls)}).items():
        setattr(cls, name, value)
    return abc.update_abstractmethods(cls)


def _check_order(cls: Any, fields: tuple[Field[Any], ...]) -> None:
    seen = False
    for f in fields:
        if f.init and not f.kw_only:
            has_default = f.default is not MISSING or f.default_factory is not MISSING
            if seen and not has_default:
                raise TypeError(f"{cls.__name__}: non-default argument {f.name!r} follows default")
            seen = seen or has_default


def _make_model(cls: Any, own: dict[str, Any], kw_only: bool) -> Any:
    """A class with the same fields and no methods, whose fields Python has looked at."""
    inherited: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        if dataclasses.is_dataclass(base):
            inherited |= {f.name: f for f in dataclasses.fields(base)}
    types = {name: f.type for name, f in inherited.items()} | own
    kept = {name: f for name, f in inherited.items() if name not in own}
    values = {name: getattr(cls, name) for name in own if hasattr(cls, name)}
    for word in _OTHER_FIELDS:
        if any(word in str(one) for one in own.values()):
            raise TypeError(f"{cls.__name__}: no field of these classes is {word}")
    # with a docstring, as Python would make one from the signature, which takes long
    first = {"__module__": cls.__module__, "__annotations__": types, "__doc__": "Fields alone."}
    model = type(cls.__name__, (), first | kept | values)
    return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(model)


@cache
def _find_params(frozen: bool, eq: bool, kw_only: bool) -> Any:
    """What Python notes of a class that was made with these arguments."""
    plain: Any = type("plain", (), {"__doc__": "No fields."})
    return dataclasses.dataclass(frozen=frozen, eq=eq, kw_only=kw_only)(plain).__dataclass_params__


class LateInit:
    """``__init__`` of a class until it is first looked up; then it is compiled.

    Attributes:
        made: The function that took its place, or None.
    """

    def __init__(self, cls: Any, frozen: bool) -> None:
        self._cls, self._frozen, self.made = cls, frozen, None

    def __get__(self, instance: object, owner: Any = None) -> Any:
        init = self._compile()
        if vars(self._cls).get("__init__") is self:
            self._cls.__init__ = init
        return init if instance is None else init.__get__(instance)

    def __reduce__(self) -> Any:
        return _give, (self._compile(),)  # for a class that is pickled by its value

    def _compile(self) -> Any:
        with _COMPILING:
            if self.made is None:
                self.made = _compile_init(self._cls, self._frozen)
        return self.made


def _give(init: Any) -> Any:
    return init


def _compile_init(cls: Any, frozen: bool) -> Any:
    fields = dataclasses.fields(cls)
    me = "self" if all(f.name != "self" for f in fields) else "_dataclass_self"
    known: dict[str, Any] = {"_dataclass_set": object.__setattr__, "_dataclass_anew": _MADE_ANEW}
    by_place, by_name, lines = [me], [], []
    for f in fields:
        name, value = f.name, f.name
        argument = name
        if f.default_factory is not MISSING:
            known[f"_dataclass_make_{name}"] = f.default_factory
            argument = f"{name}=_dataclass_anew"
            value = f"_dataclass_make_{name}()"
            if f.init:
                value += f" if {name} is _dataclass_anew else {name}"
        elif f.default is not MISSING:
            known[f"_dataclass_default_{name}"] = f.default
            argument = f"{name}=_dataclass_default_{name}"
        elif not f.init:
            continue
        if f.init:
            (by_name if f.kw_only else by_place).append(argument)
        if f.init or f.default_factory is not MISSING:
            line = f"_dataclass_set({me}, {name!r}, {value})"
            lines.append(line if frozen else f"{me}.{name} = {value}")
    if any("__post_init__" in vars(one) for one in cls.__mro__):
        lines.append(f"{me}.__post_init__()")
    words = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    head = f"def _make({', '.join(known)}):\n def __init__({words}):\n  "
    text = head + "\n  ".join(lines or ["pass"]) + "\n return __init__"
    code, made = compile(text, f"<__init__ of {cls.__qualname__}>", "exec"), dict[str, Any]()
    # with the names of the class's module, which its type hints are made of
    exec(code, vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}, made)
    init = made["_make"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return init


def _make_reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _make_repr(names: list[str]) -> Any:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _make_eq(names: list[str]) -> Any:
    read = _make_reader(names)

    def __eq__(self: Any, other: object) -> Any:
        if type(other) is type(self):
            return read(self) == read(other)
        return NotImplemented

    return __eq__


def _make_hash(names: list[str]) -> Any:
    read = _make_reader(names)

    def __hash__(self: Any) -> int:
        return hash(read(self))

    return __hash__


def _forbid_changes(cls: Any, names: frozenset[str]) -> dict[str, Any]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
