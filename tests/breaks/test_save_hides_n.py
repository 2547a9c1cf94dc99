"""Break 1: a saved model and what ``predict`` says of it must not follow the private n.

Under add_remove with a declared population the number of records is private. A release is frozen
to one fixed point, so that whatever still differs between two neighbours comes from the records.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.breaks._doors import freeze_release
from tests.breaks._files import (
    make_rows,
    model_arrays,
    write_new_rows,
    write_table,
    write_table_with_test,
)
from tests.conftest import draw_nothing

N = 137
BUDGET = ["privacy.relation=add_remove", "privacy.population=1000", "epsilon=5", "trials=1"]
BUDGET += ["ridge=0.05", "loss=logistic", "delta=1e-6"]
WAYS = {
    "noisy_gd": ["mechanism=noisy_gd", "mechanism.steps=5"],
    "one_pass_sgd": ["mechanism=one_pass_sgd"],
    "output_perturbation": ["mechanism=output_perturbation"],
    "objective_perturbation": ["mechanism=objective_perturbation"],
    "random_features": ["mechanism=random_features", "kernel=rbf", "kernel.size=5"],
}


def train(dperm, folder, rows, words):
    """A run that saves its model; the model's path."""
    data = write_table_with_test(folder, rows, make_rows(40, seed=9))
    done = dperm("run", *data, *BUDGET, *words, f"out={folder}/study", f"save={folder}/m.npz")
    assert done.code == 0, done.err
    return folder / "m.npz"


def predict(dperm, folder, model):
    write_new_rows(folder / "new.csv", make_rows(4, seed=5)[:, :3])
    done = dperm("predict", str(model), str(folder / "new.csv"))
    assert done.code == 0, done.err
    return done


def words_in(value):
    """Every key and every text in a JSON tree."""
    if isinstance(value, dict):
        return {*value, *(found for item in value.values() for found in words_in(item))}
    if isinstance(value, list):
        return {found for item in value for found in words_in(item)}
    return {value} if isinstance(value, str) else set()


def numbers_in(value):
    """Every number in a JSON tree."""
    if isinstance(value, dict):
        return {found for item in value.values() for found in numbers_in(item)}
    if isinstance(value, list):
        return {found for item in value for found in numbers_in(item)}
    return {float(value)} if isinstance(value, int | float) else set()


@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_records_is_not_in_the_file(way, dperm, tmp_path):
    model = train(dperm, tmp_path, make_rows(N), WAYS[way])
    facts, arrays = model_arrays(model)
    assert not [text for text in words_in(facts) if str(N) in text]
    assert not numbers_in(facts) & {float(N), 1.0 / N, 1.0 / N**2}
    assert 1000.0 in numbers_in(facts)  # the declared number is there, and would be found
    assert N not in {size for array in arrays.values() for size in array.shape}


def test_predict_does_not_print_the_number_of_records(dperm, tmp_path):
    done = predict(dperm, tmp_path, train(dperm, tmp_path, make_rows(N), WAYS["noisy_gd"]))
    assert str(N) not in done.out + done.err


@pytest.mark.parametrize("way", WAYS)
def test_neighbours_with_one_theta_leave_one_file(way, dperm, tmp_path, monkeypatch):
    """A record is dropped; the file's bytes, and all that predict says, stay."""
    freeze_release(monkeypatch, way, 0.5)
    rows, seen = make_rows(N), []
    for side in (rows, np.delete(rows, 70, axis=0)):
        folder = tmp_path / "side"  # one place for both: a path is no secret, but it is shown
        model = train(dperm, folder, side, WAYS[way])
        said = predict(dperm, folder, model)
        seen.append((model.read_bytes(), said.out, said.err))
        folder.rename(tmp_path / f"done {len(side)}")
    assert seen[0] == seen[1]


def test_neighbours_with_public_n_leave_one_file(dperm, tmp_path, monkeypatch):
    """Under replace_one n is public and may be said; nothing else follows the records."""
    freeze_release(monkeypatch, "noisy_gd", 0.5)
    rows, seen = make_rows(N), []
    other = rows.copy()
    other[70] = [5.0, -3.0, 0.0, -other[70, 3]]
    words = ["dataset=csv", "dataset.test_fraction=0", "mechanism=noisy_gd", "mechanism.steps=5"]
    for side in (rows, other):
        folder = tmp_path / "side"
        folder.mkdir()
        write_table(folder / "train.csv", side)
        words_here = [*words, f"dataset.path={folder}/train.csv", "trials=1"]
        done = dperm("run", *words_here, f"out={folder}/study", f"save={folder}/m.npz")
        assert done.code == 0, done.err
        said = predict(dperm, folder, folder / "m.npz")
        seen.append(((folder / "m.npz").read_bytes(), said.out, said.err))
        folder.rename(tmp_path / f"done {len(seen)}")
    assert seen[0] == seen[1]


@pytest.mark.parametrize("way", ["noisy_gd"])
def test_the_frozen_point_is_what_the_file_holds(way, dperm, tmp_path, monkeypatch):
    """The comparison above has power: another point gives another file."""
    freeze_release(monkeypatch, way, 0.5)
    first = train(dperm, tmp_path / "a", make_rows(N), WAYS[way])
    assert model_arrays(first)[1]["theta"][0] == 0.5
    monkeypatch.undo()
    freeze_release(monkeypatch, way, 0.25)
    draw_nothing(monkeypatch)
    second = train(dperm, tmp_path / "b", make_rows(N), WAYS[way])
    assert first.read_bytes() != second.read_bytes()
