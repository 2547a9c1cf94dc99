"""Compose the shipped configuration files with Hydra, and keep what it composed for later runs.

Importing Hydra and composing a configuration take longer than most of what a small run does. The
shipped files change only with the version, so the cache keeps each composed configuration under a
digest of all of them. Hydra is imported where one is not in the cache. As a configuration decides
what a release does, only a file of this user's that nobody else can write to is believed.
"""

from __future__ import annotations

import contextlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from dperm_cli.core.digests import hash_parts, hash_sources
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import write_atomically
from dperm_cli.core.installed_versions import find_version
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.private_folders import read_own
from dperm_cli.runner.compose import user_yaml

FOLDER = "configurations"  # of the cache
_LIBRARIES = ("hydra-core", "omegaconf")


@cache
def compose(root: str, *overrides: str) -> dict[str, Any]:
    """The configuration ``config.yaml`` of a folder with some choices, as plain dicts.

    Args:
        root: The folder of configuration files.
        overrides: Choices as Hydra takes them, ``group=name``.

    Raises:
        InputError: Hydra refuses it, or it holds anything but data.
    """
    kept = _find_place(root, overrides)
    found = None if kept is None else _read(kept)
    if found is None:
        found = _compose_with_hydra(root, overrides)
        if kept is not None:
            _write(kept, found)
    user_yaml.refuse_programs(found, "")
    return found


def _compose_with_hydra(root: str, overrides: tuple[str, ...]) -> dict[str, Any]:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    before = GlobalHydra.instance().hydra  # a notebook may have a Hydra of its own
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(root, version_base="1.3"):
            config = OmegaConf.to_container(hydra_compose("config", list(overrides)), resolve=False)
    except (HydraException, OmegaConfBaseException) as error:
        detail = " ".join(str(error).split())[:200]
        raise InputError("configuration", " ".join(overrides), detail) from None
    finally:
        GlobalHydra.instance().hydra = before  # Hydra may have made another instance
    assert isinstance(config, dict)
    return {str(key): value for key, value in config.items()}


def _find_place(root: str, overrides: tuple[str, ...]) -> Path | None:
    folder = cache_dir()
    if folder is None:
        return None
    name = hash_parts(_identify_files(root), "\0".join(overrides))
    return folder / FOLDER / f"{name}.json"


@cache
def _identify_files(root: str) -> str:
    """A digest of all YAML files of a folder, and of the libraries that compose them."""
    files = sorted(Path(root).rglob("*.yaml"))
    return hash_sources(files, Path(root)) + "".join(f" {find_version(one)}" for one in _LIBRARIES)


def _read(kept: Path) -> dict[str, Any] | None:
    """What the cache has, or None where that is nothing, damaged, or not this user's own."""
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        found = json.loads(read_own(kept) or b"{}")
        # the name is in the digest: a file may have been given another's name
        if found["digest"] == hash_parts(kept.name, json.dumps(found["config"])):
            return found["config"]
    return None


def _write(kept: Path, config: dict[str, Any]) -> None:
    digest = hash_parts(kept.name, json.dumps(config))
    text = json.dumps({"digest": digest, "config": config})
    if json.loads(text)["config"] != config:
        return  # not all that YAML says can be said in JSON
    with contextlib.suppress(StorageError):  # a cache that cannot be written is none
        write_atomically(kept, text.encode(), sync=False, private=True)
