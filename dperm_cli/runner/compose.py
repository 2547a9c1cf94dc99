"""Hydra composes each distinct combination of group choices once, into plain objects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from dperm_cli.core import catalogue
from dperm_cli.core.errors import InputError, nearest
from dperm_cli.core.paths import shipped


class Composer:
    """Composes configurations from the shipped groups and a user's own folder."""

    def __init__(self, config_dir: str | None = None) -> None:
        if config_dir is not None and not os.path.isdir(config_dir):
            raise InputError("--config-dir", config_dir, "must be an existing folder")
        self._extra = None if config_dir is None else os.path.abspath(config_dir)
        self._cache: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}

    def known(self, group: str) -> dict[str, catalogue.Choice]:
        """The names that can be chosen for a group."""
        return catalogue.choices(group, self._extra)

    def compose(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        """The configuration for these group choices, as plain dicts (shared: do not change)."""
        key = tuple(sorted(chosen.items()))
        if key not in self._cache:
            self._check_names(chosen)
            self._cache[key] = self._compose(chosen)
        return self._cache[key]

    def _check_names(self, chosen: Mapping[str, str]) -> None:
        for group, name in chosen.items():
            known = self.known(group)
            if not isinstance(name, str) or name not in known:
                raise unknown_choice(group, name, list(known))

    def _compose(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        overrides = [f"{group}={name}" for group, name in chosen.items()]
        if self._extra:
            overrides.append(f"hydra.searchpath=[{_quoted('file://' + self._extra)}]")
        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(shipped("conf"), version_base="1.3"):
                config = OmegaConf.to_container(hydra_compose("config", overrides), resolve=False)
        except (HydraException, OmegaConfBaseException, YAMLError) as error:
            detail = " ".join(str(error).split())[:200]
            raise InputError("configuration", " ".join(overrides), detail) from None
        assert isinstance(config, dict)
        _refuse_programs(config, "")
        return {str(key): value for key, value in config.items()}


def unknown_choice(group: str, name: object, known: list[str]) -> InputError:
    """The error for a name that no YAML of the group has."""
    guess = nearest(str(name), known)
    names = ", ".join(known)
    shorter = f"must be one of {names}" if guess is None else f"is not a {group}; known: {names}"
    return InputError(group, name, shorter, known)


def _refuse_programs(node: Any, path: str) -> None:
    # A configuration is data: nothing in it may be looked up elsewhere or run.
    if isinstance(node, dict):
        for key, value in node.items():
            if str(key).startswith("_"):
                raise InputError(f"{path}{key}", value, "keys beginning with _ are not allowed")
            _refuse_programs(value, f"{path}{key}.")
    elif isinstance(node, list):
        for item in node:
            _refuse_programs(item, path)
    elif isinstance(node, str) and "${" in node:
        raise InputError(path.rstrip("."), node, "interpolations are not allowed")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
