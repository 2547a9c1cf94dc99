"""Check the example in the docstring of a class or a function: there, short, and true."""

from __future__ import annotations

import doctest
import sys
from typing import Any

MOST_LINES = 6  # with the lines that come out


def find_faults(shown: Any, most_lines: int = MOST_LINES) -> list[str]:
    """What is wrong with the example of a class or a function.

    Args:
        shown: The class or the function; names of its module need no import in the example.
        most_lines: Lines that an example may have, with those that come out.

    Returns:
        The faults in words: no example that names what it is about and shows a result, one that is
        too long, or lines whose result is another.
    """
    name = shown.__name__
    known = vars(sys.modules[shown.__module__]).copy()
    found = doctest.DocTestParser().get_doctest(shown.__doc__ or "", known, name, None, None)
    text = "".join(one.source + one.want for one in found.examples)
    if name not in text or not any(one.want for one in found.examples):
        return [f"{name}: no example in its docstring that shows a result of it"]
    lines = text.count("\n")
    faults = [] if lines <= most_lines else [f"{name}: an example of {lines} lines"]
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(found, out=told.append)
    return faults + told
