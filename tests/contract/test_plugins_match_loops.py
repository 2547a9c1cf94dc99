"""The numpy side of losses and sets and the compiled side are the same functions."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.loops import projections, slopes


@pytest.mark.parametrize("name", registry.names("loss"))
def test_slopes_agree(name):
    loss = registry.load("loss", name)()
    if loss.code is None:
        return
    z = np.concatenate([np.linspace(-40.0, 40.0, 4001), [0.0, 1.0, -1.0, 800.0, -800.0]])
    for target in (-1.0, 1.0) if "binary" in loss.tasks else (-1.0, -0.3, 0.0, 0.7, 1.0):
        y = np.full_like(z, target)
        compiled = np.array([slopes.slope(loss.code, a, target, loss.width) for a in z])
        np.testing.assert_allclose(compiled, loss.slope(z, y), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("p", [1, 3, 40])
@pytest.mark.parametrize("name", registry.names("constraint"))
def test_projections_agree(name, p):
    cls = registry.load("constraint", name)
    constraint = cls(**{keys_of(cls)["radius"].name: 1.7}, p=p)
    if constraint.code is None:
        return
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0, 1e6):
        for theta in scale * rng.standard_normal((50, p)):
            compiled = theta.copy()
            projections.project(constraint.code, constraint.size, compiled)
            np.testing.assert_allclose(compiled, constraint.project(theta), rtol=1e-9, atol=1e-9)


def test_codes_are_distinct():
    for room in ("loss", "constraint"):
        codes = [registry.load(room, name).code for name in registry.names(room)]
        codes = [code for code in codes if code is not None]
        assert len(set(codes)) == len(codes)
