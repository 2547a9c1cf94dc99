"""Draws on a grid beside those of OpenDP, whose samplers are exact as well and share no code.

OpenDP's laws are the discrete ones, exp(-|k| / ratio) and exp(-k^2 / 2 ratio^2); here they are the
rounded ones. At this ratio their distance is below a thousandth of what the tests can see. Words
come from the operating system: each test fails by chance once in a billion runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dperm_cli.privacy import secure_noise

dp = pytest.importorskip("opendp.prelude")

RATIO, COUNT, ERROR = 300.0, 20_000, 1e-9
CELLS = 64
KINDS = ("laplace", "gaussian")


def draw_outside(kind, ratio):
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        made = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=ratio)
    else:
        made = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=ratio)
    return np.array(made([0] * COUNT))


def draw_inside(kind):
    return secure_noise.draw_rounded_noise(kind, RATIO, COUNT)


def weigh_integers(kind, reach=40):
    """The integers within ``reach`` ratios, and OpenDP's and our exact chances of them."""
    k = np.arange(-reach * int(RATIO), reach * int(RATIO) + 1)
    size = np.abs(k) / RATIO
    discrete = np.exp(-size if kind == "laplace" else -0.5 * size**2)
    law = stats.laplace if kind == "laplace" else stats.norm
    rounded = law.cdf((k + 0.5) / RATIO) - law.cdf((k - 0.5) / RATIO)
    return k, discrete / discrete.sum(), rounded


def compare_with_law(drawn, k, chances):
    """The chi-squared p-value of draws in cells of about the same chance."""
    whole = np.minimum((np.cumsum(chances) * CELLS).astype(int), CELLS - 1)
    expected = np.bincount(whole, chances, CELLS) * len(drawn)
    found = np.bincount(whole[drawn - k[0]], minlength=CELLS)
    return float(stats.chisquare(found, expected * (len(drawn) / expected.sum())).pvalue)


@pytest.mark.stat
@pytest.mark.parametrize("kind", KINDS)
def test_both_samplers_meet_their_laws_and_each_other(kind):
    k, discrete, rounded = weigh_integers(kind)
    assert 0.5 * np.abs(discrete - rounded).sum() < 1e-5
    ours, theirs = draw_inside(kind), draw_outside(kind, RATIO)
    assert compare_with_law(ours, k, rounded) > ERROR
    assert compare_with_law(theirs, k, discrete) > ERROR
    assert stats.ks_2samp(ours, theirs).pvalue > ERROR


@pytest.mark.stat
@pytest.mark.parametrize("kind", KINDS)
def test_another_scale_is_told_apart(kind):
    k, _, rounded = weigh_integers(kind)
    ours, theirs = draw_inside(kind), draw_outside(kind, 0.75 * RATIO)
    assert compare_with_law(theirs, k, rounded) < ERROR
    assert stats.ks_2samp(ours, theirs).pvalue < ERROR
