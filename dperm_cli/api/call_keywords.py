"""Public calls say in one line what they take when a keyword is not theirs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from dperm_cli.core.errors import InputError
from dperm_cli.core.near_names import nearest

Call = TypeVar("Call", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)


def check_keywords(function: Call) -> Call:
    """The function, which raises an InputError where Python has a TypeError for an unknown keyword.

    >>> @check_keywords
    ... def draw(theme="single"):
    ...     return theme
    >>> try:
    ...     draw(width=3)
    ... except InputError as error:
    ...     print(error)
    width=3: draw() has no such keyword; known: theme (did you mean 'theme'?)
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def checked(*arguments: Any, **keys: Any) -> Any:
        for key, value in keys.items():
            if key not in known:
                raise _refuse(function.__name__, key, value, known)
        return function(*arguments, **keys)

    return checked  # type: ignore[return-value]


def check_methods(kind: Kind) -> Kind:
    """The class, all of whose public methods check their keywords."""
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(kind, name, check_keywords(value))
    return kind


def _refuse(name: str, key: str, value: Any, known: list[str]) -> InputError:
    guess = nearest(key, known)
    hint = f" (did you mean {guess!r}?)" if guess else ""
    listed = f"known: {', '.join(known)}" if known else "there is none"
    error = InputError(key, value, f"{name}() has no such keyword; {listed}{hint}")
    error.nearest = guess
    return error
