"""The names of the files that dperm writes into a study's folder."""

from __future__ import annotations

MANIFEST = "manifest.json"
TABLES = ("table.csv", "table.md", "table.tex")
FIGURE_FORMATS = ("pdf", "svg", "png")
FIGURES = tuple(f"figure.{name}" for name in FIGURE_FORMATS)
CAPTION = "figure.caption.md"
PAGE = "report.html"
CLAIMS = "claims.json"  # the verdicts of `dperm reproduce`
LEDGER = "ledger.json"
LOG = "releases.log"
RECORDS = "records"  # the folder of records
RECORD = ".parquet"  # how the name of a record ends
INPUTS = (MANIFEST, CLAIMS, LOG)  # which a report reads, beside records and its own ledger
EVERY = (MANIFEST, *TABLES, *FIGURES, CAPTION, PAGE, CLAIMS, LEDGER, LOG)
