"""A change of what records are comes with a new version of dperm, and a line in record_forms.csv.

Where the first test fails, a column, its kind or role, the footer or how values are digested has
changed. Raise ``SCHEMA_VERSION`` if older files are read in another way, raise ``__version__``, and
add the line that the failure shows. Lines that are there stay: such records exist. The last commit
before the change leaves a study in ``tests/cli/old_study``, as the README there says.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dperm_cli import __version__
from dperm_cli.core.digests import hash_facts
from dperm_cli.results.record_format import content_digest, encode
from dperm_cli.results.records.schema import COLUMNS, OPTIONAL, SCHEMA_VERSION, normalise
from tests.results.conftest import trial_rows

FORMS = Path(__file__).with_name("record_forms.csv")
STUDIES = Path(__file__).parents[1] / "cli" / "old_study"
PAGE = Path(__file__).parents[2] / "docs" / "records.md"
BEFORE = {"version": "0.1.0", "form": "1"}  # older than the list of forms


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


def find_studies() -> dict[str, set[tuple[str, str]]]:
    """Commit -> version and form, as its manifest and the footers of its records have them."""
    found = {}
    for study in sorted(path for path in STUDIES.iterdir() if path.is_dir()):
        manifest = json.loads((study / "manifest.json").read_text())
        footers = [pq.read_metadata(path).metadata for path in (study / "records").iterdir()]
        forms = {footer[b"dperm.schema"].decode() for footer in footers}
        found[study.name] = {(manifest["versions"]["dperm"], form) for form in forms}
    return found


def find_missing(forms: list[dict[str, str]], studies: dict[str, set[tuple[str, str]]]) -> set:
    """Versions and forms of which there is no study, though records of them can change no more."""
    past = {(form["version"], form["form"]) for form in [BEFORE, *forms]}
    return past - set().union(*studies.values()) - {(__version__, str(SCHEMA_VERSION))}


def test_each_form_that_is_past_has_a_study():
    forms, studies = read_forms(), find_studies()
    assert find_missing(forms, studies) == set()
    without = {commit: made for commit, made in studies.items() if ("0.3.0", "2") not in made}
    assert find_missing(forms, without) == {("0.3.0", "2")}


def test_a_form_of_a_study_is_on_the_list():
    known = {(form["version"], form["form"]) for form in [BEFORE, *read_forms()]}
    for made in find_studies().values():
        assert len(made) == 1
        assert made <= known


def test_the_page_has_the_same_forms_and_studies():
    text = PAGE.read_text().partition("## Forms of records")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (\d+\.\d+\.\d+) \| (\d+) \| .+ \| (.*) \|$", text, re.M)
    listed = [(form["version"], form["form"]) for form in [BEFORE, *read_forms()]]
    assert [(version, form) for version, form, _ in lines] == listed
    named = {
        commit: {(version, form)}
        for version, form, commits in lines
        for commit in re.findall(r"`(\w+)`", commits)
    }
    assert named == find_studies()
