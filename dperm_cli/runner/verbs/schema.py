"""``dperm schema``: draft the schema of one's own table from its header."""

from __future__ import annotations

import sys

from dperm_cli.core.data_files import locate
from dperm_cli.core.errors import EXIT_OK
from dperm_cli.core.operands import Syntax, refuse_operands
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.shared import archives
from dperm_cli.datasets.shared.schema_draft import draft_schema
from dperm_cli.datasets.shared.table_columns import check_delimiter

KEY = "TABLE"


def schema(arguments: list[str]) -> int:
    """``dperm schema TABLE [target=COLUMN] [delimiter=,]``: print a draft."""
    words = Syntax(keys=("target", "delimiter")).split(arguments)
    if len(words.operands) != 1:
        raise refuse_operands("schema", words.operands, "must be one csv or Parquet file")
    delimiter = check_delimiter("delimiter", words.settings.get("delimiter", ","))
    path = locate(KEY, words.operands[0], None)
    with report_read_errors(KEY, path):
        limit = int(archives.DEFAULT_GIB * archives.GIB)
        text = draft_schema(KEY, path, words.settings.get("target"), delimiter, limit)
    sys.stdout.write(text)
    print("dperm: next: replace each FILL_IN, then `dperm release TABLE schema.yaml epsilon=1`",
          file=sys.stderr)  # fmt: skip
    return EXIT_OK
