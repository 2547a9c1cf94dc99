"""JSON schemas of the YAML files of a run: for editors, and for help and completion.

``python -m dperm_cli.runner.editor_schemas`` writes ``conf/schema.json`` (the keys of a run) and
``conf/<group>/schema.json`` from the declared fields. Help and completion read these files, so that
they import no plug-in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.catalogue import GROUPS, SCHEMA, choices
from dperm_cli.core.fields import fields_of, keys_of
from dperm_cli.core.files import write_atomically
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.runner.compose.cell_schema import CellKeys, Privacy, StudyKeys

_HEAD = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}


def make_schemas() -> dict[Path, str]:
    """The text of every schema file, by its path."""
    root = Path(find_shipped("conf"))
    fields = fields_of(CellKeys) | fields_of(StudyKeys)
    run = {key: field.schema() for key, field in fields.items()}
    run |= {"defaults": {"type": "array"}} | {group: {"type": "object"} for group in GROUPS}
    found = {root / SCHEMA: _HEAD | {"properties": run, "additionalProperties": False}}
    for group in GROUPS:
        files = [describe_file(group, name) for name in choices(group)]
        found[root / group / SCHEMA] = _HEAD | {"required": ["name"], "oneOf": files}
    return {path: json.dumps(schema, indent=1) + "\n" for path, schema in found.items()}


def describe_file(group: str, name: str) -> dict[str, Any]:
    """The schema of a YAML file that chooses one plug-in of a group."""
    keys = {}
    if group == "privacy":
        keys = keys_of(Privacy)
    elif name in registry.names(group):
        keys = keys_of(registry.load(group, name))
    properties = {"name": {"const": name}} | {key: field.schema() for key, field in keys.items()}
    return {"properties": properties, "additionalProperties": False}


if __name__ == "__main__":
    for path, text in make_schemas().items():
        write_atomically(path, text.encode())
