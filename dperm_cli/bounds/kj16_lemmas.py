"""The numbered statements of [KJ16] as functions of plain numbers, with constants where proved.

What is explicit holds for Phi with independent N(0, 1/m) entries and is proved in
docs/proofs/_kj16.md; a subgaussian Phi changes constants alone. ``width`` is that of the set
joined with its mirror image, E sup |<g, theta>|: the Gaussian width of a symmetric set. ``radius``
is sup |theta|, which KJ16 calls the diameter. ``lipschitz`` is one record's Lipschitz constant in
theta: that of l in its first argument times the bound on the rows. Risks are sums over records.
"""

from __future__ import annotations

import math
from collections.abc import Callable

CLIP = 2.0  # a projected row is cut at so many bounds on the row [KJ16, Lemma 3.3]


def distortion(width: float, radius: float, m: int, failure: float) -> float:
    """[KJ16, Thm 3.1] for sets: | |Phi a| - |a| | <= this for all a in S, but with ``failure``.

    (w + R (1 + sqrt(2 ln(2 / failure)))) / sqrt(m). The error is added, not relative: in a set with
    interior there are a != 0 with Phi a = 0 as soon as m < d.
    """
    tail = math.sqrt(2.0 * math.log(2.0 / failure))
    return (width + radius * (1.0 + tail)) / math.sqrt(m)


def squared_distortion(width: float, radius: float, m: int, failure: float) -> float:
    """[KJ16, Thm 3.1]: | |Phi a|^2 - |a|^2 | <= t (2 R + t), t the ``distortion``."""
    t = distortion(width, radius, m, failure)
    return t * (2.0 * radius + t)


def product_distortion(width: float, radius: float, m: int, failure: float) -> float:
    """[KJ16, Cor. 3.2]: | <Phi a, Phi b> - <a, b> | over a, b in S, by polarisation."""
    return 2.0 * squared_distortion(width, radius, m, failure / 2.0)


def mean_product_distortion(width: float, radius: float, row: float, m: int) -> float:
    """[KJ16, Cor. 3.2] for one x, |x| <= row: E sup over theta of | <x~, Phi theta> - <x, theta> |.

    row (w + sqrt(2) R) / sqrt(m); x~ = Phi x with or without the clip.
    """
    return row * (width + math.sqrt(2.0) * radius) / math.sqrt(m)


def clip_probability(m: int) -> float:
    """Pr[|Phi x| > 2 |x|]: chi^2 with m degrees of freedom above 4 m."""
    from scipy.special import gammaincc

    return float(gammaincc(m / 2.0, CLIP**2 * m / 2.0))


def lipschitz_rows(n: int, failure: float) -> int:
    """[KJ16, Lemma 3.3]: the least m at which none of n rows is clipped, but with ``failure``.

    By a union bound, n ``clip_probability(m)`` <= failure: no gamma and no constant is left open.
    """
    m = 1
    while n * clip_probability(m) > failure:
        m += 1
    return m


def fixed_point_loss(n: int, lipschitz: float, radius: float, m: int) -> float:
    """[KJ16, Lemmas 3.4, 3.5]: E |L_comp - L| <= n lambda sqrt(2) R / sqrt(m) at one point of C."""
    return n * lipschitz * math.sqrt(2.0) * radius / math.sqrt(m)


def compressed_risk(inner: float, n: int, lipschitz: float, radius: float, m: int) -> float:
    """[KJ16, Prop. 3.7]: E L_comp(theta_priv) - L* <= inner + n lambda sqrt(2) R / sqrt(m).

    ``inner`` bounds the risk of the inner mechanism on Phi C, in m dimensions.
    """
    return inner + fixed_point_loss(n, lipschitz, radius, m)


def lifting_error(width: float, diameter: float, m: int, failure: float | None = None) -> float:
    """[KJ16, Thm 3.8, Cor. 3.9]: |theta_lift - theta_true| for any two points of C alike under Phi.

    (w(C - C) + |C| (1 + sqrt(2 ln(1 / failure)))) / sqrt(m), w(C - C) = 2 w(C); in expectation
    where ``failure`` is None. ``width`` is the Gaussian width of C itself.
    """
    tail = 0.0 if failure is None else math.sqrt(2.0 * math.log(1.0 / failure))
    return min((2.0 * width + diameter * (1.0 + tail)) / math.sqrt(m), diameter)


def uniform_loss(n: int, lipschitz: float, width: float, radius: float, m: int) -> float:
    """[KJ16, Lemma 3.10]: E sup over C of L - L_comp <= n lambda (w + sqrt(2) R) / sqrt(m)."""
    return n * mean_product_distortion(width, radius, lipschitz, m)


def projection_loss(n: int, lipschitz: float, width: float, radius: float, m: int) -> float:
    """n lambda (w + 2 sqrt(2) R) / sqrt(m): what projecting costs in all, both lemmas together."""
    both = fixed_point_loss(n, lipschitz, radius, m)
    return both + uniform_loss(n, lipschitz, width, radius, m)


def paper_rows(
    kind: str, n: int, epsilon: float, width: float, failure: float = 0.05, psi: float = 1.0
) -> float:
    """[KJ16, Thm 3.11], order: its m for radius 1, the constant taken as one.

    psi^2 epsilon n (w + sqrt(ln n))^2 ln(n / beta) / w under (epsilon, delta), and
    psi^{4/3} (epsilon n)^{2/3} (w + sqrt(ln n))^2 ln(n / beta) / w^{4/3} under pure epsilon.
    """
    common = (width + math.sqrt(math.log(n))) ** 2 * math.log(n / failure)
    if kind == "pure":
        grown = (psi**2 * epsilon * n) ** (2.0 / 3.0)
        return grown * common / width ** (4.0 / 3.0)
    return psi**2 * epsilon * n * common / width


def approx_risk(
    n: int, epsilon: float, delta: float, width: float, radius: float, lipschitz: float,
    psi: float = 1.0,
) -> float:  # fmt: skip
    """[KJ16, Thm 3.11, part 1], order: n lambda R psi sqrt(w/R) ln^3 n ln^2(1/delta) / sqrt(eps n).

    With w / R where the paper, whose sets have radius 1, prints w; never more than 2 n lambda R.
    """
    share = psi * math.sqrt(width / radius) / math.sqrt(epsilon * n)
    logs = math.log(n) ** 3 * math.log(1.0 / delta) ** 2
    return n * lipschitz * radius * min(2.0, share * logs)


def pure_risk(
    n: int, epsilon: float, width: float, radius: float, lipschitz: float, psi: float = 1.0
) -> float:
    """[KJ16, Thm 3.11, part 2], order: n lambda R psi^{4/3} (w/R)^{2/3} ln^2 n / (epsilon n)^{1/3}.

    With w / R where the paper, whose sets have radius 1, prints w; never more than 2 n lambda R.
    """
    share = psi ** (4.0 / 3.0) * (width / radius) ** (2.0 / 3.0) / (epsilon * n) ** (1.0 / 3.0)
    return n * lipschitz * radius * min(2.0, share * math.log(n) ** 2)


def lasso_risk(n: int, epsilon: float, p: int, radius: float) -> float:
    """[KJ16, Sec. 4], order: n c (1 + c) ln^{1/3}(d) ln^2 n / (epsilon n)^{1/3} on c B_1.

    The pure Theorem 3.11 with lambda = 2 (1 + c), R = c and w / R = sqrt(2 ln 2d). The paper prints
    c^{8/3}, from a width that is not divided by the radius.
    """
    width = radius * math.sqrt(2.0 * math.log(2 * p))
    return pure_risk(n, epsilon, width, radius, 2.0 * (1.0 + radius))


def sphere_risk(n: int, p: int) -> tuple[float, float]:
    """[KJ16, Sec. 4], order: (n sqrt(d) / n, n d^{1/4} / sqrt(n)), the lower bound and Thm 3.11.

    For linear losses on the unit sphere, at most n; logarithms, epsilon and delta left out.
    """
    low = n * min(math.sqrt(p) / n, 1.0)
    return low, n * min(p**0.25 / math.sqrt(n), 1.0)


def ahead_of_projection(n: int, width: float) -> float:
    """[KJ16, Sec. 4], order: (n / w)^{1/6}, how far Frank-Wolfe is ahead under (epsilon, delta)."""
    return (n / width) ** (1.0 / 6.0)


LEMMAS: dict[str, Callable] = {
    "Thm 3.1": squared_distortion,
    "Cor. 3.2": product_distortion,
    "Lemma 3.3": lipschitz_rows,
    "Lemma 3.4": fixed_point_loss,
    "Lemma 3.5": fixed_point_loss,
    "Prop. 3.7": compressed_risk,
    "Thm 3.8": lifting_error,
    "Cor. 3.9": lifting_error,
    "Lemma 3.10": uniform_loss,
    "Thm 3.11(1)": approx_risk,
    "Thm 3.11(2)": pure_risk,
}
