"""``Promise``: what a plug-in promises, how it is tried, and how to mend a plug-in that breaks it.

A check is a function of a subject (a plug-in with its examples). It returns the words that say what
was tried, raises ``Broken`` with what was seen, or ``NotTried`` with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import describe_error, find_line, make_printable

OK, BROKEN, NOT_TRIED = "ok", "BROKEN", "-"
_MOST_WORDS = 400
_TINY = 1e-12  # what rounding may add to a bound of 0


class Broken(Exception):
    """The promise does not hold; the message says what was seen."""


class NotTried(Exception):
    """The promise cannot be tried on this plug-in; the message says why."""


@dataclass(frozen=True)
class Finding:
    """What came of one promise of one plug-in.

    Attributes:
        kind, name: the plug-in.
        promise: what is promised.
        verdict: ``ok``, ``BROKEN``, or ``-`` where it was not tried.
        tried: what was tried, or why nothing was.
        seen: what was seen where it is broken; else empty.
        mend: what to do about it; else empty.

    >>> Finding("loss", "mine", "it is convex", OK, "400 pairs").is_broken
    False
    """

    kind: str
    name: str
    promise: str
    verdict: str
    tried: str = ""
    seen: str = ""
    mend: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether the promise does not hold."""
        return self.verdict == BROKEN


@dataclass(frozen=True)
class Promise:
    """A promise of every plug-in of a kind.

    Attributes:
        text: what is promised, as a sentence without its full stop.
        mend: what to do where it is broken.
        check: tries it on a subject.

    >>> @promise("two is even", mend="choose another two")
    ... def check_two(subject):
    ...     return f"{subject} % 2"
    >>> try_promise(check_two, 2, "number", "two").tried
    '2 % 2'
    """

    text: str
    mend: str
    check: Callable[[Any], str]

    def __call__(self, subject: Any) -> str:
        """Try it: what was tried, or ``Broken`` or ``NotTried``."""
        return self.check(subject)


def promise(text: str, *, mend: str) -> Callable[[Callable[[Any], str]], Promise]:
    """A decorator that makes a ``Promise`` of its check."""
    return lambda check: Promise(text, mend, check)


def list_promises(module: ModuleType) -> tuple[Promise, ...]:
    """All promises that a module defines, in the order of its source text."""
    return tuple(made for made in vars(module).values() if isinstance(made, Promise))


def try_promise(wanted: Promise, subject: Any, kind: str, name: str, file: str = "") -> Finding:
    """Try one promise; whatever the plug-in raises is a broken promise.

    Args:
        wanted: the promise.
        subject: the plug-in, as its contract takes it.
        kind: what it is.
        name: its name.
        file: its file, whose line is named where it raises an error.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            tried = wanted(subject)
    except NotTried as reason:
        return Finding(kind, name, wanted.text, NOT_TRIED, str(reason))
    except Broken as error:
        seen = make_printable(error, _MOST_WORDS)
        return Finding(kind, name, wanted.text, BROKEN, "", seen, wanted.mend)
    except (Exception, SystemExit) as error:
        seen = make_printable(describe_error(error), _MOST_WORDS) + find_line(error, file)
        return Finding(kind, name, wanted.text, BROKEN, "", f"it raised {seen}", wanted.mend)
    return Finding(kind, name, wanted.text, OK, tried)


def require(holds: Any, words: str) -> None:
    """Raise ``Broken`` unless ``holds``; an array must hold everywhere."""
    if not np.all(holds):
        raise Broken(words)


def require_bounds(of: str, reached: Mapping[str, tuple[Any, Any]], slack: float) -> None:
    """Raise ``Broken`` where more was reached than a bound says.

    Args:
        of: what has the bounds.
        reached: the most that was reached and the bound, by the bound's name.
        slack: what rounding may add, relative to the bound.
    """
    for word, (most, bound) in reached.items():
        require(
            most <= bound * (1 + slack) + _TINY,
            f"{of}: {word} is {show(bound)}, and {show(most)} was reached",
        )


def count_tried(count: int, what: str, untried: str) -> str:
    """How many of what were tried; ``NotTried`` with the words ``untried`` where it is none."""
    if not count:
        raise NotTried(untried)
    return f"{count} {what}"


def show(number: Any) -> str:
    """A number or a row of numbers, shortened."""
    found = np.asarray(number, dtype=float)
    if found.size == 1:
        return f"{float(found.ravel()[0]):.6g}"
    head = ", ".join(f"{float(one):.4g}" for one in found.ravel()[:6])
    return f"[{head}{', ...' if found.size > 6 else ''}]"
