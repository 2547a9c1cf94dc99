"""The test data independent learner, TDIL [JT13, Alg. 3]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from dperm_cli.bounds import jt13
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Choices, Help, Positive, Range
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.adversary import Adversary, kernel_pair
from dperm_cli.mechanisms.base import Design, Plan, Release, Steps, find_scale
from dperm_cli.mechanisms.shared import kernel_queries, sparse_answers, vertex_choice
from dperm_cli.mechanisms.shared.kernel_queries import KernelMechanism, StabilityBounds
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Exponential, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.streams import LawStream, NoiseStream
from dperm_cli.samplers.base import Source
from dperm_cli.views.central import TrialNumbers
from dperm_cli.views.kernel import KernelView

SAMPLINGS = ("auto", "net", "log_concave")
MOST_STEPS = 4096
_POINTS, _MOST_POINTS, _MOST_CELLS = 4096, 20_000, 2_000_000
# Exponent times noise scale: a choice costs as much as a measurement of ``share`` times the noise.
_SHARES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_DOUBLINGS = 11  # B = 1, 2, 4, .., 1024 are tried: more cost time and hardly promise less
_CHOICE_SHARE = 0.01  # what the choices get of an adversary that attacks the measurements


@dataclass(frozen=True)
class SelectionParameters:
    """B steps, the exponent of each choice, the noise scale of each measurement, and how w moves.

    ``threshold`` is sigma and ``step`` eta of [JT13, Alg. 3]; None: every step moves w by the
    measured residual over R^2.
    """

    steps: int
    exponent: float
    scale: float
    threshold: float | None = None
    step: float | None = None


@dataclass(frozen=True)
class KernelNonInteractive(KernelMechanism):
    """w built of kernel functions at points where it is far from the minimiser, chosen privately.

    Algorithm: [JT13, Alg. 3]: B times, z is drawn with weights exp(c |<phi(z), w_t - w*>|), the
    residual there is measured with Laplace noise and w_t moves along phi(z). ``sampling=net``: z
    from a public net of the ball of inputs, exactly; ``log_concave`` (linear kernel): from the
    whole ball, with weights exp(c <z, v>) + exp(-c <z, v>), v = w_t - w*: a mixture of two
    log-concave laws, exactly. Guarantee: (epsilon, delta), or pure epsilon at delta = 0, under
    replace_one: B exponential mechanisms and B Laplace releases; trust: central. ``noise_scale`` is
    the Laplace scale, in the unit of a prediction. Shapes: theta [trials, dim]. Cost: one
    minimisation, and B kernel rows of the net. Unsupported: calibration=paper, whose printed
    exponent holds n lambda twice and spends more than epsilon; a net that is too large.

    ``calibration=corrected`` has the paper's numbers with weights exp((eps_0 / 8) |.|) and B in the
    right units, and no second measurement, which is not used; auto those that promise least error
    (docs/proofs), steps of the measured residual, and the average of w_1 .. w_B. ``share`` is c b,
    of the exponent and the noise scale: how much of the privacy the choices get.

    >>> from dperm_cli.mechanisms.adversary import kernel_pair
    >>> spec = kernel_pair()[0].spec()  # one record, one public query
    >>> KernelNonInteractive(steps=4).plan(spec, Budget(1.0, 0.0)).settings["sampling"]
    'log_concave'
    """

    calibration: Annotated[
        str, Choices("auto", "corrected", "paper"), Help("corrected = exponent eps_0 / 8")
    ] = "auto"
    steps: Annotated[Steps, Range(1, MOST_STEPS), Help("B")] = "auto"
    share: Annotated[Positive | Auto, Help("exponent times noise scale of choices")] = "auto"
    sampling: Annotated[
        str, Choices(*SAMPLINGS), Help("auto = log_concave where it can (linear kernel)")
    ] = "auto"
    spacing: Annotated[Positive | Auto, Help("of the grid; auto = about 4096 points")] = "auto"

    def check(self, spec: KernelSpec, budget: Budget) -> None:
        """A kernel, and public points unless its map is finite."""
        kernel_queries.check_kernel_problem(
            spec, budget, queries=spec.space == "kernel" and not spec.finite
        )

    def design(self, spec: KernelSpec, budget: Budget) -> Design:
        """B, exponent and noise, from public facts alone."""
        moves, whole = kernel_queries.bound_moves(spec), self.draws_from_ball(spec)
        net, covered = (None, 0.0) if whole else self.net(spec)
        log_count = _log_tilts(spec) if net is None else math.log(len(net))
        run = self.choose_run(spec, moves, log_count, budget)
        settings = {
            "calibration": self.calibration,
            "sampling": "log_concave" if whole else "net",
            "net": None if net is None else len(net),
            "covering": covered,
            "steps": run.steps,
            "exponent": run.exponent,
            "threshold": run.threshold,
            "step": run.step,
            "distance": moves.distance,
            "error_bound": error_bound(spec, run, log_count, covered),
        }
        return Design(_events(moves, run), run.scale, run.steps, settings)

    def events(self, spec: KernelSpec, scale: float, budget: Budget) -> tuple[Exponential, Laplace]:
        """Choices and measurements at another scale: exponents 1 / (2 scale), steps as given."""
        steps = 1 if self.steps == "auto" else int(self.steps)
        return _events(
            kernel_queries.bound_moves(spec), SelectionParameters(steps, 0.5 / scale, scale)
        )

    def draws_from_ball(self, spec: KernelSpec) -> bool:
        """Whether points are drawn from the ball itself."""
        linear = spec.kernel.name == "linear"
        if self.sampling == "log_concave" and not linear:
            raise Unsupported("sampling=log_concave is for kernel=linear; use mechanism.sampling="
                              "net in few dimensions")  # fmt: skip
        return linear and self.sampling != "net"

    def net(self, spec: KernelSpec) -> tuple[np.ndarray, float]:
        """Public points [m, columns] of the ball of inputs, and how near one of them always is."""
        return ball_net(
            spec.columns, spec.row_bound, None if self.spacing == "auto" else float(self.spacing)
        )

    def choose_run(
        self, spec: KernelSpec, moves: StabilityBounds, log_count: float, budget: Budget
    ) -> SelectionParameters:
        """The run that these fields ask for."""
        if self.calibration == "paper":
            raise Unsupported(
                "the printed exponent eps_0 n lambda / (8 L R^2) holds n lambda twice: one choice "
                "costs more than epsilon at large n; use mechanism.calibration=corrected"
            )
        if self.calibration == "corrected":
            sparse_answers.require_delta(budget)
            return self._plan_corrected_run(spec, budget)
        return self._calibrate_run(spec, moves, log_count, budget)

    def release(self, view: KernelView, plan: Plan, gate: Gate) -> Release:
        """B choices and measurements, and the function they make."""
        spec, settings = view.spec, plan.settings
        found = view.find_minimiser(settings["distance"])
        law, noise = (gate.stream(event, 1) for event in plan.events)
        if settings["sampling"] == "net":
            points, alpha = _on_net(view, found, self.net(spec)[0], plan, law, noise)
        else:
            points, alpha = _in_ball(view, found, plan, law, noise)
        if self.calibration == "auto":  # the average of w_1 .. w_B
            steps = settings["steps"]
            alpha = alpha * (np.arange(steps, 0, -1) / steps)
        flat = spec.coordinates(points.reshape(-1, spec.columns))
        along = flat.reshape(*points.shape[:2], spec.dim)
        theta = np.einsum("tb,tbd->td", alpha, along)
        return Release(theta, {"points": points, "alpha": alpha})

    def adversary(self, budget: Budget) -> Adversary:
        """One record on a line, whose prediction one step measures at an end of the line."""
        attacked = replace(
            self, calibration="auto", steps=1, share=_CHOICE_SHARE, sampling="net", spacing=1.0
        )
        return Adversary(*kernel_pair(), attacked, floor=0.8)

    def _plan_corrected_run(self, spec: KernelSpec, budget: Budget) -> SelectionParameters:
        logs = math.log(4.0 / budget.delta)
        steps = self.steps
        if steps == "auto":
            top = spec.radius * spec.n * budget.epsilon * spec.ridge
            steps = math.floor(min(top / (100.0 * spec.lipschitz * spec.bound * logs), MOST_STEPS))
            steps = max(1, steps)
        rate = spec.n * budget.epsilon * spec.ridge
        rate /= 10.0 * spec.lipschitz * spec.bound**2 * math.sqrt(int(steps)) * logs
        threshold = 4.0 / rate * math.log(2.0 * int(steps) / self.failure)
        step = threshold / (4.0 * spec.bound**2)
        return SelectionParameters(int(steps), rate / 8.0, 0.5 / rate, threshold, step)

    def _calibrate_run(
        self, spec: KernelSpec, moves: StabilityBounds, log_count: float, budget: Budget
    ) -> SelectionParameters:
        """The steps and shares of the least ``error_bound``, by the central limit of the cost; then
        the least noise for them."""
        counts = [2**k for k in range(_DOUBLINGS)] if self.steps == "auto" else [int(self.steps)]
        shares = _SHARES if self.share == "auto" else (float(self.share),)
        guesses = [_guess(moves, steps, share, budget) for steps in counts for share in shares]
        best = min(guesses, key=lambda design: error_bound(spec, design, log_count, 0.0))
        share = best.exponent * best.scale

        def design(scale: float) -> SelectionParameters:
            return SelectionParameters(best.steps, share / scale, scale)

        return design(find_scale(lambda scale: _events(moves, design(scale)), budget))


def error_bound(
    spec: KernelSpec, design: SelectionParameters, log_count: float, covered: float
) -> float:
    """E sup over the ball of |<phi(z), w - w*>| for the average of w_1 .. w_B (docs/proofs).

    sqrt((R^2 C^2 + 2 (B + 1) b^2) / B) + log_count / c on the net of exp(log_count) points, and
    2 C L_phi ``covered`` more between its points where |w| <= C; inf for other designs.
    """
    if design.step is not None:
        return math.inf
    on_net = jt13.non_interactive(
        spec.radius, spec.bound, design.steps, design.scale, design.exponent, log_count
    )
    between = 0.0
    if covered > 0.0:
        between = 2.0 * spec.radius * spec.kernel.lipschitz(spec.row_bound) * covered
    return on_net + between


def _guess(moves: StabilityBounds, steps: int, share: float, budget: Budget) -> SelectionParameters:
    """Exponent x scale = ``share``; a choice adds (c s)^2 to mu^2 and a measurement (s / b)^2."""
    if budget.delta == 0.0:
        unit = budget.epsilon / (steps * (1.0 + 2.0 * share))
    else:
        mu = calibrate.mu(budget.epsilon, budget.delta)
        unit = mu / math.sqrt(steps * (1.0 + share**2))
    scale = moves.value / unit
    return SelectionParameters(steps, share / scale, scale)


def _log_tilts(spec: KernelSpec) -> float:
    """What stands for ln(net): under exp(c <z, v>) on the ball, c <z, v> is on average at most
    (d + 1) / 2 below its largest value c r |v|."""
    return (spec.columns + 1.0) / 2.0


def _events(moves: StabilityBounds, design: SelectionParameters) -> tuple[Exponential, Laplace]:
    # scores move by s up or down: their differences lie in an interval of length 2 s
    choices = Exponential(
        design.exponent, moves.value, design.steps, relation=kernel_queries.PROVED_RELATION
    )
    return choices, kernel_queries.make_laplace(design.scale, moves.value, design.steps)


def _moves_of(plan: Plan, spec: KernelSpec, measured: np.ndarray) -> np.ndarray:
    """alpha [trials] of a step from its measured residuals [trials]."""
    step, threshold = plan.settings["step"], plan.settings["threshold"]
    if step is None:
        return measured / spec.bound**2
    return np.where(np.abs(measured) > threshold, step * np.sign(measured), 0.0)


def _on_net(
    view: KernelView, found: Any, net: np.ndarray, plan: Plan, law: LawStream, noise: NoiseStream
) -> tuple[np.ndarray, np.ndarray]:
    """Points [trials, B, columns] of the net and alpha [trials, B]."""
    spec, steps = view.spec, plan.settings["steps"]
    wanted = found.values(net)
    known = np.zeros((law.trials, len(net)))
    points = np.empty((law.trials, steps, spec.columns))
    alpha = np.empty((law.trials, steps))
    every = np.arange(law.trials)
    rows = None if spec.features is None else spec.features.apply(net)
    for t in range(steps):
        scores = view.observe_scores(np.abs(wanted - known))
        index = vertex_choice.choose(law.event.exponent, -scores, vertex_choice.heights(law, t))
        points[:, t] = law.release(net[index], t)
        index = _nearest(net, points[:, t], index)
        residual = (wanted[index] - known[every, index])[:, None]
        # w_t is public: only the prediction of w* is private, and the noise is on their difference
        measured = noise.add(residual, t)[:, 0]
        alpha[:, t] = _moves_of(plan, spec, measured)
        column = spec.kernel_of(points[:, t], net) if rows is None else rows[index] @ rows.T
        known += alpha[:, t, None] * column
    return points, alpha


def _nearest(net: np.ndarray, points: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Numbers [trials] of the released points, which a tape may have put in place of others."""
    if np.array_equal(net[index], points):
        return index
    apart = np.sum((net[None, :, :] - points[:, None, :]) ** 2, axis=-1)
    return np.argmin(apart, axis=1)


def _in_ball(
    view: KernelView, found: Any, plan: Plan, law: LawStream, noise: NoiseStream
) -> tuple[np.ndarray, np.ndarray]:
    """Points [trials, B, columns] of the ball and alpha [trials, B], for the linear kernel."""
    spec, steps = view.spec, plan.settings["steps"]
    # points of the ball: finite maps shorten those beyond it
    wanted = found.values(spec.row_bound * np.eye(spec.columns)) / spec.row_bound
    known = np.zeros((law.trials, spec.columns))
    points = np.empty((law.trials, steps, spec.columns))
    alpha = np.empty((law.trials, steps))
    for t in range(steps):
        apart = view.observe_scores(wanted - known, spec.row_bound)
        drawn = np.empty_like(known)
        for trial in range(law.trials):
            pull = law.event.exponent * spec.row_bound * apart[trial]
            drawn[trial] = spec.row_bound * _tilted_pair(pull, TrialNumbers(law, trial, t))
        points[:, t] = law.release(drawn, t)
        residual = np.sum(points[:, t] * (wanted - known), axis=1)
        measured = noise.add(residual[:, None], t)[:, 0]
        alpha[:, t] = _moves_of(plan, spec, measured)
        known += alpha[:, t, None] * points[:, t]
    return points, alpha


def _tilted_pair(pull: np.ndarray, source: Source) -> np.ndarray:
    """A point of the unit ball of density prop. to exp(<pull, u>) + exp(-<pull, u>)."""
    from dperm_cli.samplers.closed_form import tilted_ball

    sign = 1.0 if float(source.uniform(1)[0]) < 0.5 else -1.0
    return tilted_ball(sign * pull, source)


@memoise(budget=64 * MIB)
def ball_net(columns: int, radius: float, spacing: float | None) -> tuple[np.ndarray, float]:
    """Points [m, columns] of the ball and nu: every point of the ball is within nu of one of them.

    A cubic grid of side h = 2 nu / sqrt(d); its points within radius + nu, brought to the ball,
    which takes none of them farther from a point of the ball. ``spacing`` is h; None: about 4096
    points. ``Unsupported`` beyond 20000.
    """
    log_volume = columns / 2.0 * math.log(math.pi) - math.lgamma(columns / 2.0 + 1.0)
    side = radius * math.exp((log_volume - math.log(_POINTS)) / columns)
    side = side if spacing is None else spacing
    while True:
        nu = side * math.sqrt(columns) / 2.0
        reach = math.ceil((radius + nu) / side)
        if nu < radius and (2 * reach + 1) ** columns <= _MOST_CELLS:
            axis = side * np.arange(-reach, reach + 1)
            grid = np.stack(np.meshgrid(*[axis] * columns, indexing="ij"), axis=-1)
            grid = grid.reshape(-1, columns)
            norms = np.linalg.norm(grid, axis=1)
            grid, norms = grid[norms <= radius + nu], norms[norms <= radius + nu]
            if len(grid) <= _MOST_POINTS:
                short = np.minimum(1.0, radius / np.maximum(norms, 1e-300))
                return grid * short[:, None], nu
        if spacing is not None or nu >= radius:
            raise Unsupported(
                f"a net of the ball in {columns} dimensions is too large (or too coarse); use "
                "kernel=linear with sampling=log_concave, fewer columns or a larger "
                "mechanism.spacing"
            )
        side *= 1.1
