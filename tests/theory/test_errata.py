"""The number behind every erratum of docs/errata.md; each test is named after its id."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import gammainc, gammaincc, ndtr, ndtri
from scipy.stats import binom, chi2

from dperm_cli.bounds import djw12
from dperm_cli.bounds.kj16_lemmas import pure_risk
from dperm_cli.losses.huberized_positive_part import HuberizedPositivePart
from dperm_cli.privacy import channels
from dperm_cli.privacy.accounting import calibrate, gaussian_profile
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import Exponential, Laplace
from dperm_cli.problem.data import Bounds

N, DELTA, STEPS = 1000, 1e-6, 1_000_000  # [BST14, Thm 2.1] at epsilon = 1


def strong_composition(step_epsilon: float, delta: float) -> float:
    """[BST14, Lemma 2.3]."""
    first = math.sqrt(2 * STEPS * math.log(1 / delta)) * step_epsilon
    return first + STEPS * step_epsilon * math.expm1(step_epsilon)


@pytest.mark.parametrize(("n", "excess"), [(100, 1.1153), (1000, 1.1239), (100_000, 1.1329)])
def test_bst14_step_tail(n, excess):
    """What one step's loss exceeds with chance delta / (2 n^2), two-sided, over what is allowed."""
    delta = n**-2.0
    mu = 2 * n / calibrate.bst14_stated_scale(n, 1.0, 1.0, delta)
    needed = mu * -float(ndtri(delta / (4 * n * n))) + mu * mu / 2
    assert needed * 2 * math.sqrt(math.log(1 / delta)) == pytest.approx(excess, abs=1e-4)


def test_bst14_composition():
    amplified = 2 / N * 1.0 / (2 * math.sqrt(math.log(1 / DELTA)))
    first = math.sqrt(2 * STEPS * math.log(2 / DELTA)) * amplified
    assert first > math.sqrt(2)
    whole = strong_composition(amplified, DELTA / 2)
    assert whole == pytest.approx(1.5217, abs=1e-4)


def log_ratio_of_the_exponential_mechanism(n: int, epsilon: float) -> float:
    """Records d = 1 and one -1: losses -d theta on [-1/2, 1/2], L = |C| = 1, in closed form."""
    c = epsilon / 2

    def log_mass(slope: float) -> float:
        return math.log(2 * math.sinh(c * slope / 2) / (c * slope))

    theta = 0.5
    one, other = c * n * theta - log_mass(n), c * (n - 2) * theta - log_mass(n - 2)
    at_low = (-c * n * theta - log_mass(n)) - (-c * (n - 2) * theta - log_mass(n - 2))
    return max(abs(one - other), abs(at_low))


def test_bst14_em_sensitivity():
    """|l_d - l_d'| spreads over 2 L |C|, twice what the proof says; the claim is true and sharp."""
    theta = np.linspace(-0.5, 0.5, 101)
    difference = -theta - theta
    assert np.ptp(difference) == pytest.approx(2.0)
    ratio = log_ratio_of_the_exponential_mechanism(1000, 1.0)
    assert ratio == pytest.approx(0.997998, abs=1e-6)
    assert ratio <= 1.0


def test_bst14_localization_scale():
    """[Alg. 3]: the minimiser moves by 2 L / (n Delta), so n belongs into the noise's rate."""
    n, convexity, lipschitz = 50, 0.5, 1.0
    # losses -d theta + (Delta/2) theta^2: the minimiser is mean(d) / Delta
    moved = (n * lipschitz - (n - 2) * lipschitz) / (n * convexity)
    assert moved == pytest.approx(2 * lipschitz / (n * convexity))
    assert moved == pytest.approx(0.08)


def test_bst14_localization_zeta():
    """Pr[norm > zeta p scale] <= e^-zeta is false up to zeta = 1.25; the input says zeta < 1."""
    assert 3 * math.log(1000) > 20  # the value it is used with
    assert gammaincc(2, 2 * 1.0) > math.exp(-1.0)
    for p in (1, 2, 5, 10, 50):
        assert gammaincc(p, p * 1.26) <= math.exp(-1.26) * (1 + 1e-12)
    assert gammaincc(2, 2 * 1.25) / math.exp(-1.25) == pytest.approx(1.003, abs=5e-4)
    assert gammainc(2, 2 * 1.0) < 1 - math.exp(-1.0)


def delta_of(epsilon: float, mu: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(
    ("epsilon", "delta", "excess"),
    [(1.0, 1e-6, 10.63), (0.05, 1e-9, 6.045), (0.5, 1e-4, 0.7123), (0.5, 1e-6, 4.164)],
)
def test_bst14_app_b_sigma(epsilon, delta, excess):
    """The real delta of the printed noise over the claimed one: no range of epsilon decides it."""
    sigma = math.sqrt(math.log(1 / delta)) / epsilon
    assert delta_of(epsilon, 1 / sigma) / delta == pytest.approx(excess, rel=2e-4)
    assert 1 / gaussian_profile.mu(1.0, 1e-6) == pytest.approx(4.22468, rel=1e-5)
    assert math.sqrt(math.log(1e6)) == pytest.approx(3.7169, abs=5e-5)


def test_bst14_app_b_tail():
    """|b| of N(0, s^2 I_p) is near s sqrt(p); the printed radius has lost the sqrt(p)."""
    p, zeta = 100, 2.0
    inside = gammainc(p / 2, zeta**2 / 2)
    assert inside < 1e-50
    assert gammainc(p / 2, zeta**2 * p / 2) > 0.999


def test_bst14_app_e_lambda():
    """Delta = beta / (2 eps): the Jacobian alone is ln(1 + 2 eps), and the two effects add up."""
    assert brentq(lambda e: math.log1p(2 * e) - e, 0.5, 2) == pytest.approx(1.25643, abs=1e-5)
    epsilon, beta, lipschitz = 1.0, 0.5, 1.0
    ridge = beta / (2 * epsilon)

    def density(theta: float, slope: float, curvature: float) -> float:
        # others: twenty linear losses of slope -1, so that b = -(ridge theta + slope - 20) > 0
        b = -(ridge * theta + slope - 20.0)
        kernel = math.exp(-epsilon * abs(b) / (2 * lipschitz))
        return kernel * (ridge + curvature)

    # at theta = 0: d has slope 1 just below the end of its rounded kink, d' slope -1 beyond its own
    ratio = math.log(density(0.0, lipschitz, beta) / density(0.0, -lipschitz, 0.0))
    assert ratio == pytest.approx(epsilon + math.log1p(2 * epsilon))
    assert ratio == pytest.approx(2.0986, abs=1e-4)
    rounded = HuberizedPositivePart(width=1.0)
    assert rounded.curvature_bound(Bounds(1.0, 1.0, 1.0, 1)) == pytest.approx(beta)


def test_bst14_app_a_smooth():
    h, step = 0.1, 1e-5
    rounded = HuberizedPositivePart(width=h)

    def second(u: float) -> float:
        slopes = rounded.slope(np.array([-u - step, -u + step]), np.zeros(2))
        return float(abs(slopes[0] - slopes[1]) / (2 * step))

    assert second(h - 3 * step) == pytest.approx(1 / (2 * h))
    assert second(h + 3 * step) == pytest.approx(0.0)


def test_bst14_app_d_selection():
    """The list spends (eps, delta), choosing from it eps more."""
    k, epsilon = 6, 1.0
    assert k * (epsilon / k) + epsilon == pytest.approx(2.0)
    # three losses 0, 1, 9 of which the exponential mechanism all but surely takes the least
    risks = np.array([0.0, 1.0, 9.0])
    weights = np.exp(-5.0 * risks)
    chosen = float(risks @ weights / weights.sum())
    assert chosen < 0.01 < risks.max() - 1.0


def huberized(z: np.ndarray, h: float) -> np.ndarray:
    """[BST14, App. A]: the rounded positive part."""
    return np.where(np.abs(z) <= h, (z + h) ** 2 / (4 * h), np.maximum(z, 0.0))


def test_bst14_lemma_a2():
    """D_1: a third (x, y) = (-1, 1), two thirds (1, -1). Both kinks lie at -1, not at 1."""
    h, theta = 0.1, np.linspace(-2, 2, 400_001)
    exact = np.maximum(1 + theta, 0) / 3 + np.maximum(-1 - theta, 0) * 2 / 3
    rounded = huberized(1 + theta, h) / 3 + huberized(-1 - theta, h) * 2 / 3
    assert theta[np.argmin(exact)] == pytest.approx(-1.0, abs=1e-5)
    assert theta[np.argmin(rounded)] == pytest.approx(-1 + h / 3, abs=1e-5)
    assert theta[np.argmin(rounded)] == pytest.approx(-0.96667, abs=2e-5)
    # a third of the records still pays h / 3 each: the order n h stands
    assert exact[np.argmin(rounded)] - exact.min() == pytest.approx(h / 9, abs=1e-5)


def test_bst14_huberization_order():
    """min over h of min(n, max(n h, 1/h)), the order of Theorem A.1, is sqrt(n) and not n."""
    n, widths = 10_000, np.geomspace(1e-6, 10, 70_001)
    order = np.minimum(n, np.maximum(n * widths, 1 / widths))
    assert order.min() == pytest.approx(math.sqrt(n), rel=1e-3)
    assert widths[np.argmin(order)] == pytest.approx(0.01, rel=1e-3)


def test_bst14_isotropic_cost():
    """The time of Theorem 3.4 on p C over that on C: the diameter grows by p."""

    def time(diameter: float, p: int, n: float) -> float:
        longest = max(p * math.log(diameter * p * n), diameter * n)
        return diameter**2 * p**3 * n**3 * longest

    for p in (2, 5, 10):
        ratio = time(float(p), p, 1e4) / time(1.0, p, 1e4)
        assert ratio == pytest.approx(p**3, rel=1e-9)
        assert ratio > 1.9 * p**2


def test_bst14_alg5_ratio():
    """mu >= (1 - e') pi gives a log ratio of -log(1 - e'), which exceeds et/2 at e' = et/2."""
    tilde = 1.0
    assert -math.log1p(-tilde / 2) == pytest.approx(0.6931, abs=1e-4)
    assert -math.log1p(-tilde / 2) > tilde / 2
    assert -math.log1p(math.expm1(-tilde / 2)) == pytest.approx(tilde / 2)


def test_bst14_lemma_61_diagonal():
    """f = eta <u, (1, 1)> / sqrt 2 varies by eta tau sqrt 2 over the square, not by eta tau."""
    slope, tau, tilde = 10.0, 2.0, 0.1
    cells = math.ceil(tau / (tilde / (2 * slope * math.sqrt(2))))
    centre = tau * (np.arange(cells) + 0.5) / cells
    f = slope * (centre[:, None] + centre) / math.sqrt(2)
    least = f.max() + math.log(np.sum(np.exp(-f)))
    printed, corrected = (slope * tau * s + 2 * math.log(cells) for s in (1.0, math.sqrt(2)))
    assert least == pytest.approx(35.64, abs=0.01)
    assert printed == pytest.approx(32.68, abs=0.01)
    assert printed < least <= corrected


def test_bst14_generalization_exponent():
    n, p, epsilon = 10_000, 100, 1.0
    assert p**2 / (epsilon * n) == 1.0  # no better than no data
    assert math.sqrt(p) / (epsilon * n) == pytest.approx(1e-3)  # Table I, per record


def test_bst14_generalization_min():
    """Two coins of bias +-1/(2 sqrt n): no method, private or not, is as good as p/(eps n)."""
    n = 10_000
    bias = 1 / (2 * math.sqrt(n))
    heads = np.arange(n + 1)
    laws = [binom.pmf(heads, n, (1 + s * bias) / 2) for s in (1, -1)]
    distance = 0.5 * np.abs(laws[0] - laws[1]).sum()
    least = bias * (1 - distance)  # linear loss on [-1, 1], the worse of the two
    assert least == pytest.approx(0.0031, abs=1e-4)
    assert least > 30 * min(1 / math.sqrt(n), 1 / n)
    assert least < max(1 / math.sqrt(n), 1 / n)


def test_bst14_eq17_lipschitz():
    """On the unit ball |C| = 2, and the ridge's gradient has norm Delta at the boundary."""
    lipschitz, convexity, diameter = 1.0, 10.0, 2.0
    steepest = lipschitz + convexity * 1.0
    assert steepest == 11.0
    assert steepest > lipschitz + diameter
    assert steepest <= lipschitz + convexity * diameter


def test_bst14_lemma_f5_units():
    """Exact ERM on one record is (0, 1)-private: scaled losses leave |C|^2 delta behind."""
    share, diameter = 0.6, 2.0
    for scale in (1.0, 1000.0):
        # loss -scale d theta on [-1, 1], d = 1 with probability .6: true risk -.2 scale theta
        learnt = 2 * share - 1
        excess = scale * (2 * share - 1) * (1 - learnt)
        assert excess == pytest.approx(0.16 * scale)
        assert excess <= scale * diameter * 1.0
    assert excess > 10 * diameter**2 * 1.0


def test_kj16_thm_31_interior():
    """A kernel vector of Phi, however short, is lost: the relative error is 1, m = 10, d = 20."""
    phi = np.random.default_rng(0).standard_normal((10, 20)) / math.sqrt(10)
    kernel = np.linalg.svd(phi)[2][-1]
    for length in (1.0, 1e-6):  # a ball of radius 1e-6 has width below 1e-5
        a = length * kernel
        relative = abs(np.sum((phi @ a) ** 2) - np.sum(a**2)) / np.sum(a**2)
        assert relative == pytest.approx(1.0)


def test_kj16_lambda_comp():
    """The noise is for |Phi x| <= 2: chances that a row is longer, and rows that always are."""
    assert chi2.sf(4 * 5, 5) == pytest.approx(1.2498e-3, rel=1e-4)
    assert chi2.sf(4 * 10, 10) == pytest.approx(1.6945e-5, rel=1e-4)
    rng = np.random.default_rng(0)
    longest = [np.linalg.norm(rng.standard_normal((10, 40)) / math.sqrt(10), 2) for _ in range(200)]
    assert min(longest) > 2.0
    # replaced by its opposite it moves a sum of slope-1 gradients by more than 2 * 2 lambda
    mu = gaussian_profile.mu(1.0, 1e-6)
    assert delta_of(1.0, mu) == pytest.approx(1e-6, rel=1e-6)
    assert delta_of(1.0, mu * min(longest) / 2) > 1.5e-6


def test_kj16_lemma_310_sign():
    """L >= L_comp + lambda gamma |C| fails at random; with a minus it holds, as its proof says."""
    rng, gamma, n = np.random.default_rng(1), 0.2, 20
    x = rng.standard_normal((n, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    theta = np.eye(5)[0]
    plus = minus = 0
    for _ in range(200):
        phi = rng.standard_normal((400, 5)) / 20
        loss, compressed = (
            np.maximum(1 - x @ theta, 0),
            np.maximum(1 - (x @ phi.T) @ phi @ theta, 0),
        )
        plus += loss.mean() >= compressed.mean() + gamma
        minus += loss.mean() >= compressed.mean() - gamma
    assert (plus, minus) == (0, 200)


def test_kj16_thm_311_delta():
    """The statement has log^2(1/beta) where its proof leaves powers of log(1/delta)."""
    n, beta = 1000, 0.05
    printed = math.log(n) ** 3 * math.log(1 / beta) ** 2

    def proof(delta: float) -> float:
        return math.log(n / delta) ** 1.5 * math.sqrt(math.log(1 / delta))

    assert math.log(1 / beta) ** 2 == pytest.approx(8.97, abs=0.01)
    assert math.log(1e6) ** 2 == pytest.approx(190.9, abs=0.1)
    assert proof(1e-300) > 2 * printed > 10 * proof(1e-6)
    for delta in (1e-3, 1e-6, 1e-12, 1e-300):
        assert proof(delta) <= math.log(n) ** 3 * math.log(1 / delta) ** 2


def test_kj16_thm_311_scale():
    """w^{2/3} |C| on C / 1000 against a thousandth of what it is on C; (w/R)^{2/3} R scales."""
    n, width, radius, scale = 10**6, 4.0, 1.0, 1e-3

    def printed(s: float) -> float:
        return (s * width) ** (2 / 3) * (s * radius) / n ** (1 / 3)

    def right(s: float) -> float:
        return pure_risk(n, 1.0, s * width, s * radius, 1.0) / n / math.log(n) ** 2

    assert printed(scale) == pytest.approx(0.01 * scale * printed(1.0))
    assert right(scale) == pytest.approx(scale * right(1.0))
    assert right(1.0) == pytest.approx(min(2.0 / math.log(n) ** 2, printed(1.0)))


def test_kj16_gauge_origin():
    """The least sum of theta >= 0 with the barycentre's image: no point of the simplex."""
    rng, least = np.random.default_rng(0), []
    for _ in range(200):
        phi = rng.standard_normal((3, 9))
        found = linprog(np.ones(9), A_eq=phi, b_eq=phi @ np.full(9, 1 / 9), bounds=(0, None))
        least.append(found.fun)
    assert np.median(least) == pytest.approx(0.34, abs=0.005)
    assert max(least) < 1.0 - 1e-6


def test_kj16_curvature_exponent():
    """Losses times 8: curvature and Lipschitz constant times 8, and so the risk."""
    scale = 8.0

    def bound(exponent: float) -> float:
        return scale**exponent * scale ** (2 / 3)

    assert bound(1 / 3) == pytest.approx(scale)
    assert bound(-1 / 3) == pytest.approx(2.0)


def test_jt13_eq1_factor():
    """One record of slope 1 on a line that turns its sign: how far apart the minimisers are."""
    n, strength = 1e4, 0.1
    apart = []
    for curvature in (strength, strength / 2.0):  # of (2), and of (1) with r(w) = |w|^2 / 2
        sides = [brentq(lambda w, y=y, c=curvature: c * w - y / n, -1, 1) for y in (1.0, -1.0)]
        apart.append(sides[0] - sides[1])
    assert apart == pytest.approx([0.002, 0.004])


def pinp(c_power: int, scale: float) -> float:
    """B of Algorithm 1 without its pure numbers, in units in which w is ``scale`` times longer."""
    # |w| and C grow by scale; lambda |w|^2 and L |<w, phi>| are losses and stay
    n, epsilon, strength, lipschitz, reach, c = 1e4, 1.0, 0.1, 1.0, 1.0, 2.0
    strength, lipschitz, c = strength / scale**2, lipschitz / scale, c * scale
    return n * epsilon * strength * c**c_power / (lipschitz * reach)


def test_jt13_pinp_units():
    """The bound on the number of updates is a number: C, not C^2."""
    assert pinp(1, 1000.0) == pytest.approx(pinp(1, 1.0))
    assert pinp(2, 1000.0) == pytest.approx(1000 * pinp(2, 1.0))


@pytest.mark.parametrize(("n", "step"), [(1e4, 1.343), (1e5, 4.08)])
def test_jt13_tdil_exponent(n, step):
    """n lambda / (8 L R^2) multiplies an eps0 that has n lambda already: a step costs eps0 / 2."""
    strength, epsilon, logs = 0.1, 1.0, math.log(4e6)
    updates = math.floor(n * epsilon / (100 * logs))
    eps0 = n * epsilon * strength / (10 * math.sqrt(updates) * logs)
    sensitivity = 2 / (strength * n)
    cost = 2 * (eps0 * n * strength / 8) * sensitivity
    assert cost == pytest.approx(eps0 / 2)
    assert cost == pytest.approx(step, rel=2e-3)
    assert cost > epsilon
    assert 2 * (eps0 / 8) * sensitivity * math.sqrt(updates) < epsilon
    both = [
        Exponential(eps0 / 8, sensitivity, updates),
        Laplace(0.5 / eps0, sensitivity / 2, updates),
    ]
    assert account(both, delta=1e-6, relation="replace_one").epsilon < 0.15
    printed = Exponential(eps0 * n * strength / 8, sensitivity, updates)
    assert account([printed], delta=1e-6, relation="replace_one").epsilon > 5.0 * epsilon


def test_jt13_tdil_units():
    """B of Algorithm 3 has neither lambda nor C: in other units of w it is another number."""

    def updates(scale: float) -> float:
        return 1e4 / (100 * (1.0 / scale) * math.log(4e6))

    assert updates(1000.0) == pytest.approx(1000 * updates(1.0))


def linf_information(d: int, m: float) -> float:
    """Nats, of d independent coordinates with means +-1/m."""
    u = 1 / m
    return d / 2 * ((1 + u) * math.log1p(u) + (1 - u) * math.log1p(-u))


def test_djw12_linf_leading():
    """d / (2 M^2), not d / M^2; so M = L sqrt(d / (2 I*))."""
    assert linf_information(10, 2.0) == pytest.approx(1.30812, abs=1e-5)
    assert linf_information(10, 2.0) * 2.0**2 / 10 == pytest.approx(0.5232, abs=1e-4)
    assert linf_information(10, 1000.0) * 1000.0**2 / 10 == pytest.approx(0.5, abs=1e-6)
    for m in (1.0 + 1e-9, 2.0, 10.0):
        assert linf_information(10, m) <= 10 / m**2  # the bound stays true


def test_djw12_linf_bits():
    """d - d h(.) is right with h in bits; with the page's natural h it is d ln 2 - d h(.)."""
    d, m = 10, 2.0
    q = 0.5 + 0.5 / m
    entropy = -q * math.log(q) - (1 - q) * math.log(1 - q)
    assert d * math.log(2) - d * entropy == pytest.approx(linf_information(d, m))
    assert d - d * entropy == pytest.approx(4.377, abs=1e-3)
    assert d - d * entropy / math.log(2) == pytest.approx(linf_information(d, m) / math.log(2))


def test_djw12_thm1_small_n():
    """With one record and M = 10^4 L the printed bound is above the range of the loss."""
    printed = djw12.assouad_as_printed(1.0, 1e4, 10, 1)
    assert printed / 10 == pytest.approx(61.35, abs=0.01)
    assert printed > 2.0 * 10  # |theta - x|_1 on the cube is between 0 and 2 d


def test_djw12_def3_any():
    """An isometry that takes e_1 to e_2 and not the octahedron to itself."""
    turn = np.sqrt(0.5) * np.array([[np.sqrt(2.0), 0, 0], [0, 1, -1], [0, 1, 1]])  # e_1 stays
    swap = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    moved = swap @ turn
    assert moved @ moved.T == pytest.approx(np.eye(3))
    assert moved @ [1.0, 0, 0] == pytest.approx([0.0, 1, 0])
    assert np.abs(moved @ [0.0, 1, 0]).sum() == pytest.approx(np.sqrt(2.0))  # outside |x|_1 <= 1


def test_djw12_cor3_remainder():
    """Far from the printed order for M below d, and negative from d = 4 on."""
    told = channels.by_multiplier("l_1", 10**6, 2.0).information
    off = told - djw12.leading_information(2.0, 10**6)
    assert off == pytest.approx(-124_993, rel=1e-5)
    assert min(10**18 / 16, math.log(10**6) ** 4 / 10**6) == pytest.approx(0.0364, abs=1e-4)
    for d, m in ((4, 40.0), (10, 100.0), (100, 2000.0)):
        off = channels.by_multiplier("l_1", d, m).information - djw12.leading_information(m, d)
        assert off == pytest.approx(djw12.next_information(m, d), rel=0.05)
        assert off < 0


def test_djw12_cor2_range():
    """SGD's bound r M_1 sqrt(d / n) over the rate that Corollary 2 gives as a lower one."""
    d, m, n = 10**4, 2.0, 10**9
    told = channels.by_multiplier("l_1", d, m).information
    rate = d / math.sqrt(n * told)
    bound = math.sqrt(d) * m / math.sqrt(n)  # R G / sqrt(n)
    assert bound / rate == pytest.approx(0.04127, abs=1e-5)
    assert bound / rate < 0.1
    more = channels.by_multiplier("l_1", 10**8, m).information
    assert 1e4 * m / math.sqrt(n) / (1e8 / math.sqrt(n * more)) < 1e-3


def test_djw12_l1_rounding():
    x = np.array([0.3, 0.0])
    corners = np.vstack([np.eye(2), -np.eye(2)])
    printed = np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)]) / np.sum(np.abs(x))
    assert printed @ corners == pytest.approx([1.0, 0.0])
    right = np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)])
    right += (1.0 - np.sum(np.abs(x))) / 4.0
    assert right @ corners == pytest.approx(x)
    found = channels.by_multiplier("l_1", 2, 2.0)
    assert found.law(x) @ found.outputs() == pytest.approx(x[None])
