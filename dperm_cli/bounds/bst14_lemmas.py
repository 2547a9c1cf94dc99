"""The lemmas of [BST14] as formulas, with the constants of their proofs where these give them.

``LEMMAS`` lists them by number. A function whose docstring says "order" leaves a constant open and
takes it as one; the others are the statements themselves. Slips of Section 6 are corrected by
default and kept under ``as_printed=True`` (docs/errata.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dperm_cli.bounds.base import (
    Setting,
    check,
    check_guarantee,
    check_mechanism,
    check_settings,
    lipschitz_times_diameter,
    lower_order,
    upper_bound,
    upper_order,
)
from dperm_cli.bounds.bst14 import last_iterate, last_iterate_strongly_convex
from dperm_cli.bounds.bst14_lower import marginals_pure
from dperm_cli.bounds.bst14_population import (
    regularized_population,
    stability_gap,
    strongly_convex_population,
)
from dperm_cli.bounds.bst14_upper import localized_risk
from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.paper_chains import amplify_as_printed, compose_strongly


def marginals_approx(n: int, p: int, epsilon: float) -> tuple[float, float]:
    """Lemma 5.1, part 2, order: M = min(n, sqrt(p) / epsilon) and the error of the mean, M / n.

    Once M records are informative the error is 2 M / (27 n) with probability 1/3; the constant
    of M is that of the fingerprinting codes and is left open (delta below 1/n).
    """
    signal = min(float(n), math.sqrt(p) / epsilon)
    return signal, signal / n


# --- Section 6: the grid walk


def grid_spacing(p: int, lipschitz: float, distance: float) -> float:
    """gamma = t / (2 eta sqrt(p)): the log density varies by t / 2 at most in a cell."""
    return distance / (2.0 * lipschitz * math.sqrt(p))


def grid_conductance(p: int, lipschitz: float, edge: float, distance: float) -> float:
    """t / (8 eta tau p^{3/2} e^{t/2}), below the walk's conductance [BST14, Lemma 6.1]."""
    return distance / (8.0 * lipschitz * edge * p**1.5 * math.exp(distance / 2.0))


def mixing_steps(conductance: float, error: float, log_least: float) -> float:
    """Lemma 6.2: 1 + (4 / phi^2) ln(1 / (error pi*)) steps bring the relative error to ``error``.

    ``log_least`` is ln pi*, the least probability of the stationary law.
    """
    return 1.0 + 4.0 / conductance**2 * (math.log(1.0 / error) - log_least)


def cube_steps(
    p: int, lipschitz: float, edge: float, distance: float, *, as_printed: bool = False
) -> float:
    """Lemma 6.1: steps of the grid walk on a cube of this edge, for sup |log ratio| <= distance.

    ln F is ``lipschitz``-Lipschitz on the cube. Half the distance is the grid's. For the other half
    the relative error must be 1 - e^{-distance/2}; printed: distance / 2, which is not enough. And
    ln F may vary by eta tau sqrt(p), along the diagonal; printed: eta tau.
    """
    spacing, across = grid_spacing(p, lipschitz, distance), 1.0 if as_printed else math.sqrt(p)
    log_least = -lipschitz * edge * across - p * max(0.0, math.log(edge / spacing))
    error = distance / 2.0 if as_printed else -math.expm1(-distance / 2.0)
    conductance = grid_conductance(p, lipschitz, edge, distance)
    return mixing_steps(conductance, error, log_least)


def extended_lipschitz(lipschitz: float) -> float:
    """Lemma 6.3: min over u in C of f(u) + eta |theta - u| is f on C, convex and eta-Lipschitz."""
    return lipschitz


def penalty(p: int, lipschitz: float, diameter: float, distance: float) -> float:
    """alpha = 3 e^{2 t} (eta |C| + p), the slope of the gauge penalty [BST14, Alg. 5]."""
    return 3.0 * math.exp(2.0 * distance) * (lipschitz * diameter + p)


def attempt_steps(
    p: int,
    lipschitz: float,
    diameter: float,
    edge: float,
    distance: float,
    *,
    as_printed: bool = False,
) -> float:
    """Lemma 6.4: steps of one attempt, which ends in C with probability at least 1/2.

    The walk runs at half the distance on the extended, penalised function; given that it ends in C
    its law is within ``distance`` of exp(-f) on C (which holds the unit ball and lies in p times
    it).
    """
    steep = extended_lipschitz(lipschitz) + penalty(p, lipschitz, diameter, distance)
    return cube_steps(p, steep, edge, distance / 2.0, as_printed=as_printed)


def attempts(
    p: int, lipschitz: float, diameter: float, distance: float, *, as_printed: bool = False
) -> int:
    """m of [BST14, Alg. 6]: attempts before a uniform draw from the unit ball is released.

    The proof needs 2^-m e^{2 eta |C|} |C|^p <= e^{t/2} (e^{t/2} - 1) and 2^-m <= 1 - e^{-t/4}: in
    base 2 logarithms. Printed: 4 eta |C| + p ln |C| + ln(1 / (1 - e^{-t/4})).
    """
    last = -math.log(-math.expm1(-distance / 4.0))
    volume = p * math.log(diameter)
    if as_printed:
        return math.ceil(4.0 * lipschitz * diameter + volume + last)
    room = distance / 2.0 + math.log(math.expm1(distance / 2.0))
    return max(1, math.ceil(max(2.0 * lipschitz * diameter + volume - room, last) / math.log(2.0)))


@dataclass(frozen=True)
class WalkCost:
    """Cost of one draw: ``attempts`` at most, of ``steps`` each; about 2 attempts are needed.

    >>> WalkCost(steps=1000.0, attempts=3).most
    3000.0
    """

    steps: float
    attempts: int

    @property
    def most(self) -> float:
        """Steps of a draw whose every attempt fails."""
        return self.steps * self.attempts


def draw_cost(
    p: int,
    lipschitz: float,
    diameter: float,
    edge: float,
    distance: float,
    *,
    as_printed: bool = False,
) -> WalkCost:
    """Lemma 6.5: the cost of one draw within ``distance`` of exp(-f) on C [BST14, Alg. 6]."""
    quarter = distance / 4.0
    return WalkCost(
        attempt_steps(p, lipschitz, diameter, edge, quarter, as_printed=as_printed),
        attempts(p, lipschitz, diameter, distance, as_printed=as_printed),
    )


def exponential_cost(
    n: int,
    p: int,
    epsilon: float,
    diameter: float,
    edge: float,
    *,
    as_printed: bool = False,
) -> WalkCost:
    """Thm 3.4: the cost of [BST14, Alg. 7], eta = n epsilon / (6 |C|) and t = epsilon / 3."""
    lipschitz = n * epsilon / (6.0 * diameter)
    return draw_cost(p, lipschitz, diameter, edge, epsilon / 3.0, as_printed=as_printed)


def exponential_cost_order(
    n: int, p: int, epsilon: float, diameter: float, *, as_printed: bool = False
) -> float:
    """Thm 3.4, order: |C|^2 p^3 n^3 max(p ln(|C| p n), epsilon |C| n sqrt(p)).

    Printed without the last root, which Lemma 6.1 lacks.
    """
    across = 1.0 if as_printed else math.sqrt(p)
    most = max(p * math.log(max(diameter * p * n, math.e)), epsilon * diameter * n * across)
    return diameter**2 * float(p) ** 3 * float(n) ** 3 * most


def sampled_epsilon(epsilon: float, distance: float) -> float:
    """Lemma 6.6: a law within ``distance`` of an epsilon-DP one is (epsilon + 2 distance)-DP."""
    return epsilon + 2.0 * distance


# --- Appendices A and D


def huberized_risk_d1(n: int, width: float) -> float:
    """Lemma A.2, order: n min(1, h) on D1."""
    return n * min(1.0, width)


def huberized_risk_d2(n: int, width: float) -> float:
    """Lemma A.3, order: min(1 / h, n) on D2, for h below 1 / ln n."""
    return min(1.0 / width, float(n))


def huberized_risk(n: int, width: float) -> float:
    """Thm A.1, order: min(n, max(n h, 1 / h)), at least sqrt(n) for every h."""
    return min(float(n), max(n * width, 1.0 / width))


def repetitions(failure: float) -> int:
    """Runs of App. D: 2^-k <= failure / 2 (printed without its base)."""
    return math.ceil(math.log2(2.0 / failure))


def amplified_risk(risk_of_a_run: float, exponent: float, failure: float) -> float:
    """App. D: what the selected run's risk exceeds with probability ``failure`` at most.

    The best of k runs exceeds twice the expected risk of one with probability 2^-k (Markov); the
    selection by exp(-c risk) adds more than (ln k + ln(2 / failure)) / c with probability
    failure / 2.
    """
    k = repetitions(failure)
    return 2.0 * risk_of_a_run + (math.log(k) + math.log(2.0 / failure)) / exponent


def _sampler(at: Setting) -> dict[str, Any]:
    """The plan's sampler, as it is described; nothing where there is none."""
    found = at.settings.get("sampler")
    return found if isinstance(found, dict) else {}


def _has_printed_exponent(at: Setting) -> bool:
    """Whether a third of epsilon is in the exponent."""
    spec = at.spec
    printed = at.budget.epsilon / (6.0 * spec.lipschitz_total * spec.constraint.diameter)
    return math.isclose(_sampler(at).get("exponent", math.nan), printed, rel_tol=1e-9)


_WALKS = (
    check_mechanism("exponential"),
    check_guarantee("pure"),
    check(lambda at: _sampler(at).get("name") == "grid_walk", "is for sampler=grid_walk"),
)


@upper_order("BST14 Thm 3.4", *_WALKS)
def walk_risk_order(at: Setting) -> float:
    """L |C| p / epsilon."""
    return lipschitz_times_diameter(at) * at.spec.p / at.budget.epsilon


@upper_order("BST14 Thm 3.4 (time)", *_WALKS, quantity="steps")
def walk_time_order(at: Setting) -> float:
    """|C|^2 p^3 n^3 max(p ln(|C| p n), epsilon |C| n sqrt(p)), the root being a correction."""
    spec = at.spec
    return exponential_cost_order(spec.n, spec.p, at.budget.epsilon, spec.constraint.diameter)


@upper_bound(
    "BST14 Thm 3.4 (steps)",
    *_WALKS,
    check(_has_printed_exponent, "is for calibration=paper"),
    check(
        lambda at: at.spec.constraint.is_ball or at.spec.constraint.half_side is not None,
        "is for l2_ball or box",
    ),
    quantity="steps",
)
def walk_steps(at: Setting) -> float:
    """Steps of an attempt times attempts of [BST14, Alg. 7], corrected, on the scaled set: on the
    unit ball or the cube [-1, 1]^p."""
    diameter = 2.0 * (1.0 if at.spec.constraint.half_side is None else math.sqrt(at.spec.p))
    return exponential_cost(at.spec.n, at.spec.p, at.budget.epsilon, diameter, 2.0).most


@lower_order(
    "BST14 Thm A.1",
    check_mechanism("huberized"),
    check(lambda at: at.spec.p == 1, "is for one dimension"),
    check(
        lambda at: at.settings.get("inner", {}).get("name") == "objective_perturbation",
        "is for inner=objective_perturbation",
    ),
    check_settings("width"),
    quantity="excess_risk_of_method",
)
def huberized_order(at: Setting) -> float:
    """L |C| min(n, max(n h, 1 / h)), the worse of D1 and D2.

    It is about the worse of two data sets and about one method: no bound on what others can do.
    """
    return lipschitz_times_diameter(at) * huberized_risk(at.spec.n, at.settings["width"])


LEMMAS: Mapping[str, Callable[..., Any]] = {
    "Lemma 2.2": amplify_as_printed,
    "Lemma 2.3": compose_strongly,
    "Lemma 2.5": last_iterate,
    "Lemma 2.6": last_iterate_strongly_convex,
    "Thm 3.4": exponential_cost,
    "Lemma 4.2": localized_risk,
    "Lemma 5.1(1)": marginals_pure,
    "Lemma 5.1(2)": marginals_approx,
    "Lemma 6.1": cube_steps,
    "Lemma 6.2": mixing_steps,
    "Lemma 6.3": extended_lipschitz,
    "Lemma 6.4": attempt_steps,
    "Lemma 6.5": draw_cost,
    "Lemma 6.6": sampled_epsilon,
    "Thm A.1": huberized_risk,
    "Lemma A.2": huberized_risk_d1,
    "Lemma A.3": huberized_risk_d2,
    "App. D": amplified_risk,
    "Thm F.1": strongly_convex_population,
    "Eq. (17)": regularized_population,
    "Lemma F.5": stability_gap,
}
