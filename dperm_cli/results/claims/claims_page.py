"""Write one page with all claims of all experiments and their verdicts. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_sha256
from dperm_cli.results.claims.claims import (
    CONFIRMED,
    NO_DATA,
    NOT_JUDGED,
    REFUSED,
    REFUTED,
    SENSES,
    SIZES,
    UNDECIDED,
    Claim,
    Verdict,
)
from dperm_cli.results.claims.experiment_tables import evidence
from dperm_cli.results.records.row_facts import number
from dperm_cli.results.records.schema import canonical_json
from dperm_cli.results.tables.summary_table import escape_markdown

NOT_RUN, CHANGED, EARLIER = "not run here", "changed since", "earlier rules"
_MORE_MARKUP = str.maketrans({"\n": " ", "*": "\\*", "`": "\\`"})
AS_FILED = "refuted, as filed"
STATES = (CONFIRMED, AS_FILED, REFUTED, UNDECIDED, REFUSED, NOT_JUDGED, NO_DATA, EARLIER, NOT_RUN,
          CHANGED)  # fmt: skip
HEAD = """\
# Claims

Everything the experiments claim, and what came of it. `make claims` writes this page from
`experiments/<id>/claims.yaml` and the verdicts kept in `experiments/<id>/verdicts.json`.
`make verdicts SIZE=small` (or `full`) runs every experiment and keeps its verdicts.

- **confirmed**: the whole 95 % interval lies in the band that is filed. **refuted**: it lies
  outside. **undecided**: neither. **refuted, as filed**: the claim was *expected to fail*, for the
  reason that stands below the table.
- **refused (tuned)**: the claim is about a theorem, and a mechanism ran with tuned defaults.
- **not judged**: too few trials for a power of 0.8, or a part that could not be run.
  **skipped (data)**: its data were not here. **not run here**: no verdict is kept at this size.
  **changed since**: the claim was edited after its verdict, which says nothing about it any more.
- **earlier rules**: judged before intervals decided, from records that are not kept. It counts as
  no verdict; a run judges it again.

Of many curves or places, those that decide come first. The kinds of claims and the rules are
explained in docs/experiments.md.
"""


# keys of a claim that decide nothing, and those that came after verdicts had been kept
_SAID_BESIDE = ("reason", "text", "theorem", "filed", "known", "refiled")
_NEWER = {"parameters": "tuned", "instance": "worst", "within": None}


@dataclass(frozen=True)
class Entry:
    """An experiment's claims, and by size the verdicts that are kept of it."""

    name: str
    paper: str
    text: str
    claims: tuple[Claim, ...]
    kept: Mapping[str, Any]


def verdict_record(verdicts: Sequence[Verdict], version: str) -> dict[str, Any]:
    """What is kept of a run, JSON-able; every claim by its id, with a digest of its wording."""
    found = {
        v.claim.id: {"claim": digest(v.claim), "verdict": v.verdict, "note": v.note,
                     "measured": evidence(v, 3)}
        for v in verdicts
    }  # fmt: skip
    return {"version": version, "claims": found}


def digest(claim: Claim) -> str:
    """Of all that decides a verdict; the reason of a failure and the wording may be mended.

    What a claim has by default says nothing, so that a key that is new changes no digest.
    """
    said = {k: v for k, v in asdict(claim).items() if k not in _SAID_BESIDE}
    said = {k: v for k, v in said.items() if k not in _NEWER or v != _NEWER[k]}
    return hash_sha256(canonical_json(said))[:16]


def page(entries: Sequence[Entry]) -> str:
    """The whole page as Markdown."""
    return "\n".join([HEAD, _checklist(entries), _overview(entries), *map(_section, entries)])


def describe_expectation(claim: Claim) -> str:
    """What a claim says, in a few words of Markdown."""
    words = SENSES[claim.sense]
    expect = "" if claim.expect is None else number(claim.expect)
    about = f" ± {number(claim.tolerance)}" if claim.tolerance else ""
    against = ", ".join(map(_plain, claim.against.values()))
    said = {
        "slope": f"slope {words}{expect}{about} in {claim.axis}",
        "ratio": f"ratio {words}{expect} to {'the best of ' if claim.best else ''}{against}",
        "order": f"at most that of {against}",
        "below_bound": f"at most {claim.bound}",
        "above_bound": f"at least {claim.bound}",
        "below_floor": "at most the data-free floor",
        "collapse": f"one line of slope {expect} in {claim.axis}, within {number(claim.tolerance)}",
        "value": f"{words}{expect or 'the values of ' + str(len(claim.values)) + ' places'}",
    }[claim.kind]  # fmt: skip
    if claim.tolerance_text and claim.kind not in ("slope", "collapse"):
        said += f" ({claim.tolerance_text})"
    return _cell(said) + (" (*expected to fail*)" if claim.expected == "fails" else "")


def _checklist(entries: Sequence[Entry]) -> str:
    """How many claims have which verdict, and which were filed or refiled after a run."""
    every = [(entry, claim) for entry in entries for claim in entry.claims]
    lines = ["## Checklist", "", "| | claims | " + " | ".join(STATES) + " |"]
    lines.append("| :-- | --: |" + " --: |" * len(STATES))
    for size in SIZES:
        mine = [(entry, claim) for entry, claim in every if size in claim.sizes]
        states = Counter(_state(entry, claim, size) for entry, claim in mine)
        counts = " | ".join(str(states[state]) for state in STATES)
        lines.append(f"| {size} size | {len(mine)} | {counts} |")
    lines += ["", *(f"- {line}" for line in _describe_filing(every))]
    return "\n".join(lines) + "\n"


def _describe_filing(every: Sequence[tuple[Entry, Claim]]) -> list[str]:
    """What was known when claims were filed, and which were edited after they had been filed."""
    known = Counter(claim.known for _, claim in every)
    about = Counter(claim.parameters for _, claim in every)
    told = {
        "nothing": "before any run",
        "pilot": "after a pilot",
        "all": "with a history that does not show them to be older than their result",
    }
    said = ", ".join(f"{known[word]} {told[word]}" for word in told)
    lines = [f"{len(every)} claims. Filed: {said}."]
    lines.append(
        f"{about['theorem']} are about a theorem and run at its parameters, or are refused; "
        f"{about['tuned']} are about what was measured."
    )
    dates: dict[str, list[str]] = {}
    for entry, claim in every:
        if claim.refiled:
            date = claim.filed.get("date", "an unknown date")
            dates.setdefault(date, []).append(f"{entry.name} `{claim.id}`")
    count = sum(map(len, dates.values()))
    lines.append(f"{count} were filed anew, when results of an earlier form may have been seen.")
    return lines + [
        f"On {date} ({len(names)}): {', '.join(names)}." for date, names in sorted(dates.items())
    ]


def _overview(entries: Sequence[Entry]) -> str:
    lines = ["| experiment | claims | small | full |", "| :-- | --: | :-- | :-- |"]
    for entry in entries:
        cells = [_count_states(entry, size) for size in SIZES]
        lines.append(f"| [{entry.name}](#{entry.name}) | {len(entry.claims)} | {cells[0]} "
                     f"| {cells[1]} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def _count_states(entry: Entry, size: str) -> str:
    if size not in entry.kept:
        return NOT_RUN
    states = Counter(_state(entry, claim, size) for claim in entry.claims if size in claim.sizes)
    words = "; ".join(f"{states[state]} {state}" for state in STATES if states[state])
    return words or "none at this size"


def _state(entry: Entry, claim: Claim, size: str) -> str:
    found = entry.kept.get(size, {}).get("claims", {}).get(claim.id)
    if found is None:
        return NOT_RUN
    if found["claim"] != digest(claim):
        return CHANGED
    word = str(found["verdict"])
    return AS_FILED if (word, claim.expected) == (REFUTED, "fails") else word


def _section(entry: Entry) -> str:
    about = ". ".join(filter(None, (_cell(entry.paper), _cell(entry.text))))
    lines = [f"## {entry.name}", "", f"{about}.", ""]
    lines += ["| claim | expected | size | verdict | measured |", "| :-- | :-- | :-- | :-- | :-- |"]
    for claim in entry.claims:
        head = f"`{claim.id}`: {_cell(claim.text)} [{_cell(claim.theorem)}]"
        said = describe_expectation(claim)
        for size in (size for size in SIZES if size in claim.sizes):
            lines.append(f"| {head} | {said} | {size} | {_state(entry, claim, size)} "
                         f"| {_format_measured(entry, claim, size)} |")  # fmt: skip
            head = said = ""
    fails = [claim for claim in entry.claims if claim.expected == "fails"]
    lines += ["", *(f"- `{c.id}` is expected to fail: {_cell(c.reason)}" for c in fails)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _format_measured(entry: Entry, claim: Claim, size: str) -> str:
    if _state(entry, claim, size) in (NOT_RUN, CHANGED):
        return ""
    found = entry.kept[size]["claims"][claim.id]
    shown = found["note"] and not (found["measured"] and _state(entry, claim, size) == AS_FILED)
    notes = [found["note"]] if shown else []
    return "<br>".join(_cell(str(text)) for text in (*notes, *found["measured"]))


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cell(text: str) -> str:
    """Text that cannot break out of a table's cell or become markup."""
    return escape_markdown(text).translate(_MORE_MARKUP)
