"""JSON schemas for editors: every shipped YAML file keeps to its own, and a mistake in it shows.

A schema is a ``.json`` file below ``conf/``. Which one belongs to ``conf/GROUP/NAME.yaml`` its path
says: one with both words in it (``GROUP/NAME.json``), else one with the group's (``GROUP.json``,
``GROUP/schema.json``, ``GROUP.schema.json``), else ``schema.json``. That of ``conf/config.yaml``
has ``config`` in its path, or is ``schema.json``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.json_schema import find_errors

CONF = Path(__file__).resolve().parents[2] / "conf"
FILES = [
    path.relative_to(CONF).with_suffix("").as_posix()
    for path in sorted(CONF.rglob("*.yaml"))
    if path.parent.name != "experiment"  # a file of its own form, whose keys are no settings
]
MISTAKES = {
    "mechanism/noisy_gd": [{"steps": 0}, {"steps": 1.5}, {"averaging": "middle"}, {"name": 3}],
    "mechanism/noisy_sgd": [{"batch": "auto"}, {"sampling": "often"}, {"output": None}],
    "constraint/l2_ball": [{"radius": 0}, {"radius": "wide"}],
    "dataset/breast_cancer": [{"test_fraction": 1}, {"intercept": "yes"}, {"rows": "units"}],
    "privacy/auto": [{"relation": "replace"}],
}


def find_schema(group: str, name: str) -> Any:
    """The schema of a file; AssertionError where there is none."""
    files = sorted(CONF.rglob("*.json"), key=lambda path: (len(path.parts), path))
    paths = {path: set(re.split(r"[/.]", path.relative_to(CONF).as_posix())) for path in files}
    for wanted in ({group, name}, {group}, {"schema"}):
        for path, words in paths.items():
            if wanted <= words:
                return json.loads(path.read_text(encoding="utf-8"))
    raise AssertionError(f"no schema for {group}/{name}.yaml")


def read_file(file: str) -> tuple[Any, Any]:
    """A shipped file's content, and its schema."""
    group, _, name = file.partition("/")
    text = (CONF / f"{file}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text), find_schema(group, name or group)


@pytest.mark.parametrize("file", FILES)
def test_every_shipped_file_keeps_to_its_schema(file):
    content, schema = read_file(file)
    assert find_errors(content, schema) == []


@pytest.mark.parametrize("file", FILES)
def test_a_key_that_is_not_known_shows(file):
    content, schema = read_file(file)
    assert find_errors({**content, "stepz": 1}, schema)


@pytest.mark.parametrize(
    ("file", "mistake"),
    [(file, mistake) for file, mistakes in MISTAKES.items() for mistake in mistakes],
    ids=str,
)
def test_a_value_that_the_command_line_refuses_shows(file, mistake, dperm):
    content, schema = read_file(file)
    group, _, name = file.partition("/")
    if "name" not in mistake:  # which is the group's own word on the command line
        ((key, value),) = mistake.items()
        word = f"{group}.{key}={json.dumps(value)}"
        assert dperm("run", "--cfg", "job", f"{group}={name}", word).code == 2
    assert find_errors({**content, **mistake}, schema)


@pytest.mark.parametrize("file", [file for file in FILES if "/" in file])
def test_every_key_has_its_meaning_and_its_default(file):
    content, schema = read_file(file)
    described = json.dumps(schema)
    keys = content.keys() - {"name"}
    assert all(f'"{key}"' in described for key in keys)
    assert described.count('"description"') >= len(keys)


@pytest.mark.parametrize(
    ("value", "schema", "valid"),
    [
        (3, {"type": "integer", "minimum": 3}, True),
        (2, {"type": "integer", "minimum": 3}, False),
        (True, {"type": "integer"}, False),
        (1.0, {"type": "integer"}, True),
        ("auto", {"anyOf": [{"const": "auto"}, {"type": "integer"}]}, True),
        ("all", {"anyOf": [{"const": "auto"}, {"type": "integer"}]}, False),
        (1, {"enum": [True]}, False),
        ({"a": 1}, {"properties": {"a": {"type": "null"}}}, False),
        ({"a": 1}, {"properties": {}, "additionalProperties": False}, False),
        ({"a": 1}, {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["b"]}}}, False),
        ([1, "b"], {"items": {"type": "integer"}}, False),
        ({"n": "a"}, {"if": {"required": ["n"]}, "then": {"required": ["m"]}}, False),
        ({}, {"if": {"required": ["n"]}, "then": {"required": ["m"]}}, True),
        (1, {"oneOf": [{"type": "integer"}, {"type": "number"}]}, False),
    ],
)
def test_the_reader_of_schemas_itself(value, schema, valid):
    assert (find_errors(value, schema) == []) == valid


def test_a_rule_that_the_reader_does_not_know_is_not_passed_over():
    with pytest.raises(KeyError, match="multipleOf"):
        find_errors(3, {"multipleOf": 2})
