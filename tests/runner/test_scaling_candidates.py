"""``tune={dataset.scaling: [...]}``: rows under several scalings, one of which is chosen."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from dperm_cli.audit import hard_pairs
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.audit.replay import replay
from dperm_cli.core.candidate_lists import SCALING
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import configure
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.estimators.classifiers import PrivateLogisticRegression
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.multinomial import Multinomial
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.combinators.private_selection import PrivateSelection
from dperm_cli.mechanisms.shared import tuning_candidates
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import NegativeBinomialSelection, PoissonSelection
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import pad_with_zeros
from dperm_cli.problem.data_folder import read_folder, write_folder
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.audits import audit_cells, neighbour_runs
from dperm_cli.runner.cells import metrics, run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.models import model_file, save_model
from dperm_cli.runner.sweep import preflight
from dperm_cli.runner.verbs import run
from dperm_cli.sets import make_ball
from dperm_cli.sets.ellipsoid import Ellipsoid
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.lp_ball import LpBall
from dperm_cli.sets.simplex import Simplex
from dperm_cli.views.central import CentralView

BOTH = ["none", "bounds"]
TUNE = "tune={dataset.scaling: [none, bounds]}"
BOUNDS = ((0.0, 1.0), (0.0, 1000.0), (0.0, 1.0))
BUDGET = Budget(1.0, 1e-6)
REPLACE, REMOVE = "replace_one", "add_remove"


def make_records(n=60, seed=0):
    """Raw rows [n, 3] whose second column has large numbers and says nothing, with labels."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.uniform(0, 1, n), rng.uniform(0, 1000, n), rng.uniform(0, 1, n)])
    return x, np.where(x[:, 0] - x[:, 2] + 0.05 * rng.normal(size=n) > 0.0, 1.0, -1.0)


@pytest.fixture
def words(tmp_path):
    """The words of a table of 60 records."""
    return write_words(tmp_path / "table.npz", *make_records())


def write_words(path, x, y, bounds="[[0,1],[0,1000],[0,1]]"):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, x=x, y=y)
    return ["dataset=npz", f"dataset.path={path}", f"dataset.bounds={bounds}"]


def read_table(folder, x, y, **keys):
    """The data set of an archive of these records, with the keys of its rows."""
    np.savez(folder / "records.npz", x=x, y=y)
    return Npz(path=str(folder / "records.npz"), **({"bounds": BOUNDS} | keys))


def load_both(folder, **keys):
    """The records under both scalings, and each of them alone, by its name."""
    made = read_table(folder, *make_records(), **keys)
    joint = dataclasses.replace(made, scaling="none", scalings=BOTH).load()
    return joint, {name: made.take_scaling(name).load() for name in BOTH}


def pose(data, loss=None, radius=10.0, **penalty):
    loss = loss or Logistic()
    return Problem(data, loss, make_ball(radius, loss.dimension(data.facts())), **penalty)


def plan(*words):
    return study_plan.plan_study(parse(list(words))).cells


def prepare(*words):
    (prepared,) = run.prepare(plan(*words))
    return prepared


def rows(*words):
    return run_cell.run(prepare(*words), make_solver(), debug=True)


def release(mechanism, problem, budget=BUDGET, trials=6):
    found = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(0, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, None, (found.events, budget.relation))
    return mechanism.release(CentralView(problem), found, gate)


class TestRows:
    @pytest.mark.parametrize("keys", [
        {}, {"rows": "clip", "row_bound": 3.0}, {"norm": "inf"}, {"norm": 1, "intercept": False},
        {"rows": "none", "row_bound": 500.0, "test_fraction": 0.0}, {"centred": False},
    ])  # fmt: skip
    def test_a_block_is_what_its_scaling_makes_alone(self, keys, tmp_path):
        joint, alone = load_both(tmp_path, **keys)
        for block, (name, data) in zip(joint.blocks, alone.items(), strict=True):
            own = slice(block.start, block.stop)
            assert (block.name, block.width, block.row_bound) == (name, data.p, data.row_bound)
            assert joint.x[:, own].tobytes() == data.x.tobytes()
            assert (joint.x_test is None) == (data.x_test is None)
            if data.x_test is not None:
                assert joint.x_test[:, own].tobytes() == data.x_test.tobytes()
            assert joint.names.tolist() == data.names.tolist()
            assert joint.y.tolist() == data.y.tolist()
        assert joint.row_bound == math.hypot(*(data.row_bound for data in alone.values()))
        assert np.all(np.linalg.norm(joint.x, axis=1) <= joint.row_bound)

    def test_the_source_is_left_as_it_was(self, tmp_path):
        """Arrays of a reader that may be changed in place serve both scalings."""
        x, y = make_records()
        made = read_table(tmp_path, x, y, test_fraction=0.0)
        raw = made.raw()
        assert raw.owned
        dataclasses.replace(made, scaling="none", scalings=BOTH).load()
        assert raw.x.tolist() == x.tolist()

    def test_sparse_rows_stay_sparse(self, tmp_path):
        path = tmp_path / "a.svm"
        path.write_text("1 1:0.5 3:2\n-1 2:1\n1 1:1 2:0.25 3:4\n")
        keys = {"path": str(path), "n_features": 3, "test_fraction": 0.0, "rows": "clip",
                "bounds": ((0.0, 1.0), (0.0, 1.0), (0.0, 4.0)), "centred": False}  # fmt: skip
        made = Svmlight(**keys)
        joint = dataclasses.replace(made, scalings=BOTH).load()
        alone = [made.take_scaling(name).load().x.toarray() for name in BOTH]
        assert joint.x.format == "csr"
        assert joint.x.toarray().tolist() == np.hstack(alone).tolist()
        (view,) = tuning_candidates.list_views(CentralView(pose(joint)), [{SCALING: "bounds"}])
        assert view.x.toarray().tolist() == alone[1].tolist()

    @pytest.mark.parametrize("rows", ["unit", "clip"])
    def test_neighbours_are_one_record_apart_under_every_scaling(self, rows, tmp_path):
        x, y = make_records()
        other_x, other_y = x.copy(), y.copy()
        other_x[7], other_y[7] = (1.0, 0.0, 1e9), -y[7]
        keys = {"scaling": "none", "scalings": BOTH, "rows": rows}
        one, other = (read_table(tmp_path, *pair, **keys).load() for pair in
                      ((x, y), (other_x, other_y)))  # fmt: skip
        apart = np.flatnonzero(np.any(one.x != other.x, axis=1))
        held = np.flatnonzero(np.any(one.x_test != other.x_test, axis=1))
        assert len(apart) + len(held) == 1
        kept = ("blocks", "row_bound", "entry_bound", "preprocessing", "target_bound", "name")
        assert all(getattr(one, name) == getattr(other, name) for name in kept)
        keys["test_fraction"] = 0.0
        fewer = read_table(tmp_path, np.delete(x, 7, 0), np.delete(y, 7), **keys).load()
        whole = read_table(tmp_path, x, y, **keys).load()
        assert np.delete(whole.x, 7, 0).tobytes() == fewer.x.tobytes()

    def test_workers_read_the_same_blocks(self, tmp_path):
        joint, _ = load_both(tmp_path)
        write_folder(tmp_path / "spool", joint)
        found = read_folder(tmp_path / "spool")
        assert found.blocks == joint.blocks
        assert found.facts().blocks == joint.facts().blocks
        assert found.with_rows(found.x[:, :2]).blocks == ()

    def test_memory_is_planned_for_the_columns_of_all(self, words, tmp_path):
        study = study_plan.plan_study(parse([*words, "mechanism=noisy_gd", TUNE]))
        radii = "tune={constraint.radius: [1, 10]}"
        alone = study_plan.plan_study(parse([*words, "mechanism=noisy_gd", radii]))
        both, one = (preflight.list_needs(s.cells, s.keys, tmp_path)[0] for s in (study, alone))
        assert (both.p, one.p) == (6, 3)
        assert both.memory > one.memory
        assert both.seconds > one.seconds


class TestProblem:
    @pytest.mark.parametrize("keys", [{}, {"norm": "inf"}, {"rows": "clip", "row_bound": 3.0}])
    @pytest.mark.parametrize("choice", [{}, {"constraint.radius": 2.0, "ridge": 0.5}])
    def test_a_candidate_is_the_problem_of_the_table_of_its_scaling(self, choice, keys, tmp_path):
        joint, alone = load_both(tmp_path, **keys)
        whole = CentralView(pose(joint, ridge=0.1))
        for name, data in alone.items():
            one = {SCALING: name, **choice}
            table = pose(data, radius=choice.get("constraint.radius", 10.0),
                         ridge=choice.get("ridge", 0.1))  # fmt: skip
            (view,) = tuning_candidates.list_views(whole, [one])
            assert view.spec == tuning_candidates.change_facts(whole.spec, one) == table.spec()
            assert view.x.tobytes() == table.data.x.tobytes()
            theta = np.random.default_rng(0).normal(size=(4, table.p))
            inside = tuning_candidates.embed_points(theta, whole.spec, one)
            assert whole.objective(inside) - 0.05 * joint.n * np.sum(theta**2, 1) == pytest.approx(
                table.objective(theta) - table.ridge / 2.0 * joint.n * np.sum(theta**2, 1)
            )

    def test_with_classes_a_block_has_the_parameters_of_its_columns(self, tmp_path):
        x, _ = make_records()
        y = np.arange(60) % 3
        keys = {"task": "multiclass", "labels": [0, 1, 2]}
        made = read_table(tmp_path, x, y, **keys)
        joint = dataclasses.replace(made, scaling="none", scalings=BOTH).load()
        problem = pose(joint, Multinomial())
        for name in BOTH:
            table = pose(made.take_scaling(name).load(), Multinomial())
            theta = np.random.default_rng(1).normal(size=(2, table.p))
            spec = tuning_candidates.change_facts(problem.spec(), {SCALING: name})
            assert spec == table.spec()
            inside = tuning_candidates.embed_points(theta, problem.spec(), {SCALING: name})
            assert problem.objective(inside) == pytest.approx(table.objective(theta))

    def test_candidates_of_one_scaling_share_its_rows(self, tmp_path):
        joint, _ = load_both(tmp_path)
        choices = tuning_candidates.list_choices({SCALING: BOTH, "ridge": [0.0, 0.1]})
        first, second, third, _ = tuning_candidates.list_views(CentralView(pose(joint)), choices)
        assert first.x is second.x
        assert first.x is not third.x
        assert (first.spec.ridge, second.spec.ridge, third.spec.ridge) == (0.0, 0.1, 0.0)

    def test_rows_of_a_block_beyond_its_bound_are_shortened(self, tmp_path):
        """What noise is made for holds for any rows, whoever made them."""
        joint, _ = load_both(tmp_path)
        problem = pose(dataclasses.replace(joint, x=5.0 * joint.x))
        for block in joint.blocks:
            (view,) = tuning_candidates.list_views(CentralView(problem), [{SCALING: block.name}])
            assert np.max(np.linalg.norm(view.x, axis=1)) <= block.row_bound

    def test_sets_that_are_no_ball_of_a_norm_have_no_candidates(self, tmp_path):
        joint, _ = load_both(tmp_path)
        chosen = PrivateSelection(candidates={SCALING: BOTH})
        for one in (Simplex(1.0, 8), Ellipsoid(1.0, 8)):
            spec = dataclasses.replace(pose(joint), constraint=one).spec()
            with pytest.raises(Unsupported, match="no ball of a norm"):
                chosen.plan(spec, BUDGET)
        for one in (L1Ball(1.0, 8), LpBall(1.0, 8, power=1.5)):
            spec = dataclasses.replace(pose(joint), constraint=one).spec()
            assert chosen.plan(spec, BUDGET).inner[0].steps > 0

    def test_rows_of_one_scaling_have_no_candidates(self, tmp_path):
        _, alone = load_both(tmp_path)
        chosen = PrivateSelection(candidates={SCALING: BOTH})
        with pytest.raises(Unsupported, match="name the candidates in tune="):
            chosen.plan(pose(alone["none"]).spec(), BUDGET)


class TestRelease:
    @pytest.mark.parametrize("inner", [
        {"name": "noisy_gd", "steps": 5}, "output_perturbation",
        {"name": "sufficient_statistics", "noise": "wishart"},
    ])  # fmt: skip
    @pytest.mark.parametrize("name", BOTH)
    def test_a_run_is_that_of_the_table_of_its_scaling(self, name, inner, tmp_path):
        """The same noise and the same point, zeros at the columns of the other scaling."""
        squared = "sufficient_statistics" in str(inner)
        keys = {"task": "regression", "target_bounds": (-1.0, 1.0)} if squared else {}
        loss = Squared() if squared else Logistic()
        joint, alone = load_both(tmp_path, **keys)
        whole = pose(joint, loss, ridge=0.1)
        found = release(PrivateSelection(inner=inner, candidates={SCALING: [name]}), whole)
        table = release(PrivateSelection(inner=inner), pose(alone[name], loss, ridge=0.1))
        expected = tuning_candidates.embed_points(table.theta, whole.spec(), {SCALING: name})
        assert found.theta.tobytes() == expected.tobytes()
        assert np.count_nonzero(found.theta) > 0
        assert {one.get(SCALING) for one in found.info["chosen"]} <= {name, None}

    @pytest.mark.parametrize("relation", [REPLACE, REMOVE])
    @pytest.mark.parametrize("inner", [{"name": "noisy_gd", "steps": 5}, "objective_perturbation"])
    def test_nothing_but_released_values_decides(self, inner, relation, tmp_path):
        """Values at the gate move at most as far as their events say, and all else is equal."""
        x, y = make_records(n=8)
        other_x, other_y = x.copy(), y.copy()
        other_x[3], other_y[3] = (0.0, 1e6, 1.0), -y[3]
        if relation == REMOVE:
            other_x, other_y = np.delete(x, 3, 0), np.delete(y, 3)
        keys = {"scaling": "none", "scalings": BOTH, "test_fraction": 0.0}
        pair = [
            pose(pad_with_zeros(read_table(tmp_path, *records, **keys).load(), 8), ridge=0.1)
            for records in ((x, y), (other_x, other_y))
        ]
        if relation == REMOVE:  # the same records in the same places
            order = [*range(3), 7, *range(3, 7)]
            moved = pair[1].data.take(np.array(order))
            pair[1] = dataclasses.replace(pair[1], data=moved)
        mechanism = PrivateSelection(inner=inner, candidates={SCALING: BOTH, "ridge": [0.1, 0.2]})
        found = mechanism.plan(pair[0].spec(), Budget(1.0, 1e-6, relation))
        worst = 0.0
        for seed in range(4):
            tape = replay(mechanism, found, *pair, seed)
            assert tape.private, tape.faults
            worst = max(worst, tape.worst)
        assert worst > 0.1

    def test_the_choice_costs_what_one_among_radii_does(self, tmp_path):
        joint, alone = load_both(tmp_path)
        inner = {"name": "noisy_gd", "steps": 5}
        for delta in (1e-6, 0.0):
            inner = inner if delta else "output_perturbation"
            budget = Budget(1.0, delta)
            scalings = PrivateSelection(inner=inner, candidates={SCALING: BOTH})
            radii = PrivateSelection(inner=inner, candidates={"constraint.radius": [1.0, 10.0]})
            one = scalings.plan(pose(joint, ridge=0.1).spec(), budget)
            other = radii.plan(pose(alone["none"], ridge=0.1).spec(), budget)
            assert one.guarantee.epsilon == other.guarantee.epsilon <= 1.0
            costs = [found.settings["tuning"] for found in (one, other)]
            assert costs[0]["epsilon"] == costs[1]["epsilon"] > 0.0
            assert costs[0]["candidates"] == costs[1]["candidates"] == 2

    def test_sufficient_statistics_pay_for_it_too(self, tmp_path):
        joint, _ = load_both(tmp_path, task="regression", target_bounds=(-1.0, 1.0))
        spec = pose(joint, Squared()).spec()
        mechanism = PrivateSelection(inner="sufficient_statistics", candidates={SCALING: BOTH})
        for delta, kind in ((1e-6, PoissonSelection), (0.0, NegativeBinomialSelection)):
            found = mechanism.plan(spec, Budget(1.0, delta))
            assert isinstance(found.events[0], kind)
            assert found.settings["tuning"]["how"] == "private selection"
            assert found.settings["tuning"]["epsilon"] > 0.0


class TestRuns:
    @pytest.mark.parametrize(("bounds", "better"), [
        ("[[0,1],[0,1000],[0,1]]", "bounds"), ("[[-1e7,1e7],[0,1],[-1e7,1e7]]", "none"),
    ])  # fmt: skip
    def test_the_scaling_that_tells_labels_apart_is_chosen(self, bounds, better, tmp_path):
        """Raw, the column of large numbers hides the others; wide bounds hide what raw ones say."""
        x, y = make_records(n=1000)
        x[:, 1] /= 1.0 if better == "bounds" else 1e6
        words = write_words(tmp_path / "a.npz", x, y, bounds)
        found = rows(*words, "mechanism=noisy_gd", "mechanism.steps=20", "epsilon=20",
                     "trials=30", TUNE)  # fmt: skip
        chosen = [row["settings"]["tuning"]["chosen"].get(SCALING) for row in found]
        # of three runs on average 1 - e^-1.5 of the trials try it, .82 of those with any run
        tried = [name for name in chosen if name]
        assert tried.count(better) >= 0.6 * len(tried)
        median = {name: np.median([row["excess_risk"] for row, own in
                                   zip(found, chosen, strict=True) if own == name])
                  for name in set(tried)}  # fmt: skip
        assert min(median, key=lambda name: median[name]) == better

    def test_a_row_is_of_the_problem_of_all_columns(self, words):
        """Its test metric is that of the point on held-out rows made under the chosen scaling."""
        prepared = prepare(*words, TUNE, "constraint.radius=5", "mechanism=noisy_gd",
                           "mechanism.steps=5", "epsilon=5", "trials=8")  # fmt: skip
        found = run_cell.run(prepared, make_solver(), debug=True)
        assert {row["p"] for row in found} == {8}
        seen = set()
        for row in found:
            name = row["settings"]["tuning"]["chosen"].get(SCALING)
            assert row["excess_risk"] >= -1e-6
            assert "bound_lower" not in row
            if name is None:
                assert not row["theta"].any()
                continue
            seen.add(name)
            (block,) = (one for one in prepared.data.blocks if one.name == name)
            alone = prepared.cell.dataset.take_scaling(name).load()
            own = row["theta"][block.start : block.stop]
            assert np.count_nonzero(row["theta"]) == np.count_nonzero(own) > 0
            assert row["test_metric"] == metrics.accuracy(alone.x_test, alone.y_test, own)
        assert seen == set(BOTH)

    def test_a_record_rebuilds_its_cell(self, words):
        (cell,) = plan(*words, TUNE, "mechanism=noisy_gd")
        (long,) = plan(*words, "mechanism=private_selection", "mechanism.inner=noisy_gd",
                       "mechanism.candidates={dataset.scaling: [none, bounds]}")  # fmt: skip
        assert long.config == cell.config
        assert (cell.dataset.scaling, cell.dataset.scalings) == ("none", BOTH)
        again = configure(Npz, "dataset", {k: v for k, v in cell.config["dataset"].items()
                                           if k != "name"})  # fmt: skip
        assert again == cell.dataset
        (plain,) = plan(*words, "mechanism=noisy_gd")
        assert "scalings" not in plain.config["dataset"]

    def test_the_radius_of_the_rule_is_that_of_one_scaling(self, words):
        more = ["mechanism=objective_perturbation", "constraint.radius=auto", "trials=2"]
        both, alone = rows(*words, TUNE, *more), rows(*words, *more)
        assert both[0]["constraint_radius"] == alone[0]["constraint_radius"]
        tuning = both[0]["settings"]["tuning"]
        assert tuning["candidates"] == 2
        assert tuning["epsilon"] > 0.0
        assert tuning["reason"] == alone[0]["settings"]["tuning"]["reason"]
        assert tuning["chosen"]["constraint.radius"] == both[0]["constraint_radius"]

    @pytest.mark.parametrize("relation", [REPLACE, REMOVE])
    def test_neighbours_differ_in_nothing_else(self, relation, tmp_path):
        """How often it ran, what it wrote and said: public, or part of the release."""
        x, y = make_records(n=30)
        other_x, other_y = x.copy(), y.copy()
        if relation == REMOVE:
            other_x, other_y = np.delete(x, 3, axis=0), np.delete(y, 3)
        else:
            other_x[3], other_y[3] = (0.0, 1e6, 1.0), -y[3]
        folders = []
        for name, records in (("first", (x, y)), ("second", (other_x, other_y))):
            (tmp_path / name).mkdir()
            Records(*records).write(tmp_path / name / "records.npz")
            folders.append(tmp_path / name)
        declared = ["privacy.population=100"] if relation == REMOVE else []
        words = ["dataset=npz", "dataset.path=records.npz", "dataset.bounds=[[0,1],[0,1000],[0,1]]",
                 "mechanism=objective_perturbation", "trials=2", TUNE, "save=model.npz",
                 f"privacy.relation={relation}", *declared]  # fmt: skip
        fault, one, other = neighbour_runs.run_on_both(words, *folders, cache=tmp_path / "cache")
        assert fault is None
        assert one.code == other.code == 0


def test_the_audit_attacks_any_rows_of_the_blocks(words):
    """Made-up records have rows of all columns, whatever the scalings would have made of them."""
    prepared = prepare(*words, TUNE, "mechanism=noisy_gd", "mechanism.steps=3")
    subject = audit_cells.of_cell(prepared)
    pair = hard_pairs.make("zero row", subject.shape, REPLACE, seed=1)
    one, other = (audit_cells.open_records(subject, found) for found in (pair.first, pair.second))
    assert (one.status, other.status) == ("ok", "ok")
    assert one.data.blocks == prepared.data.blocks
    assert one.spec == other.spec
    tape = replay(one.mechanism, one.plan, one.problem, other.problem, 0)
    assert tape.private, tape.faults


class TestModels:
    def test_what_is_saved_is_the_model_of_the_chosen_scaling(self, words, tmp_path):
        prepared = prepare(*words, TUNE, "mechanism=noisy_gd", "mechanism.steps=5", "epsilon=5",
                           "trials=12")  # fmt: skip
        described, seen = save_model.schema_of(prepared), set()
        raw = np.load(tmp_path / "table.npz")["x"]
        for row in run_cell.run(prepared, make_solver(), debug=True):
            record = row | {name: json.dumps(row[name]) for name in ("settings", "events")}
            made = save_model.publishable(prepared, described, record)
            path = tmp_path / f"{row['trial']}.npz"
            path.write_bytes(model_file.bytes_of(made))
            found = model_file.read(str(path))
            name = row["settings"]["tuning"]["chosen"].get(SCALING)
            seen.add(name)
            (block,) = (b for b in prepared.data.blocks if b.name == (name or "none"))
            own = row["theta"][block.start : block.stop]
            assert found.theta.tolist() == own.tolist()
            assert (found.schema.scaling, found.facts.row_bound) == (block.name, block.row_bound)
            order = prepared.cell.dataset.split.order(60)[:48]
            rows = prepared.data.x[:, block.start : block.stop]
            assert found.values(raw[order]) == pytest.approx(rows @ own)
        assert seen >= set(BOTH)

    def test_an_estimator_predicts_by_the_chosen_scaling(self):
        x, y = make_records(n=400)
        found = set()
        for seed in range(4):
            model = PrivateLogisticRegression(
                epsilon=20.0, noise="research", bounds=BOUNDS, classes=[-1, 1], random_state=seed,
                mechanism="objective_perturbation", tune={SCALING: BOTH},
            ).fit(x, y)  # fmt: skip
            schema = model.release_.schema
            assert model.theta_.shape == (4,)
            margins = schema.apply_row_rule(x) @ model.theta_
            assert model.decision_function(x) == pytest.approx(margins)
            found.add(schema.scaling)
            if schema.scaling == "bounds":
                assert model.score(x, y) > 0.8
        assert found == set(BOTH)


@pytest.mark.parametrize(("more", "told"), [
    (["tune={dataset.scaling: [none, minmax]}"], "minmax is fitted to the data"),
    (["tune={dataset.scaling: [standardise]}", "dataset.unsafe_scaling=true"], "fitted to the"),
    (["tune={dataset.scaling: [none, none]}"], "different scalings"),
    (["tune={dataset.scaling: [none, auto]}"], "different scalings"),
    (["tune={dataset.scaling: bounds}"], "must be a list"),
    (["tune={dataset.scaling: []}"], "must be a list"),
    (["tune={dataset.scaling: [none, 3]}"], "must be a list"),
    ([TUNE, "dataset.scaling=none"], "is chosen by tune="),
    ([TUNE, "dataset.rows=none"], "must be declared with rows=none"),
    ([TUNE, "kernel=rbf", "ridge=0.1"], "is not for a kernel"),
    ([TUNE, "dataset.task=location", "loss=l2_median"], "is for predictors"),
    ([TUNE, "dataset.phi=phi.csv"], "has projected"),
    ([TUNE, "mechanism=non_private"], "with a guarantee"),
    (["mechanism=private_selection", "mechanism.candidates={dataset.scaling: [minmax]}",
      "dataset.unsafe_scaling=true"], "minmax is fitted"),
])  # fmt: skip
def test_what_cannot_be_chosen_is_refused_in_one_line(more, told, words):
    with pytest.raises(InputError) as caught:
        plan(*words, *more)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_bounds_there_is_nothing_to_scale_by(words):
    with pytest.raises(InputError, match="must be declared for scaling=bounds"):
        plan(*words[:2], TUNE)
