"""Break 9: a file that anybody may have written is read, or refused in one line that names it."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import numpy as np
import pytest

from dperm_cli.core import number_text
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.runner.models.publishable import MOST_EVENTS
from tests.breaks._files import (
    NAMES,
    assert_refused,
    make_rows,
    write_model,
    write_named,
    write_table,
)

HEADER = b"[" * 300 + b"\n"  # numpy's own reader raises tokenize.TokenError
BAD = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(HEADER)) + HEADER


def npy(array):
    sink = io.BytesIO()
    np.lib.format.write_array(sink, array, (1, 0))
    return sink.getvalue()


def write_archive(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


@pytest.fixture
def here(dperm, tmp_path):
    """Files of arrays with a bad header, beside sound ones, in the working directory."""
    (tmp_path / "bad.npy").write_bytes(BAD)
    write_archive(tmp_path / "bad.npz", **dict.fromkeys(("x", "y", "phi", "vertices", "k"), BAD))
    rows = make_rows(30)
    np.savez(tmp_path / "good.npz", x=rows[:, :3], y=rows[:, 3])
    np.savez(tmp_path / "no_labels.npz", x=rows[:, :3])
    return dperm


GOOD = ["dataset=npz", "dataset.path=good.npz"]
DOORS = {
    "dataset.path": ["run", "dataset=npz", "dataset.path=bad.npz"],
    "dataset.test_path": ["run", *GOOD, "dataset.test_path=bad.npz"],
    "dataset.phi": ["run", *GOOD, "dataset.phi=bad.npz"],
    "constraint.path": ["run", *GOOD, "constraint=polytope", "constraint.path=bad.npz"],
    "kernel.landmarks": ["run", *GOOD, "kernel=rbf", "ridge=0.1", "kernel.features=landmarks",
                         "kernel.landmarks=bad.npy"],
    "kernel.queries": ["run", *GOOD, "kernel=rbf", "ridge=0.1", "mechanism=non_private",
                       "kernel.queries=bad.npz"],
    "kernel.path": ["run", *GOOD, "kernel=precomputed", "ridge=0.1", "kernel.path=bad.npy"],
    "pair": ["audit", "pair=bad.npz", "mechanism=noisy_gd"],
}  # fmt: skip


@pytest.mark.parametrize("key", DOORS)
def test_arrays_with_a_bad_header(key, here):
    done = here(*DOORS[key])
    assert_refused(done)
    assert f"{key}=" in done.err


def test_data_verify_tells_of_a_bad_header(here):
    done = here("data", "verify", "npz", "dataset.path=bad.npz")
    assert done.code == 2
    assert "is not a plain npz archive" in done.out + done.err


@pytest.mark.parametrize("part", ["facts", "theta"])
def test_models_with_a_bad_header(part, saved, predict, tmp_path):
    facts, arrays = saved()
    held = {"facts": npy(np.frombuffer(json.dumps(facts).encode(), np.uint8)),
            "theta": npy(arrays["theta"]), part: BAD}  # fmt: skip
    write_archive(tmp_path / "forged.npz", **held)
    done = predict()
    assert_refused(done)
    assert "MODEL=" in done.err


@pytest.fixture
def model(saved, tmp_path):
    write_model(tmp_path / "forged.npz", *saved())


X = make_rows(4, seed=5)[:, :3]
ARRAYS = {
    "bad header": BAD,
    "complex": npy(X.astype(complex)),
    "datetime": npy(X.astype("M8[s]")),
    "structured": npy(np.zeros(3, [("a", "<f8"), ("b", "<f8"), ("c", "<f8")])),
    "text": npy(X.astype(str)),
    "one row of numbers": npy(X[0]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_that_are_no_matrix_of_numbers(name, model, dperm, tmp_path):
    (tmp_path / "rows.npy").write_bytes(ARRAYS[name])
    done = dperm("predict", "forged.npz", "rows.npy", "columns=position")
    assert_refused(done)
    assert "ROWS=rows.npy" in done.err


CELLS = ["1_0", "\u0661", "\uff11", '"3', "1 0", "0x10", "1e", "", "nan", "-inf", "9" * 400,
         "1,5", "a"]  # fmt: skip
LEGAL = ["1", " 1", "+1.5", "1e3", "-.5", "1.", "1E-300", "00012", "1e-400"]


@pytest.mark.parametrize("cell", CELLS)
def test_predict_refuses_the_cells_that_training_refuses(cell, model, dperm, tmp_path):
    lines = ["0.1,0.2,0.3", f"0.1,{cell},0.3", "0.3,0.2,0.1"]
    head = ",".join(NAMES)
    (tmp_path / "rows.csv").write_text("\n".join([head, *lines]) + "\n")
    with_labels = [f"{line},{sign}" for line, sign in zip(lines, (1, -1, 1), strict=True)]
    (tmp_path / "train.csv").write_text("\n".join([f"{head},label", *with_labels]) + "\n")
    trained = dperm("run", "dataset=csv", "dataset.path=train.csv", "dataset.test_fraction=0")
    assert_refused(trained)
    assert_refused(dperm("predict", "forged.npz", "rows.csv"))


@pytest.mark.parametrize("cell", LEGAL)
def test_predict_takes_the_cells_that_training_takes(cell, model, dperm, tmp_path):
    (tmp_path / "rows.csv").write_text(",".join(NAMES) + f"\n0.1,{cell},0.3\n")
    taken = dperm("predict", "forged.npz", "rows.csv")
    write_named(tmp_path / "rows.csv", np.array([[0.1, float(cell), 0.3]]), NAMES)
    assert taken.code == 0, taken.err
    assert taken.out == dperm("predict", "forged.npz", "rows.csv").out


def test_one_rule_for_numbers_in_text():
    for cell in LEGAL:
        assert number_text.number_in(cell) == float(cell)
    for cell in set(CELLS) - {"nan", "-inf", "9" * 400}:
        assert number_text.number_in(cell) is None


LONG = "1" * 400
FILES = {
    "csv": f"a,b,label\n{LONG},2,1\n1,2,-1\n",
    "svmlight": f"1 1:{LONG}\n-1 1:2\n",
    "index": f"1 {LONG}:1\n-1 1:2\n",
    "label": f"{LONG} 1:1\n-1 1:2\n",
    "target": f"a,b,label\n1,2,{LONG}\n1,2,-1\n",
}


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("name", FILES)
def test_a_number_of_more_than_308_digits(name, task, dperm, tmp_path):
    (tmp_path / "f").write_text(FILES[name])
    reader = "csv" if "a,b" in FILES[name] else "svmlight"
    words = ["dataset.n_features=3"] if reader == "svmlight" else []
    words += ["dataset.target_bounds=[-1,1]"] if task == "regression" else []
    words += [f"dataset={reader}", "dataset.path=f", f"dataset.task={task}"]
    assert_refused(dperm("run", *words, "out=study"))
    assert not (tmp_path / "study").exists()


def test_a_configuration_with_a_number_of_5000_digits(dperm, tmp_path):
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "mine.yaml").write_text(
        "name: csv\npath: f\nrow_bound: 0x" + "f" * 5000 + "\n"
    )
    assert_refused(dperm("run", "--config-dir", "conf", "dataset=mine"))


@pytest.mark.parametrize("error", [OverflowError("big"), RecursionError(), KeyError("x"),
                                   ZeroDivisionError(), AssertionError("\x1b[0m")])  # fmt: skip
def test_whatever_a_parser_raises_is_one_line(error, dperm, tmp_path, monkeypatch):
    from dperm_cli.datasets.files.csv import Csv

    def fail(*_):
        raise error

    monkeypatch.setattr(Csv, "read_blocks", fail)
    write_table(tmp_path / "rows.csv", make_rows(9))
    done = dperm("run", "dataset=csv", "dataset.path=rows.csv")
    assert_refused(done)
    assert "dataset.path=rows.csv" in done.err
    with pytest.raises(Exception, match="cannot be read") as caught:
        dperm("--debug", "run", "dataset=csv", "dataset.path=rows.csv")
    assert caught.value.__cause__ is error


def test_an_interrupt_is_no_fault_of_the_file(tmp_path):
    with pytest.raises(KeyboardInterrupt), report_read_errors("key", tmp_path):
        raise KeyboardInterrupt


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "words",
    [["run"], ["account"], ["audit", "mechanism=noisy_gd"], ["reproduce", "leak"],
     ["audit", "fuzz=1s"], ["predict", "forged.npz", "new.csv"], ["merge", "a", "b"], ["ask"]],
    ids=lambda words: " ".join(words),
)  # fmt: skip
@pytest.mark.parametrize("name", ["a" * 300, "b/" * 3000, "b/" + "c" * 300])
def test_a_name_that_is_too_long(words, name, model, dperm):
    done = dperm(*words, f"out={name}")
    assert_refused(done)
    assert "out=" in done.err
    assert "too long" in done.err


def test_a_model_cannot_be_saved_under_too_long_a_name(dperm):
    done = dperm("run", "dataset=breast_cancer", f"save={'a' * 300}.npz")
    assert_refused(done)
    assert "save=" in done.err


def test_a_file_with_more_events_than_a_plan_has_is_refused(saved, predict, tmp_path):
    """Adding them up takes time, and a file decides how many there are."""
    facts, arrays = saved()
    event = {"event": "SampledGaussian", "record_norm": 1.0, "batch": 10, "population": 1000,
             "sampling": "fixed", "count": 1000}  # fmt: skip
    facts["events"] = [{**event, "scale": 20.0 + k} for k in range(MOST_EVENTS + 1)]
    write_model(tmp_path / "forged.npz", facts, arrays)
    done = predict()
    assert_refused(done)
    assert f"more than {MOST_EVENTS} events" in done.err
    facts["events"].pop()
    write_model(tmp_path / "forged.npz", facts, arrays)
    assert predict().code == 0


def test_the_events_are_the_word_of_the_file(saved, predict, tmp_path):
    facts, arrays = saved()
    facts |= {"mechanism": "objective_perturbation",
              "events": [{"event": "Pure", "epsilon": 0.0, "relation": "replace_one"}]}  # fmt: skip
    write_model(tmp_path / "forged.npz", facts, arrays)
    done = predict()
    assert done.code == 0, done.err
    assert "epsilon 0," in done.err
    said = "that this mechanism ran, and that these are its events, is the file's own word"
    assert said in done.err
