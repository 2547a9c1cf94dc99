"""Risk bounds of private Frank-Wolfe [TTZ15] and noisy mirror descent [TTZ14], with constants.

Proved in docs/proofs/frank_wolfe.md and docs/proofs/mirror_descent.md, for the sum over records and
the plan at hand: its exponent or noise, its steps, its step size.
"""

from __future__ import annotations

import math

from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_mechanism,
    check_settings,
    check_smoothness,
    upper_bound,
)


def frank_wolfe_risk(curvature: float, steps: int, error: float) -> float:
    """2 Gamma / (T + 2) + e: T steps of 2 / (t + 2) whose vertices miss the best by e on average.

    ``curvature`` Gamma = n (beta + ridge) D^2.
    """
    return 2.0 * curvature / (steps + 2.0) + error


def frank_wolfe_pure_risk(curvature: float, moves: float, count: float, epsilon: float) -> float:
    """2 sqrt(2 Gamma M ln m / eps) + M ln m / eps: what T of the bound gives under pure eps.

    At most what ``frank_wolfe_risk`` is at the best whole T >= 1; ``moves`` M bounds what one
    record moves the scores' range by: S D, or twice 2 r b sup |l'| for rows with |x|_inf <= b.
    """
    each = moves * math.log(count) / epsilon
    return 2.0 * math.sqrt(2.0 * curvature * each) + each


def choice_error(count: float, exponent: float) -> float:
    """ln m / c: what the exponential mechanism among m scores misses the least by, on average."""
    return math.log(count) / exponent


def noise_error(p: int, count: float, scale: float, reach: float) -> float:
    """sigma R min(sqrt p, sqrt(2 ln m)) >= E sup of <v - centre, N(0, sigma^2 I)> over the set."""
    return scale * reach * min(math.sqrt(p), math.sqrt(2.0 * math.log(count)))


def mirror_risk(distance: float, second: float, step: float, steps: int) -> float:
    """K / (a T) + a M / 2: K the distance from the start, M the second moment, a the step size."""
    return distance / (step * steps) + step * second / 2.0


def smooth_mirror_risk(distance: float, noise: float, step: float, steps: int) -> float:
    """K / (a T) + a N: a at most half of one over the curvature, N the noise's second moment."""
    return distance / (step * steps) + step * noise


def power_moment(p: int, power: float) -> float:
    """(p E |N|^s)^(2 / s) >= E |N(0, I_p)|_s^2 for s >= 2."""
    log_each = power / 2.0 * math.log(2.0) + math.lgamma((power + 1.0) / 2.0) - math.lgamma(0.5)
    return math.exp(2.0 / power * (math.log(p) + log_each))


# --- at a setting


def _steep(at: Setting) -> float:
    """n L', the Lipschitz constant of the sum."""
    return at.spec.n * at.spec.lipschitz_total


def _bend(at: Setting) -> float:
    """n (beta + ridge), the Lipschitz constant of the sum's gradient."""
    assert at.spec.smoothness is not None
    return at.spec.n * (at.spec.smoothness + at.spec.ridge)


@upper_bound("frank_wolfe Thm 2", check_mechanism("frank_wolfe"), check_smoothness)
def frank_wolfe(at: Setting) -> float:
    """2 Gamma / (T + 2) + e, e = ln(m) / c or sigma R min(sqrt p, sqrt(2 ln m))."""
    across = at.spec.constraint.diameter
    count = at.settings["vertices"] or math.inf
    if at.settings["oracle"] == "choice":
        error = choice_error(count, 1.0 / at.noise_scale)
    else:
        error = noise_error(at.spec.p, count, at.noise_scale, at.settings["reach"])
    error = min(error, _steep(at) * across)
    curvature = at.settings.get("curvature", _bend(at) * across**2)
    return frank_wolfe_risk(curvature, at.steps, error)


def _distance(at: Setting) -> float:
    facts = at.settings
    if facts["map"] == "entropy":
        return math.log(facts["vertices"])
    return facts["size"] ** 2 / (2.0 * (facts["power"] - 1.0))


def _noise(at: Setting) -> float:
    facts = at.settings
    if facts["map"] == "entropy":
        return (facts["reach"] * at.noise_scale) ** 2
    return at.noise_scale**2 * power_moment(at.spec.p, _dual(at))


def _second(at: Setting) -> float:
    noise, steep = _noise(at), _steep(at)
    if at.settings["map"] == "entropy":
        return (steep * at.spec.constraint.diameter) ** 2 / 4.0 + noise
    return min((steep + math.sqrt(noise)) ** 2, steep**2 + (_dual(at) - 1.0) * noise)


def _dual(at: Setting) -> float:
    return at.settings["power"] / (at.settings["power"] - 1.0)


def _check_average(smooth_step: bool) -> tuple[Condition, ...]:
    """The conditions of mirror descent whose output is the average of the right points."""
    return (
        check_mechanism("mirror_descent"),
        check_settings("mirror_step"),
        check(
            lambda at: at.settings.get("output") == "average", "is about the average of the points"
        ),
        check(
            lambda at: bool(at.settings.get("smooth_step")) == smooth_step,
            "averages the points " + ("after" if smooth_step else "before") + " the steps",
        ),
    )


def _is_short(at: Setting) -> bool:
    """Whether the step is at most half of one over the curvature in the map's norm."""
    entropy = at.settings["map"] == "entropy"
    bend = _bend(at) * (at.spec.constraint.diameter**2 / 4.0 if entropy else 1.0)
    return at.settings["mirror_step"] * bend <= 0.5 * (1.0 + 1e-12)


@upper_bound("mirror_descent Thm 2(a)", *_check_average(smooth_step=False))
def mirror_descent(at: Setting) -> float:
    """K / (a T) + a M / 2, the average of the points where gradients were taken."""
    return mirror_risk(_distance(at), _second(at), at.settings["mirror_step"], at.steps)


@upper_bound(
    "mirror_descent Thm 2(b)",
    *_check_average(smooth_step=True),
    check_smoothness,
    check(_is_short, "needs steps of at most half of one over the curvature"),
)
def smooth_mirror_descent(at: Setting) -> float:
    """K / (a T) + a N, smooth losses, the average of the points after the steps."""
    return smooth_mirror_risk(_distance(at), _noise(at), at.settings["mirror_step"], at.steps)
