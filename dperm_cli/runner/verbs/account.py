"""``dperm account``: the noise for a budget and the budget for a noise scale, without data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli import __version__
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError, Unsupported, describe_error
from dperm_cli.core.files import write_files
from dperm_cli.privacy.accounting import calibrate, generator_range, ledger_totals, paper_chains
from dperm_cli.privacy.accounting.calibrate import CALIBRATIONS
from dperm_cli.privacy.accounting.rigorous_level import prove_level
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import range_delta
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.results.ledger.remarks import list_remarks
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.tables import account_table
from dperm_cli.runner.cells import cell_budget
from dperm_cli.runner.sweep.progress import open_meter
from dperm_cli.runner.verbs import account_shuffled
from dperm_cli.runner.verbs.account_request import AccountLine, parse_request

NOISE_POINTS = 11
EXACT_DRAW = "for an exact draw: what a sampler adds is in the certificate of `dperm run`"
EPSILON_POINTS = {"tight": 2, "paper": 5}  # tight lies on the diagonal


def account(arguments: list[str]) -> int:
    """Print the table (``format=json``: one object a row) and draw its figure.

    Exit code 1 where a row failed.
    """
    asked = parse_request(arguments)
    rows = make_rows(asked.asks)
    if asked.format == "json":
        print(json_lines(rows), flush=True)
    else:
        print(account_table.format_table(rows).rstrip("\n"), flush=True)
    # print the table before drawing, which takes longer
    if asked.figure:
        from dperm_cli.results.charts import account_figure  # by need

        points = curves(asked.asks, rows)
        write_files(asked.out, account_figure.draw_files(rows, points))
    if all(row["status"] == "unsupported" for row in rows):
        from dperm_cli.runner.compose import fitting_mechanism  # by need

        fitting_mechanism.print_advice("every row", _find_fitting(asked.asks[0]))
    return EXIT_FAILED if any(row["status"] == "failed" for row in rows) else EXIT_OK


def make_rows(asks: Sequence[AccountLine]) -> list[dict[str, Any]]:
    """The row of each ask."""
    with open_meter(len(asks)) as shown:
        rows = []
        for done, ask in enumerate(asks):
            shown.cell(done, ask.name)
            rows.append(make_row(ask))
    return rows


def _localise(ask: AccountLine, epsilon: float) -> AccountLine:
    """The same with the local epsilon that is enough for shuffled answers."""
    delta = cell_budget.delta_of(ask.delta, ask.spec.n)
    local = account_shuffled.find_budget(ask.mechanism, epsilon, delta, ask.spec.n)
    return replace(ask, epsilon=local)


def _find_fitting(ask: AccountLine) -> str | None:
    """A mechanism that has an answer to this ask."""

    def plans(name: str, mechanism: Any) -> None:
        row = make_row(replace(ask, name=name, mechanism=mechanism))
        if row["status"] != "ok":
            raise Unsupported(row["reason"])

    from dperm_cli.runner.compose import fitting_mechanism

    return fitting_mechanism.find_first(plans, ask.calibration)


def make_row(ask: AccountLine) -> dict[str, Any]:
    """The row of one ask, JSON-able; ``status`` is ``unsupported`` where there is no answer.

    It is ``failed`` where numbers, each within its limits, are together beyond the arithmetic.
    """
    row = {
        "mechanism": ask.name,
        "calibration": ask.calibration if ask.noise_scale is None else None,
        "relation": ask.relation,
        "n": ask.spec.n,
        "p": ask.spec.p,
        "lipschitz": ask.spec.lipschitz,
        "epsilon": ask.epsilon,
        "delta": ask.delta,
    }
    try:
        kind, delta = _level(ask)
        row |= {"delta": delta}
        level = ask.epsilon_shuffled
        if level is not None:
            ask = _localise(ask, level)
            row |= {"epsilon": ask.epsilon}
        plan = _noise_for if ask.noise_scale is None else _budget_for
        found = plan(ask, kind, delta)
        if level is not None and found["epsilon_shuffled"] is None:
            obstacle = found["shuffled"].removeprefix("no: ")
            raise Unsupported(f"epsilon_shuffled={level:g}: {obstacle}")
        return row | found | {"status": "ok", "reason": None}
    except Unsupported as reason:
        return row | {"status": "unsupported", "reason": str(reason)}
    except (ArithmeticError, ValueError, InputError) as error:
        if isinstance(error, InputError) and not _is_overflow(error.value):
            raise
        words = describe_error(error)
        return row | {"status": "failed", "reason": f"these numbers cannot be computed: {words}"}


def make_records(ask: AccountLine, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The row to record of what `dperm account` answers: ``planned``, for nothing is released."""
    found = make_row(ask)
    names = (
        "mechanism", "calibration", "relation", "n", "p", "lipschitz", "epsilon", "delta",
        "epsilon_accounted", "guarantee", "accountant", "noise_scale", "steps", "epsilon_chain",
        "epsilon_chain_repaired", "reason",
    )  # fmt: skip
    row = {name: found.get(name) for name in names}
    row["status"] = "planned" if found["status"] == "ok" else found["status"]
    row["delta_accounted"] = found["delta"] if found["status"] == "ok" else None
    return [{**row, "population": ask.spec.n, "privacy": ask.privacy, "version": __version__,
             "overrides": settings}]  # fmt: skip


def _is_overflow(value: object) -> bool:
    """Whether a refused value is infinite or nan, so that it was computed and not typed."""
    return isinstance(value, float) and not math.isfinite(value)


def curves(asks: Sequence[AccountLine], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points of the figure, for the first line's problem and every mechanism asked about."""
    # the figure shows float64, of one answer where there are users
    asks = [_draw_plainly(ask, row) for ask, row in zip(asks, rows, strict=True)]
    here = [(a, r) for a, r in zip(asks, rows, strict=True) if a.spec == asks[0].spec]
    nominal = [ask.epsilon for ask in asks if ask.epsilon is not None]
    ends = min([0.1, *nominal]), max([10.0, *nominal])
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(ask.name for ask, _ in here):
        first = next(ask for ask, _ in here if ask.name == name)
        scales = [r["noise_scale"] for a, r in here if a.name == name and r.get("noise_scale")]
        found += _noise_curve(first, scales)
        found += _certified_curves(first, *ends)
    return found


def _draw_plainly(ask: AccountLine, row: Mapping[str, Any]) -> AccountLine:
    """The ask without what a figure does not show."""
    plain = replace(ask, rigorous=False, shuffled=False)
    if ask.epsilon_shuffled is None:
        return plain
    return replace(plain, epsilon=row["epsilon"] or 1.0, epsilon_shuffled=None)


def _noise_for(ask: AccountLine, kind: str, delta: float) -> dict[str, Any]:
    """The noise a mechanism plans for the budget, and what the accountant certifies for it."""
    assert ask.epsilon is not None
    budget = Budget(ask.epsilon, delta, ask.relation)
    try:
        plan = ask.mechanism.plan(ask.spec, budget)
    except Unsupported as reason:
        if ask.mechanism.sampler is None:
            raise
        return _exact_noise(ask, kind, budget, reason)
    guarantee = ledger_totals.recompute(
        plan.events,
        kind=kind,
        delta=delta,
        relation=ask.relation,
        certificate=plan.guarantee.certificate,
    )
    ledger_totals.require_within_budget(budget, guarantee, plan.guarantee)
    return _facts(ask, guarantee, plan.events, plan.noise_scale) | {"steps": plan.steps}


def _exact_noise(
    ask: AccountLine, kind: str, budget: Budget, refusal: Unsupported
) -> dict[str, Any]:
    """The noise of an exact draw, where no sampler takes on the law: nothing is drawn here."""
    scale = calibrate.scale_for(
        lambda scale: ask.mechanism.events(ask.spec, scale, budget),
        epsilon=budget.epsilon, delta=budget.delta, relation=budget.relation,
    )  # fmt: skip
    found = _budget_for(replace(ask, epsilon=None, noise_scale=scale), kind, budget.delta)
    return found | {"note": f"{found['note']}, and there: {refusal}"}


def _budget_for(ask: AccountLine, kind: str, delta: float) -> dict[str, Any]:
    """The epsilon that a noise scale is certified for."""
    assert ask.noise_scale is not None
    budget = Budget(math.inf, delta, ask.relation)
    events = ask.mechanism.events(ask.spec, ask.noise_scale, budget)
    guarantee = ledger_totals.recompute(
        events, kind=kind, delta=delta, relation=ask.relation, certificate=None
    )
    facts = _facts(ask, guarantee, events, ask.noise_scale)
    if ask.mechanism.sampler is not None:
        facts["note"] = "; ".join([*list_weaknesses(guarantee, ask.spec.n), EXACT_DRAW])
    return facts


def _facts(
    ask: AccountLine, guarantee: Guarantee, events: Sequence[Event], scale: float
) -> dict[str, Any]:
    taken = [event.gradients(ask.spec.n) for event in events]
    gradients = [count for count in taken if count is not None]
    sums = len(gradients) == len(taken)
    return {
        "epsilon_accounted": guarantee.epsilon,
        "guarantee": guarantee.kind,
        "accountant": guarantee.source,
        "noise_scale": scale,
        "noise_over_nl": scale / (ask.spec.n * ask.spec.lipschitz) if sums else None,
        "steps": max(_steps(event, ask.spec.n) for event in events),
        "gradients": sum(gradients) if sums else None,
        "events": [ledger_totals.describe(event, ask.relation) for event in events],
        "note": _note(events, guarantee, ask.spec),
        **_chains(events, guarantee),
        **(_prove(events, guarantee) if ask.rigorous else {}),
        **(_shuffle(ask, events, guarantee) if ask.shuffled else {}),
    }


def _shuffle(ask: AccountLine, events: Sequence[Event], guarantee: Guarantee) -> dict[str, Any]:
    """The epsilon of the same answers in a random order."""
    delta = cell_budget.delta_of(ask.delta, ask.spec.n)
    level = ask.epsilon_shuffled
    return account_shuffled.describe_shuffled(events, guarantee, ask.spec.n, delta, level)


def _prove(events: Sequence[Event], guarantee: Guarantee) -> dict[str, Any]:
    """The epsilon that is proved in ball arithmetic, and how; or why there is none."""
    found = prove_level(events, delta=guarantee.delta, relation=guarantee.relation)
    return {"epsilon_rigorous": found.epsilon, "rigorous": found.words}


def _chains(events: Sequence[Any], guarantee: Guarantee) -> dict[str, float | None]:
    """The epsilons that BST14's lemmas give one-record steps: as printed, and repaired."""
    event = events[0]
    found: dict[str, float | None] = {"epsilon_chain": None, "epsilon_chain_repaired": None}
    if not event.samples_records or len(events) > 1:
        return found
    if (event.batch, event.sampling, guarantee.relation) != (1, "fixed", "replace_one"):
        return found
    n = event.population
    facts = (n, event.count, event.scale, event.record_norm / n, guarantee.delta)
    return {
        "epsilon_chain": paper_chains.bst14_chain(*facts),
        "epsilon_chain_repaired": paper_chains.bst14_repaired_chain(*facts),
    }


def _note(events: Sequence[Event], guarantee: Guarantee, spec: ProblemSpec) -> str | None:
    noisy = [event for event in events if event.noise_scale is not None]
    added = min(1.0, range_delta(noisy, guarantee.relation, spec.p))
    found = list_weaknesses(guarantee, spec.n)
    if added > generator_range.NEGLIGIBLE_DELTA_SHARE * guarantee.delta:
        found.append(
            f"the bounded range of noise=research could add {added:.2g} to delta: see `dperm run`"
        )
    return "; ".join(found) or None


def list_weaknesses(guarantee: Guarantee, n: int) -> list[str]:
    """The remarks on a guarantee that nothing was released with yet."""
    accounted = {"epsilon_accounted": guarantee.epsilon, "delta_accounted": guarantee.delta}
    kind = {"status": "ok", "guarantee": guarantee.kind}
    return list_remarks({**accounted, **kind, "population": n})


def _steps(event: Event, n: int) -> int:
    """How many answers or noisy values there are: of a channel, those of all n users."""
    return event.draws * (n if event.kind() == "local" else 1)


def _level(ask: AccountLine) -> tuple[str, float]:
    """Kind and delta of the guarantee in question, as a run would have them."""
    if ask.mechanism.space == "kernel":
        raise Unsupported(f"{ask.name} works on a kernel's minimiser: `dperm run` accounts for it")
    kind = cell_budget.kind_of(ask.name, ask.mechanism, ask.privacy, ask.delta, ask.relation)
    if kind == "none":
        raise Unsupported(f"{ask.name} has no guarantee, and so nothing to account for")
    delta = cell_budget.delta_of(ask.delta, ask.spec.n)
    return kind, 0.0 if kind in ("pure", "local") else delta


def _noise_curve(ask: AccountLine, scales: Sequence[float]) -> list[dict[str, Any]]:
    """Certified epsilon over a range of noise scales around those of the table."""
    if not scales:
        return []
    grid = _geometric(min(scales) / 3.0, max(scales) * 3.0, NOISE_POINTS)
    asked = [replace(ask, epsilon=None, noise_scale=scale) for scale in grid]
    return [_point("noise", row) for row in map(make_row, asked) if _drawable(row)]


def _certified_curves(ask: AccountLine, low: float, high: float) -> list[dict[str, Any]]:
    """Certified against nominal epsilon for every calibration the mechanism knows."""
    if ask.mechanism.calibration not in CALIBRATIONS:
        return []  # it knows none, or words of its own
    found = []
    for calibration in CALIBRATIONS:
        mechanism = replace(ask.mechanism, calibration=calibration)
        for epsilon in _geometric(low, high, EPSILON_POINTS[calibration]):
            other = replace(
                ask, mechanism=mechanism, calibration=calibration, epsilon=epsilon,
                noise_scale=None,
            )  # fmt: skip
            row = make_row(other)
            if row["status"] != "ok":
                break
            found.append(_point("certified", row))
    return found


def _point(panel: str, row: dict[str, Any]) -> dict[str, Any]:
    names = ("mechanism", "calibration", "relation", "n", "delta", "noise_scale", "epsilon")
    return {"panel": panel} | {k: row[k] for k in (*names, "epsilon_accounted")}


def _drawable(row: dict[str, Any]) -> bool:
    return row["status"] == "ok" and 0.0 < row["epsilon_accounted"] < math.inf


def _geometric(low: float, high: float, count: int) -> list[float]:
    ratio = math.log(high / low) / (count - 1)
    return [low * math.exp(ratio * i) for i in range(count - 1)] + [high]
