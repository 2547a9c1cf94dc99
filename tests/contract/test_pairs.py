"""Every loss on every set, by every mechanism, the way ``dperm run`` goes."""

from __future__ import annotations

import copy
import math
from typing import ClassVar

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run

SETS = registry.names("constraint")
# These take every pair; of the others each pair gets one, in turn, and may say why not. In the
# default suite a pair gets one of the first, and every other pair one of the others.
ALWAYS = ("noisy_gd", "noisy_sgd")
OTHERS = tuple(name for name in registry.list_protective() if name not in ALWAYS)
N, P, EPSILON, STEPS = 16, 3, 2.0, 20
CLASSES = ("low", "middle", "high")
# Keys that a set cannot do without.
NEEDED = {
    "ellipsoid": ("constraint.condition=3",),
    "image": (
        "constraint.inner={name: l1_ball, radius: 2}",
        "constraint.matrix={matrix}",
        "constraint.radius=1",
    ),
    "intersection": ("constraint.inner={name: box, radius: 1.5}", "constraint.radius=2"),
    "polytope": ("constraint.vertices={vertices}",),
}
# The metric of each task, and where its values lie.
METRICS = {
    "binary": ("accuracy", 0.0, 1.0),
    "multiclass": ("accuracy", 0.0, 1.0),
    "regression": ("r2", -math.inf, 1.0),
    "location": ("mean_distance", 0.0, math.inf),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Words that choose a data set of each task: n records of unit rows, some held out."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N + N // 4, P))
    score = x[:, 0] / np.linalg.norm(x, axis=1) + 0.1 * rng.standard_normal(len(x))
    x += 1.5 * np.eye(P)[1]  # so that a location has something to find
    columns = {
        "binary": np.where(score < 0, -1, 1),
        "multiclass": np.array(CLASSES)[np.digitize(score, [-0.3, 0.3])],
        "regression": np.clip(score, -1.0, 1.0),
        "location": None,
    }
    return folder, {task: _table(folder, task, x, y) for task, y in columns.items()}


def _table(folder, task, x, y):
    path = folder / f"{task}.csv"
    cells = [[f"{v:.6f}" for v in row] for row in x]
    labels = [[]] * len(x) if y is None else [[str(label)] for label in y]
    path.write_text("\n".join(",".join([*a, *b]) for a, b in zip(cells, labels, strict=True)))
    words = [
        "dataset=csv",
        f"dataset.path={path.name}",
        f"dataset.task={task}",
        "dataset.header=false",
    ]
    words += ["dataset.labels=[low, middle, high]"] if task == "multiclass" else []
    words += ["dataset.target_bounds=[-1, 1]"] if task == "regression" else []
    return words


def _set_words(shape, p):
    """The set of this name in dimension p, with what it needs."""
    matrix = (np.eye(p) + 0.2 * np.ones((p, p))).tolist()
    vertices = (2.0 * np.vstack([np.eye(p), -np.eye(p)])).tolist()
    keys = [
        word.replace("{matrix}", str(matrix)).replace("{vertices}", str(vertices))
        for word in NEEDED.get(shape, ("constraint.radius=2",))
    ]
    return [f"constraint={shape}", *keys]


class QuickComposer(study_plan.Composer):
    """Composes each choice of one group once and puts the groups together: the folder's groups do
    not refer to one another, and Hydra would take longer over the pairs than all releases."""

    parts: ClassVar[dict] = {}

    def compose(self, chosen):
        for choice in [(None, None), *chosen.items()]:
            if choice not in self.parts:
                words = {} if choice == (None, None) else dict([choice])
                self.parts[choice] = super().compose(words)
        groups = {group: self.parts[group, name][group] for group, name in chosen.items()}
        return copy.deepcopy({**self.parts[None, None], **groups})


def test_quick_composition_is_the_real_one():
    words = {"loss": "hinge", "constraint": "lp_ball", "mechanism": "noisy_sgd"}
    assert QuickComposer().compose(words) == study_plan.Composer().compose(words)


def _rows(words, optimum_of):
    (prepared,) = run.prepare(study_plan.plan_study(parse(words)).cells)
    return run_cell.run(prepared, optimum_of, debug=True)


def _mechanisms(turn, whole):
    if whole:
        return (*ALWAYS, OTHERS[turn % len(OTHERS)])
    return (ALWAYS[turn % 2], *([OTHERS[turn // 2 % len(OTHERS)]] if turn % 2 else []))


@pytest.mark.in_turn
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", registry.names("loss"))
def test_every_pair_runs_with_a_certified_gap(loss, whole, tables, monkeypatch):
    monkeypatch.setattr(study_plan, "Composer", QuickComposer)
    folder, tables = tables
    monkeypatch.chdir(folder)  # noise goes by the path as it is given: the same in every run
    optimum_of = make_solver()
    turn = 5 * registry.names("loss").index(loss)
    for task in registry.load("loss", loss).tasks:
        p = P * len(CLASSES) if task == "multiclass" else P
        for shape in SETS:
            turn += 1
            for mechanism in _mechanisms(turn, whole):
                words = [*tables[task], f"loss={loss}", *_set_words(shape, p), *_words(mechanism)]
                words.append("dataset.intercept=false")
                rows = _rows(words, optimum_of)
                if mechanism not in ALWAYS and rows[0]["status"] == "unsupported":
                    assert len(rows[0]["reason"]) > 20
                    continue
                _assert_sound(rows, METRICS[task], f"{task} {loss} {shape} {mechanism}")


def _words(mechanism):
    words = [f"mechanism={mechanism}", f"epsilon={EPSILON}", "trials=2"]
    strong = "strong_convexity" in getattr(registry.load("mechanism", mechanism), "requires", ())
    words += ["ridge=0.5"] if strong else []
    if registry.load("mechanism", mechanism).sampler is not None:
        words.append("sampler.most_seconds=2")  # a longer draw is refused, with its reason
    return [*words, f"mechanism.steps={STEPS}"] if mechanism in ALWAYS else words


def _assert_sound(rows, metric, which):
    name, least, most = metric
    assert [row["trial"] for row in rows] == [0, 1], (which, rows[0]["reason"])
    for row in rows:
        assert row["status"] == "ok", which
        floor, gap = row["floor_excess_risk"], row["optimum_gap"]
        assert floor > 0, which
        assert gap <= 1e-6 * floor, which
        assert -gap <= row["excess_risk"] < math.inf, which
        assert 0 < row["epsilon_accounted"] <= EPSILON, which
        assert row["metric"] == name, which
        assert least <= row["train_metric"] <= most, which
        assert least <= row["test_metric"] <= most, which
    # of two draws among few corners, or minimisers stuck at one, both may be the same
    if rows[0]["mechanism"] in ALWAYS:
        assert not np.array_equal(rows[0]["theta"], rows[1]["theta"]), which
