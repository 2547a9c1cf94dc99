"""What ``import dperm_cli`` offers: each name is there, typed and documented, and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import dperm_cli
from dperm_cli.api import name_table, type_stub
from dperm_cli.core import registry

HEAVY = ("numpy", "scipy", "pandas", "matplotlib", "numba", "hydra", "pyarrow", "clarabel")


def start_python(text: str, cwd=None) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, which ends well."""
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=cwd, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done


def run_python(text: str, cwd=None) -> str:
    """What a script prints in a process of its own."""
    return start_python(text, cwd).stdout


@pytest.mark.parametrize("name", dperm_cli.__all__)
def test_a_public_name_is_there(name):
    assert getattr(dperm_cli, name) is not None
    assert name in dir(dperm_cli)


def test_nothing_heavy_is_imported_with_the_package():
    text = (
        "import json, sys; before = set(sys.modules); import dperm_cli; dir(dperm_cli)\n"
        f"print(json.dumps(sorted(set({HEAVY!r}) & set(sys.modules))))"
    )
    assert json.loads(run_python(text)) == []


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dperm_cli.no_such_name


def test_type_checkers_are_told_the_same():
    text = "run `python -m dperm_cli.api.type_stub`"
    assert type_stub.STUB.read_text() == type_stub.format_stub(), text


@pytest.mark.parametrize("place", ["before", "after"])
def test_audits_can_be_called_whoever_imports_their_room_first(place):
    first, then = "import dperm_cli.audit.replay", "assert callable(dperm_cli.audit)"
    lines = [first, then] if place == "before" else ["import dperm_cli", then, first, then]
    run_python("\n".join([*lines, "assert dperm_cli.audit.replay.replay"]))


@pytest.mark.parametrize("room", registry.ROOMS)
def test_a_room_offers_its_classes(room):
    offered = getattr(dperm_cli, registry.ROOMS[room])
    for name in registry.list_shipped(room):
        word = registry.class_name(name)
        assert getattr(offered, word) is registry.load(room, name)
        assert word in dir(offered)
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = offered.NoSuchThing


def test_no_name_stands_for_two_things():
    """A name of a plug-in's base and one of a call or a loss must not hide each other."""
    tables = (name_table.OBJECTS, name_table.CALLS, name_table.ROOMS, name_table.PLACES)
    every = [name for table in tables for name in table]
    assert len(every) == len(set(every))
