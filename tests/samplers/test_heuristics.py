"""Samplers without a guarantee: refused unless allowed, never certified, right in the long run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.samplers.hit_and_run import HitAndRun
from dperm_cli.samplers.mala import Mala, default_step
from tests.samplers.laws import Bins, case, colder, draw, p_value


@pytest.mark.parametrize("sampler", [Mala, HitAndRun])
class TestNoGuarantee:
    def test_refused_unless_allowed(self, sampler):
        _, target, _ = case("logistic", "l2_ball", 2)
        with pytest.raises(Unsupported, match=r"proximal.*allow_heuristic=true"):
            sampler().plan(target, 0.01)

    def test_certificate_proves_nothing(self, sampler):
        _, target, _ = case("logistic", "l2_ball", 2)
        certificate = sampler(allow_heuristic=True).plan(target, 0.01)
        assert certificate.dist_inf == math.inf
        assert certificate.theorem == "none: heuristic"
        assert not certificate.exact
        assert not certificate.constant_time
        assert certificate.steps == sampler().steps

    def test_inputs(self, sampler):
        with pytest.raises(InputError, match=r"sampler\.steps"):
            sampler(steps=0)
        with pytest.raises(InputError, match=r"sampler\.allow_heuristic"):
            sampler(allow_heuristic="yes")

    @pytest.mark.parametrize(("constraint", "p"), [("simplex", 4), ("l1_ball", 5)])
    def test_stays_in_the_set(self, sampler, constraint, p):
        _, target, potential = case("absolute", constraint, p, f=20.0)
        theta = draw(sampler(steps=60, allow_heuristic=True), target, potential, 8)
        assert np.all(target.constraint.contains(theta))
        assert len(np.unique(theta, axis=0)) == 8

    @pytest.mark.stat
    def test_long_run(self, sampler):
        """False-alarm rate 1e-5 once mixed; an exponent off by a factor 4 fails."""
        _, target, potential = case("logistic", "l2_ball", 2, f=16.0, radius=2.0)
        theta = draw(sampler(steps=25, allow_heuristic=True), target, potential, 200)
        bins = Bins(target, 4)
        assert p_value(bins, bins.probabilities(potential), theta) > 1e-5
        for factor in (4.0, 0.25):
            assert p_value(bins, bins.probabilities(colder(potential, factor)), theta) < 1e-5


def test_default_step_follows_the_curvature():
    smooth, rough = (case(loss, "l2_ball", 8, f=400.0)[1] for loss in ("logistic", "hinge"))
    curvature = smooth.exponent * smooth.spec.n * smooth.spec.smoothness
    assert default_step(smooth) == pytest.approx(0.5 / curvature)
    assert default_step(rough) == pytest.approx(0.5 / rough.lipschitz**2)
    assert Mala(step_size=0.3, allow_heuristic=True).plan(smooth, 0.1).facts["h"] == 0.3
    with pytest.raises(InputError, match=r"sampler\.step_size"):
        Mala(step_size=-1.0)
