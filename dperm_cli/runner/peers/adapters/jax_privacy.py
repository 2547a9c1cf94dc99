"""DP-SGD from the parts of JAX-Privacy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

PASSES = 10

ABOUT = {
    "title": "JAX-Privacy: DP-SGD on a linear model, with dp_accounting's PLD accountant",
    "source": "JAX-Privacy 2.0.0; DP-SGD [Abadi et al. 2016]",
    "losses": ["logistic", "huberized_hinge", "squared"],
    "kinds": ["approx"],
    "relations": ["replace_one", "add_remove"],
    "sets": ["l2_ball"],
    "packages": ["jax-privacy", "dp-accounting", "jax", "numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "each gradient to the loss's Lipschitz constant, which changes none",
    "differs": "the same problem; Poisson batches of sqrt(n) records on average, 10 passes, step "
    "R/sqrt(T (L^2 + p s^2)) for a batch's mean with noise s in a coordinate, projected after "
    "each step, the mean of the points. The accountant is asked for the relation itself",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The mean of the points of descent on private gradients, each on the set."""
    n, p = problem["x"].shape
    return train(problem, choose_settings(problem, n, p), rng)


def choose_settings(problem: dict[str, Any], n: int, p: int) -> dict[str, float]:
    """Batches, noise and step from public facts; n is a fixed public number."""
    batches = math.ceil(n / math.ceil(math.sqrt(n)))  # of a pass
    size, steps = n // batches, PASSES * batches
    noise = find_noise(
        float(problem["epsilon"]), float(problem["delta"]), str(problem["relation"]),
        1.0 / batches, steps,
    )  # fmt: skip
    bound = float(problem["lipschitz"])
    spread = noise * bound / size
    step = float(problem["radius"]) / math.sqrt(steps * (bound**2 + p * spread**2))
    return {"batches": batches, "size": size, "noise": noise, "step": step / size}


@functools.cache
def find_noise(epsilon: float, delta: float, relation: str, rate: float, steps: int) -> float:
    """Of dp_accounting's calibration with its PLD accountant, found once for all trials."""
    import dp_accounting as dp

    kinds = dp.NeighboringRelation
    # under REPLACE_ONE this accountant has a record's gradient at +1 in one table and at -1 in
    # the other, so that noise is counted in units of the bound under both relations
    kind = kinds.REPLACE_ONE if relation == "replace_one" else kinds.ADD_OR_REMOVE_ONE

    def make_event(noise: float) -> Any:
        step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(step, steps)

    made = dp.calibrate_dp_mechanism(
        lambda: dp.pld.PLDAccountant(kind), make_event, target_epsilon=epsilon, target_delta=delta
    )
    return float(made)


def train(
    problem: dict[str, Any], settings: dict[str, float], rng: np.random.Generator
) -> np.ndarray:
    """Poisson batches, clipped sums and noise of JAX-Privacy; steps and projections are ours."""
    import jax  # pyright: ignore[reportMissingImports]
    import jax_privacy  # pyright: ignore[reportMissingImports]

    x, y = (np.asarray(problem[name], dtype=np.float32) for name in ("x", "y"))
    steps, radius = PASSES * int(settings["batches"]), float(problem["radius"])
    bound, size = float(problem["lipschitz"]), int(settings["size"])
    sum_gradients = make_gradient(str(problem["loss"]), float(problem["width"]), bound)
    sampler = jax_privacy.batch_selection.CyclicPoissonSampling(
        sampling_prob=1.0 / settings["batches"], iterations=steps,
        partition_type=jax_privacy.batch_selection.PartitionType.INDEPENDENT,
    )  # fmt: skip
    words = rng.integers(2**32, size=2, dtype=np.uint32)
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=settings["noise"] * bound, prng_key=jax.random.wrap_key_data(words)
    )
    add_noise = jax.jit(privatizer.update)
    theta = np.zeros(x.shape[1], dtype=np.float32)
    total, state = np.zeros(len(theta)), privatizer.init(theta)
    for rows in sampler.batch_iterator(len(x), rng):
        summed = np.zeros_like(theta)
        # batches of one size, so that one program does all; what fills them up is told as such
        for part in jax_privacy.batch_selection.split_and_pad_global_batch(rows, size):
            summed = summed + sum_gradients(theta, x[part], y[part], is_padding_example=part < 0)
        noisy, state = add_noise(summed, state)
        theta = theta - settings["step"] * np.asarray(noisy)
        theta *= min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-30))
        total += theta
    return total / steps


@functools.cache
def make_gradient(loss: str, width: float, bound: float) -> Callable[..., Any]:
    """The sum of the clipped gradients of records, compiled once for all trials."""
    import jax  # pyright: ignore[reportMissingImports]
    import jax_privacy  # pyright: ignore[reportMissingImports]
    from jax import numpy as jnp  # pyright: ignore[reportMissingImports]

    def find_loss(theta: Any, row: Any, y: Any) -> Any:
        z = row @ theta
        if loss == "squared":
            return (z - y) ** 2 / 2.0
        if loss == "logistic":
            return jax.nn.softplus(-y * z)
        short = 1.0 - y * z
        bent = jnp.clip(short + width, 0.0, 2.0 * width) ** 2 / (4.0 * width)
        return bent + jnp.maximum(short - width, 0.0)

    made = jax_privacy.clipped_grad(
        find_loss, l2_clip_norm=bound, batch_argnums=(1, 2), keep_batch_dim=False
    )
    return jax.jit(made)
