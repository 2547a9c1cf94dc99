"""The papers' own chains of lemmas, to be compared with what the accountant certifies.

No guarantee of dperm rests on these: ``bst14_chain`` follows the proof of [BST14, Thm 2.1] as
printed, which is not a valid proof as written (docs/errata.md), and ``bst14_repaired_chain`` is
valid but loose. Epsilons in nats; ``scale`` is the noise of one step on the rescaled gradient
n * grad, whose record norm is n * lipschitz.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from dperm_cli.core import checks


def amplify_as_printed(epsilon: float, rate: float) -> float:
    """[BST14, Lemma 2.2]: a random share ``rate`` of the data costs 2 rate epsilon.

    Stated for epsilon-DP steps with epsilon <= 1, and for pure privacy only.
    """
    return 2.0 * _share(rate) * checks.nonnegative("epsilon", epsilon)


def amplify_by_sampling(epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)): fixed-size batches, replace-one [Balle-Barthe-Gaboardi 2018].

    Holds for (epsilon, delta)-DP steps, with delta becoming rate * delta.
    """
    epsilon, rate = checks.nonnegative("epsilon", epsilon), _share(rate)
    if epsilon > 700.0:
        return epsilon
    return math.log1p(rate * math.expm1(epsilon))


def compose_strongly(epsilon: float, steps: int, delta: float) -> float:
    """[BST14, Lemma 2.3]: strong composition of ``steps`` epsilon-DP steps, spending ``delta``."""
    epsilon = checks.nonnegative("epsilon", epsilon)
    steps = checks.integer("steps", steps, low=1)
    delta = checks.number("delta", delta, low=0.0, high=1.0, low_open=True, high_open=True)
    if epsilon > 700.0:
        return math.inf
    first = math.sqrt(2.0 * steps * math.log(1.0 / delta)) * epsilon
    return first + steps * epsilon * math.expm1(epsilon)


def bst14_step_as_printed(n: int, scale: float, lipschitz: float, delta: float) -> float:
    """What the proof takes for a step's loss: (2 n L / sigma) sqrt(2 ln(n / delta)).

    At the stated sigma that is its epsilon / (2 sqrt(ln(1/delta))). The mean mu^2 / 2 is dropped,
    and the tail is not small enough for a union over n^2 steps.
    """
    n, mu, delta = _step(n, scale, lipschitz, delta)
    return mu * math.sqrt(2.0 * math.log(n / delta))


def bst14_step(n: int, steps: int, scale: float, lipschitz: float, delta: float) -> float:
    """What a step's loss exceeds, in absolute value, with chance delta / (2 steps) at most."""
    n, mu, delta = _step(n, scale, lipschitz, delta)
    steps = checks.integer("steps", steps, low=1)
    return mu * -float(ndtri(delta / (4.0 * steps))) + mu * mu / 2.0


def bst14_chain(n: int, steps: int, scale: float, lipschitz: float, delta: float) -> float:
    """The epsilon of Lemma 2.2, then Lemma 2.3 at delta / 2, as printed. Not a valid proof."""
    step = bst14_step_as_printed(n, scale, lipschitz, delta)
    return compose_strongly(amplify_as_printed(step, 1.0 / n), steps, delta / 2.0)


def bst14_repaired_chain(n: int, steps: int, scale: float, lipschitz: float, delta: float) -> float:
    """The same chain with tails and amplification that hold: (epsilon, delta)-DP, replace-one.

    Each step is (w, delta / (2 steps))-DP on its record; a share 1/n of that delta and delta / 2
    of the composition stay below delta.
    """
    step = bst14_step(n, steps, scale, lipschitz, delta)
    return compose_strongly(amplify_by_sampling(step, 1.0 / n), steps, delta / 2.0)


def _step(n: int, scale: float, lipschitz: float, delta: float) -> tuple[int, float, float]:
    n = checks.integer("n", n, low=1)
    scale = checks.positive("scale", scale)
    lipschitz = checks.positive("lipschitz", lipschitz)
    delta = checks.number("delta", delta, low=0.0, high=1.0, low_open=True, high_open=True)
    return n, 2.0 * n * lipschitz / scale, delta


def _share(rate: float) -> float:
    return checks.number("rate", rate, low=0.0, high=1.0)
