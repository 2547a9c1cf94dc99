"""Records that are mapped from files of the cache are those that are loaded into memory."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.memory_limits import MemoryLimit
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.parquet import Parquet
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.files.table import Table
from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic
from dperm_cli.datasets.generated.zipf_regression import ZipfRegression
from dperm_cli.datasets.published.breast_cancer import BreastCancer
from dperm_cli.datasets.shared import block_stage, stored_rows
from dperm_cli.runner.sweep import data_storage
from dperm_cli.runner.sweep.data_storage import load_records

N = 90


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty working directory, a cache folder, and blocks of few records."""
    folder = tmp_path / "cache"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(folder))
    monkeypatch.setattr("dperm_cli.datasets.files.csv.BLOCK_CELLS", 30)
    monkeypatch.setattr("dperm_cli.datasets.files.csv.LEAST_ROWS", 8)
    monkeypatch.setattr("dperm_cli.datasets.shared.svmlight_reader.BLOCK", 500)
    monkeypatch.setattr("dperm_cli.datasets.generated.synthetic_logistic._PART", 20)
    monkeypatch.setattr("dperm_cli.datasets.shared.stored_arrays._RECORDS", 7)
    monkeypatch.setattr("dperm_cli.datasets.shared.stored_arrays._ENTRIES", 10)
    monkeypatch.setattr("dperm_cli.problem.row_products._BLOCK_NUMBERS", 64)
    return folder


def stores(cache):
    return sorted(path.name for path in (cache / "stored").iterdir())


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((N, 3)), rng.random(N) < 0.4


def write_csv(seed=0, name="t.csv", **more):
    x, y = draw(seed)
    lines = [
        f"{a!r},{b!r},{c!r},{'yes' if t else 'no'}"
        for (a, b, c), t in zip(x.tolist(), y, strict=True)
    ]
    Path(name).write_text("\n".join(["a,b,c,sick", *lines]) + "\n")
    return Csv(path=name, target="sick", labels={"yes": 1, "no": -1}, bounds=[0, 1], **more)


def write_svmlight(**more):
    rng = np.random.default_rng(3)
    lines = []
    for k in range(N):
        places = sorted(rng.choice(40, int(rng.integers(0, 6)), replace=False) + 1)
        cells = [f"{i}:{rng.standard_normal()!r}" for i in places]
        lines.append(" ".join(["1" if k % 3 else "-1", *cells]))
    Path("t.svm").write_text("# a comment\n" + "\n".join(lines) + "\n")
    return Svmlight(path="t.svm", n_features=40, **more)


def write_parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = draw()
    columns = {"a": x[:, 0], "b": x[:, 1], "sick": y}
    pq.write_table(pa.table(columns), "t.parquet", row_group_size=25)
    return Parquet(path="t.parquet", target="sick", labels={True: 1, False: -1}, bounds=[0, 1])


def write_npz():
    x, y = draw()
    np.savez("t.npz", x=x, y=y + 0.0, phi=np.eye(3, 5))
    keys = {"task": "regression", "target_bounds": [0, 1], "rows": "clip", "row_bound": 2.0}
    return Npz(path="t.npz", phi="t.npz", **keys)


def write_table():
    write_csv()
    number = {"kind": "number", "bounds": [0, 1]}
    told = {"target": {"column": "sick", "classes": ["no", "yes"]}, "columns": {"a": number}}
    told["columns"] |= {name: {"kind": "drop"} for name in "bc"}
    return Table(path="t.csv", schema=told)


MAKERS = {
    "csv": write_csv,
    "csv, scalings": lambda: write_csv(scalings=("none", "bounds"), intercept=False),
    "csv, no held-out records": lambda: write_csv(test_fraction=0.0),
    "csv, test file": lambda: write_csv(test_path=str(write_csv(1, "held.csv").path)),
    "csv, fitted": lambda: write_csv(scaling="minmax", unsafe_scaling=True),
    "csv, zeros": lambda: write_csv(invalid="zero"),
    "svmlight": write_svmlight,
    "svmlight, all": lambda: write_svmlight(test_fraction=0.0, intercept=True),
    "svmlight, dense": lambda: write_svmlight(storage="dense"),
    "parquet": write_parquet,
    "npz": write_npz,
    "table": write_table,
    "synthetic": lambda: SyntheticLogistic(n=N, p=3, n_test=0),
    "sparse": lambda: ZipfRegression(n=N, p=30, n_test=10),
    "embedded": BreastCancer,
}


def list_arrays(data):
    for name in ("x", "y", "x_test", "y_test", "names", "minimiser", "phi"):
        value = getattr(data, name)
        if value is None or isinstance(value, np.ndarray):
            yield name, value
        else:
            assert type(value).__name__ == "csr_array"
            for part in ("data", "indices", "indptr"):
                yield f"{name}.{part}", getattr(value, part)


def check_equal(first, second):
    for (name, one), (_, other) in zip(list_arrays(first), list_arrays(second), strict=True):
        assert (one is None) == (other is None), name
        if one is not None:
            assert (one.dtype, one.shape) == (other.dtype, other.shape), name
            assert one.tobytes() == other.tobytes(), name
    arrays = {"x", "y", "x_test", "y_test", "names", "minimiser", "phi"}
    facts = [{k: v for k, v in vars(data).items() if k not in arrays} for data in (first, second)]
    assert facts[0] == facts[1]


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.parametrize("kind", MAKERS)
def test_mapped_records_are_those_in_memory(kind, cache):
    made = MAKERS[kind]()
    mapped, loaded = load_records(made, True), load_records(made, False)
    check_equal(mapped, loaded)
    assert mapped.identity == loaded.identity
    assert is_mapped(getattr(mapped.x, "data", None) if kind[:3] in ("svm", "spa") and
                     "dense" not in kind else mapped.x)  # fmt: skip
    [name] = stores(cache)
    before = (cache / "stored" / name / "facts.json").stat()
    check_equal(load_records(made, True), loaded)
    assert (cache / "stored" / name / "facts.json").stat().st_ino == before.st_ino
    assert sorted(os.listdir(cache / "stored" / name)) == sorted(
        path for path in os.listdir(cache / "stored" / name) if path.endswith((".npy", ".json"))
    )
    assert os.stat(cache / "stored" / name).st_mode & 0o077 == 0


def test_a_run_has_the_same_records_of_results(capsys):
    write_csv()
    words = [
        "run", "dataset=csv", "dataset.path=t.csv", "dataset.target=sick", "dataset.bounds=[0,1]",
        "dataset.labels={yes: 1, no: -1}", "mechanism=noisy_gd", "mechanism.steps=5", "trials=2",
        "constraint.radius=2", "format=json",
    ]  # fmt: skip
    told = []
    for storage in ("memory", "mapped"):
        assert cli.main([*words, f"data_storage={storage}", f"out={storage}"]) == 0
        told.append(capsys.readouterr())
    rows = [[line for line in one.out.split(",") if "seconds" not in line] for one in told]
    assert rows[0] == rows[1]
    names = [sorted(os.listdir(f"{storage}/records")) for storage in ("memory", "mapped")]
    assert names[0] == names[1]
    assert "records kept in " in told[1].err
    assert "records kept in " not in told[0].err


def test_a_changed_file_is_stored_again_and_the_old_store_goes(cache):
    made = write_csv()
    first = load_records(made, True)
    [old] = stores(cache)
    load_records(write_csv(centred=False), True)
    assert len(stores(cache)) == 2
    second = load_records(write_csv(seed=1), True)
    assert first.fingerprint != second.fingerprint
    check_equal(second, made.load())
    assert old not in stores(cache)
    assert len(stores(cache)) == 2


def test_a_damaged_store_is_made_again(cache, capsys):
    made = write_csv()
    loaded = made.load()
    for name in ("x.npy", "facts.json", "sums.json"):
        load_records(made, True)
        [folder] = (cache / "stored").iterdir()
        text = bytearray((folder / name).read_bytes())
        text[len(text) // 2] ^= 4
        (folder / name).write_bytes(text)
        capsys.readouterr()
        check_equal(load_records(made, True), loaded)
        said = capsys.readouterr().err
        assert said.startswith(f"warning: {folder}/")
        assert "its records are stored again\n" in said
    os.unlink(folder / "y.npy")
    check_equal(load_records(made, True), loaded)
    assert "y.npy: no such file" in capsys.readouterr().err
    os.unlink(folder / "sums.json")
    check_equal(load_records(made, True), loaded)
    assert "sums.json: is missing" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["synthetic", "embedded", "sparse"])
def test_a_disk_without_room_is_refused_before_anything_is_written(kind, cache, monkeypatch):
    usage = namedtuple("usage", "total used free")(10, 9, 1)
    monkeypatch.setattr(stored_rows.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match=r"needs about .* and 1 B are free; set DPERM_CACHE_DIR"):
        load_records(MAKERS[kind](), True)
    assert stores(cache) == []


@pytest.mark.parametrize("place", ["block", "array"])
def test_a_disk_that_becomes_full_leaves_nothing(place, cache, monkeypatch):
    calls = []

    def fill(*_args, **_more):
        calls.append(1)
        if len(calls) > 3:
            raise StorageError("no space left on device")

    if place == "block":
        monkeypatch.setattr(block_stage, "append_bytes", fill)
    else:
        monkeypatch.setattr(stored_rows, "write_rows", fill)
    with pytest.raises(StorageError, match="no space left"):
        load_records(write_csv(), True)
    assert stores(cache) == []


def test_a_refused_record_leaves_nothing(cache):
    made = write_csv()
    with open("t.csv", "a") as file:
        file.write("1,2,nan,yes\n")
    with pytest.raises(InputError, match=f"record {N + 1}"):
        load_records(made, True)
    assert stores(cache) == []


def test_auto_maps_what_is_large_for_the_memory(monkeypatch):
    made = write_csv()
    size = os.path.getsize("t.csv")
    seen = []
    count = Csv.count_records
    monkeypatch.setattr(Csv, "count_records", lambda *a: seen.append(1) or count(*a))

    def choose(memory, asked="auto", dataset=made, addresses=False):
        limit = MemoryLimit(memory, "a test", addresses=addresses)
        monkeypatch.setattr(data_storage, "current_limit", lambda: limit)
        return data_storage._is_mapped(dataset, asked)

    needed = N * (3 * 8 + 24)
    assert not choose(40 * size)
    assert not seen  # the size of the file says enough
    assert not choose(4 * needed + 48 * 4)
    assert choose(4 * needed - 4)
    assert choose(10 << 40, "mapped")
    assert not choose(100, "memory")
    assert not choose(100, addresses=True)  # mapped files count as well
    assert not choose(100, dataset=BreastCancer())  # is loaded whole in any case
    assert choose(100, dataset=write_svmlight())
    assert choose(100, dataset=SyntheticLogistic(n=100, n_test=0))
    assert not choose(100, dataset=SyntheticLogistic(n=100, n_test=5))


def test_mapped_records_are_not_counted_as_memory(capsys):
    words = ["dataset=synthetic_logistic", "dataset.n=4000000", "dataset.p=50", "dataset.n_test=0"]
    more = ["mechanism=noisy_gd", "constraint.radius=1", "--cfg", "preflight", "format=json"]
    found = {}
    for storage in ("memory", "mapped"):
        assert cli.main(["run", *words, *more, f"data_storage={storage}"]) == 0
        found[storage] = capsys.readouterr().out
    assert found["memory"] != found["mapped"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["data_storage=disk"], "data_storage=disk: must be one of auto, memory, mapped"),
        (["dataset=csv", "dataset.path=no.csv", "data_storage=mapped"], "no such file"),
    ],
)
def test_bad_words_are_one_line(words, told, capsys):
    assert cli.main(["run", *words, "out=o"]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert os.listdir() == []


def test_records_of_a_python_call_cannot_be_mapped():
    import dperm_cli

    x, y = draw()
    with pytest.raises(InputError, match=r"data_storage=mapped: is for .*; set data_storage=mem"):
        dperm_cli.run(X=x, y=np.where(y, 1, -1), data_storage="mapped", out="o", trials=1)
    assert os.listdir() == []


def test_without_a_cache_folder_it_is_said_what_to_set(monkeypatch):
    monkeypatch.setattr(data_storage, "cache_dir", lambda: None)
    with pytest.raises(StorageError, match="set DPERM_CACHE_DIR=FOLDER"):
        load_records(write_csv(), True)


def test_a_folder_that_is_no_store_of_ours_stays(cache):
    made = write_csv()
    load_records(made, True)
    [name] = stores(cache)
    shutil.rmtree(cache / "stored" / name)
    (cache / "stored" / f"{name}.part").mkdir()
    (cache / "stored" / f"{name}.part" / "mine").write_text("kept")
    with pytest.raises(StorageError, match="remove it, or set data_storage=memory"):
        load_records(made, True)
    assert (cache / "stored" / f"{name}.part" / "mine").read_text() == "kept"


def test_what_was_begun_and_keeps_no_block_is_taken_away(cache):
    """A process that is killed between the folder and its journal leaves an empty folder."""
    path = write_csv()
    load_records(path, mapped=True)
    (name,) = stores(cache)
    folder = cache / "stored" / name
    shutil.rmtree(folder)
    folder.with_name(f"{name}.part").mkdir(mode=0o700)
    check_equal(load_records(path, mapped=True), path.load())
    assert stores(cache) == [name]


@pytest.mark.parametrize("ending", ["", ".part"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_of_ours_is_named_and_stays(kind, ending, cache, tmp_path):
    dataset = write_csv()
    load_records(dataset, mapped=True)
    (name,) = stores(cache)
    shutil.rmtree(cache / "stored" / name)
    other, there = tmp_path / "other", cache / "stored" / f"{name}{ending}"
    other.mkdir()
    (other / "mine").write_text("mine")
    there.symlink_to(other) if kind == "link" else there.write_text("mine")
    with pytest.raises(StorageError, match="remove it, or set data_storage=memory"):
        load_records(dataset, mapped=True)
    assert (other / "mine").read_text() == "mine"
    assert there.is_symlink() if kind == "link" else there.read_text() == "mine"


def test_blocks_that_an_ended_last_step_left_are_taken_away(cache):
    dataset = write_csv()
    load_records(dataset, mapped=True)
    (name,) = stores(cache)
    left = cache / "stored" / name / "unsplit"
    left.mkdir()
    (left / "x").write_bytes(b"left")
    check_equal(load_records(dataset, mapped=True), dataset.load())
    assert not left.exists()


def test_every_file_of_a_store_is_for_its_owner_alone(cache):
    load_records(write_csv(), mapped=True)
    files = [path for path in (cache / "stored").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert {path.name: path.stat().st_mode & 0o077 for path in files if path.suffix} == {
        path.name: 0 for path in files if path.suffix
    }
