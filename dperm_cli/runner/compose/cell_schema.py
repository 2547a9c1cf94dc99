"""Check a composed configuration key by key and turn it into plug-in objects: a typed cell."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from typing import Annotated, Any, ClassVar

from dperm_cli.core import checks, registry
from dperm_cli.core.catalogue import GROUPS
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import (
    Allowed,
    Auto,
    Check,
    CheckedFields,
    Choices,
    Count,
    FromRun,
    Help,
    Key,
    Positive,
    Range,
    Unit,
    configure,
    fields_of,
)
from dperm_cli.core.memory_limits import AUTO, check_size
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.runner.compose import plugin_objects, public_radius, tuning
from dperm_cli.runner.compose.same_cells import canonical, drop_defaults
from dperm_cli.runner.sweep.backends import Options

PRIVACY_KINDS = ("auto", "pure", "approx", "local")
# Keys that came after the first release, with defaults that leave a cell what it was before
ADDED_KEYS = {"lasso": 0.0, "information": None, "kernel": {"name": "none"}, "tune": None}
DEFAULT_EPSILON = 1.0
ONE_LEVEL = "cannot stand beside information=, from which a local epsilon follows"
# What the arithmetic of plans, certificates and bounds is good for: squares and products of these
# numbers and n stay within float64.
EPSILONS = (1e-9, 1e6)
LEAST_DELTA = 1e-300
CONSTANTS = (1e-50, 1e50)


def check_delta(key: str, value: Any) -> float:
    """A delta that can be planned for and accounted for; InputError for any other value."""
    found = checks.number(
        key, value, low=0.0, high=1.0, high_open=True, allowed="must be a number in [0, 1)"
    )
    if 0.0 < found < LEAST_DELTA:
        raise InputError(key, value, f"must be 0, or a number in [{LEAST_DELTA:g}, 1)")
    return found


def check_constant(key: str, value: Any, limits: tuple[float, float] = CONSTANTS) -> float:
    """A positive number within the limits of the arithmetic; InputError names the key."""
    found = checks.positive(key, value)
    low, high = limits
    if not low <= found <= high:
        raise InputError(key, value, f"must be between {low:g} and {high:g}")
    return found


def check_weight(key: str, value: Any) -> float:
    """A number >= 0 that enters sums: ridge, lasso, a smoothness."""
    found, high = checks.nonnegative(key, value), CONSTANTS[1]
    if found > high:
        raise InputError(key, value, f"must be a finite number >= 0 and <= {high:g}")
    return found


def check_folder(key: str, value: Any) -> str:
    """The name of a folder, or auto."""
    return checks.path(key, value, "must be a folder name, or auto")


@dataclass(frozen=True)
class CellKeys(CheckedFields):
    """The keys of a run that decide what a cell releases and belong to no group."""

    calibration: Calibration = "tight"
    noise: Annotated[
        str,
        Choices("research", "secure"),
        Help("seeded (not for release), or for release, without a seed"),
    ] = "research"
    information: Annotated[
        Positive | None,
        Help("privacy=local: what a user's answers may tell, instead of epsilon"),
        Unit("nats"),
    ] = None
    epsilon: Annotated[
        float,
        Range(*EPSILONS),
        Check(partial(check_constant, limits=EPSILONS)),
        Help("privacy budget (a list is an axis: 'epsilon=[0.1,1,10]')"),
    ] = DEFAULT_EPSILON
    delta: Annotated[
        float | Auto,
        Range(0, below=1),
        Check(check_delta),
        Help("auto = 1/n^2, 1e-14 at the least"),
    ] = "auto"
    ridge: Annotated[
        float,
        Range(0, CONSTANTS[1]),
        Check(check_weight),
        Help("(ridge/2)|theta|_2^2 in every record's loss"),
    ] = 0.0
    lasso: Annotated[
        float,
        Range(0, CONSTANTS[1]),
        Check(check_weight),
        Help("lasso |theta|_1 in every record's loss"),
    ] = 0.0
    tune: Annotated[
        Mapping[str, Any] | None,
        Check(tuning.check_tune),
        Help(
            "candidates of a private choice: 'tune={constraint.radius: [1, 10], ridge: [0, 0.1]}'"
        ),
    ] = None
    trials: Annotated[
        Count, Range(1, 1_000_000), Help("independent repetitions of the release (a simulation)")
    ] = 10
    seed: Annotated[int, Range(0, checks.MAX_INT64), Help("base seed of all randomness")] = 0


@dataclass(frozen=True)
class Limits(CheckedFields):
    """The keys ``limits.*``: what a run may use of the machine."""

    group: ClassVar[str] = "limits"

    memory: Annotated[Any, Check(check_size), Help("that a run may take: auto, 4GB, 512MiB")] = AUTO


def check_limits(key: str, value: Any) -> Mapping[str, Any]:
    """The map of a run's limits, every key of which is checked."""
    if not isinstance(value, Mapping):
        raise InputError(key, value, "must be a map: set limits.memory=4GB")
    configure(Limits, key, value)
    return value


DATA_STORAGE = ("auto", "memory", "mapped")


@dataclass(frozen=True)
class StudyKeys(Options):
    """The keys of the study as a whole: how it is run and shown, which no record depends on."""

    format: Annotated[str, Choices("table", "json"), Help("what is printed on stdout")] = "table"
    out: Annotated[
        str,
        Check(check_folder),
        Help("output folder; auto = outputs/<study> under the working directory"),
    ] = "auto"
    limits: Annotated[
        Mapping[str, Any],
        Check(check_limits),
        Help("limits.memory=4GB: that a run may take; auto = what the system allows"),
    ] = field(default_factory=lambda: {"memory": AUTO})
    data_storage: Annotated[
        str,
        Choices(*DATA_STORAGE),
        Help("of records while they are used; auto = mapped from files if they are large"),
    ] = DATA_STORAGE[0]
    force: Annotated[bool, Help("recompute finished cells")] = False
    save: Annotated[
        Any,
        Allowed("must be a file name ending in .npz, or none"),
        Help("FILE.npz: keep the predictor of a study of one cell, for `dperm predict`"),
    ] = "none"

    @property
    def memory(self) -> int | str:
        """Bytes that the run may take, or ``auto``."""
        return configure(Limits, "limits", self.limits).memory


@dataclass(frozen=True)
class Privacy(CheckedFields):
    """The keys of the group ``privacy``."""

    group: ClassVar[str] = "privacy"

    name: Annotated[str, Choices(*PRIVACY_KINDS), Key("privacy"), FromRun()]
    relation: Annotated[str, Choices(*RELATIONS), Help("which data sets are neighbours")] = (
        "replace_one"
    )
    population: Annotated[
        Count | Auto,
        Range(1, 2**31),
        Help("add_remove: a public n that does not follow the data; auto takes it from them"),
    ] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population != "auto" and self.relation == "replace_one":
            allowed = "is for relation add_remove; under replace_one n is public"
            raise InputError("privacy.population", self.population, allowed)


STUDY_KEYS = tuple(fields_of(StudyKeys))
_MOST_FIRSTS = 1000  # cells that others are compared with, when a study is planned
# keys of maps that are set one by one: ``limits.memory=4GB``
MAPS = ("limits",)


@dataclass(frozen=True)
class Cell:
    """One cell of a study: a problem, a mechanism, a privacy level and how often to run it.

    ``delta`` is None for ``auto``, ``seed`` None under ``noise=secure``, ``epsilon`` inf where
    ``information`` is asked for instead. The plug-ins are validated objects, except for the
    constraint, which needs the dimension and is kept as its configuration. ``names`` are those of
    the user's own files, by group: they are shown, and no part of what the cell is.
    """

    dataset: Any
    loss: Any
    constraint_config: dict[str, Any]
    mechanism: Any
    mechanism_name: str
    privacy: str
    relation: str
    population: int | None
    epsilon: float
    delta: float | None
    calibration: str
    ridge: float
    lasso: float
    trials: int
    noise: str
    seed: int | None
    config: dict[str, Any]
    sampler: Any = None
    information: float | None = None
    kernel: Any = None
    names: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, group: str) -> str:
        """What is shown for the choice of a group: the user's own name, or that of the plug-in."""
        return self.names.get(group, self.config[group]["name"])

    def identity(self) -> dict[str, Any]:
        """What the released point depends on, besides the data and the number of trials.

        Where a file lies and how it is written is no part of it: what was read stands for it.
        """
        kept = {k: v for k, v in self.config.items() if k not in ("trials", "noise")}
        if self.dataset.where == "file":
            kept["dataset"] = self.dataset.identity(kept["dataset"])
        return kept | {"constraint": _without_paths(kept["constraint"])}

    def constraint(self, facts: Any) -> Any:
        """The constraint set for data of these ``PublicFacts``, which ``radius=auto`` follows."""
        config, p = self.constraint_config, self.loss.dimension(facts)
        found = self.find_radius(facts)
        own = {} if found is None else {"radius": found.value}
        return plugin_objects.build("constraint", config | own, p=p)

    def find_radius(self, facts: Any) -> public_radius.PublicRadius | None:
        """The radius that ``constraint.radius=auto`` stands for, with its reason; else None."""
        if not public_radius.is_auto(self.constraint_config):
            return None
        return public_radius.resolve_radius(self, facts)


def build_cell(config: dict[str, Any], built: dict[str, Any] | None = None) -> Cell:
    """Check a composed configuration and build what can be built without data.

    ``built`` keeps the plug-ins of a study's other cells: equal configurations share an object.
    """
    made = {} if built is None else built
    checks.known_keys(config, known_top_level())
    if config["noise"] == "secure":
        config = {key: value for key, value in config.items() if key != "seed"}
    # numbers before plug-ins: a wrong one is refused before what computes is imported
    asked = CellKeys(**{key: config[key] for key in fields_of(CellKeys) if key in config})
    level = config["privacy"]
    privacy = plugin_objects.recall(made, f"privacy {level!r}", build_privacy, level)
    epsilon = _epsilon(config, asked, privacy.name)
    delta = check_delta_or_auto(config["delta"], privacy.name)
    _check_set(made, config["constraint"])
    kernel = _kernel(made, config.get("kernel", ADDED_KEYS["kernel"]))
    config = config if kernel is None else _drop_intercept(config)
    config = tuning.add_scalings(config, asked.tune)
    dataset = plugin_objects.build_once(made, "dataset", config["dataset"])
    if config["loss"].get("name") == "auto":
        config = {**config, "loss": {"name": dataset.default_loss}}
    loss = plugin_objects.build_once(made, "loss", config["loss"])
    if asked.tune is not None:
        config = tuning.put_in_force(config, asked.tune, loss.quadratic)
        _check_set(made, config["constraint"])
    sampler = plugin_objects.build_once(made, "sampler", config["sampler"])
    demands = plugin_objects.list_demands(asked.noise, privacy.name)
    parts = config["mechanism"], asked.calibration, sampler, demands
    cell = Cell(
        dataset=dataset,
        loss=loss,
        constraint_config=dict(config["constraint"]),
        mechanism=plugin_objects.recall(
            made if plugin_objects.is_shipped(config["mechanism"]) else {},
            f"mechanism {parts!r}",
            plugin_objects.build_mechanism,
            *parts,
        ),
        mechanism_name=config["mechanism"]["name"],
        privacy=privacy.name,
        relation=privacy.relation,
        population=None if privacy.population == "auto" else privacy.population,
        epsilon=epsilon,
        delta=delta,
        calibration=asked.calibration,
        ridge=asked.ridge,
        lasso=asked.lasso,
        trials=asked.trials,
        noise=asked.noise,
        seed=None if asked.noise == "secure" else asked.seed,
        config=_identity_config(config, made),
        sampler=sampler,
        information=asked.information,
        kernel=kernel,
    )
    _check_task(cell)
    public_radius.check_rule(cell)
    return cell


def build_cells(configs: Sequence[dict[str, Any]]) -> Iterator[Cell]:
    """The cell of each configuration. Those that differ in their seed alone are checked once.

    Args:
        configs: Composed configurations, which share the values that they have in common.
    """
    built: dict[str, Any] = {}
    firsts: dict[tuple[int, ...], Cell] = {}
    for config in configs:
        # the configurations keep the values: an id is no other's while they live
        others = tuple([id(value) for key, value in config.items() if key != "seed"])
        first = firsts.get(others)
        if first is not None:
            yield _seed_anew(first, config["seed"])
            continue
        cell = build_cell(config, built)
        if len(firsts) < _MOST_FIRSTS and plugin_objects.is_shipped(config["mechanism"]):
            firsts[others] = cell
        yield cell


def _seed_anew(cell: Cell, seed: Any) -> Cell:
    """The same cell with another seed; itself under ``noise=secure``, which has none."""
    if cell.seed is None:
        return cell
    own = {**cell.config, "seed": canonical(seed)}
    found = copy.copy(cell)  # ``replace`` would set every field: there may be 100,000 cells
    vars(found).update(seed=fields_of(CellKeys)["seed"].check(seed), config=own)
    return found


def _check_set(made: dict[str, Any], config: Any) -> None:
    """InputError for a set that there is not, in any dimension; ``radius=auto`` is one later."""
    if not (isinstance(config, dict) and public_radius.is_auto(config)):
        plugin_objects.build_once(made, "constraint", config, p=0)
    elif registry.load("constraint", config.get("name", "")).radius_around is not None:
        plugin_objects.build_once(made, "constraint", config | {"radius": 1.0}, p=0)


def _epsilon(config: dict[str, Any], asked: CellKeys, privacy: str) -> float:
    """The epsilon asked for: none (inf) beside ``information``, from which one follows."""
    if asked.information is None:
        return asked.epsilon
    if privacy != "local":
        allowed = "is a level of privacy=local; elsewhere set epsilon"
        raise InputError("information", config["information"], allowed)
    if asked.epsilon != DEFAULT_EPSILON:
        raise InputError("epsilon", config["epsilon"], ONE_LEVEL)
    return math.inf


def _drop_intercept(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a cell with a kernel: a constant coordinate is for linear models, and
    files of landmarks and queries have none."""
    dataset = config["dataset"]
    if not isinstance(dataset, dict) or dataset.get("intercept") != "auto":
        return config
    return {**config, "dataset": {**dataset, "intercept": False}}


def _kernel(made: dict[str, Any], config: Any) -> Any:
    """The kernel, or None for ``none``, which has no keys."""
    if isinstance(config, dict) and config.get("name") == "none":
        checks.known_keys((key for key in config if key != "name"), (), "kernel.")
        return None
    return plugin_objects.build_once(made, "kernel", config)


def check_key(key: str, value: Any) -> Any:
    """The checked value of a key of a run that belongs to no group."""
    return (fields_of(CellKeys) | fields_of(StudyKeys))[key].check(value)


def names_file(config: Any) -> bool:
    """Whether a configuration names a file, at any depth: its content is not in the names."""
    if isinstance(config, dict):
        return config.get("path") is not None or names_file(list(config.values()))
    return isinstance(config, (list, tuple)) and any(names_file(item) for item in config)


def _without_paths(config: Any) -> Any:
    """A configuration that does not say where the files that it names lie, at any depth."""
    if isinstance(config, dict):
        return {k: _without_paths(v) for k, v in config.items() if k != "path" or v is None}
    return [_without_paths(item) for item in config] if isinstance(config, list) else config


@cache
def known_top_level() -> tuple[str, ...]:
    """Every word that may stand at the top of a configuration."""
    return tuple(sorted([*fields_of(CellKeys), *GROUPS, *STUDY_KEYS]))


def build_privacy(config: dict[str, Any]) -> Privacy:
    """The level of privacy from its configuration; every key is checked."""
    given = {key: value for key, value in config.items() if key != "name"}
    return configure(Privacy, "privacy", given, name=config.get("name"))


def check_delta_or_auto(value: Any, privacy: str) -> float | None:
    """The delta asked for, None for ``auto``; InputError where the kind of privacy forbids it."""
    delta = check_key("delta", value)
    if delta == "auto":
        return None
    if privacy in ("local", "pure") and delta:
        raise InputError("delta", value, f"must be 0 or auto under privacy={privacy}")
    if privacy == "approx" and delta == 0:
        raise InputError("delta", value, "must be above 0 under privacy=approx")
    return delta


def _identity_config(config: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key not in STUDY_KEYS}
    if not plugin_objects.uses_sampler(kept["mechanism"]):
        del kept["sampler"]
    if kept["information"] is not None:
        del kept["epsilon"]  # one level, not two: the default epsilon is not asked for
    # a cell that does not use the later keys keeps its name and its noise
    for group in ("mechanism", "dataset"):
        added = registry.load(group, kept[group]["name"]).added_keys
        drop = partial(drop_defaults, added=added)
        kept[group] = plugin_objects.recall_same(made, f"kept {group}", kept[group], drop)
    return {
        key: plugin_objects.recall_same(made, f"canonical {key}", value, canonical)
        for key, value in drop_defaults(kept, ADDED_KEYS).items()
    }


def _check_task(cell: Cell) -> None:
    task = cell.dataset.task
    if task not in (*cell.loss.tasks, *cell.loss.extra_tasks):
        fitting = [n for n in registry.names("loss") if task in registry.load("loss", n).tasks]
        allowed = f"is for {', '.join(cell.loss.tasks)} data; {task} losses: {', '.join(fitting)}"
        raise InputError("loss", cell.loss.name, allowed)
