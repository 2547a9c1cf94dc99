"""What ``import dperm_cli`` offers: each name is there, typed and documented, and nothing heavy."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil
import pydoc
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
    first = "import dperm_cli.audit.replay; from dperm_cli.audit import replay; replay.replay"
    then = "import types; assert type(dperm_cli.audit) is types.FunctionType"
    lines = [first, then] if place == "before" else ["import dperm_cli", then, first, then]
    run_python("\n".join(lines))


@pytest.mark.parametrize("name", [name for name in name_table.CALLS if name[0].islower()])
def test_a_public_call_is_the_function_and_no_room(name):
    importlib.import_module("dperm_cli.audit.replay")
    made = getattr(dperm_cli, name)
    assert inspect.isfunction(made)
    assert repr(made).startswith(f"<function {name} at ")
    assert pickle.loads(pickle.dumps(made)) is made
    page = pydoc.render_doc(made, renderer=pydoc.plaintext)
    assert "PACKAGE CONTENTS" not in page
    assert made.__doc__.splitlines()[0] in page
    assert list(inspect.signature(made).parameters)


def test_calls_that_are_named_like_rooms_are_listed():
    rooms = {one.name for one in pkgutil.iter_modules(dperm_cli.__path__)}
    named = rooms & {*name_table.CALLS, *name_table.OBJECTS, *name_table.PLACES}
    assert named == set(dperm_cli.CALLS_NAMED_LIKE_ROOMS)


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
