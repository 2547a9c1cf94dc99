"""Read the arguments of a Python call: words of a command line, keys, plug-ins, own records."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dperm_cli.api.python_values import make_setting, to_plain, write_word
from dperm_cli.api.waiting_threads import is_waited_for
from dperm_cli.core import plugin_classes, plugin_sources
from dperm_cli.core.catalogue import GROUPS
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.core.fields import keys_of
from dperm_cli.core.plugin_files import find_kind
from dperm_cli.datasets.files.arrays import Table, hold_table
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.compose.command_line import Request, Setting, parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.sweep.progress import show_progress

# Plug-ins, Hydra and BLAS are settled for the whole process: one call after another.
_one_at_a_time = threading.RLock()
_SECONDS = 0.5  # between two looks whether the call that is waited for waits for this one
_owners: list[int] = []  # the threads of the calls that are open, each inside the one before
_OWN_DATA = "arrays"  # the data set of records that a call is given


@dataclass(frozen=True)
class Call:
    """What a call asks for.

    Attributes:
        requests: As of command lines: several where an axis is one of plug-ins with settings.
        words: The words of a command line that mean the same.
    """

    requests: tuple[Request, ...]
    words: tuple[str, ...]


@contextmanager
def open_call(
    overrides: Sequence[Any],
    keys: Mapping[str, Any],
    *,
    plugins: Iterable[Any] = (),
    X: Any = None,
    y: Any = None,
    config_dir: Any = None,
    progress: bool = True,
    sweeps: bool = False,
    switches: Sequence[str] = (),
) -> Iterator[Call]:
    """Read the arguments, with their plug-ins and records at hand while the block runs.

    Args:
        overrides: Words ``key=value``, or lists of them.
        keys: Values by key; a map of a group sets its keys.
        plugins: Files, installed packages and classes.
        X, y: Records of one's own.
        config_dir: A folder of YAML files.
        progress: Whether it is shown.
        sweeps: Whether the words spell axes as ``a,b``.
        switches: Words such as ``--quick`` that a verb has beside those of a run.

    Raises:
        InputError: Something of it makes no sense.
    """
    with _take_turn(), _keep_process(), show_progress(progress):
        plugin_sources.add_environment()
        words = tuple(_list_words(overrides))
        typed = parse(["-m", *(word for word in words if word not in switches)])
        reader = _Reader(typed, config_dir)
        reader.refuse_twice(keys)
        reader.add_plugins(plugins)
        table = Table.of_arguments(X, y)
        alternatives = reader.begin(table)
        alternatives += [reader.read(key, value) for key, value in keys.items()]
        with hold_table(table):
            yield reader.make_call(words, alternatives, sweeps)


@contextmanager
def _take_turn() -> Iterator[None]:
    """Wait until no other thread has an open call.

    Raises:
        InputError: The other call waits for this thread: both would wait for ever.
    """
    while not _one_at_a_time.acquire(timeout=_SECONDS):
        if is_waited_for(next(iter(_owners[-1:]), 0)):
            allowed = "waits for this call, which waits for it: call from the same thread instead"
            raise InputError("threads", "a call that is under way", allowed)
    try:
        _owners.append(threading.get_ident())
        yield
    finally:
        _owners.pop()
        _one_at_a_time.release()


@contextmanager
def _keep_process() -> Iterator[None]:
    """Leave plug-ins and filters of warnings as they were before.

    Whatever input makes no sense is an InputError itself, and of no class below it.
    """
    try:
        with plugin_sources.use_plugins(key=plugin_sources.ARGUMENT), warnings.catch_warnings():
            yield
    except UnknownKey as error:
        plain = InputError.__new__(InputError, str(error))
        vars(plain).update(vars(error))
        raise plain from None


def _list_words(overrides: Iterable[Any]) -> Iterator[str]:
    for word in overrides:
        if isinstance(word, str):
            yield word
        elif isinstance(word, list | tuple):
            yield from _list_words(word)
        else:
            allowed = "must be words such as 'epsilon=1'; values stand behind a name: epsilon=1"
            raise InputError("overrides", f"<{type(word).__name__}>", allowed)


class _Reader:
    """Reads keys, one after another."""

    def __init__(self, typed: Request, config_dir: Any) -> None:
        if typed.show or typed.preflight:
            raise InputError("--cfg", "job", "is an option of `dperm run`")
        folder = typed.config_dir if config_dir is None else to_plain("config_dir", config_dir)
        self._typed, self._folder = typed.settings, folder
        self._composer = Composer(folder)
        self._classes: list[type] = []
        self._has_table = False

    def add_plugins(self, plugins: Iterable[Any]) -> None:
        """Offer files and packages by their names, and classes as they are."""
        if isinstance(plugins, str | type):
            plugins = [plugins]
        for one in plugins:
            if isinstance(one, type):
                self._classes.append(one)
            elif isinstance(one, str) or hasattr(one, "__fspath__"):
                plugin_sources.add(one)
            else:
                words = "must be files, installed packages, or classes of plug-ins"
                raise InputError("plugins", f"<{type(one).__name__}>", words)

    def refuse_twice(self, keys: Iterable[str]) -> None:
        """InputError for a key that is given as a word and as a key."""
        typed = {setting.key: setting.values[0] for setting in self._typed}
        for key in keys:
            if key in typed:
                raise InputError(key, typed[key], f"stands there twice: as a word, and as {key}=")

    def begin(self, table: Table | None) -> list[list[list[Setting]]]:
        """What holds before the keys: with records of one's own, the data set that they are."""
        self._has_table = table is not None
        if table is None:
            return []
        for setting in self._typed:
            if setting.key == "dataset":
                raise InputError("dataset", setting.values[0], "cannot stand beside X=")
        return [[[make_setting("dataset", _OWN_DATA)]]]

    def read(self, key: str, value: Any) -> list[list[Setting]]:
        """The settings of a key: alternatives, each of several settings."""
        several = isinstance(value, list | tuple) and any(_is_plugin(item) for item in value)
        if key in GROUPS and several:
            return [settings for item in value for settings in self.read(key, item)]
        if key == "dataset" and self._has_table and not isinstance(value, Mapping):
            return [[make_setting("dataset.title", value)]]
        if key in GROUPS and _is_plugin(value):
            return [self._read_plugin(key, value)]
        if key in (*GROUPS, *cell_schema.MAPS) and isinstance(value, Mapping):
            own = {word: item for word, item in value.items() if word != "name"}
            named = self.read(key, value["name"]) if "name" in value else [[]]
            more = [make_setting(f"{key}.{word}", item) for word, item in own.items()]
            return [[*settings, *more] for settings in named]
        return [[make_setting(key, value)]]

    def _read_plugin(self, key: str, made: Any) -> list[Setting]:
        """The name of a class or an object, and the keys of an object that are no defaults."""
        cls = made if isinstance(made, type) else type(made)
        group = key.partition(".")[0]
        if find_kind(cls) != group:
            raise InputError(key, cls.__name__, f"is no {group}")
        if not plugin_classes.is_shipped(cls):
            self._classes.append(cls)
        settings = [make_setting(key, plugin_classes.name_class(cls))]
        if isinstance(made, type):
            return settings
        for word, field in keys_of(cls).items():
            value = getattr(made, field.name)
            if _is_plugin(value):
                kind = find_kind(type(value))
                settings += self._read_plugin(f"{key}.{word}" if kind == group else kind, value)
            elif word == "calibration" and group == "mechanism":  # a key of the run
                settings += [make_setting(word, value)] if value != field.default else []
            elif word == "labels" and value is not None:
                settings.append(make_setting(f"{key}.{word}", dict(value)))
            elif value is not None or field.default is not None:
                settings.append(make_setting(f"{key}.{word}", value))
        return settings

    def make_call(
        self, words: tuple[str, ...], alternatives: list[list[list[Setting]]], sweeps: bool
    ) -> Call:
        """All combinations of alternatives; the classes are offered."""
        every = list(itertools.product(*alternatives))
        combined = [[one for settings in choice for one in settings] for choice in every]
        self._offer_classes(combined)
        requests = tuple(
            Request((*self._typed, *settings), True, self._folder) for settings in combined
        )
        more = [] if self._folder is None else ["--config-dir", self._folder]
        told = dict.fromkeys(write_word(one, sweeps) for settings in combined for one in settings)
        if any(setting.sweep for setting in self._typed) and "-m" not in words:
            more.append("-m")
        return Call(requests, (*more, *words, *told))

    def _offer_classes(self, combined: Sequence[Sequence[Setting]]) -> None:
        settings = [*self._typed, *(combined[0] if combined else ())]
        keys = {setting.key: setting.values[0] for setting in settings}
        several = keys.get("workers", 1) != 1 or keys.get("backend", "local") != "local"
        for cls in dict.fromkeys(self._classes):
            if not plugin_classes.is_shipped(cls):
                plugin_classes.add_class(cls, for_workers=several)


def _is_plugin(value: Any) -> bool:
    """Whether a value is a plug-in's class or an object of one."""
    return bool(find_kind(value if isinstance(value, type) else type(value)))
