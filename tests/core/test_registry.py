"""The folder listing is the registry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dperm_cli.core import catalogue, registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped

PACKAGE = Path(registry.__file__).parents[1]
# What lies beside the group folders of a room and is no plug-in.
HELPERS = {"mechanism": ("adversary",)}


@pytest.mark.parametrize("room", list(registry.ROOMS))
def test_every_module_holds_its_class(room):
    assert registry.names(room)
    for name in registry.names(room):
        cls = registry.load(room, name)
        assert cls.__name__ == registry.class_name(name)


@pytest.mark.parametrize("room", list(registry.ROOMS))
def test_every_plugin_has_a_yaml_with_a_description(room):
    found = catalogue.choices(room)
    for name in registry.names(room):
        assert name in found, f"conf/{room}/{name}.yaml is missing"
        assert len(found[name].summary) > 10
        assert os.path.getsize(os.path.join(find_shipped("conf"), room, f"{name}.yaml")) < 4096


def test_unknown_name_suggests():
    with pytest.raises(InputError) as caught:
        registry.load("mechanism", "nosy_sgd")
    assert caught.value.nearest == "noisy_sgd"


@pytest.mark.parametrize("room", list(registry.ROOMS))
def test_a_folder_is_a_group_or_shared(room):
    """No plug-in lies where the registry does not look, and no two have one name."""
    folder = PACKAGE / registry.ROOMS[room]
    groups = {name for name in registry.GROUPS.get(room, ()) if name}
    assert {path.parent.name for path in folder.glob("*/__init__.py")} - {"shared"} == groups
    files = [path for place in (groups or {""}) for path in (folder / place).glob("[!_]*.py")]
    assert sorted(p.stem for p in files if p.stem != "base") == list(registry.names(room))
    beside = {path.stem for path in folder.glob("[!_]*.py")} if groups else set()
    assert beside <= {"base", *HELPERS.get(room, ())}


@pytest.mark.parametrize("room", list(registry.ROOMS))
def test_what_plugins_share_is_no_plugin(room):
    assert not any(".shared." in module for module in registry.find_modules(room).values())
