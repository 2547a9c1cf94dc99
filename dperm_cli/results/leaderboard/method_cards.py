"""What is known of each method of the leaderboard: guarantee, trust model, proof, audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.results.leaderboard.entries import Entry
from dperm_cli.results.leaderboard.peer_table import ABSENT
from dperm_cli.results.records.row_facts import distinct, group_by, number

_CURATOR = "a trusted curator holds the records, and only the result is private"
_USERS = "no curator: each user randomises answers before they leave the device"
NOT_SHOWN = "not shown"
# the last one: the least true epsilon that so many runs could have refuted
_AUDIT = (
    "claim", "delta", "relation", "records", "verdict", "bound", "runs", "refutable_from",
)  # fmt: skip


def list_cards(
    entries: Sequence[Entry],
    peers: Mapping[str, Mapping[str, Any]],
    audits: Sequence[Mapping[str, str]],
) -> list[dict[str, Any]]:
    """A card for each method, in the order of the lines.

    Args:
        entries: The lines.
        peers: What adapters state, by name.
        audits: Those that are kept.
    """
    groups = group_by(entries, lambda entry: entry["method"])
    return [_make_card(name, lines, peers, audits) for name, lines in groups.items()]


def _make_card(
    name: str,
    lines: Sequence[Entry],
    peers: Mapping[str, Mapping[str, Any]],
    audits: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    ran = [one for one in lines if one["status"] == "ok"]
    mine = [one for one in audits if one["method"] == name]
    facts: dict[str, str] = {
        "guarantee": ", ".join(distinct(ran, "guarantee")),
        "relation": ", ".join(distinct(ran, "relation")),
        "results on": f"{len(distinct(ran, 'problem'))} of {len(distinct(lines, 'problem'))} "
        "problems that it was asked",
        "trust model": _USERS if "local" in distinct(ran, "guarantee") else _CURATOR,
    }
    if name in peers:
        words = {key: value for key, value in peers[name].items() if isinstance(value, str)}
        facts = {"method": words.pop("title", ""), **words, **facts}
        facts["who vouches"] = "its authors: dperm has not proved the guarantee"
        facts["proof"] = "in the source that is named; dperm has none"
        absent = any(one["status"] == ABSENT for one in lines)
        facts["not installed"] = f"dperm peers install {name}" if absent else ""
    else:
        facts["who vouches"] = "dperm: a proof, its accountant and its own audit"
        parts = dict.fromkeys(_list_parts(name))
        facts["proof"] = ", ".join(f"docs/proofs/{part}.md" for part in parts)
    facts["versions"] = "; ".join(str(v) for v in distinct(ran, "versions") if v)
    bad = [one for one in mine if one["verdict"] != NOT_SHOWN]
    return {
        "method": name,
        "facts": facts,
        "refuted": "; ".join(f"{one['records']}: {one['verdict']}" for one in bad),
        "audited": _tell_audits(mine),
        "audits": [[one.get(key) or "" for key in _AUDIT] for one in mine],
        "heads": list(_AUDIT),
    }


def _list_parts(name: str) -> list[str]:
    """The mechanisms in a name: ``private_selection(auto)`` has two."""
    return [part for part in name.partition("/")[0].replace(")", "").split("(") if part]


def _tell_audits(audits: Sequence[Mapping[str, str]]) -> str:
    """All audits of a method in a sentence."""
    if not audits:
        return "No audit of this method is kept."
    bad = sum(one["verdict"] != NOT_SHOWN for one in audits)
    bounds = [(float(one["bound"]) / float(one["claim"]), one) for one in audits
              if float(one["claim"]) > 0.0]  # fmt: skip
    words = f"{len(audits)} audits, {bad} of them against the claim."
    if not bounds:
        return words
    share, best = max(bounds, key=lambda pair: pair[0])
    return (
        f"{words} The largest bound for its claim: {best['bound']} of {best['claim']}, "
        f"{number(100.0 * share, 3)} %, from {best['runs']} runs."
    )
