"""A change of what records are comes with a new version of dperm, and a line in record_forms.csv.

Where the first test fails, a column, its kind or role, the footer or how values are digested has
changed. Raise ``SCHEMA_VERSION`` if older files are read in another way, raise ``__version__``, and
add the line that the failure shows. Lines that are there stay: such records exist.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dperm_cli import __version__
from dperm_cli.core.digests import hash_facts
from dperm_cli.results.record_format import content_digest, encode
from dperm_cli.results.records.schema import COLUMNS, OPTIONAL, SCHEMA_VERSION, normalise
from tests.results.conftest import trial_rows

FORMS = Path(__file__).with_name("record_forms.csv")


def read_forms() -> list[dict[str, str]]:
    with open(FORMS, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def describe_form() -> str:
    """A digest of all that makes the form of a record."""
    rows = [
        normalise({**row, "version": "0", "reason": "é\u200b", "settings": {"a": 0.1}})
        for row in trial_rows(risks=(0.1, -0.0, 1e-300))
    ]
    footer = pq.read_metadata(pa.BufferReader(encode(rows))).metadata
    columns = [(column.name, column.kind, column.role) for column in COLUMNS]
    keys = sorted(key.decode() for key in footer if key.startswith(b"dperm."))
    return hash_facts([SCHEMA_VERSION, columns, OPTIONAL, keys, content_digest(rows)])


def test_the_version_has_risen_with_the_last_change_of_records():
    now = {"version": __version__, "form": str(SCHEMA_VERSION), "digest": describe_form()}
    assert read_forms()[-1] == now, f"records changed: see {Path(__file__).name}"


def test_each_version_has_one_form_and_versions_rise():
    forms = read_forms()
    versions = [tuple(map(int, form["version"].split("."))) for form in forms]
    assert versions == sorted(set(versions))
    assert len({form["digest"] for form in forms}) == len(forms)
    assert [int(form["form"]) for form in forms] == sorted(int(form["form"]) for form in forms)
