"""Noisy stochastic gradient descent with one-record steps [BST14, Alg. 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Count, Help, Range
from dperm_cli.loops import reduced_sgd, sgd
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Design, Mechanism, Output, Plan, Release, Steps
from dperm_cli.mechanisms.shared.row_span import can_reduce
from dperm_cli.mechanisms.shared.secure_plan import put_sums_on_grid
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import SAMPLINGS, SampledGaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import SampledStream
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.central import CentralView

OUTPUTS = ("last", "average", "suffix_average")
# eta(t) = eta0 / sqrt(t), eta0 / t, or eta0
RATES = {"convex": sgd.INV_SQRT, "strongly_convex": sgd.INV, "constant": sgd.CONSTANT}
BATCH_SUM = "batch_sum"  # what noise is added to on a grid; elsewhere it is the scaled sum
MOST_PLAIN_STEPS = 300_000  # of a loop in Python: about half a minute a trial


@dataclass(frozen=True)
class NoisySgd(Mechanism):
    """theta <- Project(theta - eta(t) [(n / m) sum of m sampled gradients + N(0, sigma^2 I)]).

    Algorithm: [BST14, Alg. 1]; T = n^2 / m steps by default, m = 1, both learning rates of
    [BST14, Thm 2.4], any subgradient, last iterate. ``learning_rate=constant output=average`` has
    the smallest proved bound for convex losses. Guarantee: (epsilon, delta) by exact
    accounting of the subsampled steps, replace_one for fixed-size batches, both relations for
    Poisson ones; trust: central. ``noise_scale`` is sigma, in units of the SUM of gradients (n L).
    Shapes: theta [trials, p]. Cost: T (p + m nnz) a trial. Unsupported: delta = 0; fixed-size
    batches under add_remove; ``calibration=paper`` for anything but the paper's own algorithm.

    ``calibration=paper`` uses the stated sigma^2 = 32 L^2 n^2 ln(n/delta) ln(1/delta) / eps^2,
    whose certified epsilon is far below the nominal one; ``tight`` the smallest certified sigma.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> NoisySgd(batch=10).events(spec, 1400.0, Budget(1.0, 1e-6))[0].count
    100000
    """

    calibration: Calibration = "tight"
    steps: Annotated[Steps, Range(1, 10**12), Help("noisy steps; auto = n^2 / batch")] = "auto"
    batch: Annotated[Count, Help("records per step")] = 1
    sampling: Annotated[str, Choices(*SAMPLINGS), Help("how a batch is drawn")] = "fixed"
    learning_rate: Annotated[
        str,
        Choices("auto", *RATES),
        Help("auto: by strong convexity; constant: for output=average"),
    ] = "auto"
    output: Annotated[Output, Choices(*OUTPUTS)] = "last"

    secure: ClassVar[bool] = True

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """What the sampling and the compiled loops cannot do."""
        if not budget.delta > 0:
            raise Unsupported("noisy_sgd adds Gaussian noise and needs delta > 0")
        if self.sampling == "fixed" and budget.relation == "add_remove":
            raise Unsupported("fixed-size batches need relation replace_one; use sampling=poisson")
        if self.batch > spec.n:
            raise Unsupported(f"batch {self.batch} exceeds the {spec.n} records")
        steps = self._steps(spec)
        if steps > MOST_PLAIN_STEPS and not spec.compiled:
            raise Unsupported(
                f"{steps} steps are too many for {spec.loss} on {spec.constraint.name}: it has no "
                f"compiled loop; set mechanism.steps to {MOST_PLAIN_STEPS} or less, or use noisy_gd"
            )

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """At the least noise, or at the stated one where that is enough."""
        made = super().design(spec, budget)
        level = account(made.events, delta=budget.delta, relation=budget.relation)
        if not level.epsilon <= budget.epsilon:
            raise Unsupported(
                f"the stated sigma gives epsilon {level.epsilon:.4g}, above the nominal one"
            )
        return made

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[SampledGaussian]:
        """T sums over a random batch, times n / m, plus N(0, scale^2 I)."""
        event = SampledGaussian(
            scale=scale,
            record_norm=spec.lipschitz * spec.n / self.batch,
            batch=self.batch,
            population=spec.n,
            sampling=self.sampling,
            count=self._steps(spec),
        )
        return (event,)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Run the loop, all trials at once; compiled unless a tape listens at the gate.

        Where public facts say that the rows span little of the space (``row_span.can_reduce``), in
        coordinates of that span: the same law from fewer random numbers.
        """
        noise = gate.stream(plan.events[0], view.spec.p)
        loop = _run_plain
        if gate.can_run_compiled and view.spec.compiled:
            last = plan.settings["output"] == "last"
            loop = (
                _run_in_row_span
                if last and can_reduce(view.spec, plan, plan.steps)
                else _run_compiled
            )
        return Release(loop(view, plan, noise))

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """Noise on the sum over a batch, which lies on the grid; the factor n / m comes after it.

        Batches and noise are drawn step by step from the system's generator.
        """
        event = plan.events[0]
        assert isinstance(event, SampledGaussian)
        if event.count > MOST_PLAIN_STEPS:
            raise Unsupported(
                f"{event.count} steps are too many with noise=secure: set mechanism.steps to "
                f"{MOST_PLAIN_STEPS} or less, or use noisy_gd"
            )
        share = event.batch / event.population
        whole = event.change_fields(scale=share * event.scale, record_norm=spec.lipschitz)
        bare = replace(plan, events=(whole,), noise_scale=whole.scale)
        moved, grid = put_sums_on_grid(bare, spec, loss)
        settings = {**plan.settings, "noise_on": BATCH_SUM}
        return replace(moved, noise_scale=moved.noise_scale / share, settings=settings), grid

    def adversary(self, budget: Budget) -> Adversary:
        """Opposite gradients, few records and a ridge: theta_T is minus the mean noisy gradient.

        With the strongly convex rate 1 / (n ridge t), step t turns the mean of t - 1 noisy
        gradients, over n ridge, into the mean of t: all count alike.
        """
        sampling = "poisson" if budget.relation == "add_remove" else self.sampling
        rate = {"learning_rate": "strongly_convex", "output": "last"}
        chosen = replace(self, steps=8, sampling=sampling, **rate)
        first, second = linear_pair(budget.relation, n=2 * self.batch, ridge=1.0)
        return Adversary(first, second, chosen, kind="profile")

    def _steps(self, spec: ProblemSpec) -> int:
        return math.ceil(spec.n**2 / self.batch) if self.steps == "auto" else int(self.steps)

    def scale(self, spec: ProblemSpec, budget: Budget) -> float:
        """The least certified sigma, or the one that the paper states."""
        if self.calibration == "tight":
            return super().scale(spec, budget)
        if self.batch != 1 or self.sampling != "fixed" or self._steps(spec) > spec.n**2:
            raise Unsupported("the paper states sigma for one-record steps, at most n^2 of them")
        return calibrate.bst14_stated_scale(spec.n, spec.lipschitz, budget.epsilon, budget.delta)

    def settings(
        self, spec: ProblemSpec, events: tuple[SampledGaussian], budget: Budget
    ) -> dict[str, Any]:
        """Learning rate of [BST14, Thm 2.4]: eta(t) = eta0 / sqrt(t) or eta0 / t; or constant."""
        scale, rate = events[0].scale, self.learning_rate
        if rate == "auto":
            rate = "strongly_convex" if spec.strong_convexity > 0 else "convex"
        bound = gradient_bound(spec, scale, self.batch, self.sampling)
        if rate == "convex":
            eta0 = spec.constraint.diameter / bound
        elif rate == "constant":
            eta0 = spec.constraint.outer_radius / (bound * math.sqrt(events[0].count + 1.0))
        elif spec.strong_convexity > 0:
            eta0 = 1.0 / (spec.n * spec.strong_convexity)
        else:
            raise Unsupported("the strongly convex learning rate needs ridge > 0")
        return {
            "learning_rate": rate,
            "eta0": eta0,
            "gradient_bound": bound,
            "batch": self.batch,
            "sampling": self.sampling,
            "output": self.output,
        }


def gradient_bound(spec: ProblemSpec, scale: float, batch: int, sampling: str) -> float:
    """G with E |G_t|^2 <= G^2: sampling, regulariser and noise together [BST14, Eq. 2].

    A Poisson batch of mean m has E[size^2] / m^2 = 1 + (1 - m/n) / m; a fixed one has 1.
    """
    spread = 1.0 + (1.0 - batch / spec.n) / batch if sampling == "poisson" else 1.0
    return math.sqrt(spread * (spec.n * spec.lipschitz_total) ** 2 + spec.p * scale**2)


def _run_compiled(view: CentralView, plan: Plan, noise: SampledStream) -> np.ndarray:
    """All trials as interleaved chains of the compiled loop."""
    return sgd.run(
        view.x,
        view.y,
        _start(view.spec, noise.trials),
        noise.sealed_draws,
        **_loop_facts(view.spec, plan),
        average=OUTPUTS.index(plan.settings["output"]),
        lasso=view.spec.lasso,
    )


def _run_in_row_span(view: CentralView, plan: Plan, noise: SampledStream) -> np.ndarray:
    """All trials in the coordinates of the rows: the law of the other loops, other numbers."""
    return reduced_sgd.run(
        reduced_sgd.frame(view.x), view.y, noise.sealed_draws, **_loop_facts(view.spec, plan)
    )


def _run_plain(view: CentralView, plan: Plan, noise: SampledStream) -> np.ndarray:
    """The same loop one step at a time through the gate: same bits, a thousand times slower."""
    on_sum = plan.settings.get("noise_on") == BATCH_SUM
    gradient, move = _parts(view, not on_sum)
    rate, spec = _rate(plan), view.spec
    factor, decay = noise.population / noise.batch, noise.population * spec.ridge
    pull = noise.population * spec.lasso
    theta = _start(view.spec, noise.trials)
    total, kept = np.zeros_like(theta), 0
    averaged_from = {"last": plan.steps, "average": 0, "suffix_average": plan.steps // 2}
    for step in range(plan.steps):
        value = np.empty_like(theta)
        for trial in range(noise.trials):
            batch = noise.draw(trial, step)
            value[trial] = gradient(theta[trial], batch)
        eta = sgd.learning_rate(rate["eta_kind"], rate["eta0"], step + 1)
        # the regulariser is a function of released values and cancels between neighbours
        if on_sum:
            noisy = factor * noise.add(value, step) + decay * theta + pull * np.sign(theta)
        else:
            noisy = noise.add(factor * value + decay * theta, step) + pull * np.sign(theta)
        for trial in range(noise.trials):
            move(theta[trial], noisy[trial], eta)
        if step >= averaged_from[plan.settings["output"]]:
            total, kept = total + theta, kept + 1
    return total / kept if kept else theta


def _parts(view: CentralView, compiled: bool) -> tuple[Callable, Callable]:
    """A batch's gradient and the projected step in place: the compiled loop's own, if asked for and
    where it has them."""
    constraint = view.spec.constraint
    if compiled and view.spec.compiled:
        rows, code = sgd.rows(view.x, view.y), view.loss.code
        width = view.loss.width
        return (
            lambda theta, batch: sgd.batch_gradient(rows, theta, batch, code, width),
            lambda theta, noisy, eta: sgd.update(
                theta, noisy, eta, constraint.code, constraint.size
            ),
        )

    def move(theta: np.ndarray, noisy: np.ndarray, eta: float) -> None:
        theta[:] = constraint.project(theta - eta * noisy)

    return view.batch_gradient, move


def _start(spec: ProblemSpec, trials: int) -> np.ndarray:
    return np.tile(spec.constraint.centre(), (trials, 1))


def _loop_facts(spec: ProblemSpec, plan: Plan) -> dict[str, Any]:
    """What both compiled loops are told: the loss, the set, the learning rate and the ridge."""
    loss: Any = spec.form
    return {
        **_rate(plan),
        "loss_code": loss.code,
        "loss_width": loss.width,
        "set_code": spec.constraint.code,
        "size": spec.constraint.size,
        "ridge": spec.ridge,
        "progress": lambda done, total: progress.report("noisy_sgd", done, total),
    }


def _rate(plan: Plan) -> dict[str, Any]:
    return {
        "eta_kind": RATES[plan.settings["learning_rate"]],
        "eta0": plan.settings["eta0"],
    }
