"""Slopes: the documented formulas, derivatives, kinks; the room's own exponential."""

import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from dperm_cli.loops import batch_indices, gaussian_noise, projections, sgd, slopes
from dperm_cli.loops.sealed_noise import SealedBatches

WIDTH = 0.3


def rounded(u):
    return np.where(u > WIDTH, u, np.maximum(u + WIDTH, 0) ** 2 / (4 * WIDTH))


def rounded_slope(u):
    return np.clip((u + WIDTH) / (2 * WIDTH), 0, 1)


LOSSES = {
    slopes.LOGISTIC: lambda z, y: np.logaddexp(0, -y * z),
    slopes.HINGE: lambda z, y: np.maximum(0, 1 - y * z),
    slopes.SQUARED: lambda z, y: (z - y) ** 2 / 2,
    slopes.ABSOLUTE: lambda z, y: np.abs(z - y),
    slopes.LINEAR: lambda z, y: -y * z,
    slopes.HUBERIZED_HINGE: lambda z, y: rounded(1 - y * z),
    slopes.POSITIVE_PART: lambda z, y: np.maximum(0, y - z),
    slopes.HUBERIZED_POSITIVE_PART: lambda z, y: rounded(y - z),
}
FORMULAS = {
    slopes.LOGISTIC: lambda z, y: -y * expit(-y * z),
    slopes.HINGE: lambda z, y: np.where(y * z < 1, -y, 0.0),
    slopes.SQUARED: lambda z, y: z - y,
    slopes.ABSOLUTE: lambda z, y: np.sign(z - y),
    slopes.LINEAR: lambda z, y: -y + 0 * z,
    slopes.HUBERIZED_HINGE: lambda z, y: -y * rounded_slope(1 - y * z),
    slopes.POSITIVE_PART: lambda z, y: np.where(z < y, -1.0, 0.0),
    slopes.HUBERIZED_POSITIVE_PART: lambda z, y: -rounded_slope(y - z),
}
MARGINS = np.r_[np.linspace(-40, 40, 801), -1.3, -1.0, -0.7, 0.0, 0.7, 1.0, 1.3, -800.0, 800.0]


def compiled(code, z, y):
    return np.array([slopes.slope(code, a, y, WIDTH) for a in z])


@pytest.mark.parametrize("code", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_agrees_with_its_formula(code, y):
    assert np.max(np.abs(compiled(code, MARGINS, y) - FORMULAS[code](MARGINS, y))) < 1e-15


@pytest.mark.parametrize("code", LOSSES)
def test_slopes_of_a_block_have_the_same_bits(code):
    labels = np.random.default_rng(0).choice([-1.0, 1.0], MARGINS.size)
    for count in (1, 3, 16, 37, MARGINS.size):
        z, y = MARGINS[-count:].copy(), labels[:count]
        wanted = [slopes.slope(code, a, b, WIDTH) for a, b in zip(z, y, strict=True)]
        slopes.block_slopes(code, z, y, WIDTH, np.empty(count))
        assert z.tobytes() == np.array(wanted).tobytes()


@pytest.mark.parametrize("code", LOSSES)
def test_is_the_derivative_of_its_loss(code):
    z, h = np.linspace(-3.01, 3.02, 41), 1e-6
    numeric = (LOSSES[code](z + h, 1.0) - LOSSES[code](z - h, 1.0)) / (2 * h)
    assert np.allclose(compiled(code, z, 1.0), numeric, atol=1e-8)


def test_kinks():
    for y in (-1.0, 1.0):
        assert slopes.slope(slopes.HINGE, y, y) == 0.0
        assert slopes.slope(slopes.ABSOLUTE, y, y) == 0.0
        assert slopes.slope(slopes.POSITIVE_PART, y, y) == 0.0


def test_width_matters_to_the_rounded_losses_alone():
    for code in LOSSES:
        changed = slopes.slope(code, 0.9, 1.0, 0.5) != slopes.slope(code, 0.9, 1.0, 0.2)
        assert changed == (code in slopes.ROUNDED)


def test_all_at_once_has_the_same_bits():
    y = np.where(np.arange(MARGINS.size) % 2, 1.0, -1.0)
    for code in LOSSES:
        together = MARGINS.copy()
        slopes.slopes(code, together, y, WIDTH)
        alone = [slopes.slope(code, a, b, WIDTH) for a, b in zip(MARGINS, y, strict=True)]
        assert together.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("code", [code for code in LOSSES if code >= slopes.LINEAR])
def test_the_width_reaches_the_loop_with_the_same_bits(form, batch, code):
    """Noisy SGD against a plain loop over the room's public pieces."""
    rng = np.random.default_rng(5)
    n, p, steps = 30, 5, 60
    dense, y = 0.4 * rng.standard_normal((n, p)), np.sign(rng.standard_normal(n))
    x = sparse.csr_array(dense) if form == "csr" else dense
    noise_key, index_key = rng.integers(0, 2**64, (2, 1, 2), dtype=np.uint64)
    noise = SealedBatches(noise_key, index_key, 3.0, steps, n, batch)
    rule = dict(set_code=projections.L2_BALL, size=2.0, eta_kind=sgd.CONSTANT, eta0=0.01)
    rows, theta = sgd.rows(x, y), np.zeros(p)
    for t in range(steps):
        chosen = batch_indices.batch(index_key[0], t, n, batch, False)
        g = (n / batch) * sgd.batch_gradient(rows, theta, chosen, code, WIDTH) + 0.0 * theta
        noisy = g + 3.0 * gaussian_noise.normals(noise_key, t, 1, p)[0, 0]
        sgd.update(theta, noisy, 0.01, projections.L2_BALL, 2.0)

    def run(width):
        start = np.zeros((1, p))
        return sgd.run(x, y, start, noise, loss_code=code, loss_width=width, **rule)

    assert run(WIDTH)[0].tobytes() == theta.tobytes()
    if code in slopes.ROUNDED:
        assert run(2 * WIDTH)[0].tobytes() != theta.tobytes()
        with pytest.raises(ValueError, match="loss_width"):
            run(0.0)


def test_exponential():
    points = np.r_[np.linspace(-708, 708, 1001), np.linspace(-1, 1, 501), 1e-300]
    exact = np.array([mpmath.exp(mpmath.mpf(x)) for x in points])
    ours = [slopes.exp(x) for x in points]
    assert max(abs(float(a / e - 1)) for a, e in zip(ours, exact, strict=True)) < 4e-16
    assert slopes.exp(900.0) == slopes.exp(708.0)
    assert slopes.exp(-900.0) == slopes.exp(-708.0)
