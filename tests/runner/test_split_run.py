"""One run on many machines: the bytes of one machine, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import DpermError
from dperm_cli.loops.record_parts import divide
from dperm_cli.problem.data_folder import read_folder
from dperm_cli.problem.split_rows import SplitRows, map_parts
from dperm_cli.runner.sweep import row_cluster, split_run
from dperm_cli.runner.sweep.row_cluster import Errand, RowCluster, deal_parts, join_ranges

SPLIT = ("backend=dask", "split=rows")
N, P = 20_000, 4  # four parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stored data set."""
    place = tmp_path_factory.mktemp("stored") / "kept"
    words = [f"dataset.n={N}", f"dataset.p={P}", "dataset.n_test=0", f"to={place}"]
    assert cli.main(["data", "store", "synthetic_logistic", *words]) == 0
    return place


@pytest.fixture(scope="module")
def other_folders(folder, tmp_path_factory):
    """The same with sparse rows, and with three classes."""
    place = tmp_path_factory.mktemp("others")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N, P)) / 4.0
    np.savez(place / "classes.npz", x=x, y=np.argmax(x[:, :3], axis=1))
    words = {
        "sparse": ["zipf_regression", f"dataset.n={N}", "dataset.p=60"],
        "classes": ["npz", f"dataset.path={place}/classes.npz", "dataset.task=multiclass",
                    "dataset.labels=[0,1,2]", "dataset.rows=unit"],
    }  # fmt: skip
    for name, own in words.items():
        assert cli.main(["data", "store", *own, f"to={place / name}"]) == 0
    return {"dense": folder} | {name: place / name for name in words}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of processes, of one worker at first."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=60,
        ) as made:  # fmt: skip
            yield made


def scale(cluster, count):
    """Exactly so many workers."""
    cluster.scale(count)
    with cluster.get_client() as client:
        client.wait_for_workers(count)
        end = time.monotonic() + 60.0
        while len(client.nthreads()) != count:
            assert time.monotonic() < end
            time.sleep(0.05)


def run_cell(folder, out, *words):
    """The exit code and the rows of a run, without what says how long it took."""
    first = ["run", "dataset=stored", f"dataset.path={folder}", "constraint.radius=2",
             "format=json", f"out={out}"]  # fmt: skip
    keys = ("mechanism=noisy_gd", "mechanism.steps=4", "trials=2")
    own = {word.partition("=")[0] for word in words}
    keys = [word for word in keys if word.partition("=")[0] not in own]
    if "mechanism" in own:
        keys = [word for word in keys if not word.startswith("mechanism.")]
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("DPERM_CACHE_DIR", f"{out}-cache")  # the optimum is solved anew
        code = cli.main([*first, *keys, *words])
    return code, (Path(out) / "table.csv").read_bytes()


def read_rows(out):
    """All rows of the records, without their times."""
    from dperm_cli.results.records.store import Store

    rows = Store(out).read_all()
    return [{key: value for key, value in row.items() if "second" not in key} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "sparse", "classes"])
def test_one_two_and_three_workers_give_the_bytes_of_one_process(
    kind, other_folders, cluster, tmp_path
):
    folder = other_folders[kind]
    code, table = run_cell(folder, tmp_path / "alone")
    assert code == 0
    for count in (1, 2, 3):
        scale(cluster, count)
        out = tmp_path / f"with {count}"
        address = f"address={cluster.scheduler_address}"
        code, found = run_cell(folder, out, *SPLIT, address, "threads=2")
        assert code == 0
        assert found == table
        assert repr(read_rows(out)) == repr(read_rows(tmp_path / "alone"))
        [noted] = json.loads((out / "machines.json").read_text()).values()
        [machine] = noted["rows read by"]
        n = read_folder(folder).n
        assert machine["records"] == [[0, n - 1]]
        assert machine["machine"] == noted["noise drawn by"]["machine"]


class Near(RowCluster):
    """Two machines that are this process: each part is computed from a pickled pass."""

    def run(self, one):
        owners = deal_parts(None, len(one.parts), ["first", "second"])
        self._machines |= {"first": "first", "second": "second"}
        found = []
        for number, owner in enumerate(owners):
            self.seen.setdefault(owner, set()).add(one.parts[number])
            found += pickle.loads(pickle.dumps(one.take([number]))).compute()
        return found

    def count_workers(self):
        return "2 workers"


@pytest.fixture
def near(monkeypatch):
    """No cluster is started."""

    @contextmanager
    def open_here(*_):
        yield Near(None, Errand(1, ()), print)

    monkeypatch.setattr(split_run, "open_row_cluster", open_here)


@pytest.mark.parametrize(
    "words",
    [
        ("mechanism=newton", "mechanism.steps=3"),
        ("mechanism=frank_wolfe", "constraint=l1_ball"),
        ("mechanism=mirror_descent", "mechanism.steps=3"),
        ("mechanism=sufficient_statistics", "loss=squared"),
        ("mechanism=objective_perturbation", "ridge=0.001"),
        ("mechanism=approximate_minima_perturbation", "ridge=0.001"),
        ("mechanism=output_perturbation", "ridge=0.001"),
        ("mechanism=noisy_gd", "loss=hinge"),
        ("mechanism=noisy_gd", "relation=add_remove"),
        ("mechanism=non_private",),
    ],
    ids=lambda words: " ".join(words),
)
def test_mechanisms_of_sums_give_the_bytes_of_one_process(words, folder, tmp_path, near):
    compare_with_one_process(words, folder, tmp_path)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("sparse", ("mechanism=noisy_gd",)),
        ("sparse", ("mechanism=sufficient_statistics",)),
        ("sparse", ("mechanism=objective_perturbation", "ridge=0.001")),
        ("sparse", ("mechanism=frank_wolfe", "constraint=l1_ball", "loss=huberized_positive_part")),
        ("sparse", ("mechanism=newton", "mechanism.steps=3")),
        ("sparse", ("mechanism=output_perturbation", "ridge=0.001", "loss=absolute")),
        ("classes", ("mechanism=noisy_gd",)),
        ("classes", ("mechanism=mirror_descent", "mechanism.steps=3")),
        ("classes", ("mechanism=approximate_minima_perturbation", "ridge=0.001")),
        ("classes", ("mechanism=output_perturbation", "ridge=0.001")),
        ("classes", ("mechanism=non_private",)),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_sparse_rows_and_classes_give_the_bytes_of_one_process(
    kind, words, other_folders, tmp_path, near
):
    compare_with_one_process(words, other_folders[kind], tmp_path)


def compare_with_one_process(words, folder, tmp_path):
    words = [word.replace("relation=", "privacy.relation=") for word in words]
    code, table = run_cell(folder, tmp_path / "alone", *words)
    split_code, found = run_cell(folder, tmp_path / "split", *SPLIT, *words)
    assert (split_code, found) == (code, table) == (0, table)
    assert repr(read_rows(tmp_path / "split")) == repr(read_rows(tmp_path / "alone"))


def test_the_statement_says_which_machine_was_given_which_records(
    folder, tmp_path, near, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run_cell(folder, "alone", "trials=1", "save=alone.npz")[0] == 0
    assert run_cell(folder, "split", *SPLIT, "trials=1", "save=model.npz")[0] == 0
    assert Path("model.npz").read_bytes() == Path("alone.npz").read_bytes()
    noted = json.loads(Path("split/machines.json").read_text())
    [one] = noted.values()
    assert one["rows read by"] == [
        {"machine": "first", "records": [[0, N // 2 - 1]]},
        {"machine": "second", "records": [[N // 2, N - 1]]},
    ]
    capsys.readouterr()
    assert cli.main(["statement", "model.npz"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "first was given the rows 0 to 9999. second was given the rows 10000 to 19999." in told
    assert "adds up sums and draws the noise" in told
    assert cli.main(["statement", "alone.npz"]) == 0
    assert "was given the rows" not in " ".join(capsys.readouterr().out.split())
    for broken, words in (("{}", "no file that dperm wrote"), (None, "of another model")):
        text = broken or json.dumps({**one, "model_sha256": "0"})
        Path("alone.machines.json").write_text(text)
        assert cli.main(["statement", "alone.npz"]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_worker_that_is_killed_in_mid_pass_is_made_up_for(
    folder, cluster, tmp_path, monkeypatch, capsys
):
    scale(cluster, 2)
    code, table = run_cell(folder, tmp_path / "alone")
    with cluster.get_client() as client:
        pids = client.run(os.getpid)
    submitted, real = [], RowCluster._submit

    def submit(self, worker, call, *arguments):
        future = real(self, worker, call, *arguments)
        submitted.append(worker)
        if len(submitted) == 15:
            os.kill(pids[worker], signal.SIGKILL)
        return future

    monkeypatch.setattr(RowCluster, "_submit", submit)
    capsys.readouterr()
    address = f"address={cluster.scheduler_address}"
    assert run_cell(folder, tmp_path / "split", *SPLIT, address) == (code, table)
    assert len(submitted) > 15
    assert "a worker was lost" in capsys.readouterr().err
    assert repr(read_rows(tmp_path / "split")) == repr(read_rows(tmp_path / "alone"))


def wait_and_sum(place, x):
    """The sum of the rows of a part, once a file says that it may be made."""
    (place / f"begun-{os.getpid()}").touch()
    while not (place / "go").exists():
        time.sleep(0.02)
    return x.sum(axis=0)


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_computes_is_made_up_for(folder, cluster, tmp_path):
    from threading import Thread

    scale(cluster, 2)
    data = read_folder(folder)
    killed = []

    def kill_one():
        while len(begun := list(tmp_path.glob("begun-*"))) < 2:
            time.sleep(0.02)
        killed.append(int(begun[0].name.partition("-")[2]))
        os.kill(killed[0], signal.SIGKILL)
        (tmp_path / "go").touch()

    with cluster.get_client() as client:
        made = RowCluster(client, Errand(1, ()), print)
        rows = SplitRows(folder, data.fingerprint, data.x, data.y, made.run)
        Thread(target=kill_one).start()
        found = map_parts(rows, partial(wait_and_sum, tmp_path))
    assert len(killed) == 1
    here = map_parts(data.x, partial(wait_and_sum, tmp_path))
    assert [one.tobytes() for one in found] == [one.tobytes() for one in here]
    assert {part for parts in made.seen.values() for part in parts} == set(divide(N, P))


def limit_room(extra):
    """Let this process reserve no more than so many bytes beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + extra
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    return before


def lift_limit(before):
    resource.setrlimit(resource.RLIMIT_AS, before)


def map_all(path):
    """Whether this process can map all rows."""
    try:
        return read_folder(path).n
    except (OSError, MemoryError, DpermError):
        return None


@pytest.mark.slow
def test_no_worker_can_hold_the_whole(folder, cluster, tmp_path):
    """Workers may reserve less room than the records take; each maps its third of them."""
    n, p = 3_000_000, 8  # 192 MB
    place = tmp_path / "large"
    words = [f"dataset.n={n}", f"dataset.p={p}", "dataset.n_test=0", f"to={place}"]
    assert cli.main(["data", "store", "synthetic_logistic", *words]) == 0
    scale(cluster, 3)
    address = f"address={cluster.scheduler_address}"
    code, table = run_cell(place, tmp_path / "alone")
    with cluster.get_client() as client:
        # what workers import and compile, they have before the limit
        assert run_cell(folder, tmp_path / "few", *SPLIT, address)[0] == 0
        limits = client.run(limit_room, 150_000_000)
        try:
            assert set(client.run(map_all, place).values()) == {None}
            assert run_cell(place, tmp_path / "split", *SPLIT, address) == (code, table)
        finally:
            for worker, before in limits.items():
                client.run(lift_limit, before, workers=[worker])
    assert repr(read_rows(tmp_path / "split")) == repr(read_rows(tmp_path / "alone"))


def test_a_part_at_which_all_workers_die_ends_the_run(monkeypatch):
    made = RowCluster(None, Errand(1, ()), lambda _: None)
    monkeypatch.setattr(RowCluster, "_compute", lambda *_: {})

    class One:
        parts = ((0, 1),)

    with pytest.raises(DpermError, match="again and again"):
        made.run(One())


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused(folder, cluster, monkeypatch):
    scale(cluster, 2)
    data = read_folder(folder)
    monkeypatch.setattr(row_cluster, "code_digest", lambda *_: "another")
    with cluster.get_client() as client:
        made = RowCluster(client, Errand(1, ()), print)
        rows = SplitRows(folder, data.fingerprint, data.x, data.y, made.run)
        with pytest.raises(DpermError, match="another version"):
            map_parts(rows, np.sum)


def test_parts_stay_with_their_workers():
    for count, workers in ((64, "abc"), (5, "ab"), (2, "abc"), (1, "a")):
        first = deal_parts(None, count, list(workers))
        assert deal_parts(first, count, list(workers)) == first
        assert first == sorted(first)
        sizes = [first.count(worker) for worker in workers]
        assert max(sizes) - min(sizes) <= 1
    first = deal_parts(None, 64, ["a", "b", "c"])
    second = deal_parts(first, 64, ["a", "c", "d"])
    assert sum(x != y for x, y in zip(first, second, strict=True)) == first.count("b")
    assert join_ranges([(0, 5), (5, 7), (9, 10)]) == [[0, 6], [9, 9]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["split=rows"], "split=rows: is for backend=dask"),
        (["split=rows", "workers=2"], "split=rows: is for backend=dask"),
        (["split=columns", "backend=dask"], "split=columns: must be one of cells, rows"),
        ([*SPLIT, "mechanism=noisy_sgd"], "noisy_sgd needs the whole rows"),
        ([*SPLIT, "mechanism=exponential"], "exponential needs the whole rows"),
        ([*SPLIT, "mechanism=local_sgd"], "local_sgd needs the whole rows"),
        ([*SPLIT, "mechanism=auto"], "auto needs the whole rows"),
        ([*SPLIT, "noise=secure"], "noise=secure needs the whole rows"),
        ([*SPLIT, "kernel=rbf", "mechanism=random_features"], "kernel=rbf needs the whole rows"),
        ([*SPLIT, "dataset=digits"], "is for dataset=stored"),
        ([*SPLIT, "privacy.relation=add_remove", "privacy.population=30000"], "population"),
        ([*SPLIT, "dataset.path=nowhere"], "dataset.path=nowhere"),
    ],
)
def test_what_cannot_be_split_is_a_line_and_leaves_nothing(
    words, told, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = {word.partition("=")[0] for word in words}
    keys = [f"dataset.path={folder}", "dataset=stored", "mechanism=noisy_gd", "trials=1"]
    if "dataset" in given:
        keys = keys[2:]
    keys = [key for key in keys if key.partition("=")[0] not in given]
    capsys.readouterr()
    assert cli.main(["run", *keys, *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_scheduler_that_does_not_answer_is_a_line(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["dataset=stored", f"dataset.path={folder}", "mechanism=noisy_gd", *SPLIT]
    assert cli.main(["run", *words, "address=tcp://127.0.0.1:9"]) == 2
    said = capsys.readouterr().err
    assert "no Dask scheduler answers there" in said
    assert said.count("\n") == 1
    assert [path for path in (tmp_path / "outputs").rglob("*") if path.is_file()] == []


def test_a_loss_without_sums_over_parts_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["data", "store", "median_cloud", "to=cloud"]) == 0
    capsys.readouterr()
    words = ["dataset=stored", "dataset.path=cloud", "mechanism=noisy_gd", *SPLIT]
    assert cli.main(["run", *words]) == 2
    assert "loss=l1_median has no sums over parts" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["cloud"]


@pytest.mark.parametrize("loss", ["hinge", "huberized_hinge"])
@pytest.mark.parametrize("constraint", ["simplex", "lp_ball"])
def test_an_optimum_that_takes_the_rows_one_by_one_is_refused(
    loss, constraint, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = ["dataset=stored", f"dataset.path={folder}", "mechanism=noisy_gd", *SPLIT]
    words += [f"loss={loss}", f"constraint={constraint}"]
    assert cli.main(["run", *words]) == 2
    said = capsys.readouterr().err
    assert f"needs the whole rows for the optimum of loss={loss} on this set" in said
    assert os.listdir(tmp_path) == []


def test_wide_rows_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wide = ["dataset.n=10", "dataset.p=20", "dataset.n_test=0", "to=wide"]
    assert cli.main(["data", "store", "synthetic_logistic", *wide]) == 0
    capsys.readouterr()
    words = ["dataset=stored", "dataset.path=wide", "mechanism=noisy_gd", *SPLIT]
    assert cli.main(["run", *words]) == 2
    assert "as many records as columns" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["wide"]
