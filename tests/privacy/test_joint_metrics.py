"""Several metrics from one release: what one record moves, what is charged, what comes out."""

import itertools
import json
import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.metrics.absolute_error import AbsoluteError, find_deviation
from dperm_cli.privacy.metrics.accuracy import Accuracy
from dperm_cli.privacy.metrics.area_under_curve import AreaUnderCurve
from dperm_cli.privacy.metrics.base import FINE_STEP, HeldOut
from dperm_cli.privacy.metrics.calibration import Calibration
from dperm_cli.privacy.metrics.confusion import Confusion
from dperm_cli.privacy.metrics.groups import GroupAccuracy, GroupError
from dperm_cli.privacy.metrics.joint_plan import plan_metrics, release_metrics
from dperm_cli.privacy.metrics.log_loss import LogLoss
from dperm_cli.privacy.metrics.squared_error import SquaredError

CLASSES, GROUPS = ("no", "yes"), ("f", "m", "other")
LABELS = (Accuracy(), Confusion(CLASSES), LogLoss(), AreaUnderCurve(), GroupAccuracy(GROUPS))
NUMBERS = (SquaredError(), AbsoluteError(), GroupError(GROUPS))
BUDGET = Budget(1.0, 0.0)


def label_records(labels, predictions, scores, chances, groups):
    return HeldOut(*(np.array(part) for part in (labels, predictions, scores, chances, groups)))


def make_labels(records, rng):
    labels = rng.integers(0, 2, records)
    scores = np.clip(rng.normal(0.4 * labels - 0.2, 0.3), -1, 1)
    likely = 1 / (1 + np.exp(-6 * scores))
    own = np.where(labels == 1, likely, 1 - likely)
    return HeldOut(labels, (scores >= 0).astype(int), scores, own, rng.integers(0, 3, records))


def make_numbers(records, rng):
    y = np.clip(rng.normal(0, 0.4, records), -1, 1)
    found = np.clip(0.8 * y + rng.normal(0, 0.1, records), -1, 1)
    return HeldOut(y, found, groups=rng.integers(0, 3, records))


def list_single_records(metric):
    """Records that hold the extremes and points between."""
    if metric in NUMBERS:
        values = [-1.0, -0.5, -1 / 3, 0.0, 0.5, 1.0]
        for y, found, group in itertools.product(values, values, (0, 2)):
            yield HeldOut(np.array([y]), np.array([found]), groups=np.array([group]))
        return
    values = (0, 1), (0, 1), (-1.0, 0.3, 1.0), (1.0, 0.5, 1e-9), (0, 2)
    for parts in itertools.product(*values):
        yield label_records(*([part] for part in parts))


@pytest.mark.parametrize("metric", [*LABELS, *NUMBERS], ids=lambda metric: metric.name)
def test_one_record_moves_the_sums_by_the_stated_sensitivities(metric):
    sums = [metric.add_up(held) * metric.step for held in list_single_records(metric)]
    assert all(len(one) == metric.dim for one in sums)
    moves = [np.abs(a - b) for a, b in itertools.combinations(sums, 2)]
    l1, l2 = max(one.sum() for one in moves), max(math.sqrt(one @ one) for one in moves)
    assert 0.99 * metric.l1 <= l1 <= metric.l1 * (1 + 1e-15)
    assert 0.99 * metric.l2 <= l2 <= metric.l2 * (1 + 1e-15)


@pytest.mark.parametrize("metric", [*LABELS, *NUMBERS], ids=lambda metric: metric.name)
def test_sums_are_those_of_single_records_in_any_order(metric):
    rng = np.random.default_rng(4)
    held = (make_numbers if metric in NUMBERS else make_labels)(50, rng)
    parts = held.labels, held.predictions, held.scores, held.chances, held.groups
    order = rng.permutation(50)

    def take(rows):
        return HeldOut(*(None if part is None else part[rows] for part in parts))

    one_by_one = sum(metric.add_up(take([row])) for row in range(50))
    assert one_by_one.dtype == np.int64
    assert (metric.add_up(take(order)) == one_by_one).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("metrics", [LABELS, NUMBERS, (Accuracy(),)])
def test_one_event_pays_for_all_sums(metrics, delta):
    plan = plan_metrics(metrics, 5000, Budget(0.5, delta))
    l1 = sum(metric.l1 for metric in metrics)
    l2 = math.sqrt(sum(metric.l2**2 for metric in metrics))
    moved = plan.event.sensitivity("replace_one")
    assert moved == pytest.approx(l1 if isinstance(plan.event, Laplace) else l2)
    assert 0.49 < account([plan.event], delta=delta, relation="replace_one").epsilon <= 0.5
    assert plan.grid.step <= min(metric.step for metric in metrics)


def test_a_gaussian_plan_is_as_hard_to_tell_apart_as_it_says():
    plan = plan_metrics(LABELS, 5000, BUDGET, mu=0.25)
    assert isinstance(plan.event, Gaussian)
    assert plan.event.ratio("replace_one") == pytest.approx(0.25, rel=1e-12)
    assert plan.event.ratio("replace_one") <= 0.25


def test_metrics_of_the_same_counts_share_them():
    both = plan_metrics((AreaUnderCurve(), Calibration()), 500, BUDGET)
    one = plan_metrics((Calibration(),), 500, BUDGET)
    assert (both.event, both.dim) == (one.event, one.dim)


def release(metrics, held, epsilon=50.0):
    plan = plan_metrics(metrics, held.records, Budget(epsilon, 0.0))
    return release_metrics(plan, held, plan.open_secure_gate())


def test_figures_of_labels_are_those_of_the_records():
    held = make_labels(4000, np.random.default_rng(1))
    metrics = (*LABELS, Calibration())
    out = release(metrics, held)
    found = out.describe(chance_of_score=lambda s: 1 / (1 + math.exp(-6 * s)))
    json.dumps(found, allow_nan=False)
    right = held.labels == held.predictions
    assert found["accuracy"]["estimate"] == pytest.approx(right.mean(), abs=0.002)
    matrix = np.array(found["confusion"]["noisy_counts_by_label_and_prediction"])
    exact = [[np.sum((held.labels == k) & (held.predictions == j)) for j in (0, 1)] for k in (0, 1)]
    assert np.abs(matrix - exact).max() <= 5
    largest = found["confusion"]["majority_baseline"]
    share = max(held.labels.mean(), 1 - held.labels.mean())
    assert largest["estimate"] == pytest.approx(share, abs=0.002)
    low, high = largest["interval_for_the_population"]
    assert low <= share <= high
    loss = np.minimum(-np.log(held.chances), 4.0).mean()
    assert found["log_loss"]["estimate"] == pytest.approx(loss, abs=0.002)
    positive, negative = held.scores[held.labels == 1], held.scores[held.labels == 0]
    area = (positive[:, None] > negative).mean()
    assert found["auc"]["estimate"] == pytest.approx(area, abs=0.01)
    for k, name in enumerate(GROUPS):
        one = found["accuracy_by_group"][name]
        assert one["estimate"] == pytest.approx(right[held.groups == k].mean(), abs=0.01)
    rows = found["calibration"]["rows"]
    assert sum(row["noisy_count"] for row in rows) == pytest.approx(4000, abs=30)
    assert sum(row["interval_for_the_population"][0] <= row["share_of_positives"]
               <= row["interval_for_the_population"][1] for row in rows) == 8  # fmt: skip
    assert found["confusion"]["recall"]["yes"]["estimate"] == pytest.approx(
        right[held.labels == 1].mean(), abs=0.005
    )


@pytest.mark.parametrize("name", ["log_loss", "r2"])
def test_intervals_of_95_percent_hold_in_so_many_releases(name):
    """Of 40 with fresh noise at least 32: fewer have a chance of 0.00013 where 95 % hold."""
    rng = np.random.default_rng(1)
    if name == "log_loss":
        held, metrics = make_labels(4000, rng), LABELS
        exact = np.minimum(-np.log(held.chances), 4.0).mean()
    else:
        held, metrics = make_numbers(4000, rng), NUMBERS
        exact = 1 - np.mean((held.labels - held.predictions) ** 2) / np.var(held.labels)
    covered = 0
    for _ in range(40):
        found = release(metrics, held).describe()
        low, high = found[name]["interval_for_these_records"]
        covered += low <= exact <= high
    assert covered >= 32


def test_figures_of_numbers_are_those_of_the_records():
    held = make_numbers(4000, np.random.default_rng(1))
    found = release(NUMBERS, held).describe(unit=10.0)
    json.dumps(found, allow_nan=False)
    residual = held.labels - held.predictions
    r2 = 1 - np.mean(residual**2) / np.var(held.labels)
    assert found["r2"]["estimate"] == pytest.approx(r2, abs=0.01)
    low, high = found["r2"]["interval_for_these_records"]
    assert high <= low + 0.1
    base = found["r2"]["mean_squared_error_of_the_mean_baseline"]
    assert base["estimate"] == pytest.approx(100 * np.var(held.labels), rel=0.02)
    assert found["mae"]["estimate"] == pytest.approx(10 * np.abs(residual).mean(), rel=0.02)
    deviation = 10 * np.abs(held.labels - held.labels.mean()).mean()
    assert found["mae"]["mean_baseline"]["estimate"] == pytest.approx(deviation, rel=0.02)
    for k, name in enumerate(GROUPS):
        exact = 10 * np.abs(residual[held.groups == k]).mean()
        one = found["mae_by_group"][name]
        assert one["estimate"] == pytest.approx(exact, rel=0.05)
        low, high = one["interval_for_the_population"]
        assert low <= exact <= high


def test_the_deviation_from_the_mean_is_read_off_the_bins():
    rng = np.random.default_rng(0)
    values = np.clip(rng.normal(0.1, 0.3, 50_000), -1, 1)
    counts = np.histogram(values, 32, (-1, 1))[0]
    exact = np.abs(values - values.mean()).mean()
    assert find_deviation(counts) == pytest.approx(exact, abs=1 / 32)
    assert find_deviation(-counts) == 0.0


@pytest.mark.parametrize("metrics", [LABELS, NUMBERS])
def test_noise_lies_on_the_grid_and_hardly_any_may_hide_all(metrics):
    """At a hundredth of epsilon figures say little, and none of them fails."""
    rng = np.random.default_rng(8)
    held = (make_labels if metrics is LABELS else make_numbers)(60, rng)
    out = release((*metrics, Calibration()) if metrics is LABELS else metrics, held, 0.05)
    step = out.plan.grid.step
    assert all(np.all(part / step == np.rint(part / step)) for part in out.sums.values())
    json.dumps(out.describe(chance_of_score=lambda s: 0.5 + s / 2), allow_nan=False)


class Playback:
    """A tape that gives every release what it was given first: noise can have made it."""

    def __init__(self):
        self.heard, self.moves = [], []

    def take_draw(self, stream, value, drawn, public):
        if not self.heard:
            self.heard += [drawn, value]
            return drawn
        self.moves.append(np.abs(value - self.heard[1]).sum())
        return self.heard[0]


@pytest.mark.parametrize("metrics", [(*LABELS, Calibration()), NUMBERS])
def test_neighbours_with_the_same_noisy_sums_give_the_same_figures(metrics):
    rng = np.random.default_rng(3)
    make = make_numbers if metrics is NUMBERS else make_labels
    held, other = make(200, rng), make(200, rng)
    parts = [(getattr(held, name), getattr(other, name))
             for name in ("labels", "predictions", "scores", "chances", "groups")]  # fmt: skip
    swapped = [None if a is None else np.append(a[:-1], b[-1]) for a, b in parts]
    plan, tape = plan_metrics(metrics, 200, BUDGET), Playback()
    texts = []
    for records in (held, HeldOut(*swapped)):
        gate = Gate.secure(1, plan.grid, ([plan.event], "replace_one"), tape)
        out = release_metrics(plan, records, gate)
        texts.append(json.dumps(out.describe(chance_of_score=lambda s: 0.5 + s / 2)))
    assert texts[0] == texts[1]
    assert 0 < tape.moves[0] <= plan.event.sensitivity("replace_one") + 1e-12


def test_bad_input_is_refused():
    held = make_labels(10, np.random.default_rng(0))
    plan = plan_metrics((LogLoss(),), 10, BUDGET)
    with pytest.raises(InputError, match="needs a loss with probabilities"):
        release_metrics(plan, HeldOut(held.labels, held.predictions), plan.open_secure_gate())
    nine = HeldOut(held.labels[1:], held.predictions[1:])
    with pytest.raises(InputError, match="the plan is for 10 records"):
        release_metrics(plan, nine, plan.open_secure_gate())
    with pytest.raises(InputError, match="one for each label"):
        HeldOut(held.labels, held.predictions[1:])
    with pytest.raises(InputError, match="different ones"):
        plan_metrics((LogLoss(), LogLoss()), 10, BUDGET)
    with pytest.raises(InputError, match="records=0"):
        plan_metrics((LogLoss(),), 0, BUDGET)
    with pytest.raises(Unsupported, match="public number"):
        plan_metrics((LogLoss(),), 10, Budget(1.0, 0.0, "add_remove"))
    gate = plan.open_secure_gate()
    release_metrics(plan, held, gate)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        release_metrics(plan, held, gate)
    with pytest.raises(InputError, match="alpha"):
        release_metrics(plan, held, plan.open_secure_gate()).describe(1e-9)


def test_contributions_are_whole_steps():
    held = HeldOut(np.array([0.3]), np.array([0.1]))
    sums = SquaredError().add_up(held)
    assert sums.tolist() == [round(0.3 / FINE_STEP), round(0.09 / FINE_STEP),
                             round(0.16 / FINE_STEP)]  # fmt: skip
