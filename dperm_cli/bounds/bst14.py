"""Risk bounds for noisy gradient descent [BST14, Sections 2 and 5], and what sharpens them.

Risks are sums over records. |C| is the diameter, L one record's Lipschitz constant, Delta one
record's strong convexity.
"""

from __future__ import annotations

import math
from typing import ClassVar

from dperm_cli.bounds._bound import Bound, Setting


class NoisySgdOrder:
    """[BST14, Thm 2.4, part 1]: Lipschitz losses, one-record steps, T = n^2."""

    id: ClassVar[str] = "BST14 Thm 2.4(1)"
    paper: ClassVar[str] = "BST14"
    statement: ClassVar[str] = "L |C| ln^{3/2}(n/delta) sqrt(p ln(1/delta)) / epsilon"
    kind: ClassVar[str] = "upper"
    constant: ClassVar[str] = "order"

    def applies(self, at: Setting) -> str | None:
        return _noisy_sgd(at, "convex")

    def value(self, at: Setting) -> float:
        spec, budget = at.spec, at.budget
        logs = math.log(spec.n / budget.delta) ** 1.5 * math.sqrt(math.log(1 / budget.delta))
        scale = spec.lipschitz_total * spec.constraint.diameter
        return scale * logs * math.sqrt(spec.p) / budget.epsilon


class NoisySgdStronglyConvexOrder:
    """[BST14, Thm 2.4, part 2]: Lipschitz and strongly convex losses."""

    id: ClassVar[str] = "BST14 Thm 2.4(2)"
    paper: ClassVar[str] = "BST14"
    statement: ClassVar[str] = "L^2 ln^2(n/delta) p ln(1/delta) / (n Delta epsilon^2)"
    kind: ClassVar[str] = "upper"
    constant: ClassVar[str] = "order"

    def applies(self, at: Setting) -> str | None:
        return _noisy_sgd(at, "strongly_convex")

    def value(self, at: Setting) -> float:
        spec, budget = at.spec, at.budget
        logs = math.log(spec.n / budget.delta) ** 2 * math.log(1 / budget.delta)
        curvature = spec.n * spec.strong_convexity * budget.epsilon**2
        return spec.lipschitz_total**2 * logs * spec.p / curvature


class NoisySgdConvex:
    """The bound behind [BST14, Thm 2.4, part 1], with its constant.

    Steps c / sqrt(t) with c = |C| / G and E |G_t|^2 <= G^2 give, N = T + 1 iterates after T steps,
    for the last iterate at most (3/2) |C| G (2 + ln N) / sqrt(N), and for the average of the
    T that follow a step (3/2) |C| G sqrt(N) / T; the proof is in docs/proofs/noisy_sgd.md.
    """

    id: ClassVar[str] = "noisy_sgd Thm 1"
    paper: ClassVar[str] = "BST14"
    statement: ClassVar[str] = "(3/2) |C| G (2 + ln N) / sqrt(N), N = T + 1"
    kind: ClassVar[str] = "upper"
    constant: ClassVar[str] = "explicit"

    def applies(self, at: Setting) -> str | None:
        if at.settings.get("output") == "suffix_average":
            return "is stated for the last iterate and for the average"
        return _noisy_sgd(at, "convex")

    def value(self, at: Setting) -> float:
        scale = 1.5 * at.spec.constraint.diameter * at.settings["gradient_bound"]
        iterates = at.steps + 1
        if at.settings["output"] == "average":
            return scale * math.sqrt(iterates) / at.steps
        return scale * (2.0 + math.log(iterates)) / math.sqrt(iterates)


class NoisyGdConstantStep:
    """Mean of the points queried by noisy full-gradient descent with a constant step, no momentum.

    D^2 / (2 eta T) + eta G^2 / 2 with G^2 = n^2 L^2 + p sigma^2 (docs/proofs/noisy_gd.md, Thm 2).
    """

    id: ClassVar[str] = "noisy_gd Thm 2"
    paper: ClassVar[str] = "dperm"
    statement: ClassVar[str] = "|C|^2 / (2 eta T) + eta (n^2 L^2 + p sigma^2) / 2"
    kind: ClassVar[str] = "upper"
    constant: ClassVar[str] = "explicit"

    def applies(self, at: Setting) -> str | None:
        if at.mechanism != "noisy_gd":
            return "is about noisy_gd"
        plain = at.settings["momentum"] == 0 and at.settings["averaging"] == "uniform"
        constant = not isinstance(at.settings["step_size"], str)
        return None if plain and constant else "is for a constant step, no momentum, the mean"

    def value(self, at: Setting) -> float:
        spec, eta = at.spec, at.settings["step_size"]
        moment = (spec.n * spec.lipschitz_total) ** 2 + spec.p * at.noise_scale**2
        return spec.constraint.diameter**2 / (2 * eta * at.steps) + eta * moment / 2


class ApproxLowerOrder:
    """[BST14, Thm 5.3]: every (epsilon, delta) mechanism, on its worst data set."""

    id: ClassVar[str] = "BST14 Thm 5.3"
    paper: ClassVar[str] = "BST14"
    statement: ClassVar[str] = "L |C| min(n, sqrt(p) / epsilon)"
    kind: ClassVar[str] = "lower"
    constant: ClassVar[str] = "order"

    def applies(self, at: Setting) -> str | None:
        if not at.spec.regulariser.vanishes:
            return "is for losses without a regulariser"
        return None if at.kind == "approx" else "is for (epsilon, delta) guarantees"

    def value(self, at: Setting) -> float:
        spec = at.spec
        scale = spec.lipschitz * spec.constraint.least_diameter
        return scale * min(spec.n, math.sqrt(spec.p) / at.budget.epsilon)


class TwoPointLower:
    """Group privacy on two linear data sets that differ in k records (any p, any mechanism).

    With k records equal to +d or to -d and the rest neutral, the two minimisers lie at the
    ends of a diameter, and the outputs' total variation distance is at most
    (e^{k eps} - 1 + 2 delta_k) / (e^{k eps} + 1): some data set has expected excess risk at
    least k L |C| (1 - TV) / 2. The best k is taken; the proof is in docs/proofs/noisy_sgd.md.
    """

    id: ClassVar[str] = "two-point"
    paper: ClassVar[str] = "dperm"
    statement: ClassVar[str] = "max over k of k L |C| (1 - TV_k) / 2"
    kind: ClassVar[str] = "lower"
    constant: ClassVar[str] = "explicit"

    def applies(self, at: Setting) -> str | None:
        if not at.spec.regulariser.vanishes:
            return "is for losses without a regulariser"
        return None

    def value(self, at: Setting) -> float:
        spec, budget = at.spec, at.budget
        # replacing a record is a removal and an addition
        step = 1 if budget.relation == "replace_one" else 2
        # k (1 - TV_k) falls once k epsilon is past about 1.3, and grows until then
        last = min(spec.n, max(1, math.ceil(2.0 / (budget.epsilon * step))))
        best = max(
            k * (1.0 - _total_variation(k * step, budget.epsilon, budget.delta))
            for k in _candidates(last)
        )
        return max(0.0, best) * spec.lipschitz * spec.constraint.least_diameter / 2.0


BOUNDS: tuple[Bound, ...] = (
    NoisySgdConvex(),
    NoisySgdOrder(),
    NoisySgdStronglyConvexOrder(),
    NoisyGdConstantStep(),
    ApproxLowerOrder(),
    TwoPointLower(),
)


def _noisy_sgd(at: Setting, rate: str) -> str | None:
    if at.mechanism != "noisy_sgd":
        return "is about noisy_sgd"
    if at.settings.get("learning_rate") != rate:
        return f"is for the {rate} learning rate"
    return None


def _total_variation(k: int, epsilon: float, delta: float) -> float:
    """Total variation distance allowed by (epsilon, delta) over k changes of one record."""
    power = k * epsilon
    if power > 700:
        return 1.0
    group = delta * math.expm1(power) / math.expm1(epsilon) if delta else 0.0
    return min(1.0, (math.expm1(power) + 2.0 * group) / (math.exp(power) + 1.0))


def _candidates(last: int) -> range:
    return range(1, last + 1) if last <= 4096 else range(1, last + 1, last // 2048)
