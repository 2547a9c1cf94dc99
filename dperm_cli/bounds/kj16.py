"""Risk bounds of projected private ERM [KJ16], for the sum over records and the plan at hand.

The statements by number are in ``kj16_lemmas``, the table in ``kj16_table1``. Explicit bounds are
proved in docs/proofs/_kj16.md. All of KJ16 assumes rows of bounded L2 norm [KJ16, footnote 8].
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dperm_cli.bounds import kj16_lemmas
from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_guarantee,
    check_mechanism,
    check_settings,
    find_least,
    upper_bound,
    upper_order,
)
from dperm_cli.bounds.bst14_combined import INNER, inner_of
from dperm_cli.problem import projection_dimension
from dperm_cli.problem.problem import make_spec
from dperm_cli.sets import make_ball

_FAR = 1e9  # a Lipschitz constant that no longer grows at such radii is taken to be global


def two_sided_width(spec: Any) -> float | None:
    """E sup over C of |<g, theta>| for a standard normal g, or an upper bound on it.

    It is the width w of a symmetric C, and at most 2 w + sqrt(2 / pi) |centre| for another.

    Returns:
        The bound; None where the width is known only as an estimate.
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
    """The inner mechanism's setting: a ball around Phi C in m dimensions, rows after shortening."""
    facts, spec = at.settings, at.spec
    radius = facts["projected_radius"]
    ball = make_ball(radius, int(facts["m"]))
    bounds = replace(spec.bounds, row=facts["row_bound"], radius=radius, columns=ball.p)
    assert spec.form is not None
    inside = make_spec(spec.n, spec.form, ball, spec.regulariser, spec.task, bounds)
    return replace(at, spec=inside, mechanism=inner_of(facts) or "", settings=facts["inner"])


def inner_risk(at: Setting) -> float | None:
    """The least explicit bound on the inner mechanism's risk when projected, or None."""
    if inner_of(at.settings) is None or at.spec.form is None:
        return None
    return find_least(INNER, inner_setting(at))


def global_lipschitz(spec: Any) -> float | None:
    """One record's Lipschitz constant over all margins; None where there is none."""
    if spec.form is None:
        return spec.lipschitz
    near, far = (
        spec.form.lipschitz(replace(spec.bounds, radius=much * spec.bounds.radius))
        for much in (_FAR, 10.0 * _FAR)
    )
    return far if far <= near * (1 + 1e-9) else None


_check_projected = check_mechanism("projected", "standard_projection")


@upper_bound(
    "projected Thm 2",
    _check_projected,
    check_settings("m", "projected_radius", "row_bound"),
    check(lambda at: at.spec.form is not None, "needs a loss"),
    check(
        lambda at: global_lipschitz(at.spec) is not None, "needs a loss Lipschitz at all margins"
    ),
    check(lambda at: at.settings.get("phi") == "gaussian", "is for a Gaussian Phi"),
    check(lambda at: at.settings["row_bound"] >= at.spec.row_bound, "needs a clip of 1 or more"),
    check(lambda at: at.spec.regulariser.smooth and at.spec.ridge == 0, "needs no regulariser"),
    check(lambda at: two_sided_width(at.spec) is not None, "needs a set whose width is known"),
    check(lambda at: inner_risk(at) is not None, "needs an inner mechanism with a bound"),
)
def projected_risk(at: Setting) -> float:
    """Inner bound in m dimensions + n lambda (w + 2 sqrt(2) R) / sqrt(m)."""
    spec = at.spec
    width, radius = two_sided_width(spec) or 0.0, spec.constraint.radius
    steep = global_lipschitz(spec) or math.inf
    lost = kj16_lemmas.projection_loss(spec.n, steep, width, radius, int(at.settings["m"]))
    return (inner_risk(at) or 0.0) + lost


def _check_order(kind: str) -> tuple[Condition, ...]:
    """The conditions that the guarantee is the theorem's, and m balances the bound's two terms."""
    return (
        _check_projected,
        check_guarantee(kind),
        check_settings("m"),
        check(_has_balanced_m, "is for the m that balances the two terms"),
    )


def _has_balanced_m(at: Setting) -> bool:
    """Whether the plan's m is the theorem's, rounded and within [1, p]."""
    width, radius, _ = _numbers(at)
    budget, m = at.budget, at.settings["m"]
    delta = budget.delta if at.kind == "approx" else 0.0
    wanted = projection_dimension.balanced_dimension(
        at.spec.n, budget.epsilon, delta, width / radius
    )
    return m == min(max(round(wanted), 1), at.spec.p)


def _numbers(at: Setting) -> tuple[float, float, float]:
    """w, R and lambda (the Lipschitz constant); for an order w may be an estimate."""
    spec: Any = at.spec
    return spec.constraint.width()[0], spec.constraint.radius, spec.lipschitz


@upper_order("KJ16 Thm 3.11(1)", *_check_order("approx"))
def approx_order(at: Setting) -> float:
    """n lambda R sqrt(w/R) ln^3(n) ln^2(1/delta) / sqrt(epsilon n)."""
    budget = at.budget
    return kj16_lemmas.approx_risk(at.spec.n, budget.epsilon, budget.delta, *_numbers(at))


@upper_order("KJ16 Thm 3.11(2)", *_check_order("pure"))
def pure_order(at: Setting) -> float:
    """n lambda R (w/R)^{2/3} ln^2(n) / (epsilon n)^{1/3}."""
    return kj16_lemmas.pure_risk(at.spec.n, at.budget.epsilon, *_numbers(at))


def _is_lasso(at: Setting) -> bool:
    """Whether the problem is the Lasso of [KJ16]: squared loss, L1 ball, |x| and |y| at most 1."""
    spec = at.spec
    form, hull = spec.form, spec.constraint.axis_hull
    squared = form is not None and form.quadratic and form.smoothness == 1.0
    unit = spec.row_bound <= 1.0 and spec.target_bound <= 1.0
    return squared and hull is not None and hull.signed and unit


@upper_order(
    "KJ16 Lasso",
    *_check_order("pure"),
    check(_is_lasso, "is for squared loss on an L1 ball, |x| <= 1"),
)
def lasso_order(at: Setting) -> float:
    """n c (1 + c) ln^{1/3}(d) ln^2(n) / (epsilon n)^{1/3}."""
    spec = at.spec
    return kj16_lemmas.lasso_risk(spec.n, at.budget.epsilon, spec.p, spec.constraint.radius)
