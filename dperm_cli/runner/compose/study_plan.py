"""Turn a request into the list of its cells; all are validated before any runs."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.core import catalogue, checks
from dperm_cli.core.catalogue import GROUPS
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import FACTS_SIZE, hash_each, hash_parts, write_facts
from dperm_cli.core.errors import InputError
from dperm_cli.core.shared_json import SharedJson
from dperm_cli.results.records.given_names import join_names
from dperm_cli.runner.compose import cell_schema, inner_configuration, plugin_objects, public_radius
from dperm_cli.runner.compose.cell_schema import STUDY_KEYS
from dperm_cli.runner.compose.command_line import Request, Setting, parse
from dperm_cli.runner.compose.composer import Composer

MOST_CELLS = 100_000


@dataclass(frozen=True)
class Study:
    """Cells in axis order, the folder they go to, and the keys that belong to the study as a whole.

    ``out`` is a folder also where ``keys.out`` is ``auto``.
    """

    cells: tuple[cell_schema.Cell, ...]
    name: str
    out: str
    keys: cell_schema.StudyKeys


def parse_request(arguments: list[str]) -> tuple[Request, Study]:
    """What a command line asks for, every cell of it typed; InputError for what cannot be."""
    request = parse(arguments)
    return request, plan_requests([request])


def plan_requests(requests: Sequence[Request]) -> Study:
    """The study of all cells that some requests ask for, in their order, each cell once."""
    studies = []
    for request in requests:
        check_levels(request)
        study = plan_study(request)
        check_sampler(request, study.cells)
        studies.append(study)
    if len(studies) == 1:
        return studies[0]
    cells = distinct([cell for study in studies for cell in study.cells])
    name, first = _study_name(cells), studies[0]
    out = f"outputs/{name}" if first.keys.out == "auto" else first.out
    return Study(cells, name, out, first.keys)


def plan_release(requests: Sequence[Request]) -> Study:
    """The study of a release: its ball has the radius of the public rule, where there is one.

    Who names a set, a radius or a choice, or has configuration files, gets what they say.
    """
    study = plan_requests(requests)
    named = {setting.key.partition(".")[0] for request in requests for setting in request.settings}
    if named & {"constraint", "tune"} or any(request.config_dir for request in requests):
        return study
    if not all(public_radius.has_rule(cell) for cell in study.cells):
        return study
    radius = Setting(public_radius.KEY, (public_radius.AUTO,), False)
    return plan_requests([replace(one, settings=(*one.settings, radius)) for one in requests])


def drop_study_keys(arguments: Sequence[str], keys: Collection[str] = STUDY_KEYS) -> list[str]:
    """The words of a command line that its results depend on.

    Args:
        arguments: All words.
        keys: The keys that say where and how it is run, which no result depends on.
    """
    return [word for word in arguments if word.partition("=")[0].lstrip("+") not in keys]


def check_levels(request: Request) -> None:
    """InputError for an epsilon, though it be the default, beside ``information``."""
    typed = {setting.key: setting.values for setting in request.settings}
    if "epsilon" in typed and any(value is not None for value in typed.get("information", ())):
        raise InputError("epsilon", typed["epsilon"][0], cell_schema.ONE_LEVEL)


def plan_study(request: Request) -> Study:
    """Expand the axes of a request and type every cell."""
    settings = {setting.key: setting for setting in request.settings}  # the last one of a key holds
    composer = Composer(request.config_dir)
    check_tuned(settings)
    check_keys({key: setting.values[0] for key, setting in settings.items()})
    axes = {key: _axis(setting, settings, composer) for key, setting in settings.items()}
    for key, values in axes.items():
        if key.partition(".")[0] in STUDY_KEYS and len(values) > 1:
            raise InputError(key, values, "takes one value for the whole study")
    count = math.prod(map(len, axes.values()))
    if count > MOST_CELLS:
        raise InputError("-m", f"{count} cells", f"must be at most {MOST_CELLS}; split the study")
    chosen = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    configs = _configure_cells(chosen, composer)
    cells = distinct(
        replace(cell, names=names) if (names := composer.find_own(values)) else cell
        for cell, values in zip(cell_schema.build_cells(configs), chosen, strict=True)
    )
    _check_seed(settings, cells)
    return _study(cells, configs[0])


def check_tuned(settings: Mapping[str, Setting]) -> None:
    """InputError for a key that was set though a private choice gives it its value."""
    tunes = settings["tune"].values if "tune" in settings else ()
    for key in (key for tune in tunes if isinstance(tune, Mapping) for key in tune):
        if key in settings:
            raise InputError(key, settings[key].values[0], "is chosen by tune=: leave it out")


def check_keys(values: Mapping[str, Any]) -> None:
    """UnknownKey for a key, of those with their values, that no configuration has at its top."""
    nested = (*GROUPS, *cell_schema.MAPS)
    checks.known_keys(
        (key for key in values if "." not in key or key.partition(".")[0] not in nested),
        cell_schema.known_top_level(),
        guess=lambda key: None if "." in key else suggest_nested_key(key, values),
    )


def suggest_nested_key(
    key: str, values: Mapping[str, Any], groups: Sequence[str] = GROUPS
) -> str | None:
    """``constraint.radius`` for ``radius``: the group whose choice has the key, or None.

    A choice among ``values`` comes first, then the one that holds by default, then any other.
    """
    given = {g: values[g][0] if isinstance(values[g], list) else values[g]
             for g in groups if values.get(g)}  # fmt: skip
    every = {group: catalogue.choices(group) for group in groups}
    places = [
        (group, every[group].get(str(chosen.get(group))))
        for chosen in (given, catalogue.defaults())
        for group in groups
    ]
    places += [(group, choice) for group in groups for choice in every[group].values()]
    near = (f"{group}.{key}" for group, choice in places if choice and key in choice.key_names)
    return next(near, None)


def _check_seed(settings: Mapping[str, Setting], cells: tuple[cell_schema.Cell, ...]) -> None:
    if "seed" in settings and any(cell.noise == "secure" for cell in cells):
        allowed = "is not read by noise=secure, which has no seed; leave it out"
        raise InputError("seed", settings["seed"].values[0], allowed)


def check_sampler(request: Request, cells: tuple[cell_schema.Cell, ...]) -> None:
    """InputError for a sampler that was typed, where no cell of the study draws by one."""
    for setting in request.settings:
        if setting.key.partition(".")[0] == "sampler" and setting.values != ("auto",):
            if any(plugin_objects.uses_sampler(cell.config["mechanism"]) for cell in cells):
                return
            names = ", ".join(dict.fromkeys(cell.mechanism_name for cell in cells))
            allowed = f"{names} draws from no law; a sampler is for mechanism=exponential"
            raise InputError(setting.key, setting.values[0], allowed)


def _axis(setting: Setting, settings: Mapping[str, Setting], composer: Composer) -> list[Any]:
    """The values of one setting; a list is an axis unless the key itself takes a list."""
    values = list(setting.values)
    if setting.sweep or not isinstance(values[0], list):
        return values
    whole, _, key = setting.key.rpartition(".")
    group = whole.partition(".")[0]
    if key and group in GROUPS:
        first: Any = settings[whole].values[0] if whole in settings else None
        first = first[0] if isinstance(first, list) and first else first
        first = first.get("name") if isinstance(first, dict) else first
        config: Any = {"name": str(first)}
        if whole == group:
            config = composer.compose({} if first is None else {group: str(first)})[group]
        if plugin_objects.list_valued(group, config, key):
            return values
    if not values[0]:
        raise InputError(setting.key, "[]", "needs at least one value")
    return list(values[0])


def configure(values: dict[str, Any], composer: Composer) -> dict[str, Any]:
    """The composed configuration of one cell."""
    config = _configure_groups({k: v for k, v in values.items() if is_of_group(k)}, composer)
    return _set_run_keys(config, {k: v for k, v in values.items() if not is_of_group(k)})


def is_of_group(key: str) -> bool:
    """Whether a key belongs to a group, and not to the run as a whole."""
    return "." in key or key in GROUPS


def _configure_cells(chosen: Sequence[dict[str, Any]], composer: Composer) -> list[dict[str, Any]]:
    """The configuration of each cell, all with the same keys; equal values of groups are shared."""
    shared: dict[tuple[Any, ...], dict[str, Any]] = {}
    of_groups = [key for key in chosen[0] if is_of_group(key)]
    of_run = [key for key in chosen[0] if not is_of_group(key)]
    found = []
    for values in chosen:
        # values of an axis, which live as long as ``chosen``
        same = tuple([id(values[key]) for key in of_groups])
        if same not in shared:
            shared[same] = _configure_groups({key: values[key] for key in of_groups}, composer)
        found.append(_set_run_keys(shared[same], {key: values[key] for key in of_run}))
    return found


def _configure_groups(values: dict[str, Any], composer: Composer) -> dict[str, Any]:
    """A configuration with these values of its groups and their keys."""
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
    return config


def _set_run_keys(composed: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the values of keys that belong to no group."""
    config = {**composed, **own}
    if config["save"] not in (None, "none") and "trials" not in own:
        config["trials"] = 1  # what leaves is one release, and no other is spent for it
    return config


def distinct(cells: Iterable[cell_schema.Cell]) -> tuple[cell_schema.Cell, ...]:
    """Every cell once, in order; one that was asked for under several names has all of them."""
    found: dict[str, cell_schema.Cell] = {}
    texts = SharedJson(write_facts)
    for cell in cells:
        name = hash_parts(texts.write(cell.config))
        first = found.setdefault(name, cell)
        if first.names != cell.names:
            names = {group: join_names(first.name_of(group), cell.name_of(group))
                     for group in {**first.names, **cell.names}}  # fmt: skip
            found[name] = replace(first, names=names)
    return tuple(found.values())


def _study(cells: tuple[cell_schema.Cell, ...], config: dict[str, Any]) -> Study:
    keys = cell_schema.StudyKeys.parse(config)
    name = _study_name(cells)
    return Study(cells, name, f"outputs/{name}" if keys.out == "auto" else keys.out, keys)


def _study_name(cells: tuple[cell_schema.Cell, ...]) -> str:
    """Readable and stable: what was run and a hash of every cell's configuration."""
    mechanisms = list(dict.fromkeys(cell.mechanism_name for cell in cells))
    datasets = list(dict.fromkeys(cell.config["dataset"]["name"] for cell in cells))
    words = [*datasets[:2], *mechanisms[:2]]
    return f"{'-'.join(words)}-{_hash_configs(cells)[:8]}"


def _hash_configs(cells: Sequence[cell_schema.Cell]) -> str:
    """``hash_facts`` of the list of all configurations, of which few are in memory as text."""
    texts = SharedJson(write_facts)
    parts = (("," if place else "") + texts.write(cell.config) for place, cell in enumerate(cells))
    return hash_each(itertools.chain("[", parts, "]"), FACTS_SIZE)
