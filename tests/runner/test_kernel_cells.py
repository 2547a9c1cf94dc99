"""Cells with a kernel: what they are made of, what they are called, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.kernels.shared import kernel_problem, mapped_rows
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.kernels.shared.mapped_rows import FeatureRows
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import summary_table
from dperm_cli.runner.cells import kernel_cells, prepared_cell, run_cell
from dperm_cli.runner.cells.kernel_cells import PendingRows
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run
from dperm_cli.views.central import CentralView

BASE = ("dataset=breast_cancer", "loss=logistic", "ridge=0.05", "trials=2", "delta=1e-6")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    kernel_cells._MAPPED_ROWS.clear()
    kernel_cells._PROBLEMS.clear()
    kernel_problem._SOLVED.clear()


def prepared(*words):
    given = [word for word in BASE if word.split("=")[0] not in {w.split("=")[0] for w in words}]
    return run.prepare(study_plan.plan_study(parse([*given, *words])).cells)


def rows(*words):
    (item,) = prepared(*words)
    return item, run_cell.run(item, make_solver(), debug=True)


def test_a_cell_without_a_kernel_has_no_word_of_it():
    (bare,), (none,) = prepared(), prepared("kernel=none")
    assert "kernel" not in bare.cell.config
    assert (bare.key, bare.noise_name) == (none.key, none.noise_name)
    (some,) = prepared("kernel=rbf")
    assert some.key != bare.key
    assert some.noise_name != bare.noise_name


@pytest.mark.parametrize(
    ("words", "kind", "dim"),
    [
        (("kernel=linear",), "Explicit", 30),
        (("kernel=polynomial", "kernel.degree=2"), "Explicit", 496),
        (("kernel=rbf",), "Fourier", 500),
        (("kernel=rbf", "kernel.size=20"), "Fourier", 40),
        (("kernel=histogram_intersection",), "Landmarks", 113),
        (("kernel=rbf", "kernel.features=landmarks", "kernel.size=30"), "Landmarks", 30),
    ],
)
def test_auto_takes_a_map_that_the_kernel_has(words, kind, dim):
    (item,) = prepared("mechanism=noisy_gd", *words)
    x = item.problem.data.x
    assert isinstance(x, PendingRows)
    assert type(x.features).__name__ == kind
    assert item.problem.p == dim
    assert item.problem.spec().p == dim
    made = prepared_cell.make_feature_rows(item)
    assert made.problem.data.x.shape == (456, dim)
    norms = np.linalg.norm(made.problem.data.x, axis=1)
    assert np.max(norms) <= item.problem.data.row_bound * (1 + 1e-12)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("kernel=rbf", "constraint=l1_ball"), "constraint"),
        (("kernel=rbf", "constraint.radius=5"), "constraint"),
        (("kernel=rbf", "lasso=0.1"), "lasso"),
        (("kernel=rbf", "kernel.features=explicit"), "kernel.features"),
        (("kernel=polynomial", "kernel.features=fourier"), "kernel.features"),
        (("kernel=rbf", "kernel.features=exact"), "kernel.features"),
        (("kernel=rbf", "kernel.features=exact", "mechanism=non_private", "ridge=0"), "ridge"),
        (("kernel=rbf", "ridge=0"), "ridge"),
        (("kernel=rbf", "ridge=0", "mechanism=kernel_release"), "ridge"),
        (("kernel=rbf", "loss=linear"), "kernel.radius"),
        (("kernel=rbf", "kernel.queries=500"), "kernel.queries"),
        (("kernel=rbf", "kernel.landmarks=no.npy", "kernel.features=landmarks"),
         "kernel.landmarks"),
        (("kernel=rbf", "dataset.test_fraction=0", "kernel.features=landmarks"),
         "kernel.landmarks"),
        (("kernel=rbf", "dataset.test_fraction=0", "mechanism=non_private"), "kernel.queries"),
        (("kernel=precomputed", "mechanism=non_private"), "kernel.path"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_kernel_is_refused_by_name(words, key):
    with pytest.raises(InputError) as caught:
        prepared(*words)
    assert caught.value.key == key


def test_a_size_is_refused_by_the_public_count(monkeypatch):
    """456 records; under add_remove their number is private, and a population stands for it."""
    words = ("kernel=rbf", "kernel.size=20", "mechanism=objective_perturbation")
    many = (*words, "privacy.relation=add_remove", "privacy.population=500")
    monkeypatch.setattr(mapped_rows, "MOST", 8 * 40 * 456)
    prepared(*words)
    with pytest.raises(InputError, match="makes 500 rows of 40 features"):
        prepared(*many)
    monkeypatch.setattr(mapped_rows, "MOST", 8 * 40 * 500)
    prepared(*many)


def test_a_misspelt_kernel_key_is_refused():
    with pytest.raises(InputError, match=r"kernel\.gama"):
        prepared("kernel=rbf", "kernel.gama=2")
    with pytest.raises(InputError, match="kernel=rbg"):
        prepared("kernel=rbg")


def test_an_exact_kernel_is_judged_in_the_span_of_the_queries():
    item, found = rows("kernel=rbf", "mechanism=non_private")
    assert isinstance(item.target, KernelProblem)
    assert item.target.features is None
    assert {row["status"] for row in found} == {"ok"}
    fit = item.kernel.solve()
    assert found[0]["optimum"] == pytest.approx(fit.value, rel=1e-12)
    # on the queries theta predicts what the minimiser does, off them it falls short of it
    spec = item.kernel.spec()
    assert np.allclose(spec.rows @ np.array(found[0]["theta"]), fit.values(spec.queries), atol=1e-7)
    assert 0.0 < found[0]["excess_risk"] < found[0]["floor_excess_risk"]
    on_all = rows("kernel=rbf", "mechanism=non_private", "kernel.features=landmarks")[1]
    assert on_all[0]["excess_risk"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "words",
    [
        ("mechanism=objective_perturbation",),
        ("mechanism=output_perturbation",),
        ("mechanism=noisy_gd", "privacy.relation=replace_one"),
        ("mechanism=objective_perturbation", "privacy.relation=add_remove",
         "privacy.population=500"),
    ],
)  # fmt: skip
def test_ordinary_mechanisms_run_on_the_features(words):
    item, found = rows("kernel=rbf", "kernel.size=20", "epsilon=5", *words)
    assert {row["status"] for row in found} == {"ok"}, found[0]
    assert all(row["epsilon_accounted"] <= 5 for row in found)
    assert all(np.linalg.norm(row["theta"]) <= item.problem.constraint.radius * 1.0001
               for row in found)  # fmt: skip
    assert found[0]["p"] == 40
    assert "fourier" in found[0]["preprocessing"]


def test_a_radius_of_ones_own_needs_no_ridge():
    item, found = rows("kernel=rbf", "kernel.size=20", "ridge=0", "kernel.radius=3", "epsilon=5",
                       "mechanism=noisy_gd")  # fmt: skip
    assert item.kernel is None
    assert item.problem.constraint.radius == 3.0
    assert found[0]["status"] == "ok"


def test_the_noise_does_not_depend_on_how_rows_are_kept(monkeypatch):
    """Large sets keep float32 rows: the numbers agree with float64 to that precision."""
    words = ("kernel=polynomial", "kernel.features=landmarks", "mechanism=non_private")
    plain = rows(*words)[1]
    kernel_cells._MAPPED_ROWS.clear()
    kernel_cells._PROBLEMS.clear()
    monkeypatch.setattr(mapped_rows, "MOST_DENSE_BYTES", 1)
    item, single = rows(*words)
    assert isinstance(prepared_cell.make_feature_rows(item).problem.data.x, FeatureRows)
    assert single[0]["excess_risk"] == pytest.approx(plain[0]["excess_risk"], abs=1e-3)
    assert single[0]["test_metric"] == plain[0]["test_metric"]


def test_rows_in_float32_have_a_minimiser_of_their_own(monkeypatch):
    """A distance that is proved for one is not proved for the other."""
    (item,) = prepared("kernel=polynomial", "kernel.features=landmarks", "mechanism=non_private")
    plain = prepared_cell.make_feature_rows(item).kernel
    kernel_cells._MAPPED_ROWS.clear()
    kernel_cells._PROBLEMS.clear()
    monkeypatch.setattr(mapped_rows, "MOST_DENSE_BYTES", 1)
    single = prepared_cell.make_feature_rows(item).kernel
    assert isinstance(single.rows, FeatureRows)
    assert single.fingerprint() != plain.fingerprint()
    assert item.kernel.fingerprint() == single.fingerprint()
    fit = plain.solve()
    assert not single.has_solution()
    assert not np.array_equal(single.solve().theta, fit.theta)


def test_the_minimiser_of_a_declared_population_follows_no_private_count():
    """The filled problem's lambda counts all of them: a record less moves it by S at most."""
    words = ("kernel=rbf", "kernel.size=5", "mechanism=output_perturbation", "epsilon=1",
             "privacy.relation=add_remove", "privacy.population=900")  # fmt: skip
    (item,) = prepared(*words)
    item = prepared_cell.make_feature_rows(item)
    budget, _ = prepared_cell.find_budget(item)
    plan_ = run_cell.plan_with_reserve(item.cell.mechanism, item.spec, budget)
    gap, reach = plan_.settings["minimiser_gap"], plan_.events[0].sensitivity("add_remove")
    fewer = item.data.n - 50
    found = []
    for count in (item.data.n, fewer):
        records = replace(item.data.take(np.arange(count)), fingerprint=f"of {count}")
        own = replace(item.kernel, data=records, rows=None)
        part = item.problem.data.take(np.arange(count))
        part = replace(part, fingerprint=f"psi of {count}")
        made = replace(item, problem=replace(item.problem, data=part), kernel=own)
        filled = made.padded_problem
        assert filled.data.n == 900
        found.append(run_cell.open_release(made, plan_, budget, None)[0].minimiser(gap))
        objective = filled.objective(found[-1]) - CentralView(filled).objective(
            CentralView(filled).minimiser(gap))  # fmt: skip
        assert objective <= gap * (1.0 + 1e-6)
    assert np.linalg.norm(found[0] - found[1]) <= 50 * reach


def test_no_bound_on_raw_entries_is_left_with_features():
    (item,) = prepared("kernel=rbf", "kernel.size=5", "mechanism=noisy_gd", "dataset.norm=inf",
                       "dataset.row_bound=0.01")  # fmt: skip
    assert item.data.entry_bound == 0.01
    spec = item.problem.spec()
    assert (spec.entry_bound, spec.phi, spec.row_bound) == (None, None, 1.0)


def test_the_columns_of_an_unnormalised_intersection_are_those_there_are():
    """R = columns^(1/4) sqrt(row_bound) of fewer columns would be exceeded by records."""
    words = ("kernel=histogram_intersection", "kernel.normalise=false", "mechanism=kernel_release",
             "dataset.scaling=bounds", "dataset.centred=false")  # fmt: skip
    with pytest.raises(InputError, match=r"kernel\.columns"):
        prepared(*words, "kernel.columns=1")
    (item,) = prepared(*words, "kernel.columns=30")
    spec = item.kernel.spec()
    assert np.max(spec.kernel.diagonal(item.data.x)) <= spec.bound**2


def test_answers_to_the_first_queries_alone_are_compared_too():
    words = ("kernel=rbf", "mechanism=kernel_interactive", "mechanism.queries=10", "epsilon=100")
    _, found = rows(*words)
    assert {row["status"] for row in found} == {"ok"}, found[0]
    assert all(row["max_error"] >= row["rms_error"] > 0.0 for row in found)


def test_a_kernel_mechanism_needs_a_kernel():
    (item,) = prepared("mechanism=kernel_release")
    (row,) = run_cell.run(item, make_solver())
    assert row["status"] == "unsupported"
    assert "set kernel=" in row["reason"]


def test_answers_are_compared_with_the_minimiser():
    item, found = rows("kernel=rbf", "mechanism=kernel_release", "epsilon=5")
    spec, fit = item.kernel.spec(), item.kernel.solve()
    for row in found:
        off = np.abs(spec.rows @ np.array(row["theta"]) - fit.values(spec.queries))
        assert row["max_error"] == pytest.approx(np.max(off), rel=1e-9)
        assert row["rms_error"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-9)
    assert rows("mechanism=noisy_gd")[1][0].get("max_error") is None


def test_public_points_from_a_file_are_held_to_the_row_bound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("z.npy", 3.0 * np.eye(30)[:7])
    (item,) = prepared("kernel=rbf", "mechanism=non_private", "kernel.queries=z.npy")
    assert item.problem.p == 7
    assert np.allclose(item.kernel.queries, np.eye(30)[:7])
    (other,) = prepared("kernel=rbf", "mechanism=non_private", "kernel.queries=7")
    assert item.key != other.key
    np.save("z.npy", np.ones((2, 3)))
    with pytest.raises(InputError, match=r"kernel\.queries"):
        prepared("kernel=rbf", "mechanism=non_private", "kernel.queries=z.npy")


def test_cells_of_one_kernel_share_its_problem():
    """And no others do: another kernel, ridge, space or data set has its own."""
    words = ("kernel=rbf", "mechanism=kernel_release")
    first, second = (one.kernel for one in prepared(*words, "epsilon=[1,3]"))
    assert first is not None
    assert first is second
    for more in ("kernel.gamma=3", "ridge=0.7", "dataset=digits"):
        (other,) = prepared(*words, more)
        assert other.kernel is not first
    (other,) = prepared("kernel=rbf", "mechanism=objective_perturbation")
    assert other.kernel is not first
    (again,) = prepared(*words)
    assert again.kernel is not first  # the data were loaded anew


def test_a_stored_minimiser_is_believed_as_far_as_it_proves_itself(tmp_path):
    words = ("kernel=rbf", "mechanism=non_private", "kernel.queries=20")
    first = rows(*words)[1][0]["optimum"]
    (path,) = (tmp_path / "cache" / "optima").glob("kernel-*.npz")
    with np.load(path) as file:
        parts = dict(file)
    np.savez(path, **{**parts, "weights": 0.5 * parts["weights"]})  # a wrong one
    kernel_problem._SOLVED.clear()
    assert rows(*words)[1][0]["optimum"] == pytest.approx(first, rel=1e-9)


def table(order, *words):
    """The table of a study whose cells run in this order of their mechanisms."""
    kernel_problem._SOLVED.clear()
    found = {}
    for name in order:
        finer = ("mechanism.gap=1e-12",) if name == "non_private" else ()
        (item,) = prepared(f"mechanism={name}", *finer, *words)
        found[name] = run_cell.run(item, make_solver(), debug=True)
    assert {row["status"] for rows in found.values() for row in rows} == {"ok"}
    return summary_table.csv_text(summarise([row for name in sorted(found) for row in found[name]]))


@pytest.mark.parametrize(
    ("dataset", "loss", "ridge"),
    [
        ("breast_cancer", "hinge", 0.05),
        ("breast_cancer", "logistic", 0.1),
        ("diabetes", "squared", 3),
    ],
)
def test_no_cell_changes_for_those_before_it_or_for_what_is_stored(
    dataset, loss, ridge, tmp_path, monkeypatch
):
    """Mechanisms that ask for nearer and for farther minimisers, either way round.

    The last problem ends some way above the nearer gap: there one solution is not the other.
    """
    names = ("non_private", "kernel_release", "kernel_semi_interactive")
    words = (f"dataset={dataset}", f"loss={loss}", f"ridge={ridge}", "kernel=rbf",
             "kernel.features=landmarks", "kernel.size=30", "kernel.queries=20")  # fmt: skip
    first = table(names, *words)
    assert (tmp_path / "cache" / "optima").exists()
    stored = table(names[::-1], *words)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "other"))
    anew = table(names[::-1], *words)
    assert first == stored == anew


def test_a_sweep_solves_its_kernel_problem_once(monkeypatch):
    """Mechanisms, levels and the optimum ask for one solution."""
    asked = []
    real = kernel_problem.duals.solve

    def solve(*args, gap, **more):
        asked.append(gap)
        return real(*args, gap=gap, **more)

    monkeypatch.setattr(kernel_problem.duals, "solve", solve)
    names = "non_private,kernel_release,kernel_semi_interactive"
    for item in prepared("-m", "kernel=rbf", "kernel.features=landmarks", "kernel.queries=20",
                         "kernel.size=30", f"mechanism={names}", "epsilon=0.1,1"):  # fmt: skip
        found = run_cell.run(item, make_solver(), debug=True)
        assert found[0]["status"] == "ok"
    assert len(asked) == 1
