"""``dperm data list | path NAME | verify NAME [key=value ...]``."""

from __future__ import annotations

from pathlib import Path

from dperm_cli.core import registry
from dperm_cli.core.errors import EXIT_FAILED, EXIT_INPUT, EXIT_OK, InputError, UnknownKey
from dperm_cli.core.paths import data_dir
from dperm_cli.problem.datasets import _verbs
from dperm_cli.runner import schema
from dperm_cli.runner.compose import Composer
from dperm_cli.runner.overrides import parse

VERBS = ("list", "path", "verify")


def data(arguments: list[str]) -> int:
    """Dispatch; ``verify`` exits with 1 when it finds a problem."""
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        raise InputError("data", verb, f"must be one of {', '.join(VERBS)}", VERBS)
    if verb == "list":
        if rest:
            raise InputError("data list", " ".join(rest), "takes no arguments")
        return _list()
    if not rest or "=" in rest[0]:
        raise InputError(f"data {verb}", " ".join(rest), "needs the name of a data set")
    if verb == "path":
        return _path(rest)
    return _verify(rest[0], rest[1:])


def _folder() -> Path | None:
    found = data_dir()
    return None if found is None else Path(found)


def _list() -> int:
    print(f"{'name':<20}{'task':<22}{'n':>8}{'p':>8}  where")
    for row in _verbs.listing(_folder()):
        n, p = ("-" if size is None else size for size in (row.n, row.p))
        where = row.where if row.present else f"not here ({row.where})"
        print(f"{row.name:<20}{row.task:<22}{n:>8}{p:>8}  {where}")
    return EXIT_OK


def _path(rest: list[str]) -> int:
    if len(rest) > 1:
        raise InputError("data path", " ".join(rest), "takes one name")
    registry.load("dataset", rest[0])
    print(_verbs.path(rest[0], _folder()))
    return EXIT_OK


def _verify(name: str, words: list[str]) -> int:
    config = dict(Composer().compose({"dataset": name})["dataset"])
    for setting in parse(words).settings:
        key = setting.key.removeprefix("dataset.")
        if key not in config or key == "name":
            raise UnknownKey(setting.key, [f"dataset.{k}" for k in config if k != "name"])
        config[key] = setting.values[0]
    findings = _verbs.verify(schema.build("dataset", config), _folder())
    for found in findings:
        print(f"{found.level:<8}{found.check:<15}{found.detail}")
    if [found.check for found in findings] == ["load"]:
        return EXIT_INPUT
    return EXIT_FAILED if any(found.level == "problem" for found in findings) else EXIT_OK
