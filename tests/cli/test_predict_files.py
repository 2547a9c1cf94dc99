"""``dperm predict`` binds columns by name, speaks the file's labels and believes no file."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.runner.models import model_file
from dperm_cli.runner.models.prediction_files import open_predictions
from tests.conftest import draw_nothing

COLUMNS = ["height", "age", "dose"]
RNG = np.random.default_rng(1)
ROWS = RNG.uniform(-1.0, 1.0, (6, 3))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of a csv file with names; the folder also holds the file."""
    folder = tmp_path_factory.mktemp("trained")
    x = RNG.uniform(-1.0, 1.0, (200, 3))
    table = pd.DataFrame(x, columns=COLUMNS)
    table["answer"] = np.where(x[:, 0] > 0, "ill", "well")
    table.to_csv(folder / "t.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DPERM_CACHE_DIR", str(folder / "cache"))
        draw_nothing(patch)
        words = ["dataset=csv", "dataset.path=t.csv", "dataset.labels={ill: 1, well: -1}",
                 "loss=logistic", "mechanism=noisy_gd", "epsilon=8", "trials=1"]  # fmt: skip
        assert cli.main(["run", *words, "out=study", "save=m.npz"]) == 0
    return folder


@pytest.fixture
def predict(trained, tmp_path, monkeypatch, capsys):
    """``predict("m.npz", "rows.csv")``: (exit code, stdout, stderr), in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.npz").write_bytes((trained / "m.npz").read_bytes())

    def call(*words):
        capsys.readouterr()
        code = cli.main(["predict", *words])
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def table(columns=COLUMNS, **more):
    found = pd.DataFrame(ROWS, columns=COLUMNS)
    for name, value in more.items():
        found[name] = value
    return found[[*columns]]


def test_columns_are_found_by_name_in_any_order(predict):
    """The same rows with columns in another order get the same labels, with or without labels."""
    orders = [COLUMNS, ["dose", "height", "age"], ["age", "answer", "dose", "height"]]
    said = []
    for columns in orders:
        table(columns, answer="ill").to_csv("rows.csv", index=False)
        table(columns, answer="ill").to_parquet("rows.parquet")
        for name in ("rows.csv", "rows.parquet"):
            code, out, err = predict("m.npz", name)
            assert code == 0, err
            said.append(out)
    assert len(set(said)) == 1
    found = pd.read_csv(io.StringIO(said[0]))
    # as the file that it was trained on spells them
    assert set(found["label"]) == {"ill", "well"}
    assert np.array_equal(found["label"] == "ill", found["score"] >= 0)
    expected = model_file.read("m.npz").values(ROWS)
    np.testing.assert_allclose(found["score"], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["height", "dose"], "lacks column age, which the model takes"),
        (["dose"], "lacks columns height, age, which the model takes"),
        ([*COLUMNS, "height"], "has column height more than once"),
    ],
)
def test_missing_and_repeated_columns_are_named(predict, columns, words):
    found = pd.DataFrame(np.zeros((2, len(columns))), columns=columns)
    found.to_csv("rows.csv", index=False)
    assert predict("m.npz", "rows.csv") == (2, "", f"dperm: ROWS=rows.csv: {words}\n")
    if len(set(columns)) == len(columns):
        found.to_parquet("rows.parquet")
        assert predict("m.npz", "rows.parquet") == (2, "", f"dperm: ROWS=rows.parquet: {words}\n")


def test_a_file_without_names_needs_a_word(predict):
    np.savetxt("rows.csv", ROWS, delimiter=",")
    np.save("rows.npy", ROWS)
    np.savez("rows.npz", x=ROWS)
    with open("rows.svmlight", "w") as file:
        for row in ROWS:
            file.write("0 " + " ".join(f"{i}:{v!r}" for i, v in enumerate(row.tolist(), 1)) + "\n")
    said = []
    for name in ("rows.csv", "rows.npy", "rows.npz", "rows.svmlight"):
        code, out, err = predict("m.npz", name)
        assert (code, out) == (2, "")
        words = "names no columns, and the model takes height, age, dose by name; if they are in "
        assert err == f"dperm: ROWS={name}: {words}this order, say columns=position\n"
        code, out, err = predict("m.npz", name, "columns=position")
        assert code == 0, err
        said.append([float(line.split(",")[0]) for line in out.splitlines()[1:]])
    for other in said[1:]:
        np.testing.assert_allclose(other, said[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("height,age,dose\n1,2\n", "line 2 has 2 fields, the first line 3"),
        ("height,age,dose\n1,2,\n", "row 1 holds a number that is missing, nan or infinite"),
        ("height,age,dose\n1,2,nan\n", "record 1, column 'dose' holds text, not a number"),
        ("height,age,dose\n", "holds no records"),
        ("height,age,dose,answer\n1,2,3\n", "line 2 has 3 fields, the first line 4"),
    ],
)
def test_bad_lines_are_named(predict, text, words):
    with open("rows.csv", "w") as file:
        file.write(text)
    assert predict("m.npz", "rows.csv") == (2, "", f"dperm: ROWS=rows.csv: {words}\n")


def test_counts_that_differ_by_position_are_named(predict):
    np.save("rows.npy", ROWS[:, :2])
    code, _, err = predict("m.npz", "rows.npy", "columns=position")
    assert (code, err) == (2, "dperm: ROWS=rows.npy: has 2 columns; the model takes 3, "
                              "by position\n")  # fmt: skip


def test_what_is_told_is_computed_from_the_events(predict, trained):
    table().to_csv("rows.csv", index=False)
    _, _, err = predict("m.npz", "rows.csv")
    assert "6 predictions by noisy_gd: epsilon 8, delta 3.91e-05 (replace_one, n 160)" in err
    assert "the file says noise=research" in err
    forge(lambda facts: facts["events"][0].update(scale=facts["events"][0]["scale"] / 4))
    _, _, err = predict("forged.npz", "rows.csv")
    assert "epsilon 8," not in err
    epsilon = float(err.partition("epsilon ")[2].partition(",")[0])
    assert epsilon > 30
    forge(lambda facts: facts.update(noise="secure"))
    _, _, err = predict("forged.npz", "rows.csv")
    assert "the file says noise=secure, which nothing in it can prove" in err


def members(name):
    with zipfile.ZipFile(name) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def npy(array):
    sink = io.BytesIO()
    np.lib.format.write_array(sink, array, (1, 0))
    return sink.getvalue()


def pack(parts, name="forged.npz", kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(name, "w", kind) as archive:
        for member, content in parts.items():
            archive.writestr(member, content)


def facts_of(name="m.npz"):
    with np.load(name) as file:
        return json.loads(file["facts"].tobytes())


def forge(change=None, text=None, **arrays):
    """``forged.npz``: the model with other facts or other arrays (None takes one away)."""
    parts = members("m.npz")
    facts = facts_of()
    if change is not None:
        change(facts)
    text = json.dumps(facts) if text is None else text
    parts["facts.npy"] = npy(np.frombuffer(text.encode(), dtype=np.uint8))
    for name, array in arrays.items():
        parts.pop(f"{name}.npy", None)
        if array is not None:
            parts[f"{name}.npy"] = array if isinstance(array, bytes) else npy(array)
    pack(parts)


def setter(*path, to):
    def change(facts):
        for name in path[:-1]:
            facts = facts[name]
        facts[path[-1]] = to

    return change


def dropper(*path):
    def change(facts):
        for name in path[:-1]:
            facts = facts[name]
        del facts[path[-1]]

    return change


GAUSSIAN = {"event": "Gaussian", "scale": 1.0, "record_norm": 1.0, "count": 1, "gap": None}
FORGED = {
    "theta nan": {"theta": np.array([1.0, np.nan, 1.0])},
    "theta infinite": {"theta": np.array([1.0, np.inf, 1.0])},
    "theta short": {"theta": np.ones(2)},
    "theta a matrix": {"theta": np.ones((3, 1))},
    "theta of no dimension": {"theta": np.array(1.0)},
    "theta of objects": {"theta": b"\x93NUMPY" + b"\x01\x00" + (118).to_bytes(2, "little")
                         + b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(117)
                         + b"\ncos\nsystem\n(S'touch pwned'\ntR."},
    "theta larger than the file": {"theta": npy(np.ones(3)).replace(b"(3,)", b"(9999999999999,)")},
    "theta absent": {"theta": None},
    "another array": {"more": np.ones(3)},
    "landmarks without a kernel": {"points": np.ones((3, 3)), "basis": np.ones((3, 3))},
    "unknown key": {"change": setter("claim", to={"epsilon": 0.1})},
    "unknown key inside": {"change": setter("schema", "path", to="t.csv")},
    "no schema": {"change": dropper("schema")},
    "no relation": {"change": dropper("relation")},
    "no norm": {"change": dropper("schema", "norm")},
    "no events": {"change": setter("events", to=[])},
    "events are none": {"change": setter("events", to=None)},
    "an event of no class": {"change": setter("events", to=[{"event": "System", "scale": 1}])},
    "an event with more keys": {"change": setter("events", to=[{**GAUSSIAN, "hidden": 1}])},
    "an event without noise": {"change": setter("events", to=[{"event": "Disclosure"}])},
    "an event that is nan": {"text": "nan"},
    "a scale of text": {"change": setter("events", to=[{**GAUSSIAN, "scale": "2"}])},
    "many events": {"change": setter("events", to=[GAUSSIAN] * 5000)},
    "a count beyond everything": {"change": setter("events", 0, "count", to=10**400)},
    "delta of one": {"change": setter("delta", to=1.0)},
    "delta of nothing": {"change": setter("delta", to=0.0)},
    "delta true": {"change": setter("delta", to=True)},
    "another relation": {"change": setter("relation", to="nobody")},
    "n under add_remove": {"change": setter("relation", to="add_remove")},
    "another mechanism": {"change": setter("mechanism", to="magic")},
    "another noise": {"change": setter("noise", to="perfect")},
    "a terminal's command": {"change": setter("arithmetic", to="\x1b[2J")},
    "columns that are not": {"change": setter("schema", "columns", to=["a", "b"])},
    "columns twice": {"change": setter("schema", "columns", to=["a", "a", "b"])},
    "a column with a command": {"change": setter("schema", "columns", to=["a", "b", "\x1b]0;x"])},
    "a label with a command": {"change": setter("schema", "labels", to=[["\x1b[2J", 1]])},
    "a label of another sign": {"change": setter("schema", "labels", to=[["a", 2]])},
    "count of nothing": {"change": setter("schema", "count", to=0)},
    "a huge count": {"change": setter("schema", "count", to=2**62)},
    "a row bound of nothing": {"change": setter("schema", "row_bound", to=-1.0)},
    "bounds upside down": {"change": lambda f: f["schema"].update(scaling="bounds", bounds=[1, 0])},
    "bounds of text": {"change": lambda f: f["schema"].update(scaling="bounds", bounds=["a", "b"])},
    "fitted scaling": {"change": setter("schema", "scaling", to="minmax")},
    "a kernel of a file": {"change": setter("features", to={
        "kind": "explicit", "source": "file", "kernel": {"name": "precomputed", "path": "t.csv"}})},
    "a kernel without keys": {"change": setter("features", to={
        "kind": "explicit", "source": "file", "kernel": {"name": "rbf"}})},
    "a map without end": {"change": setter("features", to={
        "kind": "explicit", "source": "file",
        "kernel": {"name": "polynomial", "degree": 20, "offset": 1.0}})},
    "not a mapping": {"text": "[]"},
    "no json": {"text": "{"},
    "deep": {"text": "[" * 100_000},
    "a number without end": {"text": "9" * 10_000},
    "infinity": {"text": '{"format": Infinity}'},
    "a key twice": {"text": '{"format": "dperm-model-2", "format": "dperm-model-2"}'},
    "another format": {"change": setter("format", to="dperm-model-9")},
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_a_malformed_model_is_one_line(predict, name, tmp_path):
    table().to_csv("rows.csv", index=False)
    forge(**FORGED[name])
    code, out, err = predict("forged.npz", "rows.csv")
    assert (code, out) == (2, "")
    assert err.startswith("dperm: MODEL=forged.npz: is not a predictor (")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert not (tmp_path / "pwned").exists()


def test_a_model_unchanged_by_the_forger_is_read(predict):
    """So that the refusals above are about what was changed."""
    table().to_csv("rows.csv", index=False)
    forge()
    assert predict("forged.npz", "rows.csv") == predict("m.npz", "rows.csv")


@pytest.mark.parametrize("member", ["theta.npy", "facts.npy"])
def test_a_compressed_member_is_never_unpacked(predict, member):
    """A quarter of a gigabyte of zeros in a quarter of a megabyte."""
    table().to_csv("rows.csv", index=False)
    parts = members("m.npz")
    content = npy(np.zeros(2**25)) if member == "theta.npy" else npy(np.zeros(2**28, np.uint8))
    with zipfile.ZipFile("forged.npz", "w") as archive:
        for name, other in parts.items():
            kind = zipfile.ZIP_DEFLATED if name == member else zipfile.ZIP_STORED
            archive.writestr(name, content if name == member else other, kind)
    del content
    tracemalloc.start()
    code, out, err = predict("forged.npz", "rows.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (code, out) == (2, "")
    assert "compressed" in err
    assert peak < 2**25


def test_an_earlier_file_is_to_be_saved_again(predict):
    table().to_csv("rows.csv", index=False)
    facts = {"format": "dperm-model-1", "claim": {"n": 137}}
    np.savez("old.npz", theta=np.zeros(3), facts=np.frombuffer(json.dumps(facts).encode(), "u1"))
    code, out, err = predict("old.npz", "rows.csv")
    assert (code, out) == (2, "")
    assert "save it again" in err
    assert "137" not in err


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x93NUMPY\x01\x00"]
)
def test_no_archive_at_all(predict, content):
    table().to_csv("rows.csv", index=False)
    with open("forged.npz", "wb") as file:
        file.write(content)
    code, out, err = predict("forged.npz", "rows.csv")
    assert (code, out) == (2, "")
    assert err.startswith("dperm: MODEL=forged.npz: is not a predictor")
    assert err.count("\n") == 1


def test_every_cut_and_flipped_byte_is_one_line_or_another_model(predict):
    """A damaged file never ends in a traceback, whatever it is taken for."""
    table().to_csv("rows.csv", index=False)
    with open("m.npz", "rb") as file:
        whole = file.read()
    rng = np.random.default_rng(2)
    for trial in range(60):
        data = bytearray(whole)
        if trial % 2:
            data = data[: int(rng.integers(len(data)))]
        else:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        with open("forged.npz", "wb") as file:
            file.write(data)
        code, _, err = predict("forged.npz", "rows.csv")
        assert code in (0, 2)
        assert "Traceback" not in err
        assert code == 0 or err.count("\n") == 1


def test_parquet_has_what_csv_has(predict):
    table().to_csv("rows.csv", index=False)
    _, text, _ = predict("m.npz", "rows.csv")
    for words in (("out=new.parquet",), ("format=parquet", "out=new")):
        assert predict("m.npz", "rows.csv", *words)[:2] == (0, "")
        found = pd.read_parquet(words[-1].removeprefix("out="))
        pd.testing.assert_frame_equal(found, pd.read_csv(io.StringIO(text)), check_dtype=False)
        assert [str(kind) for kind in found.dtypes[["score", "probability=ill"]]] == ["float64"] * 2
    assert predict("m.npz", "rows.csv", "format=csv", "out=new.parquet")[0] == 0
    assert Path("new.parquet").read_text() == text


def test_parquet_is_for_a_file(predict):
    table().to_csv("rows.csv", index=False)
    code, out, err = predict("m.npz", "rows.csv", "format=parquet")
    assert (code, out) == (2, "")
    assert "format=parquet: is for a file: give out=FILE" in err


def test_blocks_of_parquet_are_row_groups(tmp_path):
    """A column is of one type in all blocks, whatever its first one lacks."""
    blocks = [{"id": ["a", "b"], "value": [None, None]}, {"id": ["c"], "value": [1.5]}]
    with open_predictions("parquet", OutputFile.of("out", str(tmp_path / "p"))) as write:
        for block in blocks:
            write(block)
    file = pq.ParquetFile(tmp_path / "p")
    assert file.num_row_groups == 2
    assert file.read().to_pydict() == {"id": ["a", "b", "c"], "value": [None, None, 1.5]}


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    def write_and_fail():
        with open_predictions("parquet", OutputFile.of("out", str(tmp_path / "p"))) as write:
            write({"value": [1.0]})
            raise InputError("ROWS", "x", "is bad")

    (tmp_path / "p").write_text("before")
    with pytest.raises(InputError):
        write_and_fail()
    assert (tmp_path / "p").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_other_columns_are_ignored(predict):
    rows = pd.DataFrame(ROWS, columns=COLUMNS)
    rows.to_csv("rows.csv", index=False)
    plain = predict("m.npz", "rows.csv")
    rows.assign(name="somebody", outcome="ill").to_csv("rows.csv", index=False)
    assert predict("m.npz", "rows.csv") == plain
