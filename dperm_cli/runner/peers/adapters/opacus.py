"""DP-SGD of Opacus on a linear model of PyTorch."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

PASSES = 10

ABOUT = {
    "title": "Opacus: DP-SGD on a linear model, with its PRV accountant",
    "source": "Opacus 1.6.0 [Yousefpour et al. 2021]; DP-SGD [Abadi et al. 2016]",
    "losses": ["logistic", "huberized_hinge", "squared"],
    "kinds": ["approx"],
    "relations": ["replace_one", "add_remove"],
    "sets": ["l2_ball"],
    "packages": ["opacus", "torch", "numpy"],
    "intercept": "none, as the table's problem",
    "clipping": "each gradient to the loss's Lipschitz constant, which moves none by more than "
    "1e-6",
    "differs": "the same problem; Poisson batches of sqrt(n) records on average, 10 passes, step "
    "R/sqrt(T (L^2 + p s^2)) for a batch's mean with noise s in a coordinate, projected after "
    "each step, the mean of the points. Its accountant knows add_remove alone: replace_one is "
    "run at (epsilon/2, delta/(1+exp(epsilon/2))), for a replaced record is one removed and one "
    "added",
}


def fit(problem: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """The mean of the points of Opacus's optimizer, each on the set."""
    n, p = problem["x"].shape
    return train(problem, choose_settings(problem, n, p), rng)


def choose_settings(problem: dict[str, Any], n: int, p: int) -> dict[str, float]:
    """Batches, noise and step from public facts; n is a fixed public number."""
    epsilon, delta = float(problem["epsilon"]), float(problem["delta"])
    if problem["relation"] == "replace_one":
        # two tables that differ in a record are one removal and one addition apart: if each is
        # (e, d), both are (2 e, d + exp(e) d)
        epsilon /= 2.0
        delta /= 1.0 + math.exp(min(epsilon, 700.0))
    batches = math.ceil(n / math.ceil(math.sqrt(n)))  # of a pass; Opacus samples at 1/batches
    noise = find_noise(epsilon, delta, 1.0 / batches)
    size, steps = n // batches, PASSES * batches
    bound = float(problem["lipschitz"])
    spread = noise * bound / size
    step = float(problem["radius"]) / math.sqrt(steps * (bound**2 + p * spread**2))
    return {"batches": batches, "noise": noise, "step": step / size}  # a step on the sum


@functools.cache
def find_noise(epsilon: float, delta: float, rate: float) -> float:
    """What ``make_private_with_epsilon`` would take, found once for all trials."""
    from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]
    from opacus.accountants.utils import (  # pyright: ignore[reportMissingImports]
        get_noise_multiplier,
    )

    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=rate, epochs=PASSES,
        accountant=PrivacyEngine().accountant.mechanism(),
    )  # fmt: skip


def train(
    problem: dict[str, Any], settings: dict[str, float], rng: np.random.Generator
) -> np.ndarray:
    """Opacus's loop: its loader, its gradients of records, its optimizer."""
    import torch  # pyright: ignore[reportMissingImports]
    from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]

    torch.manual_seed(int(rng.integers(2**63)))  # batches and noise come from this generator
    x = torch.tensor(problem["x"], dtype=torch.float32)
    y = torch.tensor(problem["y"], dtype=torch.float32)
    size, radius = math.ceil(len(x) / settings["batches"]), float(problem["radius"])
    model = torch.nn.Linear(x.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=settings["step"]),
        data_loader=torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), batch_size=size
        ),
        noise_multiplier=settings["noise"],
        max_grad_norm=float(problem["lipschitz"]),
        loss_reduction="sum",
    )
    if len(loader) != settings["batches"]:
        raise ValueError(f"{len(x)} records cannot be sampled at 1/{settings['batches']}")
    total = torch.zeros(x.shape[1])
    [weights] = model.parameters()
    for _ in range(PASSES):
        for rows, targets in loader:
            optimizer.zero_grad()
            find_losses(problem, model(rows).squeeze(1), targets).sum().backward()
            optimizer.step()
            with torch.no_grad():
                weights *= min(1.0, radius / max(float(weights.norm()), 1e-30))
                total += weights[0]
    return (total / (PASSES * len(loader))).numpy()


def find_losses(problem: dict[str, Any], z: Any, y: Any) -> Any:
    """The loss of each record, from its margin."""
    import torch  # pyright: ignore[reportMissingImports]

    if problem["loss"] == "squared":
        return (z - y) ** 2 / 2.0
    if problem["loss"] == "logistic":
        return torch.nn.functional.softplus(-y * z)
    width = float(problem["width"])
    short = 1.0 - y * z
    bent = torch.clamp(short + width, 0.0, 2.0 * width) ** 2 / (4.0 * width)
    return bent + torch.clamp(short - width, min=0.0)
