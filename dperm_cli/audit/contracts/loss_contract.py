"""What every loss promises: convexity, its derivative, and the constants that privacy rests on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.problems import CLASSES, TASKS, label_scores
from dperm_cli.audit.contracts.promises import (
    Broken,
    NotTried,
    promise,
    require,
    require_bounds,
    show,
)
from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.data import Data
from dperm_cli.sets import make_ball

# (row bound, target bound, radius of the set)
BOUNDS = ((1.0, 1.0, 1.0), (2.0, 0.4, 3.0), (0.5, 3.0, 0.2), (1.0, 1.0, 20.0))
MARGINS = (0.05, 0.9, 3.0, 30.0)
LARGE = 1e6  # a margin at which a careless exponential overflows
_ROUNDING = 1e-9
_COLUMNS = 3


@dataclass(frozen=True)
class Subject:
    """A loss with its defaults and with other keys."""

    examples: tuple[Any, ...]

    @property
    def margin_losses(self) -> list[Any]:
        """Those of a margin."""
        return [loss for loss in self.examples if isinstance(loss, Glm)]

    def need_margin_losses(self) -> list[Any]:
        """Those of a margin; ``NotTried`` where there are none."""
        if not self.margin_losses:
            raise NotTried("the loss is none of a margin")
        return self.margin_losses


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The loss to be checked, from its class."""
    return Subject(make_examples(cls))


def make_data(task: str, row: float, target: float, n: int = 24, seed: int = 0) -> Data:
    """Records at and within the bounds, with extreme labels among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, _COLUMNS))
    x *= row / np.linalg.norm(x, axis=1, keepdims=True)
    x[n // 2 :] *= rng.random((n - n // 2, 1))
    score = np.where(np.arange(n) % 3 == 0, rng.choice([-1.0, 1.0], n), rng.uniform(-1, 1, n))
    y = label_scores(task, score) * (target if task == "regression" else 1.0)
    bound = target if task == "regression" else 1.0
    classes = CLASSES if task == "multiclass" else 2
    return Data.of_records("contract", task, x, y, row, bound, "contract", classes=classes)


def _cases(subject: Subject) -> Iterator[tuple[Any, Data, float]]:
    """Each loss with data of its tasks under several bounds, and the radius of a set."""
    for loss in subject.examples:
        for task in loss.tasks:
            for row, target, radius in BOUNDS:
                yield loss, make_data(task, row, target), radius


def _points(loss: Any, data: Data, radius: float, count: int = 12) -> np.ndarray:
    """Points [count, p] of a ball, half of them on its boundary."""
    p = loss.dimension(data.facts())
    theta = np.random.default_rng(1).standard_normal((count, p))
    theta *= radius / np.linalg.norm(theta, axis=1, keepdims=True)
    theta[::2] *= np.random.default_rng(2).random((len(theta[::2]), 1))
    return theta


def _targets(loss: Any, target: float = 1.0) -> np.ndarray:
    """Labels for every task of a loss of a margin."""
    if "regression" in loss.tasks:
        return np.linspace(-target, target, 9)
    return np.array([-1.0, 1.0])


def _grid(loss: Any, margin: float, target: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Margins [m, 1], with those at and beside labels, and labels [k]."""
    y = _targets(loss, target)
    near = np.concatenate([y + s for s in (-1e-3, 0.0, 1e-3)] + [1.0 + 1e-3 * y, [0.0]])
    z = np.concatenate([np.linspace(-margin, margin, 801), near[np.abs(near) <= margin]])
    return np.sort(z)[:, None], y


def _widths(subject: Subject) -> Iterator[tuple[Any, float, float]]:
    """Each loss of a margin with every largest margin and every largest label."""
    for loss in subject.margin_losses:
        targets = (0.3, 1.0) if "regression" in loss.tasks else (1.0,)
        yield from itertools.product([loss], MARGINS, targets)


@promise(
    "it names the tasks that it is for",
    mend='set tasks = ("binary",) or another of '
    "binary, regression, multiclass, location in the class",
)
def check_tasks(subject: Subject) -> str:
    for loss in subject.examples:
        require(bool(loss.tasks), "tasks is empty")
        require(set(loss.tasks) <= set(TASKS), f"tasks = {loss.tasks}")
        require(loss == replace(loss), f"{loss!r} is not equal to its copy")
    return f"tasks {', '.join(subject.examples[0].tasks)}; {len(subject.examples)} sets of keys"


@promise(
    "values and gradients have one row for each row of theta, on dense and sparse records",
    mend="let value, slope, values and gradient broadcast: [..., n] margins against [n] "
    "labels, [..., p] points against n records",
)
def check_shapes(subject: Subject) -> str:
    count = 0
    for loss, data, radius in _cases(subject):
        theta = _points(loss, data, radius)
        rows = theta.reshape(3, 4, -1)
        kept = data.x.tobytes(), data.y.tobytes()
        values, gradient = loss.values(rows, data), loss.gradient(rows, data)
        require(kept == (data.x.tobytes(), data.y.tobytes()), "the records were written to")
        words = f"for theta {list(rows.shape)} and {data.n} records"
        require(np.shape(values) == (3, 4, data.n), f"values has shape {np.shape(values)} {words}")
        require(
            np.shape(gradient) == rows.shape, f"gradient has shape {np.shape(gradient)} {words}"
        )
        one = [loss.gradient(row, data) for row in theta]
        require(
            _near(gradient.reshape(theta.shape), one),
            "gradient of many rows of theta is not that of each row",
        )
        thin = data.with_rows(sparse.csr_array(data.x))
        require(
            _near(loss.values(theta, thin), loss.values(theta, data)),
            "values on sparse rows are others",
        )
        require(
            _near(loss.gradient(theta, thin), loss.gradient(theta, data)),
            "gradient on sparse rows is another",
        )
        parts = [loss.gradient(theta, data.take(np.array([i]))) for i in range(data.n)]
        require(
            _near(np.sum(parts, axis=0), loss.gradient(theta, data)),
            "gradient is not the sum over records of each one's gradient",
        )
        count += 1
    return f"{count} data sets"


def _near(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=1e-8, atol=1e-8))


@promise(
    "the loss is convex",
    mend="privacy and optima are proved for convex losses alone: change "
    "value (or values) so that it lies below every chord",
)
def check_convexity(subject: Subject) -> str:
    count = 0
    for loss, data, radius in _cases(subject):
        theta = _points(loss, data, radius, 40)
        ends = loss.values(theta, data)
        require(np.isfinite(ends), f"{loss!r}: a value is not finite")
        for share in (0.5, 0.1):
            between = loss.values(share * theta + (1 - share) * theta[::-1], data)
            above = between - share * ends - (1 - share) * ends[::-1]
            require(
                above <= _ROUNDING * (1.0 + np.abs(ends) + np.abs(ends[::-1])),
                f"{loss!r}: between two points it is {show(np.max(above))} above the "
                f"chord, so it is not convex",
            )
            count += above.size
    for loss, margin in itertools.product(subject.margin_losses, MARGINS):
        count += _check_chords(loss, margin)
    return f"{count} chords"


def _check_chords(loss: Any, margin: float) -> int:
    z, y = _grid(loss, margin)
    values = loss.value(z, y)
    for step in (1, 7, 100):
        left, middle, right = z[: -2 * step], z[step:-step], z[2 * step :]
        share = (right - middle) / np.maximum(right - left, 1e-300)
        chord = share * values[: -2 * step] + (1 - share) * values[2 * step :]
        above = values[step:-step] - chord
        at = np.unravel_index(np.argmax(above), above.shape)
        require(
            above <= _ROUNDING * (1.0 + np.abs(chord)),
            f"{loss!r}: value at z = {show(middle[at[0]])}, y = {show(y[at[1]])} is "
            f"{show(above[at])} above the chord, so it is not convex",
        )
    return 3 * values.size


@promise(
    "the slope is a derivative of the value, and the gradient of the values",
    mend="make slope(z, y) the derivative of value(z, y) in z (any number between the two "
    "sides at a kink); gradient(theta, data) sums it over the records",
)
def check_slope(subject: Subject) -> str:
    count = 0
    for loss, margin in itertools.product(subject.margin_losses, MARGINS):
        count += _check_slopes(loss, margin)
    for loss, data, radius in _cases(subject):
        theta = _points(loss, data, radius)
        total = np.sum(loss.values(theta, data), axis=-1)
        slopes = loss.gradient(theta, data)
        ahead = theta[None] - theta[:, None]
        rise = total[None] - total[:, None]
        least = np.einsum("ijp,ip->ij", ahead, slopes)
        short = least - rise
        size = 1.0 + np.abs(rise) + np.abs(least) + np.abs(total)[None]
        require(
            short <= 1e-8 * size,
            f"{loss!r}: the line along gradient is up to "
            f"{show(np.max(short))} above the values, which it should touch",
        )
        count += short.size
    return f"{count} differences of value"


def _check_slopes(loss: Any, margin: float) -> int:
    """The slope lies between the difference quotients of both sides."""
    z, y = _grid(loss, margin)
    h = 1e-5 * max(1.0, margin)
    slope, here = loss.slope(z, y), loss.value(z, y)
    right = (loss.value(z + h, y) - here) / h
    left = (here - loss.value(z - h, y)) / h
    curve = loss.smoothness or 0.0
    slack = 1e-6 * (1.0 + np.abs(right) + np.abs(left)) + np.minimum(curve * h, 1e-3)
    off = np.maximum(slope - np.maximum(left, right), np.minimum(left, right) - slope) - slack
    at = np.unravel_index(np.argmax(off), off.shape)
    require(
        off <= 0.0,
        f"{loss!r}: slope({show(z[at[0]])}, {show(y[at[1]])}) is "
        f"{show(slope[at])}, and differences of value give {show(left[at])} to "
        f"{show(right[at])}",
    )
    return int(slope.size)


@promise(
    "no slope is larger than slope_bound says, and no gradient than lipschitz",
    mend="slope_bound(margin, target) is the largest |slope| over |z| <= margin and "
    "|y| <= target; the noise of every mechanism is in proportion to it",
)
def check_lipschitz(subject: Subject) -> str:
    count = 0
    for loss, margin, target in _widths(subject):
        z, y = _grid(loss, margin, target)
        most, bound = np.max(np.abs(loss.slope(z, y))), loss.slope_bound(margin, target)
        require(
            most <= bound * (1 + _ROUNDING),
            f"{loss!r}: slope_bound({margin:g}, "
            f"{target:g}) is {show(bound)}, and a slope is {show(most)}",
        )
        count += z.size * y.size
    for loss, data, radius in _cases(subject):
        each = _gradients(loss, data, radius)
        bound = loss.lipschitz(data.facts().bounds(radius))
        most = np.max(np.linalg.norm(each, axis=-1))
        require(
            most <= bound * (1 + _ROUNDING),
            f"{loss!r}: lipschitz is {show(bound)}, and a record's gradient has norm {show(most)}",
        )
        count += each.shape[0] * each.shape[1]
    return f"{count} slopes and gradients"


def _gradients(loss: Any, data: Data, radius: float) -> np.ndarray:
    """Every record's gradient at some points, [n, m, p]."""
    theta = _points(loss, data, radius)
    return np.stack([loss.gradient(theta, data.take(np.array([i]))) for i in range(data.n)])


@promise(
    "neither a record's loss nor the difference of two ranges over more than span, variation, "
    "oscillation and gradient_gap say",
    mend="span(margin, target) is the largest max - min of the loss over |z| <= margin, for "
    "any |y| <= target; it is the sensitivity of mechanisms that draw from exp(-loss)",
)
def check_span(subject: Subject) -> str:
    count = 0
    for loss, margin, target in _widths(subject):
        z, y = _grid(loss, margin, target)
        most, span = np.max(np.ptp(loss.value(z, y), axis=0)), loss.span(margin, target)
        require(
            most <= span * (1 + _ROUNDING),
            f"{loss!r}: span({margin:g}, "
            f"{target:g}) is {show(span)}, and the loss ranges over {show(most)}",
        )
        count += 1
    for loss, data, radius in _cases(subject):
        ball = make_ball(radius, loss.dimension(data.facts()))
        values = loss.values(_points(loss, data, radius, 30), data)
        each = _gradients(loss, data, radius)
        bounds = data.facts().bounds(radius)
        apart = each[:, None] - each[None]
        found = {
            "variation": (np.max(np.ptp(values, axis=0)), loss.variation(bounds, ball)),
            "oscillation": (
                np.max(np.ptp(values[:, :, None] - values[:, None], axis=0)),
                loss.oscillation(bounds, ball),
            ),
            "gradient_gap": (np.max(np.linalg.norm(apart, axis=-1)), loss.gradient_gap(bounds)),
        }
        require_bounds(repr(loss), found, _ROUNDING)
        count += 3
    return f"{count} ranges"


@promise(
    "the slope changes by no more than smoothness times the distance, where one is declared",
    mend="smoothness is a bound on the second derivative of value; a loss with a kink has "
    "none: smoothness = None",
)
def check_smoothness(subject: Subject) -> str:
    smooth = Subject(tuple(loss for loss in subject.examples if loss.smoothness is not None))
    if not smooth.examples:
        raise NotTried("none is declared")
    count = 0
    for loss, margin in itertools.product(smooth.margin_losses, MARGINS):
        count += _check_bends(loss, margin)
    for loss, data, radius in _cases(smooth):
        bound = loss.curvature_bound(data.facts().bounds(radius))
        theta = _points(loss, data, radius, 40)
        move = 0.05 * radius * theta[::-1] / np.linalg.norm(theta[::-1], axis=1, keepdims=True)
        for i in range(data.n):
            record = data.take(np.array([i]))
            turn = loss.gradient(theta + move, record) - loss.gradient(theta, record)
            most = np.max(np.linalg.norm(turn, axis=1) / np.linalg.norm(move, axis=1))
            require(
                most <= bound * (1 + 1e-6),
                f"{loss!r}: curvature_bound is {show(bound)}, "
                f"and a gradient turns by {show(most)} times the distance: it is not that "
                "smooth",
            )
            count += len(theta)
    return f"{count} pairs of points"


def _check_bends(loss: Any, margin: float) -> int:
    z, y = _grid(loss, margin)
    for h in (1e-4, 1e-2, 0.3):
        change = np.abs(loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h)
        at = np.unravel_index(np.argmax(change), change.shape)
        require(
            change <= loss.smoothness * (1 + 1e-6),
            f"{loss!r}: smoothness is "
            f"{show(loss.smoothness)}, and near z = {show(z[at[0]])}, y = {show(y[at[1]])} the "
            f"slope changes by {show(change[at])} times the distance",
        )
    return 3 * z.size * y.size


@promise(
    "the conjugate is sup_z (a z - l(z; y)): Fenchel-Young holds with equality at the slope",
    mend="conjugate(a, y) is the supremum over z of a z - value(z, y), +inf where that is "
    "not bounded; without one (conjugate absent) certificates use tangents",
)
def check_conjugate(subject: Subject) -> str:
    found = [loss for loss in subject.need_margin_losses() if loss.conjugate is not None]
    if not found:
        raise NotTried("none is declared")
    count = 0
    for loss in found:
        z, y = _grid(loss, 3.0)
        value, slope = loss.value(z, y), loss.slope(z, y)
        a = np.unique(np.concatenate([slope.ravel(), 0.5 * slope.ravel()]))[:: max(1, z.size // 50)]
        own = loss.conjugate(slope, y)
        gap = own + value - slope * z
        at = np.unravel_index(np.argmax(np.abs(gap)), gap.shape)
        require(
            np.abs(gap) <= 1e-8 * (1 + np.abs(value)),
            f"{loss!r}: at z = "
            f"{show(z[at[0]])}, y = {show(y[at[1]])}, a = slope = {show(slope[at])}, conjugate "
            f"+ value - a z is {show(gap[at])} and should be 0",
        )
        for one in a:
            short = np.max(one * z - value, axis=0) - loss.conjugate(np.full(y.shape, one), y)
            require(
                short <= 1e-8,
                f"{loss!r}: conjugate({show(one)}, y) is "
                f"{show(np.max(short))} below the supremum that it should be",
            )
            count += z.size * y.size
        count += _check_finite_conjugate(loss, slope, y)
    return f"{count} inequalities"


def _check_finite_conjugate(loss: Any, slope: np.ndarray, y: np.ndarray) -> int:
    """Between two slopes of a record's loss the conjugate is finite and convex."""
    low, high = slope.min(axis=0), slope.max(axis=0)
    shares = np.linspace(0.0, 1.0, 21)[:, None]
    a = low + shares * (high - low)
    found = loss.conjugate(a, np.broadcast_to(y, a.shape))
    require(np.isfinite(found), f"{loss!r}: conjugate is not finite between two slopes")
    bend = found[1:-1] - 0.5 * (found[:-2] + found[2:])
    require(bend <= 1e-8 * (1 + np.abs(found[1:-1])), f"{loss!r}: conjugate is not convex")
    return int(a.size)


@promise(
    "pieces, curvature and the lower bounds of certificates agree with the value",
    mend="pieces(y) = (sign, offset, up, down) with value = up max(r, 0) + down max(-r, 0) at "
    "r = sign z + offset; curvature is the derivative of slope; leave out what you have "
    "not",
)
def check_capabilities(subject: Subject) -> str:
    seen = ["tangents"]
    for loss in subject.margin_losses:
        z, y = _grid(loss, 3.0)
        if loss.pieces is not None:
            sign, offset, up, down = loss.pieces(y)
            r = sign * z + offset
            made = up * np.maximum(r, 0) + down * np.maximum(-r, 0)
            require(_near(made, loss.value(z, y)), f"{loss!r}: its pieces are not its value")
            seen.append("pieces")
        if loss.curvature is not None:
            _check_curvature(loss)
            seen.append("curvature")
    for loss, data, radius in _cases(subject):
        _check_minorant(loss, data, radius)
    return ", ".join(dict.fromkeys(seen))


def _check_curvature(loss: Any) -> None:
    z, y = np.linspace(-4.0, 4.0, 161)[:, None] + 0.0123, _targets(loss)
    h = 1e-5
    numeric = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h)
    off = np.abs(loss.curvature(z, y) - numeric)
    # at the ends of a rounded kink the second derivative jumps
    require(
        np.mean(off > 1e-4) <= 0.02,
        f"{loss!r}: curvature is up to {show(np.max(off))} off the derivative of slope",
    )


def _check_minorant(loss: Any, data: Data, radius: float) -> None:
    theta = _points(loss, data, radius)
    total = np.sum(loss.values(theta, data), axis=-1)
    for row, value in zip(theta, total, strict=True):
        found = loss.minorant(loss.dual(row, data), data)
        line = theta @ found.slope + found.constant
        size = 1e-8 * (1.0 + np.abs(total) + np.abs(line))
        require(line <= total + size, f"{loss!r}: minorant is above the summed loss")
        at = float(row @ found.slope + found.constant)
        if isinstance(loss, Glm) and loss.conjugate is not None:
            require(
                abs(at - value) <= 1e-6 * (1.0 + abs(value)),
                f"{loss!r}: minorant does not touch the loss at its dual point",
            )


@promise(
    "large margins give finite values and slopes",
    mend="an exponential of a large number "
    "overflows: np.logaddexp(0, -z), scipy.special.expit and np.maximum do not",
)
def check_large_margins(subject: Subject) -> str:
    for loss in subject.need_margin_losses():
        y = _targets(loss)
        z = np.array([-LARGE, -800.0, -40.0, 40.0, 800.0, LARGE])[:, None]
        for word, found in (("value", loss.value(z, y)), ("slope", loss.slope(z, y))):
            if not np.all(np.isfinite(found)):
                at = z[np.argmax(~np.all(np.isfinite(found), axis=1)), 0]
                raise Broken(f"{loss!r}: {word} at z = {at:g} is not finite")
    return f"margins up to {LARGE:g}"
