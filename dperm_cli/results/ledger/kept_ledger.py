"""Check a folder's ``ledger.json`` against its records and log, and rewrite it.

A release with fresh noise may be missing in a lost or damaged log. If the old ledger has it, the
new one keeps it, marked ``"logged": false``. Anybody with access to the folder can edit the file,
so an entry is accepted only if its numbers follow from its events.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli import __version__
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.core.read_errors import first_words
from dperm_cli.results.ledger import ledger, release_log
from dperm_cli.results.ledger.ledger import FORM, Accountant, LedgerRelease
from dperm_cli.results.ledger.release_log_lines import (
    Gap,
    check_release,
    check_trials,
    check_value,
)
from dperm_cli.results.ledger.statement import has_fresh_noise
from dperm_cli.results.records.row_facts import format_count, read_map
from dperm_cli.results.records.schema import canonical_json, normalise
from dperm_cli.results.records.store import Store
from dperm_cli.results.study_files import LEDGER, LOG

# Relative difference of two numbers that are the same up to the last bits of a computation.
_CLOSE = 1e-9
_MARKS = ("cell", "record", "logged")  # how a release is known now: that may change
# what a version of dperm puts in its own words
_WORDS = ("statement", "relation_means", "not_covered", "words", "sensitivity", "remarks")
_KEPT_SUFFIX = "kept"  # ends the name of a kept release that has no name of its own

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class LedgerState:
    """A ledger made of what a folder holds.

    ``faults`` say where records, log or the ledger before contradict their events: with any,
    ``found`` may be None. ``gaps`` say what was lost of the log: then totals are lower bounds.
    ``notes`` are for a reader of this ledger only.
    """

    found: dict[str, Any] | None
    faults: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def state(
    store: Store,
    cells: Sequence[str],
    accountant: Accountant,
    trust: bool = False,
    others: Sequence[Store] = (),
) -> LedgerState:
    """The ledger of the cells' records and of the log; nothing is written.

    Args:
        store: the folder.
        cells: names of records, in the ledger's order.
        accountant: adds events up.
        trust: the records are those of a run that just ended: a ledger before it that says
            something else is replaced. Fresh releases that only it knows are kept all the same.
        others: folders that were merged into this one: what only their ledgers know is kept too.
    """
    rows, earlier = store.read_all(cells), release_log.list_unrecorded(store)
    missing = dict.fromkeys(
        filter(None, (accountant.find_missing(row) for row in (*rows, *(e.row for e in earlier))))
    )
    if missing:
        return LedgerState(None, notes=tuple(f"{LEDGER} stays as it is: {m}" for m in missing))
    wrong = ledger.record_faults([*rows, *(item.row for item in earlier)], accountant)
    if wrong:
        return LedgerState(None, tuple(wrong))
    gaps = [*release_log.list_damage(store.out), *release_log.find_unlogged(store)]
    found = ledger.build_ledger(rows, accountant, earlier, gaps)
    kept: list[LedgerRelease] = []
    unread = [cell for cell in cells if store.state(cell) == "broken"]
    faults, notes = [], []
    for source in (store, *others):
        before = read_bytes(source.out / LEDGER)
        entries = entries_of(before)
        known = [*found["releases"], *(item.entry for item in kept)]
        lost = _find_lost(entries or [], known)
        try:
            kept += [_restore_release(entry, accountant) for entry in lost]
        except (ValueError, TypeError, KeyError, ArithmeticError) as error:
            words = f"{LEDGER}: a release that no log has cannot be read: {first_words(error, 160)}"
            (gaps if trust else faults).append(words)
        if lost:
            count = format_count(len(lost), "release")
            gaps.append(f"{LOG}: has no line of {count} in {LEDGER}")
        if source is store and entries is None and before is not None and trust:
            notes.append(f"{LEDGER} could not be read, and is replaced")
        if source is store and trust:
            notes += _note_removed(entries or [], found, unread)
    if kept or gaps:
        found = ledger.build_ledger(rows, accountant, [*earlier, *kept], gaps)
    if not trust:
        faults += ledger_faults(read_bytes(store.out / LEDGER), found, unread)
    return LedgerState(found, tuple(faults), tuple(gaps), tuple(notes))


def write(store: Store, stated: LedgerState) -> None:
    """Write the ledger, if it has no faults. What it cannot keep is told by a line of the log."""
    if stated.faults or stated.found is None:
        return
    unread = [gap for gap in stated.gaps if gap.startswith(f"{LEDGER}:")]
    release_log.append(store.out, [Gap(words) for words in unread])
    write_atomically(store.out / LEDGER, ledger.encode_ledger(stated.found))


def entries_of(data: bytes | None) -> list[dict[str, Any]] | None:
    """The releases of a written ledger; None where there is none, or one that cannot be read."""
    written = _read_tree(data)
    found = written.get("releases")
    if written.get("form") != FORM or not isinstance(found, list):
        return None
    good = all(isinstance(entry, dict) and isinstance(entry.get("cell"), str) for entry in found)
    return found if good else None


def ledger_faults(
    old: bytes | None, new: Mapping[str, Any], unread: Sequence[str] = ()
) -> list[str]:
    """Where a written ledger contradicts what the records yield, one line each.

    ``old`` are its bytes (None when there is none), ``new`` is the statement of the records.
    Records may have come since it was written; ``unread`` names the cells whose records are
    damaged: nothing is held against those.
    """
    if old is None:
        return []
    written, before = _read_tree(old), entries_of(old)
    if written.get("form", FORM) != FORM:
        return [f"{LEDGER}: form {_short(written.get('form'))} is not {FORM}: move it away first"]
    if before is None:
        return [f"{LEDGER}: cannot be read"]
    written, new = _without_gaps(written), _without_gaps(new)
    older = any(entry.get("version") not in (None, __version__) for entry in new["releases"])
    found = []
    for entry, now in _pair_entries(before, new["releases"]):
        place = f"cell {first_words(entry['cell'], 160)}"
        if now is None:
            if entry["cell"] not in unread:
                found.append(f"{LEDGER}: {place} has no record of a release")
            continue
        odd = [mark for mark in _MARKS[1:] if entry.get(mark) not in (None, False)]
        found += [f"{LEDGER}: {place} {mark} can only be false" for mark in odd]
        if any(entry.get(mark) != now.get(mark) for mark in _MARKS[1:]):
            entry, now = _drop_marks(entry), _drop_marks(now)
        if older:
            entry, now = _find_shared_facts(entry, now)
        different = find_difference(entry, now, place)
        found += [f"{LEDGER}: {different}"] if different else []
    if older:
        return found or _older_total_faults(written, new)
    if not found and _marks(before) == _marks(new["releases"]) and not unread:
        different = find_difference(written, new, "")
        found += [f"{LEDGER}: {different}"] if different else []
    return found or _total_faults(written, new)


def _read_tree(data: bytes | None) -> dict[str, Any]:
    """The mapping that bytes hold as JSON; empty for anything else."""
    try:
        return {} if data is None else read_map(data.decode())
    except UnicodeDecodeError:
        return {}


def _key(entry: Entry) -> tuple[str, str]:
    """What two entries of one release share: its name, or (of earlier versions) its cell."""
    if not has_fresh_noise(entry):
        return ("seeded", entry["cell"])
    if isinstance(entry.get("release"), str):
        return ("release", entry["release"])
    return ("cell", entry["cell"].rpartition("-")[0] if _lacks_record(entry) else entry["cell"])


def _lacks_record(entry: Entry) -> bool:
    return entry.get("record") is False


def _pair_entries(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Pair each old entry with a new entry, used once; None where there is no partner."""
    free: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in now:
        free.setdefault(_key(entry), []).append(entry)
    found: list[dict[str, Any] | None] = [None] * len(before)
    for same_name in (True, False):
        for place, entry in enumerate(before):
            mine = free.get(_key(entry), [])
            match = next((e for e in mine if not same_name or e["cell"] == entry["cell"]), None)
            if found[place] is None and match is not None:
                found[place] = match
                mine.remove(match)
    return list(zip(before, found, strict=True))


def _find_lost(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Entries of fresh releases that nothing else than the ledger before knows."""
    pairs = _pair_entries(before, now)
    return [entry for entry, same in pairs if same is None and has_fresh_noise(entry)]


def _note_removed(
    before: Sequence[dict[str, Any]], found: Mapping[str, Any], unread: Sequence[str]
) -> list[str]:
    """That releases with seeded noise leave the ledger with their records."""
    pairs = _pair_entries(before, found["releases"])
    gone = [entry for entry, now in pairs if now is None and entry["cell"] not in unread]
    count = sum(not has_fresh_noise(entry) for entry in gone)
    words = f"{format_count(count, 'release')} with seeded noise left {LEDGER} with the record"
    return [words] if count else []


def _restore_release(entry: Mapping[str, Any], accountant: Accountant) -> LedgerRelease:
    """A kept entry as the ledger counts it; ValueError where it is none that dperm wrote."""
    data, asked, accounted = entry["data"], entry["asked"], entry["accounted"]
    events = accountant.restore_events(_mappings(entry["events"]))
    trials, name = entry["trials"], entry["cell"]
    check_trials(trials)
    facts = {
        "cell": name,
        "status": "ok",
        "dataset": data["name"],
        "data_fingerprint": data["fingerprint"],
        "n": data["n"],
        "population": data["population"],
        "population_source": data["population_source"],
        "unsafe_scaling": not data["preprocessing_covered"],
        "preprocessing": data["preprocessing"],
        "p": entry["problem"]["p"],
        "loss": entry["problem"]["loss"],
        "mechanism": entry["mechanism"],
        "relation": entry["relation"],
        "privacy": asked["kind"],
        "epsilon": asked.get("epsilon", accounted["epsilon"]),
        "information": asked.get("information"),
        "delta": asked["delta"],
        "guarantee": accounted["kind"],
        "epsilon_accounted": accounted["epsilon"],
        "delta_accounted": accounted["delta"],
        "information_accounted": accounted.get("information"),
        "accountant": accounted["accountant"],
        "certificate": accounted["certificate"],
        "settings": None if entry["settings"] is None else json.dumps(entry["settings"]),
        "events": canonical_json(events),
        "noise": entry["noise"],
        "plugins": entry.get("plugins"),
        "release": entry.get("release"),
    }
    for column, value in facts.items():
        check_value(column, value)
    check_release(facts)
    row = normalise(facts)
    fault = accountant.fault(row)
    if fault:
        raise ValueError(fault)
    _checked_words(entry)
    if not _lacks_record(entry):
        name = f"{name}-{facts['release'] or _KEPT_SUFFIX}"
    row["cell"] = name
    return LedgerRelease(row, trials, recorded=False, entry={**entry, "cell": name})


def _checked_words(entry: Mapping[str, Any]) -> None:
    """ValueError unless what a page shows of an entry is there."""
    if not all(isinstance(entry[name], str) for name in ("statement", "relation_means")):
        raise ValueError("its statement is no text")
    if not isinstance(entry["not_covered"], list):
        raise ValueError("not_covered is no list")


def _mappings(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("its events are no list of events")
    return value


def _without_gaps(written: Mapping[str, Any]) -> dict[str, Any]:
    """A ledger without the words on what was lost since, or found again."""
    found = dict(written)
    warnings, totals = found.get("warnings"), found.get("totals")
    if isinstance(warnings, list):
        mark = ledger.AT_LEAST.partition(":")[0]
        kept = [w for w in warnings if not (isinstance(w, str) and w.startswith(mark))]
        found["warnings"] = kept
    if isinstance(totals, list):
        found["totals"] = [_exact(total) for total in totals]
    return found


def _exact(total: Any) -> Any:
    if not isinstance(total, dict) or not isinstance(total.get("statement"), str):
        return total
    kept = {name: value for name, value in total.items() if name != "at_least"}
    return kept | {"statement": total["statement"].removeprefix(ledger.TOTAL_AT_LEAST)}


def _total_faults(written: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Totals of the written ledger about the same cells as one of the records', and unlike it."""
    now = {_about(total): total for total in new["totals"]}
    totals = written.get("totals") or []
    if not isinstance(totals, list):
        return [f"{LEDGER}: totals are no list"]
    pairs = [(total, now.get(_about(total))) for total in totals]
    different = [find_difference(old, found, "total") for old, found in pairs if found is not None]
    return [f"{LEDGER}: {words}" for words in different if words]


def _find_shared_facts(old: Any, new: Any) -> tuple[Any, Any]:
    """What two JSON trees of different versions both say, without words for a reader."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in old if name in new and name not in _WORDS]
        pairs = {name: _find_shared_facts(old[name], new[name]) for name in names}
        return {n: pair[0] for n, pair in pairs.items()}, {n: pair[1] for n, pair in pairs.items()}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        both = [_find_shared_facts(one, other) for one, other in zip(old, new, strict=True)]
        return [pair[0] for pair in both], [pair[1] for pair in both]
    return old, new


def _older_total_faults(written: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Totals of a ledger of another version that are less than what the records cost today."""
    now = {_about(total): total for total in new["totals"]}
    totals = written.get("totals") or []
    found = []
    for total in totals if isinstance(totals, list) else ():
        today = now.get(_about(total), {})
        for name in ("all_trials", "one_trial_of_each_cell"):
            said, cost = _read_level(total, name), _read_level(today, name)
            if said is not None and cost is not None and said < cost * (1.0 - _CLOSE):
                found.append(f"{LEDGER}: total {name} says epsilon {said:.6g}; the records cost "
                             f"{cost:.6g}")  # fmt: skip
    return found


def _read_level(total: Any, name: str) -> float | None:
    level = total.get(name) if isinstance(total, dict) else None
    epsilon = level.get("epsilon") if isinstance(level, dict) else None
    return float(epsilon) if isinstance(epsilon, int | float) else None


def _about(total: Any) -> str:
    names = ("data", "relation", "cells")
    return json.dumps([total.get(n) for n in names] if isinstance(total, dict) else total)


def _marks(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Which releases there are, and which of them have a record or a line: ordered by name."""
    return sorted((entry["cell"], *(str(entry.get(m)) for m in _MARKS[1:])) for entry in entries)


def _drop_marks(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in _MARKS}


def find_difference(old: Any, new: Any, path: str) -> str | None:
    """The first place where two JSON trees disagree, in words; None when they agree."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(f"{path} {key}".strip(), old.get(key), new.get(key)) for key in {**old, **new}]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        steps = zip(old, new, strict=True)
        pairs = [(f"{path}[{i}]", one, other) for i, (one, other) in enumerate(steps)]
    elif _same(old, new):
        return None
    else:
        return f"{path} is {_short(old)}, the records say {_short(new)}"
    found = (find_difference(one, other, place) for place, one, other in pairs)
    return next((difference for difference in found if difference), None)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, int) and abs(old) > 2**62:
        return False
    if isinstance(old, float | int) and isinstance(new, float | int):
        return (type(old) is not bool and math.isclose(old, new, rel_tol=_CLOSE)) or old is new
    return bool(old == new)


def _short(value: Any) -> str:
    words = json.dumps(value)
    return words if len(words) <= 60 else words[:57] + "..."
