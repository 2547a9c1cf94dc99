"""Risk bounds for noisy gradient descent [BST14, Section 2], also with explicit constants.

Risks are sums over records. |C| is the diameter, L one record's Lipschitz constant, Delta one
record's strong convexity. The other sections: ``bst14_upper``, ``bst14_lower``,
``bst14_population``, ``bst14_lemmas``, ``bst14_table1``.
"""

from __future__ import annotations

import math

from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_mechanism,
    upper_bound,
    upper_order,
)


def _check_rate(rate: str) -> Condition:
    """The condition that the plan has this learning rate."""
    return check(
        lambda at: at.settings.get("learning_rate") == rate, f"is for the {rate} learning rate"
    )


# the theorem's number of steps: n^2 records are drawn in all
_check_passes = check(
    lambda at: at.steps * at.settings.get("batch", 1) >= at.spec.n**2,
    "is for n^2 steps of one record",
)
_CONVEX = (check_mechanism("noisy_sgd"), _check_rate("convex"))
_STRONGLY_CONVEX = (check_mechanism("noisy_sgd"), _check_rate("strongly_convex"))


def last_iterate(diameter: float, gradient: float, iterates: int) -> float:
    """Lemma 2.5, with a constant: (3/2) |C| G (2 + ln N) / sqrt(N) for the last iterate theta_N.

    Steps are |C| / (G sqrt(t)), and E |G_t|^2 <= G^2 (docs/proofs/noisy_sgd.md).
    """
    scale = diameter * gradient
    return 1.5 * scale * (2.0 + math.log(iterates)) / math.sqrt(iterates)


def last_iterate_strongly_convex(gradient: float, curvature: float, iterates: int) -> float:
    """Lemma 2.6, with a constant: G^2 (2 H_N + 1) / (2 lambda N), steps 1 / (lambda t)."""
    scale = gradient**2 / (2.0 * curvature)
    return scale * (2.0 * harmonic(iterates) + 1.0) / iterates


@upper_bound("noisy_sgd Thm 1", *_CONVEX)
def noisy_sgd_convex(at: Setting) -> float:
    """The bound behind [BST14, Thm 2.4, part 1], with its constant.

    Steps are c / sqrt(t) with c = |C| / G, and E |G_t|^2 <= G^2. T steps make N = T + 1 iterates.
    The bound depends on the output:

    - last iterate: (3/2) |C| G (2 + ln N) / sqrt(N);
    - average of the T iterates that follow a step: (3/2) |C| G sqrt(N) / T;
    - average of theta_s .. theta_N: (|C| G / 2) (3 sqrt(N) - 2 sqrt(s - 1)) / (N - s + 1).

    The proof is in docs/proofs/noisy_sgd.md.
    """
    diameter, gradient = at.spec.constraint.diameter, at.settings["gradient_bound"]
    iterates, scale = at.steps + 1, diameter * gradient
    if at.settings["output"] == "average":
        return 1.5 * scale * math.sqrt(iterates) / at.steps
    if at.settings["output"] == "suffix_average":
        start = suffix_start(at.steps)
        roots = 3.0 * math.sqrt(iterates) - 2.0 * math.sqrt(start - 1)
        return scale / 2.0 * roots / (iterates - start + 1)
    return last_iterate(diameter, gradient, iterates)


@upper_bound(
    "noisy_sgd Thm 4",
    check_mechanism("noisy_sgd"),
    _check_rate("constant"),
    check(lambda at: at.settings.get("output") == "average", "is for the mean of the iterates"),
)
def noisy_sgd_constant_step(at: Setting) -> float:
    """r G sqrt(T + 1) / T: constant steps r / (G sqrt(T + 1)), and the mean of T iterates.

    r is the largest distance of a point of the set from its centre, the start, and E |G_t|^2 <=
    G^2. The proof is in docs/proofs/noisy_sgd.md.
    """
    reach, gradient = at.spec.constraint.outer_radius, at.settings["gradient_bound"]
    return reach * gradient * math.sqrt(at.steps + 1.0) / at.steps


@upper_bound("noisy_sgd Thm 2", *_STRONGLY_CONVEX)
def noisy_sgd_strongly_convex(at: Setting) -> float:
    """The bound behind [BST14, Thm 2.4, part 2], with its constant.

    Steps are 1 / (n Delta t), and E |G_t|^2 <= G^2. There are N = T + 1 iterates, and
    H_N = 1 + 1/2 + .. + 1/N. The bound depends on the output:

    - last iterate: G^2 (2 H_N + 1) / (2 n Delta N);
    - average of theta_s .. theta_N, s >= 2: G^2 (1 + H_N - H_{s-1}) / (2 n Delta (N - s + 1)).

    The proof is in docs/proofs/noisy_sgd.md.
    """
    curvature, gradient = at.spec.n * at.spec.strong_convexity, at.settings["gradient_bound"]
    iterates = at.steps + 1
    if at.settings["output"] == "last":
        return last_iterate_strongly_convex(gradient, curvature, iterates)
    start = 2 if at.settings["output"] == "average" else suffix_start(at.steps)
    total = 1.0 + harmonic(iterates) - harmonic(start - 1)
    return gradient**2 / (2.0 * curvature) * total / (iterates - start + 1)


@upper_order("BST14 Thm 2.4(1)", *_CONVEX, _check_passes)
def noisy_sgd_order(at: Setting) -> float:
    """L |C| ln^{3/2}(n/delta) sqrt(p ln(1/delta)) / epsilon.

    [BST14, Thm 2.4, part 1]: Lipschitz losses, one-record steps, T = n^2.
    """
    spec, budget = at.spec, at.budget
    logs = math.log(spec.n / budget.delta) ** 1.5 * math.sqrt(math.log(1 / budget.delta))
    scale = spec.lipschitz_total * spec.constraint.diameter
    return scale * logs * math.sqrt(spec.p) / budget.epsilon


@upper_order("BST14 Thm 2.4(2)", *_STRONGLY_CONVEX, _check_passes)
def noisy_sgd_strongly_convex_order(at: Setting) -> float:
    """L^2 ln^2(n/delta) p ln(1/delta) / (n Delta epsilon^2).

    [BST14, Thm 2.4, part 2]: Lipschitz and strongly convex losses.
    """
    spec, budget = at.spec, at.budget
    logs = math.log(spec.n / budget.delta) ** 2 * math.log(1 / budget.delta)
    curvature = spec.n * spec.strong_convexity * budget.epsilon**2
    return spec.lipschitz_total**2 * logs * spec.p / curvature


def _is_plain_mean(at: Setting) -> bool:
    """Whether the plan releases the uniform mean of iterates with a constant step, no momentum."""
    plain = at.settings["momentum"] == 0 and at.settings["averaging"] == "uniform"
    return plain and not isinstance(at.settings["step_size"], str)


@upper_bound(
    "noisy_gd Thm 2",
    check_mechanism("noisy_gd"),
    check(_is_plain_mean, "is for a constant step, no momentum, the mean"),
)
def noisy_gd_constant_step(at: Setting) -> float:
    """r^2 / (2 eta T) + eta G^2 / 2 with G^2 = n^2 L^2 + p sigma^2.

    r is the largest distance of a point of the set from its centre, the start. This is for noisy
    full-gradient descent with a constant step eta and no momentum, which releases the mean of the
    points where gradients were taken (docs/proofs/noisy_gd.md, Thm 2).
    """
    spec, eta = at.spec, at.settings["step_size"]
    moment = (spec.n * spec.lipschitz_total) ** 2 + spec.p * at.noise_scale**2
    return spec.constraint.outer_radius**2 / (2 * eta * at.steps) + eta * moment / 2


def suffix_start(steps: int) -> int:
    """The first index of the suffix average, s = T // 2 + 2: the mean of theta_s .. theta_{T+1}."""
    return steps // 2 + 2


def harmonic(count: int) -> float:
    """1 + 1/2 + .. + 1/count, or above 20 terms an upper bound within 1 / (120 count^4) of it."""
    if count <= 20:
        return math.fsum(1.0 / k for k in range(1, count + 1))
    euler = 0.57721566490153287
    return (
        math.log(count)
        + euler
        + 1.0 / (2 * count)
        - 1.0 / (12 * count**2)
        + (1.0 / (120 * count**4))
    )
