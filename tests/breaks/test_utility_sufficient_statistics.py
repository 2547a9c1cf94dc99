"""Issue 20, item 1: sufficient statistics at the edge of what can be asked."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dperm_cli
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.runner.audits import neighbour_runs
from tests.breaks._utility import (
    FLOOR,
    RISK,
    assert_one_line,
    make_regression,
    npz_words,
    run_row,
    run_rows,
    settings_of,
    table_words,
    write_npz,
)

STATISTICS = ["mechanism=sufficient_statistics", "trials=3", "delta=1e-6"]
RELATIONS = ("replace_one", "add_remove")
NOISES = ("gaussian", "wishart")


def run(dperm, folder, *words, n=200, p=4):
    return run_row(dperm, *table_words(folder, "regression", n, p), *STATISTICS, *words)


# --- scales of sections 1.1 to 1.3 -------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "scales"),
    [("1", "1e-6", (8.96190, 5.97460)), ("0.1", "1e-9", (106.51111, 71.00741)),
     ("10", "1e-6", (1.14782, 0.76521))],
)  # fmt: skip
def test_the_row_has_the_gaussian_scale_of_the_table(epsilon, delta, scales, dperm, tmp_path):
    for relation, scale in zip(RELATIONS, scales, strict=True):
        row = run(dperm, tmp_path, f"epsilon={epsilon}", f"delta={delta}",
                  "mechanism.noise=gaussian", f"privacy.relation={relation}",
                  "trials=1")  # fmt: skip
        assert row["noise_scale"] == pytest.approx(scale, abs=6e-6)
        assert row["epsilon_accounted"] == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize(("relation", "times"), [("replace_one", 2.0), ("add_remove", 1.0)])
def test_the_row_has_the_wishart_scale(relation, times, dperm, tmp_path):
    """rho / epsilon with s^2 = 1/2; at delta = 0 the row says that it is pure."""
    row = run(dperm, tmp_path, "epsilon=0.5", "delta=0", f"privacy.relation={relation}")
    assert row["noise_scale"] == pytest.approx(3.0 * times)
    assert (row["guarantee"], row["delta_accounted"]) == ("pure", 0.0)
    assert settings_of(row)["noise"] == "wishart"


def joint_move(relation, cross, square, steps=241):
    """The joint sensitivity at b = B = 1 by looking at pairs of records in the plane."""
    if relation == "add_remove":
        return math.sqrt(1.0 + cross**2 + square**2)
    angle, other = np.meshgrid(np.linspace(0.0, math.pi, steps), np.linspace(-1.0, 1.0, steps))
    inner = np.cos(angle)
    moved = 2.0 * (1.0 - inner**2) + cross**2 * (1.0 + other**2 - 2.0 * other * inner)
    return math.sqrt(np.max(moved + square**2 * (1.0 - other**2) ** 2))


@pytest.mark.parametrize(
    ("cross", "square", "expected"),
    [(1.0, 0.0, 2.12132), (0.5, 0.0, 1.59099), (2.0, 0.0, 4.0), (1.0, 1.0, 2.12132),
     (1.0, 2.0, 2.64575), (0.3, 1.5, 2.08327)],
)  # fmt: skip
def test_the_joint_sensitivity_is_what_pairs_reach(cross, square, expected):
    from dperm_cli.mechanisms.shared.moment_sensitivity import joint_sensitivity

    for relation in RELATIONS:
        claimed = joint_sensitivity(relation, cross=cross, square=square)
        assert claimed == pytest.approx(joint_move(relation, cross, square), rel=2e-4)
    assert joint_sensitivity("replace_one", cross=cross, square=square) == pytest.approx(
        expected, abs=6e-6
    )


# --- hostile sizes -----------------------------------------------------------------------------


@pytest.mark.in_turn
@pytest.mark.parametrize("radius", ["1e-8", "1e-3", "1e3", "1e8"])
@pytest.mark.parametrize("constraint", ["l2_ball", "l1_ball", "box", "simplex"])
def test_any_radius_gives_a_point_of_the_set(constraint, radius, dperm, tmp_path):
    row = run(dperm, tmp_path, f"constraint={constraint}", f"constraint.radius={radius}")
    gap = row["optimum_gap"] / row["n"]
    assert math.isfinite(row[RISK])
    assert row[RISK] >= -gap
    assert row["optimum_gap"] <= 1e-3 * max(1.0, abs(row["optimum"]))


@pytest.mark.parametrize("radius", ["1e3", "1e6", "1e8"])
def test_a_wide_ball_costs_nothing(radius, dperm, tmp_path):
    """With the same noise the risk in a ball far too large is that in one that is large enough."""
    words = ["epsilon=8", "mechanism.noise=gaussian", "trials=20"]
    near, far = (
        run(dperm, tmp_path, *words, f"constraint.radius={one}", n=4000) for one in ("20", radius)
    )
    assert far["noise_scale"] == near["noise_scale"]
    assert far[RISK] <= 2.0 * near[RISK] + 1e-6
    assert far[RISK] < 0.1 * far[FLOOR]


@pytest.mark.parametrize("words", [["epsilon=1e-9"], ["epsilon=1e3"], ["epsilon=1", "delta=1e-300"],
                                   ["epsilon=1", "delta=0.9"]])  # fmt: skip
@pytest.mark.parametrize("relation", RELATIONS)
def test_extreme_budgets_are_kept(relation, words, dperm, tmp_path):
    row = run(dperm, tmp_path, *words, f"privacy.relation={relation}")
    assert math.isfinite(row[RISK])


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("n", "p"), [(50, 1), (20, 60), (5, 3), (2, 4)])
def test_few_records_and_few_or_many_columns(n, p, delta, dperm, tmp_path):
    words = ("dataset.test_fraction=0", "dataset.intercept=false")
    row = run(dperm, tmp_path, f"delta={delta}", *words, n=n, p=p)
    assert (row["n"], row["p"]) == (n, p)
    assert math.isfinite(row[RISK])


@pytest.mark.parametrize("target", [1e-100, 1e-40, 1e40, 1e100])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_targets_of_any_scale(target, delta, dperm, tmp_path):
    """Whether the ball reaches the optimum or not, it is no worse than the floor."""
    path = write_npz(tmp_path / "a.npz", *make_regression(400, 3, target=target))
    words = npz_words(path, "regression", target)
    row = run_row(dperm, *words, *STATISTICS, f"delta={delta}", "epsilon=5")
    assert math.isfinite(row[RISK])
    assert row[RISK] <= row[FLOOR] * 1.05


@pytest.mark.parametrize("bound", [1e-40, 1e-8, 1e8, 1e40])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_rows_of_any_scale(bound, delta, dperm, tmp_path):
    """Rows and radius scaled against one another are one problem."""
    path = write_npz(tmp_path / "a.npz", *make_regression(400, 3, row=bound))
    row = run_row(dperm, *npz_words(path, "regression"), "dataset.rows=clip",
                  f"dataset.row_bound={bound:g}", f"constraint.radius={2.0 / bound:g}", *STATISTICS,
                  f"delta={delta}", "epsilon=5")  # fmt: skip
    assert math.isfinite(row[RISK])
    assert row[RISK] <= row[FLOOR] * 1.05


@pytest.mark.parametrize("key", ["dataset.row_bound=1e-100", "dataset.row_bound=1e100",
                                 "constraint.radius=1e-100", "dataset.target_bounds=[0,0]",
                                 "mechanism.noise=laplace", "mechanism.edge=1"])  # fmt: skip
def test_what_cannot_be_is_one_line(key, dperm, tmp_path):
    words = table_words(tmp_path, "regression", 40, 3)
    words = [word for word in words if not key.startswith(word.split("=")[0] + "=")]
    rows = ["dataset.rows=clip"] if "row_bound" in key else []
    done = dperm("run", *words, *rows, *STATISTICS, key)
    assert_one_line(done, key.partition("=")[0])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", NOISES)
def test_rows_of_zeros_alone(noise, relation, dperm, tmp_path):
    """Nothing can be learnt, and nothing goes wrong."""
    path = write_npz(tmp_path / "a.npz", np.zeros((60, 3)), np.linspace(-1.0, 1.0, 60))
    row = run_row(dperm, *npz_words(path, "regression"), "dataset.intercept=false", *STATISTICS,
                  f"mechanism.noise={noise}", f"privacy.relation={relation}")  # fmt: skip
    assert row[RISK] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.in_turn
@pytest.mark.parametrize("penalty", [["ridge=1e-8"], ["ridge=1e8"], ["lasso=1e-8"], ["lasso=1e8"],
                                     ["ridge=0.1", "lasso=0.01"]])  # fmt: skip
@pytest.mark.parametrize("constraint", ["l2_ball", "l1_ball", "simplex"])
def test_penalties_of_any_size(constraint, penalty, dperm, tmp_path):
    row = run(dperm, tmp_path, *penalty, f"constraint={constraint}")
    assert math.isfinite(row[RISK])
    assert row[RISK] >= -row["optimum_gap"] / row["n"]


@pytest.mark.parametrize("words", [["constraint.radius=1e12"], ["constraint.radius=1e30"]])
def test_a_ball_without_end_has_an_optimum(words, dperm, tmp_path):
    """Its radius costs nothing, so that a user will set it as wide as can be."""
    row = run(dperm, tmp_path, *words, "epsilon=5")
    assert row["optimum_gap"] <= 1e-6 * row["floor_excess_risk"]
    assert row[RISK] >= -row["optimum_gap"] / row["n"]
    assert row[FLOOR] > 0.01


# --- no worse than no data at all (section 1.5: at most 10 %) ----------------------------------


BALL, SIMPLEX = "constraint=l2_ball", "constraint=simplex"


@pytest.mark.parametrize(
    ("noise", "epsilon", "constraint"),
    [pytest.param("gaussian", "0.01", BALL),
     pytest.param("gaussian", "0.1", BALL),
     pytest.param("gaussian", "0.01", SIMPLEX),
     pytest.param("wishart", "0.01", SIMPLEX),
     ("wishart", "0.01", BALL), ("wishart", "0.1", BALL)],
)  # fmt: skip
def test_noise_beyond_the_data_ends_near_the_floor(noise, epsilon, constraint, dperm, tmp_path):
    row = run(dperm, tmp_path, f"epsilon={epsilon}", constraint, f"mechanism.noise={noise}",
              "trials=40")  # fmt: skip
    assert row[RISK] <= 1.1 * row[FLOOR]


# --- neighbours, from file to file -------------------------------------------------------------


def neighbours(kind):
    x, y = make_regression(30, 3, seed=3)
    y[5] = -1.0
    other_x, other_y = x.copy(), y.copy()
    if kind == "zero record":
        other_x[5], other_y[5] = 0.0, 0.0
    elif kind == "zero row, another target":
        x[5], other_x[5], other_y[5] = 0.0, -0.0, 1.0
    elif kind == "opposite":
        other_x[5], other_y[5] = -x[5], 1.0
    elif kind == "far beyond the bounds":
        other_x[5], other_y[5] = 1e150, 1e150
    elif kind == "denormal":
        other_x[5], other_y[5] = 1e-310, -1e-310
    elif kind == "all but one are zero":
        x[:], other_x[:] = 0.0, 0.0
        other_x[0, 0] = 1.0
    else:
        other_x, other_y = np.delete(x, 5, axis=0), np.delete(y, 5)
    return (x, y), (other_x, other_y)


SETS = [["constraint.radius=1e-8"], ["constraint=l1_ball", "lasso=0.01"], ["constraint=simplex"],
        ["constraint.radius=1e8"], ["ridge=0.1"], ["save=m.npz"],
        ["dataset.intercept=true"]]  # fmt: skip
KINDS = ["zero record", "zero row, another target", "opposite", "far beyond the bounds",
         "denormal", "all but one are zero", "one record less"]  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("kind", "words"), list(zip(KINDS, SETS, strict=True)), ids=KINDS)
def test_neighbours_differ_in_nothing_but_the_point(kind, words, relation, noise, tmp_path):
    """Same files, shapes, exit codes and messages; with the same noisy moments the same point."""
    if kind == "one record less" and relation == "replace_one":
        relation, words = "add_remove", [*words, "lasso=0.01"]
    declared = ["privacy.population=1000"] if relation == "add_remove" else []
    folders = []
    for name, records in zip(("first", "second"), neighbours(kind), strict=True):
        (tmp_path / name).mkdir()
        Records(*records).write(tmp_path / name / "records.npz")
        folders.append(tmp_path / name)
    words = [*npz_words("records.npz", "regression"), "dataset.test_fraction=0.2", *STATISTICS,
             *declared, f"privacy.relation={relation}", f"mechanism.noise={noise}",
             *words]  # fmt: skip
    fault, one, other = neighbour_runs.run_on_both(words, *folders, cache=tmp_path / "cache")
    assert fault is None
    assert (one.status, other.status) == ("ok", "ok")


def test_plans_of_all_data_with_the_same_facts_are_one(tmp_path):
    paths = [write_npz(tmp_path / f"{seed}.npz", *make_regression(80, 5, seed)) for seed in (0, 1)]
    one, other = (
        dperm_cli.plans(*npz_words(path, "regression"), *STATISTICS, progress=False)[0]
        for path in paths
    )
    assert one.events == other.events
    assert one.settings == other.settings


def test_it_has_a_secure_form(dperm, tmp_path):
    row = run(dperm, tmp_path, "noise=secure", "mechanism.noise=gaussian")
    assert row["arithmetic"].startswith("grid")


def test_pure_noise_that_it_chose_spends_no_delta(dperm, tmp_path):
    row = run(dperm, tmp_path, p=1)
    assert settings_of(row)["noise"] == "wishart"
    assert row["delta_accounted"] == 0.0
    assert row["epsilon_accounted"] == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "least"), [
    (["dataset=diabetes", "epsilon=1"], 0.28), (["dataset=diabetes", "epsilon=10"], 0.3),
])  # fmt: skip
def test_r2_without_a_radius(words, least, dperm):
    row = run_row(dperm, *words, "mechanism=sufficient_statistics", "constraint.radius=1000",
                  "mechanism.noise=gaussian", "trials=40")  # fmt: skip
    assert row["test_metric"] >= least - 0.05


def test_a_sweep_of_sets_and_noises_is_computed_whole(dperm, tmp_path):
    rows = run_rows(
        dperm, "-m", *table_words(tmp_path, "regression", 60, 3), *STATISTICS,
        "mechanism.noise=auto,gaussian,wishart", "constraint=l2_ball,l1_ball,simplex",
        "privacy.relation=replace_one,add_remove",
    )  # fmt: skip
    assert [row["status"] for row in rows] == ["ok"] * 18
