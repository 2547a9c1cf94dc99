"""Risk bounds of projected private ERM [KJ16], for the sum over records and the plan at hand.

The statements by number are in ``kj16_lemmas``, the table in ``kj16_table1``; proofs of what is
explicit in docs/proofs/_kj16.md. All of KJ16 is about rows bounded in the L2 norm [KJ16, footnote
8].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dperm_cli.bounds import kj16_lemmas
from dperm_cli.bounds.base import (
    Bound,
    Setting,
    Theorem,
    check_guarantee,
    check_mechanism,
    check_settings,
    find_reason,
)
from dperm_cli.bounds.bst14_combined import INNER, inner_of
from dperm_cli.problem import projection_dimension
from dperm_cli.problem.problem import make_spec
from dperm_cli.sets import make_ball

PROJECTED = ("projected", "standard_projection")
_FAR = 1e9  # margins as far out as this stand for all


def two_sided(spec: Any) -> float | None:
    """E sup over C of |<g, theta>|, exactly or from above; None where it would be an estimate.

    The width of a symmetric C; else at most 2 w + sqrt(2 / pi) |centre|.
    """
    body = spec.constraint
    width, error = body.width(draws=2)
    if error > 0.0:
        return None
    if body.symmetric:
        return width
    centre = math.sqrt(sum(float(v) ** 2 for v in body.centre()))
    return 2.0 * width + math.sqrt(2.0 / math.pi) * centre


def inner_setting(at: Setting) -> Setting:
    """The inner mechanism's own plan: a ball around Phi C in m dimensions, rows as shortened."""
    facts, spec = at.settings, at.spec
    radius = facts["projected_radius"]
    ball = make_ball(radius, int(facts["m"]))
    bounds = replace(spec.bounds, row=facts["row_bound"], radius=radius, columns=ball.p)
    assert spec.form is not None
    inside = make_spec(spec.n, spec.form, ball, spec.regulariser, spec.task, bounds)
    return replace(at, spec=inside, mechanism=inner_of(facts) or "", settings=facts["inner"])


def inner_risk(at: Setting) -> float | None:
    """The smallest explicit bound on the inner mechanism in the image, if there is one."""
    if inner_of(at.settings) is None or at.spec.form is None:
        return None
    inside = inner_setting(at)
    values = [b.value(inside) for b in INNER if b.applies(inside) is None]
    return min(values) if values else None


def _facts(at: Setting) -> str | None:
    early = find_reason(
        check_mechanism(at, *PROJECTED), check_settings(at, "m", "projected_radius", "row_bound")
    )
    return early or (None if at.spec.form is not None else "needs a loss")


def global_lipschitz(spec: Any) -> float | None:
    """One record's Lipschitz constant at margins however far out, None where there is none."""
    if spec.form is None:
        return spec.lipschitz
    near, far = (
        spec.form.lipschitz(replace(spec.bounds, radius=much * spec.bounds.radius))
        for much in (_FAR, 10.0 * _FAR)
    )
    return far if far <= near * (1 + 1e-9) else None


def _explicit(at: Setting) -> str | None:
    if _facts(at):
        return _facts(at)
    return find_reason(
        None if global_lipschitz(at.spec) is not None else "needs a loss Lipschitz at all margins",
        None if at.settings.get("phi") == "gaussian" else "is for a Gaussian Phi",
        None if at.settings["row_bound"] >= at.spec.row_bound else "needs a clip of 1 or more",
        None if at.spec.regulariser.smooth and at.spec.ridge == 0 else "needs no regulariser",
        None if two_sided(at.spec) is not None else "needs a set whose width is known",
        None if inner_risk(at) is not None else "needs an inner mechanism with a bound",
    )


def _projected_risk(at: Setting) -> float:
    spec = at.spec
    width, radius = two_sided(spec) or 0.0, spec.constraint.radius
    steep = global_lipschitz(spec) or math.inf
    lost = kj16_lemmas.projection_loss(spec.n, steep, width, radius, int(at.settings["m"]))
    return (inner_risk(at) or 0.0) + lost


def _order(kind: str) -> Callable[[Setting], str | None]:
    """The theorem's guarantee, and an m that balances the two terms as the theorem's does."""

    def covers(at: Setting) -> str | None:
        return find_reason(
            check_mechanism(at, *PROJECTED), check_guarantee(at, kind), check_settings(at, "m")
        ) or _check_balanced_m(at)

    return covers


def _check_balanced_m(at: Setting) -> str | None:
    width, radius, _ = _numbers(at)
    budget, m = at.budget, at.settings["m"]
    delta = budget.delta if at.kind == "approx" else 0.0
    wanted = projection_dimension.balanced_dimension(
        at.spec.n, budget.epsilon, delta, width / radius
    )
    near = m == min(max(round(wanted), 1), at.spec.p)
    return None if near else "is for the m that balances the two terms"


def _numbers(at: Setting) -> tuple[float, float, float]:
    """w, R and lambda; a width that is simulated will do for an order."""
    spec: Any = at.spec
    return spec.constraint.width()[0], spec.constraint.radius, spec.lipschitz


def _approx(at: Setting) -> float:
    budget = at.budget
    return kj16_lemmas.approx_risk(at.spec.n, budget.epsilon, budget.delta, *_numbers(at))


def _pure(at: Setting) -> float:
    return kj16_lemmas.pure_risk(at.spec.n, at.budget.epsilon, *_numbers(at))


def _lasso(at: Setting) -> str | None:
    spec = at.spec
    form, hull = spec.form, spec.constraint.axis_hull
    squared = form is not None and form.quadratic and form.smoothness == 1.0
    here = squared and hull is not None and hull.signed
    unit = spec.row_bound <= 1.0 and spec.target_bound <= 1.0
    return find_reason(
        _order("pure")(at), None if here and unit else "is for squared loss on an L1 ball, |x| <= 1"
    )


BOUNDS: tuple[Bound, ...] = (
    Theorem(
        "projected Thm 2",
        "inner bound in m dimensions + n lambda (w + 2 sqrt(2) R) / sqrt(m)",
        "upper",
        "explicit",
        _explicit,
        _projected_risk,
        paper="dperm",
    ),
    Theorem(
        "KJ16 Thm 3.11(1)",
        "n lambda R sqrt(w/R) ln^3(n) ln^2(1/delta) / sqrt(epsilon n)",
        "upper",
        "order",
        _order("approx"),
        _approx,
        paper="KJ16",
    ),
    Theorem(
        "KJ16 Thm 3.11(2)",
        "n lambda R (w/R)^{2/3} ln^2(n) / (epsilon n)^{1/3}",
        "upper",
        "order",
        _order("pure"),
        _pure,
        paper="KJ16",
    ),
    Theorem(
        "KJ16 Lasso",
        "n c (1 + c) ln^{1/3}(d) ln^2(n) / (epsilon n)^{1/3}",
        "upper",
        "order",
        _lasso,
        lambda at: kj16_lemmas.lasso_risk(
            at.spec.n, at.budget.epsilon, at.spec.p, at.spec.constraint.radius
        ),
        paper="KJ16",
    ),
)
