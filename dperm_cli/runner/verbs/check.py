"""``dperm check``: try what the plug-ins of a file or package promise."""

from __future__ import annotations

from dperm_cli.audit.contracts import suite
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK
from dperm_cli.core.operands import FORMATS, Syntax, refuse_operands
from dperm_cli.runner.sweep.progress import open_step_meter


def check(arguments: list[str]) -> int:
    """Print a line a promise (``format=json``: one object); 1 where one is broken."""
    words = Syntax(keys=("format",)).split(arguments)
    form = words.choose("format", FORMATS)
    if not words.operands:
        raise refuse_operands("check", [], "needs a file ending in .py, or the name of a package")
    with open_step_meter("check"):
        report = suite.check(*words.operands)
    print(report.to_json() if form == "json" else report)
    return EXIT_FAILED if report.is_broken else EXIT_OK
