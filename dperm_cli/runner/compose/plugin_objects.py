"""Build plug-ins from their configurations, each once in a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import configure, fields_of, keys_of


def build_once(made: dict[str, Any], group: str, config: dict[str, Any], **extra: Any) -> Any:
    return recall(made, f"{group} {config!r}", build, group, config, **extra)


def recall(
    made: dict[str, Any], key: str, make: Callable[..., Any], *args: Any, **extra: Any
) -> Any:
    """``make(*args, **extra)``, once for each key: a ``repr`` tells 1, 1.0 and True apart."""
    if key not in made:
        made[key] = make(*args, **extra)
    return made[key]


def recall_same(made: dict[str, Any], key: str, value: Any, make: Callable[[Any], Any]) -> Any:
    """``make(value)``, once for a mapping or list that cells one after the other share."""
    if not isinstance(value, (dict, list)):
        return make(value)
    last = made.get(key)  # the value is kept: its id is no other's while it lives
    if last is None or last[0] is not value:
        last = made[key] = value, make(value)
    return last[1]


def build(group: str, config: dict[str, Any], **extra: Any) -> Any:
    """The plug-in object of a group from its configuration; every key is checked."""
    if not isinstance(config, dict) or "name" not in config:
        raise InputError(group, config, "needs a name")
    given = {key: value for key, value in config.items() if key != "name"}
    return configure(registry.load(group, config["name"]), group, given, **extra)


def build_mechanism(
    config: dict[str, Any],
    calibration: str,
    sampler: Any = None,
    demands: Mapping[str, bool] = MappingProxyType({}),
) -> Any:
    """A mechanism; the run's calibration, sampler and demands are handed to those that use them."""
    names = fields_of(registry.load("mechanism", config.get("name", "")))
    if "calibration" in names:
        # a mechanism with words of its own has the key in its YAML; auto follows the run's paper
        own = config.get("calibration", "auto")
        follows = own == "auto" and ("calibration" not in config or calibration == "paper")
        config = {**config, "calibration": calibration if follows else own}
    if sampler is not None and "sampler" in names:
        config = {**config, "sampler": sampler}
    config = {**config, **{key: value for key, value in demands.items() if key in names}}
    inner = config.get("inner")
    if isinstance(inner, dict) and isinstance(inner.get("name"), str):
        from dperm_cli.mechanisms.shared.inner_mechanism import prefix_error_keys as named_inner

        # a combinator is given its inner mechanism as an object
        made = named_inner(lambda: build_mechanism(inner, calibration, sampler, demands))
        config = {**config, "inner": made}
    return build("mechanism", config)


def is_shipped(config: dict[str, Any]) -> bool:
    """Whether a mechanism and all inside it are dperm's own: these keep nothing between cells."""
    inner = config.get("inner")
    own = config.get("name") in registry.list_shipped("mechanism")
    return own and (not isinstance(inner, dict) or is_shipped(inner))


def list_demands(noise: str, privacy: str) -> dict[str, bool]:
    """What a run demands of a mechanism that chooses another one, by the name of its field."""
    return {"on_grid": noise == "secure", "by_users": privacy == "local"}


def uses_sampler(config: dict[str, Any]) -> bool:
    """Whether a mechanism, or the one inside it, draws by a sampler of the group ``sampler``."""
    inner = config.get("inner")
    draws = "sampler" in fields_of(registry.load("mechanism", config["name"]))
    return draws or (isinstance(inner, dict) and uses_sampler(inner))


def list_valued(group: str, config: dict[str, Any], key: str) -> bool:
    """Whether a plug-in's key takes a list itself, so that a list is not an axis."""
    try:
        cls = registry.load(group, config["name"])
    except (InputError, KeyError):
        return False
    field = keys_of(cls).get(key)
    return field is not None and field.takes_list
