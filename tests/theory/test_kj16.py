"""[KJ16] as bounds: docs/proofs/_kj16.md against the code, and its theorems against simulation.

Simulations have fixed seeds; a mean is compared with its bound at 3 standard errors, and each has
a check from below, so that a bound that says nothing would fail as well.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dperm_cli.bounds import all_bounds, kj16, kj16_table1
from dperm_cli.bounds import kj16_lemmas as lemmas
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.squared import Squared
from dperm_cli.problem import projection_dimension
from dperm_cli.problem.data import Bounds
from dperm_cli.problem.problem import make_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.sets.simplex import Simplex
from tests.contract.test_proof_pages import resolve
from tests.theory.bounds_data import bare

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs" / "_kj16.md"
LINES = re.findall(
    r"^\| (.+?) \| (\"[^\"]+\"|`[\w.]+`) \| (explicit|order) \|", PAGE.read_text(), re.MULTILINE
)
BY_ID = {bound.id: bound for bound in all_bounds.ALL}
STATEMENTS = (
    *(f"Thm {number}" for number in ("3.1", "3.8", "3.11(1)", "3.11(2)")),
    *(f"Cor. {number}" for number in ("3.2", "3.9", "4.1")),
    *(f"Lemma {number}" for number in ("3.3", "3.4", "3.5", "3.10")),
    "Prop. 3.7",
)
D, DRAWS = 60, 300


def test_every_statement_of_the_paper_has_its_line():
    told = {statement for statement, *_ in LINES}
    assert set(STATEMENTS) <= told
    assert all(word.startswith(("Thm 3.11", "Sec. 4")) for word in told - set(STATEMENTS))
    assert set(lemmas.LEMMAS) <= set(STATEMENTS)


@pytest.mark.parametrize(("statement", "name", "constant"), LINES)
def test_a_line_names_an_object_with_that_constant(statement, name, constant):
    if name.startswith("`"):
        found = resolve(name.strip("`"))
        assert callable(found)
        assert ("order" in (found.__doc__ or "").split(":")[0]) == (constant == "order")
    else:
        assert BY_ID[name.strip('"')].constant == constant


def test_the_symbols_of_the_page_are_there():
    for symbol in re.findall(r"`((?:bounds|tests)\.[\w.]+)`", PAGE.read_text()):
        resolve(symbol)
    told = {name.strip('"') for _, name, _ in LINES}
    assert {name for name in BY_ID if name.startswith("KJ16")} <= told


def gaussian(rng: np.random.Generator, m: int, d: int = D) -> np.ndarray:
    return rng.standard_normal((m, d)) / math.sqrt(m)


def mean_and_error(values) -> tuple[float, float]:
    values = np.asarray(values)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("m", [5, 20, 50])
def test_theorem_1_distortion_on_the_ball(m):
    """sup over the unit ball of | |Phi a| - |a| | is max(s_1 - 1, 1 - s_d), s_d = 0 for m < d."""
    rng, width = np.random.default_rng(m), L2Ball(1.0, D).width()[0]
    found = []
    for _ in range(DRAWS):
        values = np.linalg.svd(gaussian(rng, m), compute_uv=False)
        found.append(max(values[0] - 1.0, 1.0 - (values[-1] if m >= D else 0.0)))
    limit = lemmas.distortion(width, 1.0, m, 0.1)
    assert np.mean(np.array(found) > limit) <= 0.1
    assert limit < 2.5 * np.mean(found)


def test_theorem_1_squares_and_products_follow():
    rng, m = np.random.default_rng(1), 30
    width = L2Ball(1.0, D).width()[0]
    worst = []
    for _ in range(DRAWS):
        gram = gaussian(rng, m)
        values = np.linalg.eigvalsh(gram.T @ gram - np.eye(D))
        worst.append(np.max(np.abs(values)))
    # over a, b in the ball the products are off by the same largest eigenvalue
    for of_set in (lemmas.squared_distortion, lemmas.product_distortion):
        assert np.mean(np.array(worst) > of_set(width, 1.0, m, 0.1)) <= 0.1


def products(body, rng, m: int, clip: bool, factor: float = 1.0) -> list[float]:
    """sup over the set of |<x~, Phi theta> - <x, theta>|, once a draw."""
    found, x = [], np.zeros(D)
    x[:3] = 1.0 / math.sqrt(3.0)
    for _ in range(4 * DRAWS):
        phi = factor * gaussian(rng, m)
        row = phi @ x
        row = row * min(1.0, 2.0 / np.linalg.norm(row)) if clip else row
        g = phi.T @ row - x
        found.append(float(max(body.support(g), body.support(-g))))
    return found


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("m", [2, 10, 40])
@pytest.mark.parametrize("make", [L2Ball, L1Ball, Simplex])
def test_theorem_2_products_with_one_row(make, m, clip):
    body = make(1.5, D)
    spec = bare(p=D, radius=1.5, constraint=body.name).spec
    width = kj16.two_sided_width(spec)
    assert width is not None
    assert width >= body.width()[0]
    mean, error = mean_and_error(products(body, np.random.default_rng(m), m, clip))
    limit = lemmas.mean_product_distortion(width, body.radius, 1.0, m)
    assert mean <= limit + 3 * error
    assert limit <= (4.0 if make is Simplex else 2.6) * mean


def test_theorem_2_has_teeth():
    """Columns a fifth too long break it at m = 40 on the ball: there is room for noise, no more."""
    body = L2Ball(1.0, D)
    mean, error = mean_and_error(products(body, np.random.default_rng(3), 40, False, 1.2))
    limit = lemmas.mean_product_distortion(body.width()[0], 1.0, 1.0, 40)
    assert mean > limit + 3 * error


def test_lemma_33_counts_clipped_rows():
    """The spec of a row that is clipped: 1.25e-3, 1.694e-5, 3.93e-9 at m = 5, 10, 20."""
    for m, chance in ((5, 1.2497e-3), (10, 1.6945e-5), (20, 3.926e-9)):
        assert lemmas.clip_probability(m) == pytest.approx(chance, rel=1e-3)
    m = lemmas.lipschitz_rows(1000, 0.05)
    assert m == 9
    assert 1000 * lemmas.clip_probability(m) <= 0.05 < 1000 * lemmas.clip_probability(m - 1)
    rng = np.random.default_rng(5)
    share = np.mean(np.linalg.norm(rng.standard_normal((200_000, 5)), axis=1) > 2 * math.sqrt(5))
    assert abs(share - lemmas.clip_probability(5)) <= 4 * math.sqrt(
        lemmas.clip_probability(5) / 200_000
    )


@pytest.mark.parametrize("m", [10, 59])
def test_theorem_5_lifting_on_the_ball(m):
    """Two points of the unit ball with one image are 2 apart at most, and some are for m < d."""
    width = L2Ball(1.0, D).width()[0]
    assert lemmas.lifting_error(width, 2.0, m) == 2.0
    free = (2.0 * width + 2.0) / math.sqrt(m)
    assert free >= 2.0
    if m == 59:
        assert free <= 2.0 * 1.15


def test_theorem_5_lifting_on_the_l1_ball():
    """The longest kernel vector of an L1 ball's differences found by ascent stays below."""
    rng, d, m = np.random.default_rng(8), 400, 60
    width, found = L1Ball(1.0, d).width()[0], []
    for _ in range(20):
        kernel = np.linalg.svd(gaussian(rng, m, d))[2][m:]
        tried = kernel.T @ (kernel @ rng.standard_normal((d, 50)))
        tried = np.concatenate([tried, kernel.T @ kernel], axis=1)
        tried *= 2.0 / np.sum(np.abs(tried), axis=0)
        found.append(np.max(np.linalg.norm(tried, axis=0)))
    assert np.max(found) <= lemmas.lifting_error(width, 2.0, m, 0.05)
    assert lemmas.lifting_error(width, 2.0, m) <= 6.0 * np.mean(found)


def test_theorem_5_slope():
    errors = [lemmas.lifting_error(3.0, 2.0, m, 0.05) for m in (400, 1600)]
    assert errors[1] == pytest.approx(errors[0] / 2.0)


def linear_setting(n: int, m: int, noise: float, body) -> float:
    """The left side of Theorem 4 less r, once: linear losses on the ball, an exact minimiser."""
    rng = np.random.default_rng(n + m)
    x = np.zeros((n, D))
    x[np.arange(n), rng.integers(0, 3, n)] = 1.0
    total, found = x.sum(axis=0), []
    for _ in range(DRAWS):
        phi = gaussian(rng, m)
        rows = x @ phi.T
        length = np.linalg.norm(rows, axis=1)
        rows *= np.minimum(1.0, 2.0 / length)[:, None]
        theta = body.lmo(phi.T @ rows.sum(axis=0))  # minimises over C, and so its image over Phi C
        found.append(total @ theta + body.support(-total))
    return float(np.mean(found))


@pytest.mark.parametrize("m", [4, 16, 50])
def test_theorem_4_projection_costs_no_more(m):
    body, n = L2Ball(1.0, D), 40
    cost = linear_setting(n, m, 0.0, body)
    limit = lemmas.projection_loss(n, 1.0, body.width()[0], 1.0, m)
    assert 0.0 < cost <= limit


def of_loss(loss, **settings):
    body: Any = L1Ball(2.0, D)
    bounds = Bounds(row=1.0, target=1.0, radius=2.0, columns=D)
    spec = make_spec(1000, loss, body, Regulariser(), "binary", bounds)
    width = L1Ball(2.0, D).width()[0] / 2.0
    facts = {
        "m": min(max(round(projection_dimension.balanced_dimension(1000, 0.5, 0.0, width)), 1), D),
        "phi": "gaussian", "projected_radius": 2.5, "row_bound": 2.0,
        "inner": {"name": "exponential", "exponent": 0.05, "dist_inf": 0.0},
    }  # fmt: skip
    return replace(bare(p=D), spec=spec, mechanism="projected", settings={**facts, **settings})


def test_projected_thm_2_is_the_inner_bound_and_the_projection():
    bound, at = BY_ID["projected Thm 2"], of_loss(Logistic())
    assert bound.applies(at) is None
    width = L1Ball(2.0, D).width()[0]
    m = at.settings["m"]
    expected = m / 0.05 + 1000 * (width + 2 * math.sqrt(2) * 2.0) / math.sqrt(m)
    assert bound.value(at) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("at", "word"),
    [
        (of_loss(Squared()), "Lipschitz at all margins"),
        (of_loss(Logistic(), phi="rademacher"), "Gaussian"),
        (of_loss(Logistic(), inner={"name": "newton"}), "inner mechanism"),
        (of_loss(Logistic(), row_bound=0.5), "clip of 1"),
        (replace(of_loss(Logistic()), mechanism="noisy_gd"), "projected"),
    ],
)
def test_projected_thm_2_says_where_it_does_not_apply(at, word):
    assert word in (BY_ID["projected Thm 2"].applies(at) or "")


def test_orders_of_theorem_311_and_of_the_lasso():
    pure = BY_ID["KJ16 Thm 3.11(2)"]
    large = of_loss(Logistic())
    assert pure.applies(large) is None
    values = [lemmas.pure_risk(n, 1.0, 3.0, 1.0, 1.0) for n in (10**9, 10**12)]
    logs = (math.log(10**12) / math.log(10**9)) ** 2
    assert values[1] / values[0] == pytest.approx(1000 ** (2 / 3) * logs, rel=1e-9)
    spec = large.spec
    expected = lemmas.pure_risk(1000, 0.5, L1Ball(2.0, D).width()[0], 2.0, spec.lipschitz)
    assert pure.value(large) == pytest.approx(expected)
    assert BY_ID["KJ16 Thm 3.11(1)"].applies(large) is not None
    assert BY_ID["KJ16 Lasso"].applies(large) is not None
    assert BY_ID["KJ16 Lasso"].applies(of_loss(Squared())) is None
    fixed = of_loss(Logistic(), m=3)
    assert "balances" in (pure.applies(fixed) or "")
    # a shrinking set: the Lasso's risk falls with its radius, not faster
    risks = [lemmas.lasso_risk(10**9, 1.0, 10**4, c) for c in (1e-3, 1e-6)]
    assert risks[0] / risks[1] == pytest.approx(1000.0, rel=2e-3)


def test_table_1_grows_as_it_says():
    x = kj16_table1.TableInputs(n=10**9, epsilon=1.0, delta=1e-6, width=4.0, psi=2.0)
    more = replace(x, n=10**12)
    for cell, power in (
        (("compressed", "pure"), 2 / 3),
        (("traditional", "pure"), 2 / 3),
        (("compressed", "approx"), 1 / 2),
        (("traditional", "approx"), 1 / 3),
    ):
        ratio = kj16_table1.cell(*cell, more) / kj16_table1.cell(*cell, x)
        assert ratio == pytest.approx(1000**power, rel=1e-9)
    ratio = kj16_table1.cell("compressed", "pure", x) / kj16_table1.cell("traditional", "pure", x)
    assert ratio == pytest.approx(2 ** (4 / 3))
    # every cell scales as the risk does when the set shrinks (curvature with its square)
    shrunk = replace(x, width=0.04, radius=0.01)
    for cell in (("compressed", "pure"), ("compressed", "approx"), ("traditional", "pure")):
        ratio = kj16_table1.cell(*cell, shrunk) / kj16_table1.cell(*cell, x)
        assert ratio == pytest.approx(0.01)
    with pytest.raises(KeyError):
        kj16_table1.cell("compressed", "local", x)


def test_section_4_compares():
    x = kj16_table1.TableInputs(n=10**9, epsilon=1.0, delta=1e-6, width=4.0, potential=2.0)
    ours = math.sqrt(x.width * x.n)  # the approximate cell of Theorem 3.11 without its logarithm
    theirs = kj16_table1.frank_wolfe_regression(x)
    assert ours / theirs == pytest.approx(lemmas.ahead_of_projection(x.n, x.width))
    assert kj16_table1.mirror_descent(x) < theirs
    low, high = lemmas.sphere_risk(10**4, 100)
    assert low <= high
    assert set(kj16_table1.ROW_NORMS.values()) == {"l2", "linf"}


def test_the_m_of_the_paper_is_beyond_what_runs():
    """44,157 and 1.5 million at n = 10,000, epsilon = 1, w = 4, constants taken as one."""
    assert lemmas.paper_rows("pure", 10_000, 1.0, 4.0) == pytest.approx(44157.7, abs=0.1)
    assert lemmas.paper_rows("approx", 10_000, 1.0, 4.0) == pytest.approx(1.510e6, rel=1e-3)
    assert projection_dimension.paper_dimension(10_000, 1.0, 0.0, 4.0) > 10_000
