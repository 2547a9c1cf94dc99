"""Hydra composes each distinct combination of group choices once, into plain objects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from dperm_cli.core import catalogue
from dperm_cli.core.errors import InputError, nearest
from dperm_cli.core.paths import shipped

_DEEPEST = 20


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
            if self._extra is not None:
                _check_yaml(os.path.join(self._extra, group, f"{name}.yaml"))

    def _compose(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        overrides = [f"{group}={name}" for group, name in chosen.items()]
        if self._extra:
            overrides.append(f"hydra.searchpath=[{_quoted('file://' + self._extra)}]")
        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(shipped("conf"), version_base="1.3"):
                config = OmegaConf.to_container(hydra_compose("config", overrides), resolve=False)
        except yaml.MarkedYAMLError as error:
            file = error.problem_mark.name if error.problem_mark else "the configuration"
            raise _misread(file, error) from None
        except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
            detail = " ".join(str(error).split())[:200]
            chosen_words = " ".join(f"{group}={name}" for group, name in chosen.items())
            raise InputError("configuration", chosen_words, detail) from None
        assert isinstance(config, dict)
        _refuse_programs(config, "")
        return {str(key): value for key, value in config.items()}


def _check_yaml(path: str) -> None:
    """InputError unless the user's file, where there is one, is a plain map of keys to values."""
    if not os.path.isfile(path):
        return
    name = _short(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1 << 24)
        _check_events(name, text)
        found = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise _misread(path, error) from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise InputError("configuration", name, "is not YAML in UTF-8") from None
    except ValueError as error:
        raise InputError("configuration", name, f"holds a bad value ({error})") from None
    except OSError as error:
        raise InputError("configuration", name, f"cannot be read ({error.strerror})") from None
    if not isinstance(found, dict) or not {"name", "defaults"} & set(found):
        raise InputError("configuration", name, "must be KEY: VALUE lines, one of them name:")


def _check_events(name: str, text: str) -> None:
    """Nothing may repeat a part of the file without end, or nest without end."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InputError("configuration", name, "aliases (*name) are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InputError("configuration", name, f"nests deeper than {_DEEPEST} levels")


def _misread(path: str, error: yaml.MarkedYAMLError) -> InputError:
    """Where a YAML file cannot be read and why, in one line."""
    line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
    return InputError("configuration", _short(path), f"{line}{error.problem or 'is not YAML'}")


def _short(path: str) -> str:
    """group/name.yaml: a whole path would be cut where the name stands."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


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
