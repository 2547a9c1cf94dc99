"""``dperm new``: write the file of a new plug-in."""

from __future__ import annotations

import sys

from dperm_cli.core.errors import EXIT_OK
from dperm_cli.core.new_plugin import KINDS, write_plugin
from dperm_cli.core.operands import Syntax, refuse_operands


def new(arguments: list[str]) -> int:
    """Write ``NAME.py`` and say what comes next."""
    words = Syntax().split(arguments).operands
    if len(words) != 2:
        kinds = ", ".join(KINDS)
        usage = f"write dperm new KIND NAME, such as `dperm new mechanism mine`; kinds: {kinds}"
        raise refuse_operands("new", words, usage)
    path = write_plugin(*words)
    print(path)
    print(f"dperm: next: dperm check {path}", file=sys.stderr)
    return EXIT_OK
