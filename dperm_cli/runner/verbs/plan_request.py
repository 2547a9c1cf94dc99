"""Parse the command line of ``dperm plan`` into its question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.candidate_lists import RADIUS, SCALING
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError
from dperm_cli.mechanisms.combinators import auto
from dperm_cli.problem.data import Data, PublicFacts
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.compose import cell_schema, plugin_objects, public_radius, study_plan, tuning
from dperm_cli.runner.compose.command_line import Request, parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.forecasts import forecast
from dperm_cli.runner.forecasts.forecast import PlanQuestion

TASKS = ("binary", "regression", "multiclass", "location")
LIKE, TUNE, LIKE_SCALING = "like", "tune", "like.scaling"
LIKE_IS_PUBLIC = "like_is_public"
FACTS = ("task", "p", "classes", "row_bound", "target_bound")  # of the data set in ``like``, else
GROUPS = ("loss", "constraint", "privacy", LIKE)


@dataclass(frozen=True)
class PlanRequest:
    """A question, and how it is answered."""

    question: PlanQuestion
    format: str
    out: Path
    figure: bool


def parse_request(arguments: list[str], composer: Composer | None = None) -> PlanRequest:
    """The request that a command line states; records are read for ``like=`` alone.

    Raises:
        InputError: a key or its value makes no sense; the message names the key.
    """
    request = parse(arguments)
    if request.show or request.preflight:
        word = "preflight" if request.preflight else "job"
        raise InputError("--cfg", word, "is an option of `dperm run`")
    settings = _read_settings(request)
    composer = Composer(request.config_dir) if composer is None else composer
    given = {
        "n": _check(settings, "n", lambda k, v: checks.integer(k, v, low=1, high=10**9)),
        "epsilon": _check(settings, "epsilon", cell_schema.check_key),
        "target": _check(settings, "target", lambda k, v: checks.positive(k, _read_number(v))),
    }
    form = cell_schema.check_key("format", settings.get("format", "table"))
    figure = settings.get("figure", "out" in settings and TUNE not in settings)
    figure = checks.boolean("figure", figure)
    tune = _read_tune(settings)
    if LIKE not in settings:
        forecast.check_two(**given, choice=tune is not None)
    question = replace(_ask(settings, given, composer, tune or {}), tune=tune)
    out = settings.get("out")
    if out is None:
        words = [w for w in arguments if not w.startswith(("format=", "figure="))]
        out = f"outputs/plan-{hash_facts(sorted(words))[:8]}"
    out = checks.path("out", out, "must be a folder name")
    return PlanRequest(question, form, Path(checks.folder("out", out)), figure)


def _read_settings(request: Request) -> dict[str, Any]:
    """Every key that was typed, with its value."""
    found = {}
    for setting in request.settings:
        head, dot, _ = setting.key.partition(".")
        if not dot or head not in GROUPS:
            known = [*catalogue.PLAN_KEYS, *(f"{group}.*" for group in GROUPS)]
            checks.known_keys([setting.key], known)
        if setting.sweep:
            raise InputError(setting.key, list(setting.values), "takes one value")
        found[setting.key] = setting.values[0]
    return found


def _read_tune(settings: dict[str, Any]) -> dict[str, list[Any]] | None:
    """The candidates of ``tune=``; the set becomes that of the largest."""
    if TUNE not in settings:
        return None
    found = tuning.check_tune(TUNE, settings[TUNE])
    own = {RADIUS: RADIUS, SCALING: LIKE_SCALING}
    chosen = [own[key] for key in own if key in found]
    for key in (*chosen, "figure"):
        if settings.get(key, False) is not False:
            words = "is chosen by tune=: leave it out" if key in chosen else f"is not for {TUNE}="
            raise InputError(key, settings[key], words)
    if SCALING in found and LIKE not in settings:
        words = "what a scaling does to columns follows from their values"
        allowed = f"is foreseen with {LIKE}=DATASET alone: {words}"
        raise InputError(f"{TUNE}.{SCALING}", found[SCALING], allowed)
    if RADIUS in found:
        settings[RADIUS] = max(found[RADIUS])
    return found


def _check(settings: Mapping[str, Any], key: str, check: Any) -> Any:
    return check(key, settings[key]) if key in settings else None


def _read_number(value: Any) -> Any:
    """A number that was typed as 1e-3, which the grammar of values takes for a word."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _keys_of(group: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {k.partition(".")[2]: v for k, v in settings.items() if k.startswith(f"{group}.")}


def _ask(
    settings: Mapping[str, Any], given: Mapping[str, Any], composer: Composer,
    tune: Mapping[str, list[Any]],
) -> PlanQuestion:  # fmt: skip
    privacy = _privacy(settings, composer)
    delta = cell_schema.check_delta_or_auto(settings.get("delta", "auto"), privacy.name)
    noise = checks.choice("noise", settings.get("noise", "research"), ("research", "secure"))
    mechanisms = _mechanisms(settings, plugin_objects.list_demands(noise, privacy.name))
    regulariser = Regulariser(
        cell_schema.check_key("ridge", settings.get("ridge", 0.0)),
        cell_schema.check_key("lasso", settings.get("lasso", 0.0)),
    )
    like = _read_like(settings, tune.get(SCALING)) if LIKE in settings else None
    facts = _facts(settings) if like is None else like.facts()
    if like is not None and given["n"] is None and None in (given["epsilon"], given["target"]):
        given = {**given, "n": facts.n}
    forecast.check_two(**given, choice=bool(tune))
    loss = _loss(settings, facts.task, composer)
    config = _constraint(settings, composer)

    def make_constraint(at: PublicFacts, epsilon: float) -> Any:
        made = config
        if public_radius.is_auto(config):
            cell: Any = SimpleNamespace(
                constraint_config=config, loss=loss, mechanism=mechanisms, mechanism_name="auto",
                kernel=None, population=None, relation=privacy.relation, privacy=privacy.name,
                delta=delta, epsilon=epsilon,
            )  # fmt: skip
            made = config | {"radius": public_radius.resolve_radius(cell, at).value}
        return plugin_objects.build("constraint", made, p=int(loss.dimension(at)))

    make_constraint(facts, given["epsilon"] or 1.0)
    return PlanQuestion(
        facts=facts, loss=loss, make_constraint=make_constraint, mechanisms=mechanisms,
        relation=privacy.relation, privacy=privacy.name, delta=delta, regulariser=regulariser,
        like=like, **given,
    )  # fmt: skip


def _facts(settings: Mapping[str, Any]) -> PublicFacts:
    task = checks.choice("task", settings.get("task", "binary"), TASKS)
    if "p" not in settings:
        raise InputError("p", "none", "give the number of columns, or like=DATASET")
    p = checks.integer("p", settings["p"], low=1, high=10**6)
    classes = checks.integer("classes", settings.get("classes", 2), low=2, high=10**4)
    row = cell_schema.check_constant("row_bound", _read_number(settings.get("row_bound", 1.0)))
    target = cell_schema.check_constant(
        "target_bound", _read_number(settings.get("target_bound", 1.0))
    )
    return PublicFacts(1, p, task, classes, row, target)


def _loss(settings: Mapping[str, Any], task: str, composer: Composer) -> Any:
    config = dict(composer.compose({"loss": settings.get("loss", "auto")})["loss"])
    if config["name"] == "auto":
        every = registry.names("loss")
        config["name"] = next(n for n in every if task in registry.load("loss", n).default_of)
    loss = plugin_objects.build("loss", config | _keys_of("loss", settings))
    if task not in (*loss.tasks, *loss.extra_tasks):
        fitting = [n for n in registry.names("loss") if task in registry.load("loss", n).tasks]
        allowed = f"is for {', '.join(loss.tasks)} data; {task} losses: {', '.join(fitting)}"
        raise InputError("loss", loss.name, allowed)
    return loss


def _constraint(settings: Mapping[str, Any], composer: Composer) -> dict[str, Any]:
    name = settings.get("constraint", catalogue.defaults()["constraint"])
    config = dict(composer.compose({"constraint": name})["constraint"])
    return config | _keys_of("constraint", settings)


def _privacy(settings: Mapping[str, Any], composer: Composer) -> cell_schema.Privacy:
    config = dict(composer.compose({"privacy": settings.get("privacy", "auto")})["privacy"])
    config |= _keys_of("privacy", settings)
    if config.get("population", "auto") != "auto":
        raise InputError("privacy.population", config["population"], "is n here; set n")
    return cell_schema.build_privacy(config)


def _mechanisms(settings: Mapping[str, Any], demands: Mapping[str, bool]) -> auto.Auto:
    name = settings.get("mechanism", "auto")
    among = "auto" if name == "auto" else auto.build_candidates("mechanism", [name])
    return auto.Auto(among=among, on_grid=demands["on_grid"], by_users=demands["by_users"])


def _read_like(settings: Mapping[str, Any], scalings: list[str] | None) -> Data:
    """The records of a public data set, with columns of every scaling that is a candidate."""
    from dperm_cli.runner.verbs.run import hold_machine, prepare

    name = settings[LIKE]
    try:
        registry.load("dataset", name)
    except InputError as error:
        raise InputError(LIKE, name, str(error).partition(": ")[2]) from None
    public = checks.boolean(LIKE_IS_PUBLIC, settings.get(LIKE_IS_PUBLIC, False))
    own = ".files." in registry.find_modules("dataset").get(name, ".files.")
    if own and not public:
        words = f"may hold private records: say {LIKE_IS_PUBLIC}=true where the file is public"
        raise InputError(LIKE, name, words)
    for key in FACTS:
        if key in settings:
            raise InputError(key, settings[key], f"cannot stand beside {LIKE}, which says it")
    keys = [f"dataset.{key}={value}" for key, value in _keys_of(LIKE, settings).items()]
    if scalings is not None:
        keys.append(f"{TUNE}={{{SCALING}: [{', '.join(scalings)}]}}")
    study = study_plan.plan_study(parse([f"dataset={name}", *keys, "mechanism=noisy_gd"]))
    with hold_machine(study):
        (prepared,) = prepare(study.cells[:1], study.keys.data_storage)
    return prepared.data
