"""Records of one's own, as arrays and frames: prepared as a file's, and never shown in errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dperm_cli

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(60, 3))
LABELS = np.where(ROWS[:, 0] > 0, 1, -1)
KEYS = {"mechanism": "noisy_gd", "constraint.radius": 1.0, "mechanism.steps": 5}
FRAME = pd.DataFrame({"age": ROWS[:, 0], "dose": ROWS[:, 1], "sick": LABELS})


def load(X, y=None, **keys):
    return dperm_cli.load_data(X=X, y=y, **keys)


def test_records_of_memory_are_those_of_a_file(run_small, tmp_path):
    """The same values are the same data: risks and noise are equal to the last bit."""
    np.savez(tmp_path / "records.npz", x=ROWS, y=LABELS)
    of_file = run_small(dataset={"name": "npz", "path": tmp_path / "records.npz"}, **KEYS)
    of_memory = run_small(X=ROWS, y=LABELS, **KEYS, out="memory")
    one, other = (found.trials()["theta"].tolist() for found in (of_file, of_memory))
    assert one == other
    assert of_memory.frame()["dataset"].tolist() == ["arrays"]
    fingerprints = [found.frame()["data_fingerprint"][0] for found in (of_file, of_memory)]
    assert len(set(fingerprints)) == 1


def test_other_records_are_other_cells(run_small):
    first = run_small(X=ROWS, y=LABELS, **KEYS)
    second = run_small(X=ROWS + 1.0, y=LABELS, **KEYS, out="second")
    assert first.frame()["cell"][0] != second.frame()["cell"][0]
    again = run_small(X=ROWS.tolist(), y=LABELS.tolist(), **KEYS)
    assert again.frame()["cell"][0] == first.frame()["cell"][0]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_name_bounds_and_workers(run_small, workers):
    keys = {"name": "hospital", "scaling": "bounds", "bounds": [-3, 3], "test_fraction": 0}
    found = run_small(X=ROWS, y=LABELS, dataset=keys, **KEYS, epsilon=[1, 2], workers=workers)
    frame = found.frame()
    assert frame["dataset"].tolist() == ["hospital"] * 2
    assert "public bounds" in frame["preprocessing"][0]
    assert frame["status"].tolist() == ["ok", "ok"]
    assert "hospital" in found.table()


def test_a_frame_with_and_without_its_target():
    whole = load(FRAME, target="sick")
    apart = load(FRAME[["age", "dose"]], FRAME["sick"])
    chosen = load(FRAME, target="sick", columns=["dose", "age"])
    assert np.array_equal(whole.x, apart.x)
    assert np.allclose(whole.x[:, [1, 0, 2]], chosen.x)
    assert (whole.n, whole.p) == (48, 3)  # with a constant


def test_labels_of_words_numbers_and_categories():
    named = np.where(LABELS > 0, "yes", "no")
    words = load(ROWS, named, labels={"yes": 1, "no": -1})
    for y in (pd.Series(named), pd.Series(named, dtype="category"), named.astype(object)):
        assert np.array_equal(load(ROWS, y, labels={"yes": 1, "no": -1}).y, words.y)
    assert np.array_equal(load(ROWS, LABELS.astype(float)).y, words.y)
    for y in (LABELS > 0, pd.Series(LABELS > 0), pd.Series(LABELS > 0, dtype="boolean")):
        assert np.array_equal(load(ROWS, y, labels={"true": 1, "false": -1}).y, words.y)


def test_targets_and_locations():
    found = load(ROWS, 10 * ROWS[:, 0], task="regression", target_bounds=[-20, 20])
    assert np.abs(found.y).max() <= 1.0
    assert load(ROWS, task="location").p == 3


def test_records_are_not_changed():
    rows, labels = ROWS.copy(), LABELS.copy()
    load(rows, labels, row_bound=0.5)
    assert np.array_equal(rows, ROWS)
    assert np.array_equal(labels, LABELS)


SECRET = 73501.25
HOLES = np.where(np.arange(180).reshape(60, 3) == 7, np.nan, ROWS)
BAD = {
    "no labels": (ROWS, None, {}, "y=None: must be given"),
    "labels without rows": (None, LABELS, {}, "needs X="),
    "too few labels": (ROWS, LABELS[:9], {}, "9 values: must be 60"),
    "a cube": (np.ones((2, 2, 2)), LABELS, {}, "X=<ndarray of shape .*>: must be a matrix"),
    "text": (np.array([["a"]]), [1], {}, "X=<ndarray of shape .*>: must be a matrix"),
    "nothing": (np.empty((0, 3)), [], {}, "X=<ndarray of shape .*>: must be a matrix"),
    "labels of a matrix": (ROWS, np.ones((60, 2)), {}, "y=<ndarray>"),
    "a hole": (HOLES, LABELS, {}, "record 3, column 2 is missing"),
    "a column of text": (
        pd.DataFrame({"a": ["x", str(SECRET)]}), [1, -1], {}, "column a: must hold numbers",
    ),
    "a label that is not declared": (
        ROWS, np.where(ROWS[:, 0] > 0, SECRET, -1), {}, "label of record",
    ),
    "a column that there is not": (FRAME, None, {"target": "sik"}, "did you mean 'sick'"),
    "two targets": (FRAME, LABELS, {"target": "sick"}, "beside y="),
    "a target of a location": (ROWS, LABELS, {"task": "location"}, "has no target"),
    "a path": (ROWS, LABELS, {"path": "records.csv"}, "path: unknown key"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_bad_records_are_refused_without_a_value_of_them(fault):
    x, y, keys, said = BAD[fault]
    with pytest.raises(dperm_cli.InputError, match=said) as caught:
        load(x, y, **keys)
    error: BaseException | None = caught.value
    while error is not None:
        assert str(SECRET).rstrip("0") not in str(error)
        error = error.__cause__ or error.__context__


def test_a_hole_becomes_the_zero_record():
    assert load(HOLES, LABELS, invalid="zero").n == 48


def test_a_data_set_beside_own_records():
    with pytest.raises(dperm_cli.InputError, match="beside X="):
        dperm_cli.run("dataset=diabetes", X=ROWS, y=LABELS)


def test_the_command_line_has_no_such_records(tmp_path, capfd):
    from dperm_cli import cli

    assert cli.main(["run", "dataset=arrays", f"out={tmp_path}/x"]) == 2
    assert "dperm_cli.run(X=..., y=...)" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["X", "y"])
def test_masked_values_are_refused_and_not_read_as_values(key):
    values = {"X": np.ones((4, 2)), "y": np.array([1.0, -1, 1, -1])}
    values[key] = np.ma.masked_equal(values[key], 1.0)
    with pytest.raises(dperm_cli.InputError, match=f"^{key}=.*masked"):
        dperm_cli.load_data(**values)


def test_a_series_of_another_order_than_its_frame_is_refused():
    """Pandas would pair them by index, and numpy by position."""
    shuffled = FRAME["sick"].sample(frac=1.0, random_state=1)
    with pytest.raises(dperm_cli.InputError, match="y=<Series>: has another index than X"):
        load(FRAME[["age", "dose"]], shuffled)
    assert np.array_equal(
        load(FRAME[["age", "dose"]], shuffled.loc[FRAME.index]).y,
        load(FRAME[["age", "dose"]], FRAME["sick"]).y,
    )


@pytest.mark.parametrize(("X", "said"), [
    (np.zeros((0, 3)), r"<ndarray of shape \[0, 3\], type float64>"),
    (ROWS.astype(object), r"type object>: must be a matrix"),
    (sparse.csr_matrix(ROWS), r"<csr_matrix>: is sparse: give X.toarray\(\)"),
    ([[1.0], [1.0, 2.0]], "<list>: must be a matrix"),
])  # fmt: skip
def test_rows_that_are_no_matrix_are_told_by_shape_and_type(X, said):
    with pytest.raises(dperm_cli.InputError, match=said):
        load(X, LABELS)


@pytest.mark.parametrize("y", [LABELS > 0, pd.Series(LABELS > 0), [bool(v) for v in LABELS > 0]])
def test_truth_values_without_a_map_are_told_their_own(y):
    with pytest.raises(dperm_cli.InputError) as refused:
        load(ROWS, y)
    assert "'{true: 1, false: -1}'" in str(refused.value)
    assert "yes" not in str(refused.value)


def test_truth_values_of_a_parquet_file_are_told_their_own(tmp_path):
    path = tmp_path / "own.parquet"
    pd.DataFrame({"a": ROWS[:, 0], "sick": LABELS > 0}).to_parquet(path)
    with pytest.raises(dperm_cli.InputError, match=r"'\{true: 1, false: -1\}'"):
        dperm_cli.load_data("parquet", path=path)
    found = dperm_cli.load_data("parquet", path=path, labels={"true": 1, "false": -1})
    assert set(found.y) == {-1.0, 1.0}


def test_words_without_a_map_are_told_what_others_are():
    with pytest.raises(dperm_cli.InputError, match=r"'\{yes: 1, no: -1\}'"):
        load(ROWS, np.where(LABELS > 0, "true", "false"))  # a value of a record: not shown
