"""A declared field refuses what its declaration excludes, and says what it takes."""

from __future__ import annotations

import doctest
import math
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import Annotated, Any, Literal

import pytest
from omegaconf import OmegaConf

from dperm_cli.core import catalogue, fields, registry
from dperm_cli.core.errors import InputError, UnknownKey
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
    NonNegative,
    Positive,
    Probability,
    Range,
    Required,
    Unit,
    configure,
    fields_of,
    keys_of,
)
from dperm_cli.runner import editor_schemas
from dperm_cli.runner.compose.cell_schema import CellKeys, Privacy, StudyKeys

NAN, INF = math.nan, math.inf
SWITCHED = OmegaConf.create({"a": [1, 2]})  # a mapping of omegaconf, with a list
NO_NUMBERS = (
    NAN, INF, -INF, True, False, "1", "1e3", "nan", "", None, [], [1.0], (1,), {}, {"a": 1},
    SWITCHED, SWITCHED.a, 10**400, -(10**400), object(), b"1", 1j,
)  # fmt: skip


def halve(key: str, value: Any) -> float:
    if not isinstance(value, float):
        raise InputError(key, value, "must be a float")
    return value / 2.0


@dataclass(frozen=True)
class Walk(CheckedFields):
    group = "sampler"

    steps: Annotated[int | Auto, Range(1, 1000), Help("how many")] = "auto"
    size: Annotated[Positive | Literal["auto", "theory"], Help("of a step"), Unit("m")] = "auto"
    share: Probability = 0.5
    low: NonNegative = 0.0
    closed: Annotated[float, Range(-1, 2)] = 0.0
    many: Count = 5
    some: Annotated[Count, Range(1, "many")] = 2
    form: Annotated[str, Choices("ball", "box")] = "ball"
    side: Literal["left", "right"] = "left"
    flag: bool = False
    header: bool | Auto = "auto"
    name: Annotated[str, Allowed("must be a name")] = "x"
    either: Annotated[int | str, Range(1, 9)] = 1
    table: Annotated[Sequence[float] | None, Allowed("must be a list")] = None
    scale: Annotated[float, Check(halve), Key("radius")] = 2.0
    level: Annotated[Positive | None, Help("or null")] = None
    path: Annotated[str | None, Required("must be given")] = "a"
    mode: Annotated[str, FromRun()] = "tight"
    free: Any = None


def refused(**given: Any) -> str:
    with pytest.raises(InputError) as caught:
        Walk(**given)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1, 1001, 1.5, 2**63, 1e300])
def test_an_integer_or_auto(value):
    said = refused(steps=value)
    assert said.startswith("sampler.steps=")
    assert said.endswith(": must be an integer >= 1 and <= 1000, or auto")


@pytest.mark.parametrize(("value", "kept"), [(1, 1), (1e3, 1000), (7.0, 7), ("auto", "auto")])
def test_a_whole_number_is_kept_as_one(value, kept):
    found = Walk(steps=value).steps
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1, 0.0, "aut"])
def test_a_positive_number_or_words(value):
    said = refused(size=value)
    assert ": must be a finite number > 0, or auto, or theory" in said
    assert ("did you mean 'auto'?" in said) == (value == "aut")


def test_a_number_is_kept_as_float():
    assert type(Walk(size=3).size) is float
    assert Walk(size=1e-300).size == 1e-300
    assert Walk(size="theory").size == "theory"


@pytest.mark.parametrize(
    ("name", "bad", "good", "words"),
    [
        ("share", (0, 1, -0.1, 1.1), (1e-300, 0.5), "must be a number in (0, 1)"),
        ("low", (-1e-300, -1), (0, 0.0, -0.0, 1e308), "must be a finite number >= 0"),
        ("closed", (-1.1, 2.1), (-1, 2, 2.0), "must be a number in [-1, 2]"),
        ("many", (0, -1, 1.5), (2, 2**63 - 1), "must be an integer >= 1"),
        ("flag", (0, 1, "auto"), (True, False), "must be true or false"),
        ("header", (0, 1), (True, "auto"), "must be true or false, or auto"),
        ("name", (1,), ("y",), "must be a name"),
        ("either", (0, 10), (1, 9, "file"), "must be an integer >= 1 and <= 9"),
        ("form", (0, "bal"), ("ball", "box"), "must be one of ball, box"),
        ("side", (0, "lef"), ("left", "right"), "must be one of left, right"),
        ("level", (0, -1), (None, 1), "must be a finite number > 0"),
        ("path", (1,), ("b",), "must be"),
    ],
)
def test_every_kind_of_declaration(name, bad, good, words):
    for value in good:
        Walk(**{name: value})
    booleans, texts = name in ("flag", "header"), name in ("name", "either", "path")
    for value in (*NO_NUMBERS, *bad):
        if (booleans and isinstance(value, bool)) or (texts and isinstance(value, str) and value):
            continue
        if not (name in ("level", "path") and value is None):
            assert words in refused(**{name: value})
    assert refused(path=None) == "sampler.path=None: must be given"


def test_a_limit_may_be_another_field():
    assert Walk(many=9, some=9).some == 9
    assert refused(some=6) == "sampler.some=6: must be an integer >= 1 and <= 5"


def test_a_function_checks_and_a_key_names():
    assert Walk(scale=3.0).scale == 1.5
    assert refused(scale=3) == "sampler.radius=3: must be a float"
    assert Walk(free=SWITCHED, table=[NAN]).free is SWITCHED


def test_a_configuration_has_the_users_keys():
    assert configure(Walk, "sampler", {"radius": 4.0, "steps": 3}).scale == 2.0
    with pytest.raises(UnknownKey, match=r"sampler.scale: unknown key.*sampler.radius"):
        configure(Walk, "sampler", {"scale": 4.0})
    assert "mode" not in keys_of(Walk)
    assert fields_of(Walk)["mode"].key == "mode"
    assert [name for name, field in fields_of(Walk).items() if field.takes_list] == ["table"]


def test_a_field_without_a_default_is_required():
    @dataclass(frozen=True)
    class Level(CheckedFields):
        epsilon: Positive

    fields_of.cache_clear()
    with pytest.raises(InputError, match=r"budget\.epsilon=None: is required"):
        configure(Level, "budget", {})


def test_the_example_of_the_module_holds():
    assert doctest.testmod(fields).failed == 0


def test_instances_stay_frozen():
    with pytest.raises(FrozenInstanceError):
        Walk().steps = 3


def test_the_schema_of_a_field():
    made = {name: field.schema() for name, field in fields_of(Walk).items()}
    assert made["steps"] == {
        "description": "how many",
        "anyOf": [{"enum": ["auto"]}, {"type": "integer", "minimum": 1, "maximum": 1000}],
        "default": "auto",
    }
    assert made["size"]["description"] == "of a step [m]"
    assert made["share"]["exclusiveMaximum"] == 1
    assert made["form"]["enum"] == ["ball", "box"]
    assert made["level"]["anyOf"][-1] == {"type": "null"}
    assert "maximum" not in made["some"]


def declared(group: str) -> Mapping[str, type]:
    return {name: registry.load(group, name) for name in registry.names(group)}


CLASSES = {
    **{f"{group}={n}": cls for group in registry.ROOMS for n, cls in declared(group).items()},
    "a run": CellKeys,
    "a study": StudyKeys,
    "privacy": Privacy,
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_says_what_it_takes_and_means(name):
    for key, field in keys_of(CLASSES[name]).items():
        limited = {Range, Choices, Check, Allowed} & set(field.metadata)
        assert limited or field.types == (bool,), f"{name}: {key} has no range, choices or check"
        assert field.help, f"{name}: {key} has no help"
        assert len(field.help) < 100


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_keep_to_the_declaration(name):
    for field in fields_of(CLASSES[name]).values():
        given = field.default is not fields.MISSING and field.default is not None
        if given and not isinstance(field.range.high, str):
            field.check(field.default)


def test_the_schemas_are_fresh():
    for path, text in editor_schemas.make_schemas().items():
        stale = "python -m dperm_cli.runner.editor_schemas writes it"
        assert path.read_text(encoding="utf-8") == text, f"{path} is stale: {stale}"


@pytest.mark.parametrize("group", catalogue.GROUPS)
def test_help_has_every_key_of_every_file(group):
    for choice in catalogue.choices(group).values():
        shown = catalogue.settings(group, choice)
        assert [setting.key for setting in shown] == [k.partition(":")[0] for k in choice.keys]
        assert all(setting.meaning for setting in shown), choice.name


def test_a_comment_of_a_users_own_file_comes_first(tmp_path):
    (tmp_path / "mechanism").mkdir()
    own = "# mine\nname: noisy_gd\nsteps: 3 # of mine\nmomentum: 0.5\n"
    (tmp_path / "mechanism" / "mine.yaml").write_text(own)
    choice = catalogue.choices("mechanism", str(tmp_path))["mine"]
    found = {setting.key: setting for setting in catalogue.settings("mechanism", choice)}
    steps, momentum = found["steps"], found["momentum"]
    assert (steps.line, steps.meaning, steps.words) == ("steps: 3", "of mine", ("auto",))
    assert momentum.meaning.startswith("auto | number >= 0 and < 1: ")
