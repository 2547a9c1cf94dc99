"""Parse the command line of ``dperm account`` into the lines of its table."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dperm_cli.core import catalogue, checks, plugin_sources, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting.rigorous_level import require_flint
from dperm_cli.problem.problem import ProblemSpec, bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.compose import cell_schema, inner_configuration, plugin_objects, study_plan
from dperm_cli.runner.compose.command_line import Request, Setting, parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.verbs import account_shuffled

DEFAULTS: dict[str, Any] = {
    "mechanism": "all", "calibration": "tight", "n": 1000, "p": 10, "L": 1.0,
    "smoothness": "none", "ridge": 0.0, "lasso": 0.0, "epsilon": 1.0, "delta": "auto",
    "format": "table", "out": "auto", "figure": "auto", "rigorous": False,
    "shuffled": False, "constraint": catalogue.defaults()["constraint"], "privacy": "auto",
}  # fmt: skip
LEVELS = ("epsilon", "noise_scale", "epsilon_shuffled")  # a row has one of them
KEYS = (*DEFAULTS, *LEVELS[1:], "radius")
WHOLE = ("format", "out", "figure", "rigorous", "shuffled", "p", "constraint", "privacy", "radius")
OWN_GROUPS = ("mechanism", "constraint", "privacy")
MOST_ROWS = 1000


@dataclass(frozen=True)
class AccountLine:
    """One line of the table: what is to be accounted for.

    One of ``epsilon``, ``noise_scale`` and ``epsilon_shuffled`` is asked for; ``delta`` is None for
    1/n^2, and ``privacy`` is ``auto``, ``pure`` or ``approx`` as in a run. ``rigorous`` says
    whether an epsilon is asked for that is proved in ball arithmetic, ``shuffled`` whether that of
    shuffled answers is.
    """

    name: str
    mechanism: Any
    calibration: str
    spec: ProblemSpec
    relation: str = "replace_one"
    privacy: str = "auto"
    epsilon: float | None = None
    delta: float | None = None
    noise_scale: float | None = None
    epsilon_shuffled: float | None = None
    rigorous: bool = False
    shuffled: bool = False


@dataclass(frozen=True)
class AccountRequest:
    """The lines that were asked for, and where their figure goes."""

    asks: tuple[AccountLine, ...]
    format: str
    out: Path
    figure: bool


def parse_request(arguments: list[str], composer: Composer | None = None) -> AccountRequest:
    """The request that a command line states.

    Raises:
        InputError: a key or its value makes no sense; the message names the key.
    """
    request = parse(["-m", *arguments])
    if request.show or request.preflight:
        word = "preflight" if request.preflight else "job"
        raise InputError("--cfg", word, "is an option of `dperm run`")
    settings = _settings(request)
    _check_together(settings)
    single = {key: _single(settings, key) for key in WHOLE}
    composer = Composer(request.config_dir) if composer is None else composer
    constraint = _constraint(settings, single, composer)
    privacy = _privacy(settings, single, composer)
    rigorous = checks.boolean("rigorous", single["rigorous"])
    if rigorous:
        require_flint()
    shuffled = checks.boolean("shuffled", single["shuffled"]) or "epsilon_shuffled" in settings
    asks = tuple(_asks(settings, composer, constraint, privacy, (rigorous, shuffled)))
    form, figure = cell_schema.check_key("format", single["format"]), single["figure"]
    out = _out(single["out"], asks, arguments)
    if figure == "auto":
        figure = len(asks) > 1 or single["out"] != "auto"
    return AccountRequest(asks, form, out, checks.boolean("figure", figure))


def _settings(request: Request) -> dict[str, tuple[Any, ...]]:
    """Every key that was typed, with its values; a list is an axis."""
    found: dict[str, tuple[Any, ...]] = {}
    for setting in request.settings:
        head, dot, _ = setting.key.partition(".")
        if not dot or head not in OWN_GROUPS:
            known = [*KEYS, *(f"{group}.*" for group in OWN_GROUPS)]
            checks.known_keys([setting.key], known, guess=partial(_guess_nested, request))
        found[setting.key] = _values(setting)
    return found


def _guess_nested(request: Request, key: str) -> str | None:
    values = {setting.key: setting.values[0] for setting in request.settings}
    return None if "." in key else study_plan.suggest_nested_key(key, values, OWN_GROUPS)


def _values(setting: Setting) -> tuple[Any, ...]:
    values = setting.values
    if not setting.sweep and isinstance(values[0], list) and "." not in setting.key:
        values = tuple(values[0])
    if not values:
        raise InputError(setting.key, "[]", "needs at least one value")
    return values


def _check_together(settings: dict[str, tuple[Any, ...]]) -> None:
    given = settings.get("noise_scale")
    for other in ("epsilon", "calibration"):
        if given is not None and other in settings:
            allowed = f"cannot stand beside {other}: the one follows from the other"
            raise InputError("noise_scale", given[0], allowed)
    if "epsilon_shuffled" in settings:
        for other in ("epsilon", "noise_scale"):
            if other in settings:
                allowed = f"cannot stand beside {other}: the one follows from the other"
                raise InputError("epsilon_shuffled", settings["epsilon_shuffled"][0], allowed)
        if settings.get("shuffled", (True,))[0] is False:
            raise InputError("shuffled", "false", "cannot stand beside epsilon_shuffled")
    if "radius" in settings and {"constraint", "constraint.radius"} & set(settings):
        raise InputError("radius", settings["radius"][0], "is for the l2 ball; set constraint.*")


def _single(settings: dict[str, tuple[Any, ...]], key: str) -> Any:
    first, *others = settings.get(key, (DEFAULTS.get(key),))
    if others:
        raise InputError(key, [first, *others], "takes one value")
    return first


def _constraint(
    settings: dict[str, tuple[Any, ...]], single: dict[str, Any], composer: Composer
) -> Any:
    p = checks.integer("p", single["p"], low=1, high=10**6)
    config = dict(composer.compose({"constraint": single["constraint"]})["constraint"])
    if single["radius"] is not None:
        config["radius"] = cell_schema.check_constant("radius", single["radius"])
    elif "radius" in config and "constraint" not in settings:
        config["radius"] = 1.0
    made = plugin_objects.build("constraint", config | _keys_of("constraint", settings), p=p)
    cell_schema.check_constant("constraint.radius", made.radius)
    return made


def _privacy(
    settings: dict[str, tuple[Any, ...]], single: dict[str, Any], composer: Composer
) -> cell_schema.Privacy:
    config = dict(composer.compose({"privacy": single["privacy"]})["privacy"])
    config |= _keys_of("privacy", settings)
    if config.get("population", "auto") != "auto":
        raise InputError("privacy.population", config["population"], "is n here; set n")
    return cell_schema.build_privacy(config)


def _keys_of(group: str, settings: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    typed = [key for key in settings if key.startswith(f"{group}.")]
    return {key.partition(".")[2]: _single(settings, key) for key in typed}


def _asks(
    settings: dict[str, tuple[Any, ...]],
    composer: Composer,
    constraint: Any,
    privacy: cell_schema.Privacy,
    wanted: tuple[bool, bool],
) -> Iterable[AccountLine]:
    """One line per combination of values; mechanisms vary slowest.

    ``wanted`` is whether ``rigorous`` and ``shuffled`` are asked for.
    """
    (level,) = [key for key in LEVELS[1:] if key in settings] or ["epsilon"]
    check_level = cell_schema.check_key if level == "epsilon" else cell_schema.check_constant
    rigorous, shuffled = wanted
    kind = "auto" if shuffled else privacy.name  # their delta is not that of an answer
    axes = ["mechanism", "calibration", "n", "L", "smoothness", "ridge", "lasso", "delta", level]
    values = {key: settings.get(key, (DEFAULTS.get(key),)) for key in axes}
    values["mechanism"] = _names(values["mechanism"], composer)
    if math.prod(map(len, values.values())) > MOST_ROWS:
        raise InputError("account", " ".join(settings), f"makes more than {MOST_ROWS} rows")
    # with `all`, a key goes to the mechanisms that know it
    loose = "all" in settings.get("mechanism", ("all",))
    built = _mechanisms(values["mechanism"], values["calibration"], settings, composer, loose)
    for combination in itertools.product(*values.values()):
        one = dict(zip(axes, combination, strict=True))
        value = check_level(level, one[level])
        delta = cell_schema.check_delta_or_auto(one["delta"], kind)
        if level == "epsilon_shuffled":
            account_shuffled.check_level(value, delta)
        elif shuffled:
            account_shuffled.check_delta(delta)
        yield AccountLine(
            name=one["mechanism"],
            mechanism=built[one["mechanism"], one["calibration"]],
            calibration=one["calibration"],
            spec=_spec(one, constraint),
            relation=privacy.relation,
            privacy=privacy.name,
            rigorous=rigorous,
            shuffled=shuffled,
            **{level: value},
            delta=delta,
        )


def _spec(one: dict[str, Any], constraint: Any) -> ProblemSpec:
    given = one["smoothness"]
    smoothness = None if given == "none" else cell_schema.check_weight("smoothness", given)
    return bare_spec(
        checks.integer("n", one["n"], low=1, high=10**9),
        cell_schema.check_constant("L", one["L"]),
        constraint,
        regulariser=Regulariser(
            cell_schema.check_key("ridge", one["ridge"]),
            cell_schema.check_key("lasso", one["lasso"]),
        ),
        smoothness=smoothness,
    )


def _names(given: tuple[Any, ...], composer: Composer) -> tuple[str, ...]:
    names = list[str]()
    for word in given:  # every mechanism is imported for `all` alone
        names.extend(registry.list_protective() if word == "all" else (word,))
    for name in names:
        registry.look_up("mechanism", name)
        plugin_sources.choose("mechanism", name, ("all", *composer.list_names("mechanism")))
    return tuple(dict.fromkeys(names))


def _mechanisms(
    names: Sequence[str],
    calibrations: Sequence[Any],
    settings: dict[str, tuple[Any, ...]],
    composer: Composer,
    loose: bool,
) -> dict[tuple[str, str], Any]:
    keys = _keys_of("mechanism", settings)
    configs = {}
    for name in names:
        config = copy.deepcopy(composer.compose({"mechanism": name})["mechanism"])
        configs[name] = inner_configuration.fill_defaults(config, composer)
    for key in keys:
        known = {word for config in configs.values() for word in config} - {"name"}
        if key.partition(".")[0] not in known:
            checks.known_keys([key], known, "mechanism.")
    built, used = {}, set()
    for name, config in configs.items():
        for key in sorted(keys, key=lambda key: key.count(".")):
            if inner_configuration.has_key(config, key) or not loose:
                inner_configuration.set_key(config, "mechanism", key, keys[key], composer)
                used.add(key)
        for calibration in calibrations:
            cell_schema.check_key("calibration", calibration)
            built[name, calibration] = plugin_objects.build_mechanism(config, calibration)
    checks.known_keys(keys, used, "mechanism.")
    return built


def _out(given: Any, asks: Sequence[AccountLine], arguments: list[str]) -> Path:
    given = checks.path("out", given, "must be a folder name, or auto")
    if given == "auto":
        words = [w for w in arguments if not w.startswith(("format=", "out=", "figure="))]
        names = list(dict.fromkeys(ask.name for ask in asks))
        given = f"outputs/account-{'-'.join(names[:2])}-{hash_facts(sorted(words))[:8]}"
    return Path(checks.folder("out", given))
