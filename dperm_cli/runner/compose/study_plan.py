"""Turn a request into the list of its cells; all are validated before any runs."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dperm_cli.core import catalogue
from dperm_cli.core.catalogue import GROUPS
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.runner.compose import cell_schema, inner_configuration
from dperm_cli.runner.compose.cell_schema import STUDY_KEYS
from dperm_cli.runner.compose.command_line import Request, Setting, parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.sweep.backends import Options

MOST_CELLS = 100_000


@dataclass(frozen=True)
class Study:
    """Cells in axis order, and the keys that belong to the study as a whole."""

    cells: tuple[cell_schema.Cell, ...]
    name: str
    format: str
    out: str
    force: bool
    options: Options
    save: Any = None


def parse_request(arguments: list[str]) -> tuple[Request, Study]:
    """What a command line asks for, every cell of it typed; InputError for what cannot be."""
    request = parse(arguments)
    check_levels(request)
    study = plan_study(request)
    check_sampler(request, study.cells)
    return request, study


def check_levels(request: Request) -> None:
    """InputError for an epsilon, though it be the default, beside ``information``."""
    typed = {setting.key: setting.values for setting in request.settings}
    if "epsilon" in typed and any(value is not None for value in typed.get("information", ())):
        allowed = "cannot stand beside information=, from which a local epsilon follows"
        raise InputError("epsilon", typed["epsilon"][0], allowed)


def plan_study(request: Request) -> Study:
    """Expand the axes of a request and type every cell."""
    composer = Composer(request.config_dir)
    settings = _last_wins(request.settings)
    check_keys({setting.key: setting.values[0] for setting in settings})
    defaults = composer.compose({})
    axes = [(s.key, _axis(s, settings, composer, defaults)) for s in settings]
    for key, values in axes:
        if key in STUDY_KEYS and len(values) > 1:
            raise InputError(key, values, "takes one value for the whole study")
    count = math.prod(len(values) for _, values in axes)
    if count > MOST_CELLS:
        raise InputError("-m", f"{count} cells", f"must be at most {MOST_CELLS}; split the study")
    configs = [
        configure(dict(zip((k for k, _ in axes), combination, strict=True)), composer)
        for combination in itertools.product(*(values for _, values in axes))
    ]
    built: dict[str, Any] = {}
    cells = distinct([cell_schema.build_cell(config, built) for config in configs])
    _check_seed(settings, cells)
    return _study(cells, configs[0])


def _last_wins(settings: tuple[Setting, ...]) -> list[Setting]:
    by_key = {setting.key: setting for setting in settings}
    return list(by_key.values())


def check_keys(values: Mapping[str, Any]) -> None:
    """UnknownKey for a key, of those with their values, that no configuration has at its top."""
    for key in values:
        head, dot, _ = key.partition(".")
        if head not in (GROUPS if dot else cell_schema.known_top_level()):
            guess = None if dot else suggest_nested_key(key, values)
            raise UnknownKey(key, cell_schema.known_top_level(), guess)


def suggest_nested_key(
    key: str, values: Mapping[str, Any], groups: Sequence[str] = GROUPS
) -> str | None:
    """``constraint.radius`` for ``radius``: the group whose choice has the key, or None.

    A choice among ``values`` comes first, then the one that holds by default, then any other.
    """
    given = {g: values[g][0] if isinstance(values[g], list) else values[g]
             for g in groups if values.get(g)}  # fmt: skip
    every = {group: catalogue.choices(group) for group in groups}
    for chosen in (given, catalogue.defaults()):
        for group in groups:
            choice = every[group].get(str(chosen.get(group)))
            if choice is not None and key in _keys_of(choice):
                return f"{group}.{key}"
    for group in groups:
        if any(key in _keys_of(choice) for choice in every[group].values()):
            return f"{group}.{key}"
    return None


def _keys_of(choice: catalogue.Choice) -> list[str]:
    return [line.partition(":")[0].strip() for line in choice.keys]


def _check_seed(settings: list[Setting], cells: tuple[cell_schema.Cell, ...]) -> None:
    given = [setting for setting in settings if setting.key == "seed"]
    if given and any(cell.noise == "secure" for cell in cells):
        allowed = "is not read by noise=secure, which has no seed; leave it out"
        raise InputError("seed", given[0].values[0], allowed)


def check_sampler(request: Request, cells: tuple[cell_schema.Cell, ...]) -> None:
    """InputError for a sampler that was typed, where no cell of the study draws by one."""
    if any(cell_schema.uses_sampler(cell.config["mechanism"]) for cell in cells):
        return
    for setting in request.settings:
        if setting.key.partition(".")[0] == "sampler" and setting.values != ("auto",):
            names = ", ".join(dict.fromkeys(cell.mechanism_name for cell in cells))
            allowed = f"{names} draws from no law; a sampler is for mechanism=exponential"
            raise InputError(setting.key, setting.values[0], allowed)


def _axis(
    setting: Setting, settings: list[Setting], composer: Composer, defaults: dict[str, Any]
) -> list[Any]:
    """The values of one setting; a list is an axis unless the key itself takes a list."""
    values = list(setting.values)
    if setting.sweep or not isinstance(values[0], list):
        return values
    group, _, key = setting.key.partition(".")
    if key:
        chosen = {s.key: s.values for s in settings}
        first: Any = chosen[group][0] if group in chosen else defaults[group]["name"]
        first = first[0] if isinstance(first, list) and first else first
        if cell_schema.list_valued(group, composer.compose({group: str(first)})[group], key):
            return values
    if not values[0]:
        raise InputError(setting.key, "[]", "needs at least one value")
    return list(values[0])


def configure(values: dict[str, Any], composer: Composer) -> dict[str, Any]:
    """The composed configuration of one cell."""
    chosen = {key: value for key, value in values.items() if key in GROUPS}
    composed = composer.compose(chosen)
    # groups are shared between cells, but for those of which a key is set
    config = dict(composed)
    for group in {key.partition(".")[0] for key in values if "." in key}:
        config[group] = copy.deepcopy(config[group])
    config["mechanism"] = inner_configuration.fill_defaults(config["mechanism"], composer)
    # mechanism.inner before mechanism.inner.steps
    for key in sorted(values, key=lambda key: key.count(".")):
        group, dot, name = key.partition(".")
        if dot:
            inner_configuration.set_key(config[group], group, name, values[key], composer)
        elif key not in GROUPS:
            config[key] = values[key]
    return config


def distinct(cells: list[cell_schema.Cell]) -> tuple[cell_schema.Cell, ...]:
    """Every cell once, in order."""
    by_identity = {hash_facts(cell.config): cell for cell in cells}
    return tuple(by_identity.values())


def _study(cells: tuple[cell_schema.Cell, ...], config: dict[str, Any]) -> Study:
    asked = cell_schema.StudyKeys.parse(config)
    name = _study_name(cells)
    where = f"outputs/{name}" if asked.out == "auto" else asked.out
    return Study(cells, name, asked.format, where, asked.force, asked, asked.save)


def _study_name(cells: tuple[cell_schema.Cell, ...]) -> str:
    """Readable and stable: what was run and a hash of every cell's configuration."""
    mechanisms = list(dict.fromkeys(cell.mechanism_name for cell in cells))
    datasets = list(dict.fromkeys(cell.config["dataset"]["name"] for cell in cells))
    words = [*datasets[:2], *mechanisms[:2]]
    return f"{'-'.join(words)}-{hash_facts([cell.config for cell in cells])[:8]}"
