"""``dperm audit module:object`` and ``exec:COMMAND``: a claim about somebody else's mechanism."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK
from dperm_cli.core.files import write_files
from dperm_cli.runner.audits import outside_report, outside_request
from dperm_cli.runner.audits.claim_audit import audit_by_method
from dperm_cli.runner.audits.outside_targets import make_fresh_generator, make_target
from dperm_cli.runner.sweep.progress import show_progress


def audit_outside(arguments: Sequence[str]) -> int:
    """Audit and print; 1 where the claim is refuted."""
    asked = outside_request.parse(arguments)
    question = asked.question
    target = make_target(asked.target, question.delta, make_fresh_generator(), asked.workers)
    with threadpool_limits(1), show_progress(asked.format == "table"):
        found = audit_by_method(target, question, asked.out)
    if asked.format == "json":
        print(json.dumps(found.row))
    else:
        print(found.text)
    if asked.out is not None:
        write_files(asked.out, found.files)
    elif found.is_refuted:
        print(f"out=FOLDER writes {outside_report.SCRIPT}, which shows it again", file=sys.stderr)
    return EXIT_FAILED if found.is_refuted else EXIT_OK
