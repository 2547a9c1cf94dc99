"""The ledger of one budget: a file to which every release is written before its noise is drawn.

A budget is about people, and its name is a word for them: the same people in another file are still
under it. The file has a line of JSON for each entry. Each line holds a digest of the line before
and of itself, so that a line that was changed or taken out of the middle is noticed. The first line
opens the budget, ``reserved`` lines spend, and ``released`` lines say that a release was finished.
Nothing is given back. A line without its end was being written when its process died, before any
noise was drawn; it is taken away and noted.
"""

from __future__ import annotations

import datetime
import getpass
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.files import (
    append_durably,
    hold_lock,
    open_atomically,
    read_bytes,
    storage_errors,
    truncate_file,
)
from dperm_cli.privacy.accounting.budget_filter import BudgetFilter, Spend

FOLDER, VARIABLE = "budgets", "DPERM_BUDGET_DIR"
ENDING = ".jsonl"
FORMAT = "dperm-budget-1"
OPENED, RESERVED, RELEASED, TORN = "opened", "reserved", "released", "torn"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Entry:
    """One release of a budget.

    Attributes:
        id: drawn for it.
        what: the words of whoever made it.
        who, when: the user and the time.
        mechanism: its name.
        spend: what it takes.
        finished: whether the release came to its end.
        place: where it was written to.
    """

    id: str
    what: str
    who: str
    when: str
    mechanism: str
    spend: Spend
    finished: bool = False
    place: str | None = None


@dataclass(frozen=True)
class Budget:
    """A budget as its file has it.

    Attributes:
        name: a word for the people.
        opened: when.
        rule: the filter, fixed on opening.
        entries: all releases, in their order.
    """

    name: str
    opened: str
    rule: BudgetFilter
    entries: tuple[Entry, ...]

    @property
    def spends(self) -> list[Spend]:
        """What the entries take."""
        return [entry.spend for entry in self.entries]

    def describe_rest(self) -> str:
        """What is left, in words."""
        pure, mu = self.rule.largest_pure(self.spends), self.rule.largest_gaussian(self.spends)
        told = []
        if self.rule.rule != "gaussian":
            told.append(f"epsilon {_down(pure):g} for one pure release")
        if self.rule.rule != "pure":
            told.append(f"mu {_down(mu):g} for one Gaussian release")
        return "left: " + " or ".join(told)


def create_budget(name: str, rule: BudgetFilter, folder: Path | None = None) -> Path:
    """Open a budget: write the first line of its ledger.

    Args:
        name: a word for the people.
        rule: the filter.
        folder: of ledgers; None is ``find_folder()``.

    Returns:
        The file.

    Raises:
        InputError: there is such a budget, or the name is none.
        StorageError: it cannot be written.
    """
    path = find_path(name, folder)
    with storage_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _hold(path):
        if path.exists():
            raise InputError("budget", name, f"exists: {path}; a budget is opened once")
        line = _seal("", {"state": OPENED, "format": FORMAT, "budget": name, "when": _now(),
                          "filter": asdict(rule)})  # fmt: skip
        with open_atomically(path, private=True) as file:
            file.write(line)
    return path


def read_budget(name: str, folder: Path | None = None) -> Budget:
    """A budget with its entries.

    Raises:
        InputError: there is none, or its file is not as it was written.
    """
    path = find_path(name, folder)
    return _parse(name, path, _read_whole(name, path)[0])


def list_budgets(folder: Path | None = None) -> list[str]:
    """The names of the budgets in a folder."""
    root = folder or find_folder()
    if not root.is_dir():
        return []
    return sorted(path.name.removesuffix(ENDING) for path in root.glob(f"*{ENDING}"))


def reserve(
    name: str, spend: Spend, relation: str, mechanism: str, what: str, folder: Path | None = None
) -> str:
    """Write a release to the ledger, where it fits; what is drawn afterwards is paid for.

    Args:
        name: of the budget.
        spend: what the release takes under its own relation.
        relation: of the release.
        mechanism: its name.
        what: whatever tells it apart for a reader, in words.
        folder: of ledgers.

    Returns:
        The entry's id.

    Raises:
        InputError: there is no such budget, or its file is damaged or cannot be locked.
        PrivacyError: the release does not fit; the message says what is left.
    """
    path = find_path(name, folder)
    require_file(name, path)
    with _hold(path):
        lines = _mend_end(name, path)
        found = _parse(name, path, lines)
        asked = _convert(spend, relation, found.rule.relation, name)
        if not found.rule.allows([*found.spends, asked]):
            raise PrivacyError(
                f"budget {name}: this release takes {_describe(asked)}, which does not fit; "
                f"{found.describe_rest()}"
            )
        entry = secrets.token_hex(8)
        facts = {"state": RESERVED, "id": entry, "when": _now(), "who": _who(), "what": what,
                 "mechanism": mechanism, "spend": asdict(asked)}  # fmt: skip
        append_durably(path, _seal(lines[-1], facts))
    return entry


def finish(name: str, entry: str, place: str, folder: Path | None = None) -> None:
    """Note that a release came to its end, and where it was written to."""
    path = find_path(name, folder)
    with _hold(path):
        lines = _mend_end(name, path)
        _parse(name, path, lines)
        facts = {"state": RELEASED, "id": entry, "when": _now(), "place": place}
        append_durably(path, _seal(lines[-1], facts))


def find_folder() -> Path:
    """Where budgets are: what DPERM_BUDGET_DIR names, or ``budgets`` in the working folder."""
    return Path(os.environ.get(VARIABLE) or FOLDER).expanduser()


def find_path(name: Any, folder: Path | None = None) -> Path:
    """The file of a budget; InputError for what is no name."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        allowed = "must be a word for the people: letters, digits, _ . -"
        raise InputError("budget", name, allowed)
    return (folder or find_folder()) / f"{name}{ENDING}"


def require_file(name: str, path: Path) -> None:
    """InputError where there is no such budget."""
    if not path.is_file():
        allowed = f"no such budget in {path.parent}; open it: dperm budget create {name} epsilon=3"
        raise InputError("budget", name, allowed, list_budgets(path.parent))


def _hold(path: Path) -> Any:
    return hold_lock(path.with_name(f".{path.name}.lock"), wait=True, required=True)


def _read_whole(name: str, path: Path) -> tuple[list[str], int]:
    """The whole lines of the file, and the bytes of an unfinished one at its end."""
    require_file(name, path)
    content = read_bytes(path) or b""
    whole, _, rest = content.rpartition(b"\n")
    try:
        return whole.decode("utf-8").split("\n"), len(rest)
    except UnicodeDecodeError:
        raise _refuse_ledger(name, path, "it is not text") from None


def _mend_end(name: str, path: Path) -> list[str]:
    """The lines, after a torn one at the end was taken away; the lock is held."""
    lines, torn = _read_whole(name, path)
    if torn:
        truncate_file(path, path.stat().st_size - torn)
        line = _seal(lines[-1], {"state": TORN, "when": _now(), "bytes": torn})
        append_durably(path, line)
        lines.append(line.decode().rstrip("\n"))
    return lines


def _parse(name: str, path: Path, lines: Sequence[str]) -> Budget:
    before, found = "", list[dict[str, Any]]()
    for number, line in enumerate(lines, 1):
        try:
            facts = json.loads(line)
            told = facts.pop("digest")
        except (ValueError, KeyError, AttributeError):
            raise _refuse_ledger(name, path, f"line {number} is no entry") from None
        if told != _digest(before, facts):
            raise _refuse_ledger(name, path, f"line {number} does not follow the one before")
        before = line
        found.append(facts)
    try:
        first, *rest = found
        if first["state"] != OPENED or first["format"] != FORMAT or first["budget"] != name:
            raise _refuse_ledger(name, path, "it does not begin with this budget's opening")
        finished = {facts["id"]: facts["place"] for facts in rest if facts["state"] == RELEASED}
        entries = tuple(
            Entry(
                facts["id"], facts["what"], facts["who"], facts["when"], facts["mechanism"],
                Spend(**facts["spend"]), facts["id"] in finished, finished.get(facts["id"]),
            )
            for facts in rest
            if facts["state"] == RESERVED
        )  # fmt: skip
        return Budget(name, first["when"], BudgetFilter(**first["filter"]), entries)
    except (KeyError, TypeError, ValueError):
        raise _refuse_ledger(name, path, "an entry lacks a part") from None


def _convert(spend: Spend, relation: str, wanted: str, name: str) -> Spend:
    if relation == wanted:
        return spend
    if wanted == "replace_one":
        return spend.for_replacement()
    allowed = f"budget {name} is about {wanted}, which a {relation} release says nothing of"
    raise InputError("privacy.relation", relation, f"{allowed}; say privacy.relation={wanted}")


def _describe(spend: Spend) -> str:
    if spend.mu:
        return f"mu {spend.mu:.6g}"
    return f"epsilon {spend.epsilon:.6g}" + (f", delta {spend.delta:.3g}" if spend.delta else "")


def _seal(before: str, facts: Mapping[str, Any]) -> bytes:
    line = json.dumps({**facts, "digest": _digest(before, facts)}, allow_nan=False)
    return line.encode() + b"\n"


def _digest(before: str, facts: Mapping[str, Any]) -> str:
    return hash_facts([before, json.dumps(facts, sort_keys=True)])


def _refuse_ledger(name: str, path: Path, words: str) -> InputError:
    allowed = f"its ledger {path} is damaged ({words}): nothing is released under it; restore it "
    return InputError("budget", name, allowed + "from a copy")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _down(value: float) -> float:
    """The number with six digits, not rounded up."""
    return float(f"{value * (1.0 - 5e-6):.6g}") if value else 0.0
