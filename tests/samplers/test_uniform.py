"""Uniform draws on every set; p-values at level 1e-4, once each, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.shared.uniform import draw_uniform, make_uniform_draw
from tests.samplers import Numbers, cell_p_value
from tests.samplers.test_truncated_gaussian import LINE, PLANE, build

LEVEL = 1e-4
CUBE = {"matrix": np.vstack([np.eye(8), -np.eye(8)]).tolist(), "offset": [1.0] * 16}


def draws(body, count, seed):
    draw, source = make_uniform_draw(body), Numbers(seed)
    return np.array([draw(source) for _ in range(count)])


def flat(z):
    return np.zeros(z.shape[:-1])


@pytest.mark.parametrize("name", [*PLANE, *LINE])
def test_cells(name):
    body = {**PLANE, **LINE}[name]
    found = draws(body, 4000, seed=1)
    assert np.all(body.contains(found[:200], 1e-9))
    assert cell_p_value(body, found, flat, fine=8 if name == "polytope" else 60) > LEVEL


def test_the_cells_see_a_wrong_scale():
    """Power: points shrunk by 1.05 fail."""
    body = PLANE["l2_ball"]
    assert cell_p_value(body, draws(body, 30_000, seed=2) / 1.05, flat) < LEVEL
    assert cell_p_value(body, draws(body, 30_000, seed=2), flat) > LEVEL


@pytest.mark.parametrize(
    ("name", "keys"),
    [("l2_ball", {}), ("l1_ball", {}), ("box", {}), ("lp_ball", {"power": 1.5}),
     ("lp_ball", {"power": 30.0}), ("ellipsoid", {})],
)  # fmt: skip
def test_gauge_in_many_dimensions(name, keys):
    """The gauge of a uniform point has the distribution function t^p."""
    body = build(name, 2.0, 12, **keys)
    gauge = body.gauge(draws(body, 2000, seed=3))
    assert kstest(gauge, lambda t: t**12).pvalue > LEVEL
    assert kstest(gauge, lambda t: (t / 1.05) ** 12).pvalue < LEVEL


def test_polytopes_of_half_spaces():
    """By simplices in up to 6 dimensions, by rejection above."""
    body = build("polytope", 1.0, 8, **CUBE)
    found = draws(body, 500, seed=4)
    assert kstest(found[:, 3], lambda t: 0.5 * (t + 1.0)).pvalue > LEVEL


def test_refusal_follows_from_the_set():
    """A cross-polytope in 12 dimensions is 1 / 12! of its box."""
    with pytest.raises(Unsupported, match="12 dimensions"):
        make_uniform_draw(build("polytope", 1.0, 12))


def test_points():
    assert np.array_equal(draw_uniform(build("simplex", 2.0, 1), Numbers(0)), [2.0])
    hull = registry.load("constraint", "polytope")(1.0, 2, points=((0.5, 0.25),))
    assert np.allclose(draw_uniform(hull, Numbers(0)), [0.5, 0.25])
