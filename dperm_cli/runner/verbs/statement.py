"""``dperm statement MODEL``: what the person who answers for a released model signs."""

from __future__ import annotations

import os
import sys

from dperm_cli.core.errors import EXIT_OK, NOTHING, InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.operands import Syntax, Words, refuse_operands
from dperm_cli.runner.models import machine_file, model_file
from dperm_cli.runner.models.evaluated_release import StoredEvaluation, read_beside
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.statements import answers as answers_file
from dperm_cli.runner.statements.answers import Answers

FORMATS = ("text", "html", "pdf", "registry", "answers")
# the format of a file by its ending, where none was asked for
_ENDINGS = {".html": "html", ".htm": "html", ".pdf": "pdf", ".yaml": "registry", ".yml": "registry"}


def statement(arguments: list[str]) -> int:
    """``dperm statement MODEL.npz [answers=FILE.yaml] [format=...] [out=FILE]``."""
    words = Syntax(keys=("answers", "format", "out")).split(arguments)
    if len(words.operands) != 1:
        raise refuse_operands("statement", words.operands, "must be one model")
    form = _choose_format(words)
    to = OutputFile.of("out", words.settings["out"]) if "out" in words.settings else None
    if form == "pdf" and to is None:
        raise InputError("out", NOTHING, "a PDF needs a file: type out=statement.pdf")
    if form == "answers" and to is not None and os.path.isfile(to.path):
        allowed = "is there already: answers that were given are not overwritten"
        raise InputError("out", words.settings["out"], allowed)
    found = model_file.read(words.operands[0])
    given = answers_file.read(words.settings.get("answers"))
    model = words.operands[0]
    machines = machine_file.read_beside(model)
    content = write_statement(found, given, form, read_beside(model), machines)
    if to is not None:
        to.write(content)
    else:
        sys.stdout.write(content.decode())
    if form not in ("answers", "registry") and found.noise == "research":
        print("the file says noise=research: not for release", file=sys.stderr)
    return EXIT_OK


def write_statement(
    found: Publishable,
    given: Answers,
    form: str,
    evaluated: StoredEvaluation | None = None,
    machines: str | None = None,
) -> bytes:
    """The statement on a release in one of ``FORMATS``.

    ``evaluated`` and ``machines`` are what lies beside the model.

    Raises:
        InputError: a registry entry lacks an answer that it needs.
    """
    if form == "answers":
        return answers_file.draft().encode()
    if form == "registry":
        from dperm_cli.runner.statements.registry_entry import format_entry

        return format_entry(found, given).encode()
    from dperm_cli.runner.statements.facts import build_statement

    built = build_statement(found, given, evaluated, machines)
    if form == "html":
        from dperm_cli.runner.statements.html_page import write_html

        return write_html(built)
    if form == "pdf":
        from dperm_cli.runner.statements.pdf_pages import write_pdf

        return write_pdf(built)
    from dperm_cli.runner.statements.plain_text import format_text

    return format_text(built).encode()


def _choose_format(words: Words) -> str:
    """The format that was asked for, or else that of the file's ending."""
    if "format" not in words.settings and "out" in words.settings:
        ending = os.path.splitext(words.settings["out"])[1].lower()
        return _ENDINGS.get(ending, FORMATS[0])
    return words.choose("format", FORMATS)
