"""The folder listing is the registry."""

from __future__ import annotations

import os

import pytest

from dperm_cli.core import catalogue, registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped


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


def test_private_modules_are_not_plugins():
    assert not any(name.startswith("_") for room in registry.ROOMS for name in registry.names(room))
