"""Fields that are declared once: type, range, choices and help stand in the annotation.

A class of such fields is a frozen dataclass below ``CheckedFields``. What a value has to be, the
line that refuses it, ``dperm list``, completion and the JSON schemas in ``conf/`` follow from it.

>>> @dataclass(frozen=True)
... class Walk(CheckedFields):
...     group = "sampler"
...     steps: Annotated[int | Auto, Range(1, 1000), Help("noisy steps")] = "auto"
>>> Walk(steps=20.0).steps
20
>>> Walk(steps=0)
Traceback (most recent call last):
dperm_cli.core.errors.InputError: sampler.steps=0: must be an integer >= 1 and <= 1000, or auto
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError


@dataclass(frozen=True)
class Range:
    """The numbers of a field: from ``low`` to ``high``, or strictly ``above`` and ``below``.

    ``high`` may be the name of another field. A whole number must fit into 64 bits.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     share: Annotated[float, Range(above=0, high=1)] = 0.5
    >>> fields_of(Walk)["share"].schema()
    {'description': '', 'type': 'number', 'maximum': 1, 'exclusiveMinimum': 0, 'default': 0.5}
    """

    low: float | None = None
    high: float | str | None = None
    above: float | None = None
    below: float | None = None


class Choices(tuple[str, ...]):
    """The words that a field takes, and no others.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     end: Annotated[str, Choices("last", "mean")] = "mean"
    >>> Walk(end="lost")
    Traceback (most recent call last):
    dperm_cli.core.errors.InputError: end=lost: must be one of last, mean (did you mean 'last'?)
    """

    def __new__(cls, *words: str) -> Choices:
        return super().__new__(cls, words)


@dataclass(frozen=True)
class _Text:
    text: str


class Help(_Text):
    """What a field means, in one line; of several the last one holds.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     steps: Annotated[int, Help("noisy steps")] = 10
    >>> fields_of(Walk)["steps"].help
    'noisy steps'
    """


class Unit(_Text):
    """The unit that a field's number is in.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     most: Annotated[float, Help("longer walks are refused"), Unit("s")] = 60.0
    >>> fields_of(Walk)["most"].help
    'longer walks are refused [s]'
    """


@dataclass(frozen=True)
class Check:
    """A function of key and value that returns the checked value or raises InputError.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     name: Annotated[str, Check(lambda key, value: value.strip())] = "walk"
    >>> Walk(name=" far ").name
    'far'
    """

    function: Callable[[str, Any], Any]


class Allowed(_Text):
    """The words of the error line, where those that follow from the type do not say enough.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     steps: Annotated[int, Allowed("must be a number of steps")] = 10
    >>> Walk(steps="many")
    Traceback (most recent call last):
    dperm_cli.core.errors.InputError: steps=many: must be a number of steps
    """


class Required(_Text):
    """A field that has no value by default (None) and needs one: the words of the error line.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     path: Annotated[str | None, Required("must name a file")] = None
    >>> Walk()
    Traceback (most recent call last):
    dperm_cli.core.errors.InputError: path=None: must name a file
    """


class Key(_Text):
    """The name that the user types, where it is not the field's own.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     reach: Annotated[float, Key("radius")] = 1.0
    >>> list(keys_of(Walk))
    ['radius']
    """


class RunWord(_Text):
    """A word that a run replaces by a value before an object is made: the object never has it.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     reach: Annotated[float, RunWord("auto")] = 1.0
    >>> fields_of(Walk)["reach"].schema()["anyOf"]
    [{'enum': ['auto']}, {'type': 'number'}]
    """


class FromRun:
    """A field that the run sets: it is in no YAML file, and its key has no group before it.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     p: Annotated[int, FromRun()] = 1
    >>> list(fields_of(Walk)), list(keys_of(Walk))
    (['p'], [])
    """


Auto = Literal["auto"]
Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(0)]
Probability = Annotated[float, Range(above=0, below=1)]
Count = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0)]


@dataclass(frozen=True)
class Field:
    """One declared field.

    Attributes:
        name: The attribute.
        key: What the user types, as in ``mechanism.steps``.
        default: ``dataclasses.MISSING`` where there is none.
        types: The types of its values; None and words are told apart.
        words: Texts that stand beside other values, such as ``auto``.
        optional: Whether None may stand for no value.
        metadata: What else was declared, by its class.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     steps: int | Auto = "auto"
    >>> type(fields_of(Walk)["steps"]) is Field, fields_of(Walk)["steps"].check(20.0)
    (True, 20)
    """

    name: str
    key: str
    default: Any
    types: tuple[Any, ...]
    words: tuple[str, ...]
    optional: bool
    metadata: Mapping[type, Any]

    @property
    def read_word(self) -> str:
        """The key without its group."""
        return self.key.rpartition(".")[2]

    @property
    def help(self) -> str:
        """What the field means, with its unit."""
        unit = self.metadata.get(Unit)
        text = self.metadata.get(Help, Help("")).text
        return text if unit is None else f"{text} [{unit.text}]"

    @property
    def takes_list(self) -> bool:
        """Whether a list is one value of the field, and no axis."""
        return any(issubclass(t, (Sequence, Mapping)) and t is not str for t in self.types)

    def check(self, value: Any, owner: Any = None) -> Any:
        """The value in its declared form; InputError for any that the declaration excludes.

        ``owner`` is the instance with the fields that a range names.
        """
        if isinstance(value, str) and value in self.words:
            return value
        if value is None and self.optional:
            if Required in self.metadata:
                raise InputError(self.key, None, self.metadata[Required].text)
            return None
        try:
            return self._reader(self.key, self._limits(owner), value)
        except InputError as error:
            by_run = self.metadata.get(RunWord)
            if by_run is not None and value == by_run.text:
                words = "is replaced by a run, which knows the data: give a number"
                raise InputError(self.key, value, words) from None
            if Allowed in self.metadata:
                raise InputError(self.key, value, self.metadata[Allowed].text) from None
            words = (*filter(None, self.words), *([by_run.text] if by_run else []))
            if not words or Choices in self.metadata:
                raise
            allowed = ", or ".join((error.allowed, *words))
            raise InputError(self.key, value, allowed, words if words[1:] else ()) from None

    @cached_property
    def range(self) -> Range:
        """The declared numbers."""
        return self.metadata.get(Range, Range())

    def _limits(self, owner: Any) -> Range:
        high = self.range.high
        if not isinstance(high, str):
            return self.range
        other = fields_of(type(owner))[high].check(getattr(owner, high), owner)
        return dataclasses.replace(self.range, high=other)

    @cached_property
    def _reader(self) -> Callable[[str, Range, Any], Any]:
        """What reads a value of the declared types: of key, limits and value."""
        if Check in self.metadata:
            own = self.metadata[Check].function
            return lambda key, limits, value: own(key, value)
        if Choices in self.metadata:
            words = self.metadata[Choices]
            return lambda key, limits, value: checks.choice(key, value, words)
        kinds = tuple(kind for kind in _READERS if kind in self.types)
        if len(kinds) < len(self.types):
            return lambda key, limits, value: value
        return _READERS[kinds[-1]] if kinds != (int, str) else _read_text_or_integer

    def schema(self) -> dict[str, Any]:
        """The field in JSON schema."""
        names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        bounds = dict(zip(names, dataclasses.astuple(self.range), strict=True))
        # what 64 bits hold is no limit that anybody reads
        numbers = {
            name: bound
            for name, bound in bounds.items()
            if isinstance(bound, (int, float)) and bound < checks.MAX_INT64
        }
        words = self.metadata.get(Choices, self.words)
        if RunWord in self.metadata:
            words = (*words, self.metadata[RunWord].text)
        forms: list[dict[str, Any]] = [{"enum": list(words)}] if words else []
        for kind in self.types:
            named = _JSON.get(kind)
            if named and not (kind is str and words):
                forms.append({"type": named} | (numbers if kind in (int, float) else {}))
        if self.optional:
            forms.append({"type": "null"})
        found = {"description": self.help}
        if Any not in self.types:
            found |= forms[0] if len(forms) == 1 else {"anyOf": forms}
        return found if self.default is MISSING else found | {"default": self.default}


class CheckedFields:
    """The base of frozen dataclasses whose fields are checked as they are declared.

    A subclass with conditions between its fields has a ``__post_init__`` that calls this one first.

    >>> @dataclass(frozen=True)
    ... class Walk(CheckedFields):
    ...     group = "sampler"
    ...     steps: Count = 10
    >>> Walk(steps=20.0).steps, fields_of(Walk)["steps"].key
    (20, 'sampler.steps')
    """

    group: ClassVar[str] = ""
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        for field in fields_of(type(self)).values():
            given = getattr(self, field.name)
            checked = field.check(given, self)
            if checked is not given:
                self._keep(field.name, checked)

    def _keep(self, name: str, value: Any) -> None:
        """Set a field of a frozen instance that is being made."""
        object.__setattr__(self, name, value)


@cache
def fields_of(cls: type[CheckedFields]) -> dict[str, Field]:
    """The declared fields of a dataclass by name, in its order."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.name: _field(field, hints[field.name], cls.group)
        for field in dataclasses.fields(cls)
        if field.init
    }


def keys_of(cls: type[CheckedFields]) -> dict[str, Field]:
    """The fields that a configuration sets, by the names that the user types."""
    found = fields_of(cls).values()
    return {field.read_word: field for field in found if FromRun not in field.metadata}


def configure(cls: type[CheckedFields], prefix: str, given: Mapping[str, Any], **own: Any) -> Any:
    """An object from the keys that the user typed.

    Args:
        cls: a class of declared fields.
        prefix: what stands before the keys in error lines, as in ``mechanism.inner``.
        given: values by key.
        own: fields that are no keys here.

    Raises:
        InputError: for an unknown key, one that is missing, or a value that is not allowed.
    """
    known = {field.read_word: field for name, field in fields_of(cls).items() if name not in own}
    checks.known_keys(given, known, f"{prefix}.")
    for word, field in known.items():
        if field.default is MISSING and word not in given:
            raise InputError(f"{prefix}.{word}", None, "is required")
    return cls(**{known[key].name: value for key, value in given.items()}, **own)


def _field(field: dataclasses.Field, hint: Any, group: str) -> Field:
    types: list[Any] = []
    words: list[str] = []
    metadata: dict[type, Any] = {}
    for part in _parts(hint, metadata):
        if get_origin(part) is Literal:
            words += get_args(part)
        else:
            types.append(get_origin(part) or part)
    if words and not types:
        metadata.setdefault(Choices, Choices(*words))
    optional = NoneType in types
    types = [kind for kind in types if kind is not NoneType]
    own = metadata[Key].text if Key in metadata else field.name
    key = own if FromRun in metadata or not group else f"{group}.{own}"
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Field(field.name, key, default, tuple(types), tuple(words), optional, metadata)


def _parts(hint: Any, metadata: dict[type, Any]) -> Iterable[Any]:
    """The members of a union; what is annotated anywhere in it is added to ``metadata``."""
    if get_origin(hint) is Annotated:
        inner, *more = get_args(hint)
        parts = list(_parts(inner, metadata))
        metadata.update({type(item): item for item in more})
        return parts
    if get_origin(hint) in (Union, UnionType):
        return [part for member in get_args(hint) for part in _parts(member, metadata)]
    return [hint]


def _read_text(key: str, limits: Range, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(key, value, "must be a text")
    return value


def _read_text_or_integer(key: str, limits: Range, value: Any) -> str | int:
    return value if isinstance(value, str) and value else _read_integer(key, limits, value)


def _read_integer(key: str, limits: Range, value: Any) -> int:
    low: Any = -checks.MAX_INT64 if limits.low is None else limits.low
    high: Any = limits.high
    return checks.integer(key, value, low=int(low), high=None if high is None else int(high))


def _read_number(key: str, limits: Range, value: Any) -> float:
    low = limits.low if limits.above is None else limits.above
    high: Any = limits.high if limits.below is None else limits.below
    sign = ">" if limits.above == 0 else ">="
    found = checks.number(
        key, value,
        low=-math.inf if low is None else low, low_open=limits.above is not None,
        high=math.inf if high is None else high, high_open=limits.below is not None,
        allowed=f"must be a finite number {sign} 0" if low == 0 and high is None else None,
    )  # fmt: skip
    return value if isinstance(value, float) else found


_READERS: Mapping[type, Callable[[str, Range, Any], Any]] = {
    int: _read_integer,
    float: _read_number,
    bool: lambda key, limits, value: checks.boolean(key, value),
    str: _read_text,
}
_JSON = {
    int: "integer", float: "number", bool: "boolean", str: "string", tuple: "array",
    Sequence: "array", Mapping: "object",
}  # fmt: skip
