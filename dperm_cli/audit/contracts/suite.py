"""Run the contracts on plug-ins from outside: ``dperm check`` and ``dperm_cli.check``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

from dperm_cli.audit.contracts import (
    bound_contract,
    dataset_contract,
    event_contract,
    kernel_contract,
    loss_contract,
    mechanism_contract,
    mechanism_neighbours,
    sampler_contract,
    set_contract,
)
from dperm_cli.audit.contracts.promises import (
    BROKEN,
    NOT_TRIED,
    OK,
    Finding,
    Promise,
    list_promises,
    try_promise,
)
from dperm_cli.core import plugin_files, plugin_sources, progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import keys_of
from dperm_cli.core.plugin_files import quiet_stdout

# The modules of each kind's promises. A mechanism is tried last, on the losses of its file too.
CONTRACTS: dict[str, tuple[ModuleType, ...]] = {
    "loss": (loss_contract,),
    "constraint": (set_contract,),
    "dataset": (dataset_contract,),
    "kernel": (kernel_contract,),
    "event": (event_contract,),
    "sampler": (sampler_contract,),
    "bound": (bound_contract,),
    "mechanism": (mechanism_contract, mechanism_neighbours),
}
DEFAULTS = "an object can be made with its defaults"
_MEND = "give each field a default, or a type and a Range from which a value can be taken"


@dataclass(frozen=True)
class CheckReport:
    """What came of a check.

    Attributes:
        sources: the files or packages, in words.
        findings: one for each promise of each plug-in.

    >>> found = Finding("loss", "mine", "it is convex", OK, "9 chords")
    >>> report = CheckReport(("mine.py",), (found,))
    >>> report.is_broken
    False
    >>> print(report)
    mine.py
    <BLANKLINE>
    loss mine
      ok      it is convex (9 chords)
    <BLANKLINE>
    1 promise of 1 plug-in: 1 ok
    """

    sources: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def is_broken(self) -> bool:
        """Whether a promise is broken."""
        return any(one.is_broken for one in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The promises that are broken."""
        return tuple(one for one in self.findings if one.is_broken)

    def __str__(self) -> str:
        groups: dict[tuple[str, str], list[Finding]] = {}
        for one in self.findings:
            groups.setdefault((one.kind, one.name), []).append(one)
        # what is broken stands last, where a terminal shows it
        ordered = sorted(groups.items(), key=lambda item: any(one.is_broken for one in item[1]))
        parts = ["\n".join(self.sources)] if self.sources else []
        for (kind, name), found in ordered:
            told = sorted(found, key=lambda one: one.is_broken)
            parts.append("\n".join([f"{kind} {name}", *map(format_finding, told)]))
        return "\n\n".join([*parts, _count(self.findings)])

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    __repr__ = __str__

    def to_json(self) -> str:
        """One object a promise, a line each."""
        return "\n".join(json.dumps(asdict(one)) for one in self.findings)


def format_finding(one: Finding) -> str:
    """A promise with what was tried; a broken one with two lines more."""
    left_out = "not tried: " if one.verdict == NOT_TRIED else ""
    tried = f" ({left_out}{one.tried})" if one.tried else ""
    if not one.is_broken:
        return f"  {one.verdict:<7} {one.promise}{tried}"
    lines = [f"  {one.verdict:<7} {one.promise}", f"          seen: {one.seen}"]
    return "\n".join([*lines, f"          mend: {one.mend}"])


def _count(findings: Sequence[Finding]) -> str:
    plugins = len({(one.kind, one.name) for one in findings})
    counts = {OK: "ok", NOT_TRIED: "not tried", BROKEN: BROKEN}
    parts = [(sum(one.verdict == key for one in findings), word) for key, word in counts.items()]
    told = ", ".join(f"{number} {word}" for number, word in parts if number)
    promises = f"{len(findings)} promise{'s' if len(findings) != 1 else ''}"
    return f"{promises} of {plugins} plug-in{'s' if plugins != 1 else ''}: {told}"


def check(*plugins: str | os.PathLike[str] | type) -> CheckReport:
    """Try the promises of plug-ins: what is promised, what was tried, what broke.

    Args:
        plugins: files ending in ``.py``, names of packages, or classes (of a notebook's cell).

    Returns:
        A report that prints a line a promise; ``is_broken`` and ``findings`` say the same.

    Raises:
        InputError: One is no plug-in.
    """
    # whoever is checked stays known no longer than this
    with plugin_sources.use_plugins(key="check"), quiet_stdout():
        offered, words = _find_plugins(plugins)
        return CheckReport(words, tuple(check_plugins(offered)))


def _find_plugins(
    plugins: Iterable[str | os.PathLike[str] | type],
) -> tuple[list[tuple[str, str, Any, str]], tuple[str, ...]]:
    """(kind, name, class or bound, file) of each plug-in, and where they come from."""
    found, words = [], []
    for one in plugins:
        if isinstance(one, type):
            found.append((*_name_class(one), one, ""))
            continue
        source = plugin_sources.add_importable(one)
        words.append(source.describe())
        made = [(*name, plugin_sources.find(*name)) for name in source.names]
        found += [(*part, _find_file(part[2])) for part in made]
    return found, tuple(words)


def _find_file(made: Any) -> str:
    """The file that a class was read from; empty for a bound."""
    module = sys.modules.get(made.__module__) if isinstance(made, type) else None
    return str(vars(module).get("__file__", "")) if module is not None else ""


def _name_class(cls: type) -> tuple[str, str]:
    """Kind and name of a class that was written in this very process."""
    kind = plugin_files.find_kind(cls)
    if not kind:
        raise InputError("check", cls.__name__, "is no class of a plug-in")
    return kind, plugin_files.check_name(cls.__name__, kind, cls)


def check_plugins(offered: Sequence[tuple[str, str, Any, str]]) -> list[Finding]:
    """The findings of plug-ins (kind, name, class or bound, file), in the order given."""
    order = list(CONTRACTS)
    found: dict[tuple[str, str], list[Finding]] = {}
    losses: list[Any] = []
    for number, (kind, name, made, file) in enumerate(
        sorted(offered, key=lambda one: order.index(one[0]))
    ):
        progress.report(f"check {kind} {name}", number, len(offered))
        findings = check_one(kind, name, made, file, losses)
        found[kind, name] = findings
        if kind == "loss" and not any(one.is_broken for one in findings):
            losses.append(made())
    return [one for kind, name, *_ in offered for one in found[kind, name]]


def check_one(
    kind: str, name: str, made: Any, file: str = "", losses: Sequence[Any] = ()
) -> list[Finding]:
    """The findings of one plug-in.

    Args:
        kind, name: what it is.
        made: its class, or the bound.
        file: its file.
        losses: losses on which a mechanism is tried too.
    """
    modules = CONTRACTS[kind]

    def make(_: Any) -> str:
        subjects.append(modules[0].make_subject(made, losses))
        return ", ".join(sorted(_list_keys(kind, made))) or "no keys"

    subjects: list[Any] = []
    first = try_promise(Promise(DEFAULTS, _MEND, make), None, kind, name, file)
    if not subjects:
        return [first]
    promises = [one for module in modules for one in list_promises(module)]
    return [first, *(try_promise(one, subjects[0], kind, name, file) for one in promises)]


def _list_keys(kind: str, made: Any) -> list[str]:
    return [] if kind == "bound" else list(keys_of(made))
