"""What is known of a problem in words: its facts, and what can be asked of it, in a few lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dperm_cli.results.records.row_facts import distinct, format_value, group_by, number

MOST_LINES = 40
WIDTH = 120
_END = "Optimum, floor and metrics are facts of the records, not private releases."
# what a mechanism says of a setting that can be another one; another mechanism is no setting of it
_CHANGE = re.compile(
    r"\b(set|take|give|raise|shorten|needs?|must|check)\b|proved for|guarantees, not"
    r"|\buse (?!mechanism=|noisy_gd)",
    re.IGNORECASE,
)

Facts = Mapping[str, Any]


def format_problem(found: Facts) -> str:
    """The facts for a terminal, in at most ``MOST_LINES`` lines.

    Mechanisms come in three groups: those that fit, which need another setting, and for which
    there is none. Of those that fit, auto stands first, then those with a predicted risk, the least
    first, then the others by their upper bound; both in the middle of the epsilons.

    Args:
        found: What ``dperm describe format=json`` prints, which has everything.
    """
    facts = [line for text in _list_facts(found) for line in _wrap(text)]
    needs, never = _group_refusals(found["mechanisms"])
    partly = _list_partly(found["mechanisms"], never)
    never = {reason: names for reason, names in never.items() if reason not in partly}
    told = [
        "",
        "needs a change:" if needs else "needs a change: none",
        *_list_refusals(needs),
        "impossible here:" if never else "impossible here: none",
        *_list_refusals(never),
        *(["no plan at some epsilons:"] if partly else []),
        *_list_refusals(partly),
        "",
        _END,
    ]
    room = MOST_LINES - len(facts) - 1
    fits = _list_fits(found, max(room - len(told), 8))
    told = told if len(told) + len(fits) <= room else _shorten(told, room - len(fits))
    return "\n".join([*facts, "", *fits, *told])


def is_change(reason: str) -> bool:
    """Whether a refusal names a setting with which the mechanism has a plan.

    >>> is_change("no minimiser is stable: set ridge above 0"), is_change("no channel is known")
    (True, False)
    >>> is_change("it has no map for the set; use mechanism=noisy_gd")
    False
    """
    return bool(_CHANGE.search(reason))


def say_kernel(found: Facts) -> str:
    """The kernel of a problem, as it stands behind the loss."""
    return f", kernel {found['kernel']}" if found["kernel"] else ""


def _list_facts(found: Facts) -> list[str]:
    width = number(found["width"])
    if found["width_error"]:
        width += f" +- {number(found['width_error'], 2)}"
    metric = found["metrics"]
    return [
        f"{found['dataset']} ({found['task']}): n {found['n']}, p {found['p']}",
        f"  {found['preprocessing']}",
        f"{found['loss']} loss{say_kernel(found)}, per record: Lipschitz "
        f"{number(found['lipschitz'])}, smoothness {_or(found['smoothness'], 'none')}, strong "
        f"convexity {number(found['strong_convexity'])}",
        f"{found['constraint']}: radius {number(found['radius'])}, diameter "
        f"{number(found['diameter'])}, Gaussian width {width}",
        *_list_radius(found),
        f"optimum {number(found['optimum'], 6)}, gap at most {number(found['optimum_gap'], 2)}; "
        f"there {metric['metric']} {_or(metric['train_metric'], '-')} on training, "
        f"{_or(metric['test_metric'], '-')} on test records",
        f"data-free floor: excess risk {number(found['floor_excess_risk'])}, per record "
        f"{number(found['floor_excess_risk_per_record'])}{_say_references(found)}",
    ]


def _list_radius(found: Facts) -> list[str]:
    """Why the radius is what it is, where it follows from public facts."""
    tuning = found.get("tuning")
    return [] if tuning is None else [f"  radius=auto: {tuning['reason']}"]


def _say_references(found: Facts) -> str:
    """The metric of what needs no fit, behind the data-free floor."""
    told = found.get("references")
    if not told:
        return ""
    floor, baseline = _or(told["floor_metric"], "-"), _or(told["baseline_metric"], "-")
    metric = found["metrics"]["metric"]
    return f"; {metric} {floor} there, {baseline} of the {told['baseline']}"


def _or(value: Any, otherwise: str) -> str:
    return otherwise if value is None else number(value)


def _wrap(text: str, deeper: str = "  ") -> list[str]:
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(), WIDTH, initial_indent=first, subsequent_indent=first + deeper,
        break_on_hyphens=False,
    )  # fmt: skip


# ---- what fits -----------------------------------------------------------------------------------


def _list_fits(found: Facts, most: int) -> list[str]:
    """A line for each mechanism that has a plan, best first; names alone where room ends."""
    epsilons = [number(epsilon, 3) for epsilon in found["epsilons"]]
    plans = {
        n: rows for n, rows in found["mechanisms"].items() if any(r["supported"] for r in rows)
    }
    names = _rank(plans, len(epsilons) // 2)
    budget = f"{found['relation']}, delta {number(found['delta'], 3)}"
    if not names:
        return [f"what fits ({budget}): none"]
    foreseen = any("predicted_risk_per_record" in row for rows in plans.values() for row in rows)
    order = ": predicted excess risk per record, then bound" if foreseen else ""
    bounded = any(row.get("bound_upper") is not None for rows in plans.values() for row in rows)
    order += " (a sum)" if foreseen and bounded else ""
    order += ": bound (a sum over the records)" if bounded > foreseen else ""
    text = f"what fits ({budget}), best first{order}; at epsilon {' / '.join(epsilons)}:"
    head, lower = _wrap(text), _list_lower(plans)
    width = max(map(len, names))
    lines = {name: _say_plan(name, plans[name], width) for name in names}
    whole = [line for forms in lines.values() for line in _wrap(forms[0], "    ")]
    room = most - len(head) - len(lower)
    if len(whole) <= room:
        return [*head, *whole, *lower]
    # what chooses says it all; of the others one line each
    each = {
        name: _wrap(forms[0], "    ") if _chooses(plans[name]) else [_fit(forms)]
        for name, forms in lines.items()
    }
    shown = list(names)
    while len(shown) > 1 and sum(len(each[name]) for name in shown) + 2 > room:
        shown.pop()
    left = names[len(shown) :]
    rest = _wrap(f"  and {', '.join(left)}") if left else []
    return [*head, *(line for name in shown for line in each[name]), *rest, *lower]


def _rank(plans: Mapping[str, Sequence[Mapping[str, Any]]], middle: int) -> list[str]:
    """Names, the best first; what chooses before what it chooses from, no guarantee last."""

    def key(name: str) -> tuple[Any, ...]:
        row = plans[name][middle]
        predicted, bound = row.get("predicted_risk_per_record"), row.get("bound_upper")
        none = all(row.get("guarantee") in (None, "none") for row in plans[name])
        return (
            none, not _chooses(plans[name]),
            predicted is None, predicted or 0.0, bound is None, bound or 0.0,
        )  # fmt: skip

    return sorted(plans, key=key)


def _chooses(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a mechanism takes another one, and says which."""
    return any(row.get("chosen") is not None for row in rows)


def _fit(forms: Sequence[str]) -> str:
    """The longest form that is one line; where none is, the shortest without its last words."""
    for line in forms:
        if len(line) <= WIDTH:
            return line
    return f"{forms[-1][: WIDTH - 4].rpartition(' ')[0]} ..."


def _say_plan(name: str, rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A mechanism's line, in full and in shorter forms."""
    made = [row for row in rows if row["supported"]]
    start = f"  {name:<{width}}  {made[0]['guarantee']:<6}  "
    first = list[str]()
    if any("predicted_risk_per_record" in row for row in made):
        first.append(f"predicted {_join(row.get('predicted_risk_per_record') for row in rows)}")
    if _chooses(rows):
        others = ", ".join(str(other) for other in distinct(made, "runner_up"))
        first.append(f"chooses {_join(row.get('chosen') for row in rows)} (runner-up {others})")
    what, source = f"noise scale {_join(row.get('noise_scale') for row in rows)}", ""
    ids = [name for name in distinct(made, "bound_upper_id") if name]
    if ids:
        what = f"upper bound {_join(row.get('bound_upper') for row in rows)}"
        source = f" ({', '.join(ids)})"
    steps = _join(row.get("steps") for row in rows)
    last = "1 step" if steps == "1" else f"{steps} steps"
    forms = [[*first, what + source, last], [*first, what + source], [*first, what, last]]
    return [start + "; ".join(parts) for parts in [*forms, [*first, what]]]


def _join(values: Iterator[Any] | Sequence[Any]) -> str:
    """Values at each epsilon; one where all are the same."""
    texts = [format_value(value, 3) for value in values]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _list_lower(plans: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """The lower bounds, a line for each guarantee: they bind all of its mechanisms."""
    found: dict[tuple[str, str], str] = {}
    for rows in plans.values():
        made = [row for row in rows if row["supported"]]
        if all(row.get("bound_lower") is not None for row in rows):
            bounds = _join(row["bound_lower"] for row in rows)
            ids = ", ".join(str(name) for name in distinct(made, "bound_lower_id"))
            found.setdefault((made[0]["guarantee"], bounds), ids)
    return [
        f"  no {guarantee} mechanism has a summed excess risk below {bounds} "
        f"on every data set ({ids})"
        for (guarantee, bounds), ids in found.items()
    ]


# ---- what does not -------------------------------------------------------------------------------


def _group_refusals(
    mechanisms: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names by reason: of refusals that name a change, and of the others."""
    refused = []
    for name, rows in mechanisms.items():
        left = [row for row in rows if not row["supported"]]
        for reason, group in group_by(left, lambda row: row["reason"]).items():
            at = ", ".join(number(row["epsilon"], 3) for row in group)
            whose = name if len(group) == len(rows) else f"{name} at epsilon {at}"
            own = rf"(?<![=\w]){re.escape(name)}(?!\w)"  # where it is a value, it is to be typed
            refused.append((whose, re.sub(own, "it", reason)))
    by_reason = group_by(refused, lambda pair: pair[1])
    found = {reason: [name for name, _ in group] for reason, group in by_reason.items()}
    needs = {reason: names for reason, names in found.items() if is_change(reason)}
    return needs, {reason: names for reason, names in found.items() if reason not in needs}


def _list_partly(
    mechanisms: Mapping[str, Sequence[Mapping[str, Any]]], never: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """The refusals of mechanisms alone that have a plan at another epsilon: they stand apart."""
    partly = {name for name, rows in mechanisms.items() if any(r["supported"] for r in rows)}
    return {
        reason: names
        for reason, names in never.items()
        if all(name.partition(" at epsilon ")[0] in partly for name in names)
    }


def _list_refusals(reasons: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        line
        for reason, names in reasons.items()
        for line in _wrap(f"  {', '.join(names)}: {' '.join(reason.split())}")
    ]


def _shorten(lines: Sequence[str], most: int) -> list[str]:
    """The first lines and the last two, and that there are others."""
    kept = lines[: max(most - 3, 0)]
    more = f"  ... {len(lines) - 2 - len(kept)} more lines: format=json has all"
    return [*kept, more, *lines[-2:]]
