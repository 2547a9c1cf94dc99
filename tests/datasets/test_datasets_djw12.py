"""The hard family of the local lower bounds: its law, and its risk by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.problem.population import excess_risk


def make(**keys):
    return registry.load("dataset", "djw12_corners")(**keys)


def shape(name, size, p):
    return registry.load("constraint", name)(size, p)


@pytest.mark.parametrize("favoured", ["all", "one"])
@pytest.mark.parametrize("corners", ["cube", "cross"])
def test_rows_are_corners_with_these_biases(corners, favoured):
    """Means of 40000 signs within 5.5 standard errors; a third of the bias off would be seen."""
    n, p = 40_000, 4
    found = make(n=n, p=p, corners=corners, favoured=favoured, signal=20.0)
    data = found.load()
    signs = data.x * data.y[:, None]
    sizes = np.abs(signs)
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert (sizes == 1.0).all() if corners == "cube" else (np.sort(sizes)[:, :-1] == 0).all()
    assert np.linalg.norm(data.x, axis=1) == pytest.approx(data.row_bound)
    assert np.count_nonzero(found.bias) == (p if favoured == "all" else 1)
    assert np.abs(found.bias).max() == pytest.approx(0.1)
    share = 1.0 if corners == "cube" else 1.0 / p
    room = 5.5 * math.sqrt(share / n)
    assert np.abs(signs.mean(axis=0) - share * found.bias).max() < room
    assert room < share * 0.1 or corners == "cross"
    assert abs(data.y.mean()) < 5.5 / math.sqrt(n)


def test_blocks_do_not_show(monkeypatch):
    from dperm_cli.datasets.lower_bounds import djw12_corners

    whole = make(n=1000, p=7).load().x
    monkeypatch.setattr(djw12_corners, "BLOCK", 50)
    assert np.array_equal(make(n=1000, p=7).load().x, whole)


def test_seeds_and_signals_make_other_rows():
    base = make(n=50).load().x
    assert np.array_equal(make(n=50).load().x, base)
    assert not np.array_equal(make(n=50, seed=1).load().x, base)
    sure = make(n=50, signal=1e3)
    assert np.array_equal(np.abs(sure.bias), np.ones(10))
    sides = {tuple(make(p=3, seed=seed).bias > 0) for seed in range(60)}
    assert len(sides) == 8


LOCATION = {"task": "location"}
CASES = (
    ("linear", {}, "box", 3.0),
    ("linear", {"favoured": "one"}, "l1_ball", 2.0),
    ("linear", {"corners": "cross"}, "l2_ball", 2.0),
    ("hinge", {}, "l1_ball", 1.0),
    ("hinge", {"corners": "cross"}, "box", 2.0),
    ("hinge", {"corners": "cross"}, "box", 0.5),
    ("hinge", {"corners": "cross", "favoured": "one"}, "l2_ball", 1.0),
    ("logistic", {"corners": "cross"}, "box", 0.4),
    ("logistic", {"corners": "cross", "signal": 1e6}, "box", 2.0),
    ("l1_median", LOCATION, "box", 3.0),
    ("l1_median", LOCATION, "box", 0.7),
    ("l1_median", {**LOCATION, "favoured": "one"}, "l1_ball", 1.0),
)


def enumerated(found, loss, theta):
    """E l(s; theta) over all corners."""
    p, chance = 3, 0.5 * (1.0 + found.bias)
    if found.corners == "cube":
        corners = np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
        law = np.prod(np.where(corners > 0, chance, 1.0 - chance), axis=1)
    else:
        corners = np.vstack([np.eye(p), -np.eye(p)])
        law = np.concatenate([chance, 1.0 - chance]) / p
    if found.task == "location":
        return float(law @ np.abs(theta - corners).sum(axis=1))
    z = corners @ theta
    each = {"linear": -z, "hinge": np.maximum(1 - z, 0), "logistic": np.logaddexp(0, -z)}
    return float(law @ each[loss])


@pytest.mark.parametrize(("loss", "keys", "name", "size"), CASES)
def test_excess_is_the_enumerated_risk_above_its_least(loss, keys, name, size):
    from scipy.optimize import minimize

    found = make(n=100, p=3, **{"signal": 3.0, "seed": 2, **keys})
    form = registry.load("loss", loss)()
    region, data, rng = (
        shape(name, size, 3),
        make(n=4, p=3, **keys).load(),
        np.random.default_rng(0),
    )
    points = region.project(rng.standard_normal((40, 3)) * size)
    risks = np.array([enumerated(found, loss, point) for point in points])
    told = [excess_risk(found, data, form, point, region) for point in points]
    assert all(one is not None and one[1] == 0.0 for one in told)
    excess = np.array([one[0] for one in told])
    # one least for all points, and no point of the set is below it
    least = risks - excess
    assert np.ptp(least) < 1e-12
    search = min(
        minimize(
            lambda w: enumerated(found, loss, region.project(w)), start, method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
        ).fun
        for start in (points[np.argmin(risks)], np.sign(found.bias) * min(size, 1.0),
                      np.sign(found.bias) * size)
    )  # fmt: skip
    assert search >= least[0] - 1e-9
    assert search == pytest.approx(least[0], abs=2e-6)


@pytest.mark.parametrize(
    ("loss", "keys", "name", "size"),
    [
        ("logistic", {}, "box", 1.0),
        ("hinge", {}, "box", 1.0),
        ("hinge", {"corners": "cross"}, "l2_ball", 1.5),
        ("l1_median", LOCATION, "l2_ball", 1.5),
        ("linear", LOCATION, "box", 1.0),
        ("squared", {"corners": "cross"}, "box", 1.0),
    ],
)
def test_no_excess_where_the_least_is_not_known(loss, keys, name, size):
    found = make(n=10, p=3, **keys)
    form, region = registry.load("loss", loss)(), shape(name, size, 3)
    assert excess_risk(found, found.load(), form, np.zeros(3), region) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("corners", "ball"), ("favoured", "none"), ("signal", -1.0), ("task", "regression"),
     ("n", 0), ("p", 0), ("seed", -1)],
)  # fmt: skip
def test_bad_keys(key, value):
    with pytest.raises(InputError, match=f"dataset.{key}"):
        make(**{key: value})


def test_no_location_on_the_cross():
    with pytest.raises(InputError, match="corners of the cube"):
        make(corners="cross", task="location")


def test_median_of_a_cube_is_exact():
    """Against quadrature in each coordinate, within the cube and beyond."""
    from scipy.integrate import quad

    cloud = registry.load("dataset", "median_cloud")(n=10, p=3, shape="box", shift=0.2)
    data = cloud.load()
    theta = data.minimiser + np.array([0.1, -0.3, 0.9])
    half = cloud.half_side

    def moved(off):
        pieces = quad(lambda u: abs(off - u) - abs(u), -half, half, points=[0.0, min(off, half)])
        return pieces[0] / (2.0 * half)

    expect = sum(moved(abs(off)) for off in theta - data.minimiser)
    risk, error = excess_risk(cloud, data, registry.load("loss", "l1_median")(), theta)
    assert error == 0.0
    assert risk == pytest.approx(expect, rel=1e-9)
    assert np.abs(data.x - data.minimiser).max() <= half


@pytest.mark.slow
def test_a_million_rows_of_a_hundred_columns_fit_in_two_gibibytes():
    """Peak of the process, measured in one of its own: 0.8 GB are the rows."""
    import subprocess
    import sys

    code = (
        "import resource\nfrom dperm_cli.core import registry\n"
        "for name, keys in (('djw12_corners', {}), ('median_cloud', {'shape': 'box'})):\n"
        "    registry.load('dataset', name)(n=10**6, p=100, **keys).load()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 2 * 2**30
