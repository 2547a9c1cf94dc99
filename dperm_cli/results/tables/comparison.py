"""Compare two studies in risk, privacy and time. A pure function of their records.

Cells are joined by problem, mechanism, calibration, epsilon and delta. Where several cells of a
study agree in these, their configurations decide, and a cell without a partner is tried once more
with another delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.records.aggregate import configuration_of
from dperm_cli.results.records.row_facts import (
    Row,
    flatten,
    group_by,
    group_cells,
    number,
    read_map,
)
from dperm_cli.results.records.summary import summarise_cell

PROBLEM = (
    "dataset", "task", "n", "p", "loss", "constraint", "constraint_radius", "ridge", "lasso",
)  # fmt: skip
KEY = (*PROBLEM, "mechanism", "calibration", "epsilon", "delta")
PRIVACY = (
    "guarantee", "relation", "epsilon_accounted", "delta_accounted", "accountant", "noise",
    "arithmetic", "population_source", "unsafe_scaling",
)  # fmt: skip
LEVEL = 0.05  # chance that any risk of a comparison is called changed when none has
TIME_FACTOR = 2.0  # factor from which one measured time differs from another
MIN_COMPARED_SECONDS = 1e-3  # seconds below which times are not compared
_FREE_SETTINGS = ("trials", "seed", "epsilon", "delta", "noise")  # settings that need not agree
# the weaker of two words, and of a number the larger one
_WEAKENING_ORDER: dict[str, tuple[Any, ...]] = {
    "guarantee": ("local", "pure", "approx", "none"),
    "relation": ("replace_one", "add_remove"),
    "noise": ("secure", "research"),
    "population_source": ("public", "declared", "from the data"),
    "unsafe_scaling": (False, True),
}


@dataclass(frozen=True)
class Change:
    """One column of a joined cell that differs; ``weaker`` when B promises less than A."""

    name: str
    before: Any
    after: Any
    weaker: bool = False

    @property
    def text(self) -> str:
        return f"{self.name} {_word(self.before)} -> {_word(self.after)}"


@dataclass(frozen=True)
class Pair:
    """A cell of A and its partner in B, by their summary rows.

    ``label`` tells it from the others of A. ``verdict`` is what became of the risk: better, worse,
    same, identical (the very same numbers, trial by trial), unclear or none. ``p`` is the two-sided
    level of a rank-sum test, None where there is nothing to test. ``time`` is the time of a trial
    in B over that in A.
    """

    label: str
    before: Row
    after: Row
    privacy: tuple[Change, ...]
    settings: tuple[Change, ...]
    p: float | None
    verdict: str
    time: float | None

    @property
    def weaker(self) -> bool:
        return any(change.weaker for change in self.privacy)

    def plain(self) -> dict[str, Any]:
        """JSON-able."""
        names = ("excess_risk_median", "excess_risk_q05", "excess_risk_q95", "trials", "seconds")
        changes = [vars(c) for c in self.privacy]
        return {
            "in": "both", "cell": self.label, "weaker": self.weaker, "privacy": changes,
            "settings": [{k: v for k, v in vars(c).items() if k != "weaker"}
                         for c in self.settings],
            "risk": self.verdict, "p": self.p, "time_ratio": self.time,
            "a": {name: self.before[name] for name in ("cell", "status", *names)},
            "b": {name: self.after[name] for name in ("cell", "status", *names)},
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Joined cells in the order of A, and the labels of those that only one study has."""

    pairs: tuple[Pair, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def weaker(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.weaker)


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> Comparison:
    """What B changes against A; rows are records, one a trial.

    A risk has changed when a rank-sum test over the trials says so at a level that Holm's method
    holds for all cells together, and the medians are further apart than the certified gaps of
    their optima: a difference that chance or the solver explains is no change.
    """
    mine, theirs = group_cells(rows_a), group_cells(rows_b)
    joined = _join(mine, theirs)
    tested = {a: _test_risks(mine[a], theirs[b]) for a, b in joined.items()}
    rejected = adjust_by_holm({a: p for a, (p, _) in tested.items() if p is not None})
    labels_a, labels_b = label_cells(mine), label_cells(theirs)
    pairs = tuple(
        _pair(labels_a[a], mine[a], theirs[b], tested[a], a in rejected) for a, b in joined.items()
    )  # fmt: skip
    return Comparison(
        pairs,
        tuple(labels_a[a] for a in mine if a not in joined),
        tuple(labels_b[b] for b in theirs if b not in joined.values()),
    )


def label(row: Row) -> str:
    """A cell in a few words."""
    level = "" if row.get("epsilon") is None else f" epsilon {number(row['epsilon'])}"
    words = f"{row.get('dataset')} {row.get('loss')}, {row.get('mechanism')}"
    return f"{words} {row.get('calibration') or ''}".rstrip() + level


def label_cells(cells: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Each cell of a study in a few words, with the settings in which those alike differ.

    Args:
        cells: The records of each cell, by its name.

    Returns:
        Labels by the same names.
    """
    labels: dict[str, str] = {}
    for words, group in group_by(cells, lambda name: label(cells[name][0])).items():
        known = {name: configuration_of(cells[name][0]) for name in group}
        keys = dict.fromkeys(key for each in known.values() for key in each)
        telling = [
            key for key in keys if len({repr(each.get(key)) for each in known.values()}) > 1
        ]  # fmt: skip
        for name in group:
            more = [f"{key} {_word(known[name].get(key))}" for key in telling]
            labels[name] = ", ".join([words, *more])
    return labels


def _join(mine: Mapping[str, list[Row]], theirs: Mapping[str, list[Row]]) -> dict[str, str]:
    """Partners by cell of A: the same cell first, then by the columns, then without delta."""
    found = {a: a for a in mine if a in theirs}
    crowds = [group_by(cells.values(), lambda rows: _key(rows[0], KEY)) for cells in (mine, theirs)]

    def alone(a: str) -> bool:
        """No other cell of either study is like it: then even another setting is a partner."""
        return all(len(crowd.get(_key(mine[a][0], KEY), ())) <= 1 for crowd in crowds)

    for names in (KEY, tuple(name for name in KEY if name != "delta")):
        left = [a for a in mine if a not in found]
        free = [b for b in theirs if b not in found.values()]
        by_key = group_by(free, lambda b, names=names: _key(theirs[b][0], names))
        for key, group in group_by(left, lambda a, names=names: _key(mine[a][0], names)).items():
            others = by_key.get(key, [])
            if alone(group[0]) and len(group) == len(others) == 1:
                found[group[0]] = others[0]
            else:
                found |= _by_settings(group, others, mine, theirs)
    return {a: found[a] for a in mine if a in found}


def _by_settings(
    group: Sequence[str],
    others: Sequence[str],
    mine: Mapping[str, list[Row]],
    theirs: Mapping[str, list[Row]],
) -> dict[str, str]:
    """Of several cells alike in the columns, those whose configurations agree and no others."""
    found: dict[str, str] = {}
    for a in group:
        same = [b for b in others if not list(_settings(mine[a][0], theirs[b][0]))]
        alike = [c for c in group if not list(_settings(mine[c][0], mine[a][0]))]
        if len(same) == 1 and len(alike) == 1:
            found[a] = same[0]
    return found


def _settings(one: Row, other: Row) -> Iterator[Change]:
    """Settings that both have and that differ; a key that only one version knows is no change."""
    a, b = (flatten(read_map(row.get("overrides"))) for row in (one, other))
    for name in a:
        if name in b and a[name] != b[name] and name not in _FREE_SETTINGS:
            yield Change(name, a[name], b[name])


def _compare_other(one: Row, other: Row) -> Iterator[Change]:
    """Settings beside those of the guarantee, and the data themselves."""
    yield from (change for change in _settings(one, other) if not change.name.startswith("privacy"))
    a, b = (str(row.get("data_fingerprint"))[:12] for row in (one, other))
    if a != b:
        yield Change("data_fingerprint", a, b)


def _pair(
    words: str,
    rows_a: Sequence[Row],
    rows_b: Sequence[Row],
    tested: tuple[float | None, str],
    rejected: bool,
) -> Pair:
    before, after = summarise_cell(rows_a), summarise_cell(rows_b)
    p, verdict = tested
    if rejected:
        # ranks decide whether, medians in which direction
        low, high = _fill_missing(before["excess_risk_median"], after["excess_risk_median"])
        verdict = "better" if high < low else "worse"
    seconds = before["seconds"] or 0.0, after["seconds"] or 0.0
    ratio = (
        seconds[1] / seconds[0]
        if min(seconds) > 0 and max(seconds) >= MIN_COMPARED_SECONDS
        else None
    )
    privacy, other = _privacy(before, after), _compare_other(rows_a[0], rows_b[0])
    return Pair(words, before, after, tuple(privacy), tuple(other), p, verdict, ratio)


def _fill_missing(before: float | None, after: float | None) -> tuple[float, float]:
    return (math.inf if before is None else before), (math.inf if after is None else after)


def _privacy(before: Row, after: Row) -> Iterator[Change]:
    if before["status"] != "ok" or after["status"] != "ok":
        if before["status"] != after["status"]:
            yield Change("status", before["status"], after["status"])
        return
    for name in PRIVACY:
        a, b = before.get(name), after.get(name)
        if a != b and not _close(a, b):
            yield Change(name, a, b, _is_weaker(name, a, b))
    if before.get("delta") != after.get("delta"):
        yield Change("delta", before.get("delta"), after.get("delta"))


def _is_weaker(name: str, before: Any, after: Any) -> bool:
    """Does B promise less: another word, a larger epsilon or delta, or none where A had one."""
    if name in ("epsilon_accounted", "delta_accounted"):
        low, high = _fill_missing(before, after)
        return high > low
    order = _WEAKENING_ORDER.get(name, ())
    if before not in order or after not in order:
        return False
    return order.index(after) > order.index(before)


def _close(a: Any, b: Any) -> bool:
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return numbers and math.isclose(a, b, rel_tol=1e-9)


def _test_risks(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> tuple[float | None, str]:
    """(level of the test, verdict without a rejection) for the risks of two cells."""
    a, b = _risks(rows_a), _risks(rows_b)
    if not a or not b:
        return None, "none"
    if a == b:
        return None, "identical"
    gap = sum(rows[0].get("optimum_gap") or 0.0 for rows in (rows_a, rows_b))
    if abs(median(a) - median(b)) <= gap:
        return None, "same"
    # 4 trials each: even a complete separation has a level of 2/70
    if 2 / math.comb(len(a) + len(b), len(a)) > LEVEL:
        return None, "unclear"
    return _rank_sum(a, b), "same"


def _risks(rows: Sequence[Row]) -> list[float]:
    found = [row["excess_risk"] for row in rows if row["status"] == "ok"]
    return [math.inf if v is None or math.isnan(v) else float(v) for v in found]


def _rank_sum(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided Mann-Whitney test, exact without ties up to 50 trials each."""
    from scipy.stats import mannwhitneyu

    ties = len({*a, *b}) < len(a) + len(b)
    exact = not ties and max(len(a), len(b)) <= 50
    return float(mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue)


def adjust_by_holm(levels: Mapping[str, float]) -> set[str]:
    """Which hypotheses Holm's step-down method rejects with family-wise error LEVEL."""
    rejected: set[str] = set()
    for place, (name, p) in enumerate(sorted(levels.items(), key=lambda item: item[1])):
        if p > LEVEL / (len(levels) - place):
            break
        rejected.add(name)
    return rejected


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def format_comparison(found: Comparison, name_a: str, name_b: str) -> str:
    """For people: weaker guarantees first, then the other changes, then what they are of."""
    kinds = {kind: [p for p in found.pairs if p.verdict == kind] for kind in
             ("worse", "better", "unclear", "same", "identical", "none")}  # fmt: skip
    timed = [pair for pair in found.pairs if pair.time]
    slow = [pair for pair in timed if not 1 / TIME_FACTOR <= (pair.time or 1.0) <= TIME_FACTOR]
    blocks = [
        _block("WEAKER GUARANTEE", [_changes(p.label, p.privacy, True) for p in found.weaker]),
        _block(
            "privacy changed",
            [_changes(p.label, p.privacy, False) for p in found.pairs
             if any(not change.weaker for change in p.privacy)],
        ),
        _block("settings changed", [_changes(p.label, p.settings, False) for p in found.pairs
                                    if p.settings]),
        _block("risk worse", [_risk(pair) for pair in kinds["worse"]]),
        _block("risk better", [_risk(pair) for pair in kinds["better"]]),
        _block("risk: too few trials to say", [_risk(pair) for pair in kinds["unclear"]]),
        _block(
            f"time changed by more than a factor {TIME_FACTOR:g}", [_time(pair) for pair in slow]
        ),
        _block(f"only in {name_a}", found.only_a),
        _block(f"only in {name_b}", found.only_b),
    ]  # fmt: skip
    counts = ", ".join(f"{len(kinds[kind])} {word}" for kind, word in
                       (("identical", "identical"), ("same", "without a change"),
                        ("worse", "worse"), ("better", "better"), ("unclear", "unclear"),
                        ("none", "without a risk")) if kinds[kind])  # fmt: skip
    last = [f"{len(found.pairs)} cells in both: risk {counts or 'of none'}"]
    if timed:
        mean = math.exp(math.fsum(math.log(p.time or 1.0) for p in timed) / len(timed))
        last.append(f"time of a trial in {name_b}: {mean:.2f} times that in {name_a} "
                    f"(geometric mean over {len(timed)} cells)")  # fmt: skip
    return "\n\n".join([*filter(None, blocks), "\n".join(last)])


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{head}:", *(f"  {line}" for line in lines)]) if lines else ""


def _changes(name: str, changes: Sequence[Change], weaker: bool) -> str:
    return f"{name}: " + ", ".join(c.text for c in changes if c.weaker == weaker)


def _risk(pair: Pair) -> str:
    sides = [
        f"{number(side['excess_risk_median'])} [{number(side['excess_risk_q05'])}, "
        f"{number(side['excess_risk_q95'])}]"
        for side in (pair.before, pair.after)
    ]
    level = "" if pair.p is None else f", p {pair.p:.1e}"
    return f"{pair.label}: median {sides[0]} -> {sides[1]}{level}"


def _time(pair: Pair) -> str:
    a, b = (side["seconds"] for side in (pair.before, pair.after))
    return f"{pair.label}: {number(a, 3)} s -> {number(b, 3)} s a trial"


def _word(value: Any) -> str:
    return number(value) if isinstance(value, float) or value is None else str(value)
