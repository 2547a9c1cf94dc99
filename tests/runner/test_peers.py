"""Methods of others: what their adapters state, their points, their environments, their rows."""

from __future__ import annotations

import math
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from dperm_cli.cli import main
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard.peer_table import (
    ABSENT,
    FILE,
    NUMBERS,
    TEXTS,
    read_peers,
    write_peers,
)
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.peers import adapter_main, environments, peer_runs
from dperm_cli.runner.peers.catalogue import CARD, Peer, find_peer, list_peers
from dperm_cli.runner.studies import experiment_file
from dperm_cli.runner.verbs import reproduce
from dperm_cli.runner.verbs.run import prepare

PEERS = list_peers()
LIGHT = [name for name, peer in PEERS.items() if peer.lock is None]
CAN = ("losses", "kinds", "relations", "sets", "packages")


@pytest.fixture(scope="module")
def found():
    return experiment_file.load("leaderboard", "small")


@pytest.fixture(scope="module")
def cells(found):
    composer = Composer()
    parts = [part for part in found.parts if part.find_reason() is None]
    return [item for part in parts for item in prepare(reproduce.cells_of(part, composer))]


def make_told(name, epsilon=1.0, rows=120, seed=0, **others):
    """A problem as an adapter is given it: small rows, labels or targets that follow them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    loss = PEERS[name].about["losses"][0]
    margin = x @ np.array([1.0, -1.0, 0.5])
    y = np.sign(margin) if loss != "squared" else np.clip(margin, -1.0, 1.0)
    kind = PEERS[name].about["kinds"][-1]
    told = {
        "x": x, "y": y, "loss": loss, "radius": 2.0, "epsilon": epsilon,
        "delta": 0.0 if kind == "pure" else 1e-5, "relation": "replace_one", "row_bound": 1.0,
        "target_bound": 1.0, "lipschitz": 1.0 if loss != "squared" else 3.0, "smoothness": 1.0,
        "width": 0.1,
    }  # fmt: skip
    return told | others


def _load(name):
    """What an adapter defines; its packages are imported only when it fits."""
    return runpy.run_path(str(PEERS[name].path))


def run_fit(name, told, seed=0):
    return np.ravel(_load(name)["fit"](told, np.random.default_rng(seed)))


@pytest.mark.parametrize("name", PEERS)
def test_an_adapter_states_what_it_does(name):
    peer = PEERS[name]
    assert set(peer.about) == {*CARD, *CAN}
    assert all(isinstance(peer.about[key], str) and peer.about[key] for key in CARD)
    assert set(peer.about["kinds"]) <= set(peer_runs.KINDS)
    if peer.lock is None:
        assert peer.about["packages"] == ["numpy"]
    else:
        lines = peer.lock.read_text().split()
        assert all(line.count("==") == 1 for line in lines)
        pinned = {line.partition("==")[0] for line in lines}
        assert set(peer.about["packages"]) <= pinned


@pytest.mark.parametrize("name", LIGHT)
def test_a_large_epsilon_beats_the_point_without_data(name):
    told = make_told(name, epsilon=1e4, rows=2000)
    margins = told["x"] @ run_fit(name, told)
    assert np.mean(np.sign(margins) == np.sign(told["y"])) > 0.9


@pytest.mark.parametrize("name", LIGHT)
def test_noise_falls_as_epsilon_rises(name):
    spread = {}
    for epsilon in (0.3, 1000.0):
        told = make_told(name, epsilon, rows=2000)
        points = [run_fit(name, told, seed) for seed in range(40)]
        spread[epsilon] = np.std(points, axis=0).max()
    assert spread[0.3] > 2.0 * spread[1000.0]


def test_permutation_sgd_moves_no_further_than_its_noise_is_made_for():
    """The same permutation on neighbours: the ends lie within 2 k L eta / b."""
    told = make_told("permutation_sgd", epsilon=1e12, delta=0.0)
    other = told | {"x": told["x"].copy(), "y": told["y"].copy()}
    other["x"][5], other["y"][5] = -told["x"][5], told["y"][5]
    step = 1.0 / math.sqrt(len(told["x"]))
    for seed in range(20):
        moved = run_fit("permutation_sgd", told, seed) - run_fit("permutation_sgd", other, seed)
        assert np.linalg.norm(moved) <= 2.0 * 10 * step / 50 + 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_opacus_is_told_what_one_removal_and_one_addition_leave(epsilon):
    """Its accountant knows add_remove alone. If a removal is (e, d)-private and an addition too,
    a replacement is (2 e, d + exp(e) d)-private."""
    choose, asked = _load("opacus")["choose_settings"], []

    def find_noise(*told):
        asked.append(told)
        return 1.0

    choose.__globals__["find_noise"] = find_noise
    for relation in ("add_remove", "replace_one"):
        told = make_told("opacus", epsilon, rows=500, relation=relation)
        settings = choose(told, 500, 3)
        assert settings["step"] > 0.0
    (whole, delta, rate), (half, less, other_rate) = asked
    assert (whole, delta, rate) == (epsilon, 1e-5, other_rate)
    assert 2.0 * half == epsilon
    assert less + math.exp(half) * less == pytest.approx(1e-5, rel=1e-12)
    assert rate == pytest.approx(1.0 / math.sqrt(500), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opacus", "jax_privacy"])
def test_the_descent_of_a_library_repeats_itself_and_stays_on_the_set(name, cells):
    """Needs its environment: dperm peers install NAME."""
    peer = find_peer(name)
    python = environments.find_python(peer, environments.find_folder())
    if python is None:
        pytest.skip(f"needs {name}: dperm peers install {name}")
    problem = next(p for p in peer_runs.list_problems(cells) if p.kind == "approx")
    first, again = (peer_runs.run_adapter(peer, problem, python) for _ in range(2))
    assert first["status"] == "ok", first
    assert first["theta"] == again["theta"]
    lengths = np.linalg.norm(np.array(first["theta"]), axis=1)
    assert np.all(lengths <= problem.prepared.cell.constraint.radius * (1 + 1e-5))
    assert np.ptp(lengths) > 0.0


def test_the_program_answers_in_json_and_repeats_itself(cells):
    peer = find_peer("zcdp_gd")
    problem = next(p for p in peer_runs.list_problems(cells) if p.kind == "approx")
    first, again = (peer_runs.run_adapter(peer, problem, Path(sys.executable)) for _ in range(2))
    assert first["status"] == "ok"
    assert first["theta"] == again["theta"]
    assert len(first["theta"]) == problem.prepared.cell.trials
    assert "numpy" in first["versions"]


def test_a_refusal_and_a_fault_are_told(tmp_path, cells):
    path = tmp_path / "mine.py"
    path.write_text('ABOUT = {}\ndef fit(problem, rng):\n    raise Refused("not this")\n')
    problem = tmp_path / "problem.npz"
    np.savez(problem, x=np.zeros((2, 1)), seeds=np.arange(2))
    told = adapter_main.main(str(path), str(problem))
    assert told == {"status": "unsupported", "reason": "not this"}
    path.write_text("def fit(problem, rng):\n    return 1 / 0\n")
    command = [sys.executable, "-I", adapter_main.__file__, str(path), str(problem)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "ZeroDivisionError" in done.stdout


def test_a_method_that_solves_another_problem_has_a_point_without_noise():
    """By how much its optimum moves is measured: of all whose problem differs by their own word."""
    same = ("none", "the same problem")
    for name, peer in PEERS.items():
        differs = not peer.about["differs"].startswith(same)
        assert ("find_optimum" in _load(name)) == differs, name


def test_noise_falls_to_the_point_without_noise():
    told = make_told("adassp", epsilon=1e12, rows=2_000)
    assert run_fit("adassp", told) == pytest.approx(_load("adassp")["find_optimum"](told), abs=1e-3)


@pytest.mark.parametrize("name", ["sklearn_output", "diffprivlib"])
def test_a_minimiser_without_noise_solves_what_its_ridge_says(name):
    pytest.importorskip("sklearn")
    told = make_told(name)
    theta = _load(name)["find_optimum"](told)
    ridge = 1.0
    if name == "sklearn_output":
        ridge = len(told["x"]) * _load(name)["choose_ridge"](told)
    slopes = -told["y"] / (1.0 + np.exp(told["y"] * (told["x"] @ theta)))
    assert told["x"].T @ slopes + ridge * theta == pytest.approx(np.zeros(3), abs=1e-3)


def make_peer(folder, optimum):
    """A method that stays at 0 and whose point without noise is ``optimum``."""
    about = {"losses": ["logistic"], "kinds": ["approx"], "relations": ["replace_one"],
             "sets": ["l2_ball"], "packages": ["numpy"]}  # fmt: skip
    path = folder / "mine.py"
    path.write_text(
        f"import numpy as np\nABOUT = {about}\n"
        "def fit(problem, rng):\n    return np.zeros(problem['x'].shape[1])\n"
        f"def find_optimum(problem):\n    return {optimum} * np.ones(problem['x'].shape[1])\n"
    )
    return Peer("mine", about, path)


def test_a_row_says_by_how_much_the_optimum_moves(tmp_path, cells):
    problem = next(p for p in peer_runs.list_problems(cells) if p.kind == "approx")
    row = peer_runs.make_row(make_peer(tmp_path, 0.0), problem, Path(sys.executable), make_solver())
    assert row["optimum_shift"] == pytest.approx(row["floor_excess_risk_per_record"], rel=1e-6)
    assert row["optimum_shift"] == pytest.approx(row["excess_risk_per_record_median"])
    # far outside of the set: the point is projected before it is scored
    far = peer_runs.make_row(make_peer(tmp_path, 1e6), problem, Path(sys.executable), make_solver())
    point = problem.prepared.problem.constraint.project(np.full((1, row["p"]), 1e6))[0]
    risk = float(problem.prepared.problem.objective(point))
    at_rest = float(problem.prepared.problem.objective(np.zeros(row["p"])))
    moved = (far["optimum_shift"] - row["optimum_shift"]) * row["n"]
    assert moved == pytest.approx(risk - at_rest, rel=1e-6)


def test_a_point_without_noise_that_is_no_number_is_a_failure(tmp_path, cells):
    """It would count as an optimum that does not move."""
    problem = next(p for p in peer_runs.list_problems(cells) if p.kind == "approx")
    peer = make_peer(tmp_path, "np.nan")
    row = peer_runs.make_row(peer, problem, Path(sys.executable), make_solver())
    assert (row["status"], row["reason"]) == ("failed", "a point is not finite")


def test_a_peer_is_given_sparse_rows_as_dense_ones():
    """Signs and zeros as they are."""
    rows = np.array([[0.0, 0.5], [-1.0, 0.0]])
    assert np.array_equal(peer_runs.make_dense(csr_array(rows)), rows)
    assert peer_runs.make_dense(rows) is rows


def test_a_table_that_is_too_large_for_dense_rows_is_refused(cells, monkeypatch):
    problem = next(p for p in peer_runs.list_problems(cells) if p.kind == "approx")
    monkeypatch.setattr(peer_runs, "LARGEST", problem.prepared.problem.data.x.size - 1)
    row = peer_runs.make_row(find_peer("zcdp_gd"), problem, Path(sys.executable), make_solver())
    assert row["status"] == "unsupported"
    assert "numbers in dense rows" in row["reason"]


def test_what_is_not_installed_is_absent_and_what_cannot_be_is_refused(tmp_path, cells):
    problems = peer_runs.list_problems(cells)
    peer = find_peer("diffprivlib")
    pure = next(p for p in problems if p.kind == "pure" and p.prepared.cell.loss.name == "logistic")
    approx = next(p for p in problems if p.kind == "approx")
    absent = peer_runs.make_row(peer, pure, None, lambda problem: None)
    assert absent["status"] == ABSENT
    assert "dperm peers install diffprivlib" in absent["reason"]
    refused = peer_runs.make_row(peer, approx, None, lambda problem: None)
    assert (refused["status"], refused["reason"]) == ("unsupported", "kinds are pure")


def test_a_row_comes_back_from_its_file(tmp_path):
    row = {"key": "a", "mechanism": "b", "status": "ok", "epsilon": 0.1, "n": 12}
    (tmp_path / FILE).write_text(write_peers([row]))
    [back] = read_peers(tmp_path / FILE)
    assert {name: back[name] for name in row} == row
    assert read_peers(tmp_path / "none.csv") == []


def test_the_kept_rows_are_those_of_the_adapters(found, cells):
    """Whoever changes an adapter or a lock runs it again: dperm reproduce leaderboard."""
    kept = {
        row["key"] for row in read_peers(Path(find_shipped("experiments"), "leaderboard", FILE))
    }
    for problem in peer_runs.list_problems(cells):
        for name in found.peers:
            assert problem.identify(find_peer(name)) in kept, (name, problem.prepared.data.name)


def test_a_run_that_ends_twice_loses_no_row(tmp_path, cells, monkeypatch):
    """Rows of problems behind the one at which the second run ends stay in the file."""
    some = [item for item in cells if item.data.name == "diabetes"][:12]
    problems = peer_runs.list_problems(some)
    assert len(problems) > 2
    made = []

    def make_row(peer, problem, python, solve):
        if len(made) == stop:
            raise KeyboardInterrupt
        made.append(problem.identify(peer))
        row = dict.fromkeys((*TEXTS, *NUMBERS))
        return row | {"mechanism": peer.name, "status": "ok", "origin": "run"}

    monkeypatch.setattr(peer_runs, "make_row", make_row)

    def run():
        peer_runs.update_table(["adassp"], some, tmp_path, "none", lambda words: None, tmp_path)

    stop = len(problems)
    run()
    whole = read_peers(tmp_path / FILE)
    assert [row["key"] for row in whole] == made
    # the second one has to be made again, after the first was looked up and written
    (tmp_path / FILE).write_text(write_peers([whole[0], *whole[2:]]))
    made.clear()
    stop = 0
    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(read_peers(tmp_path / FILE)) == len(problems) - 1
    stop = 1
    run()
    assert len(made) == 1
    assert read_peers(tmp_path / FILE) == whole


def test_at_least_five_peers_have_results(found):
    kept = read_peers(Path(find_shipped("experiments"), "leaderboard", FILE))
    assert len({row["mechanism"] for row in kept if row["status"] == "ok"}) >= 5
    assert {row["mechanism"] for row in kept} == set(found.peers)


def test_peers_are_listed_and_removed(tmp_path, capsys):
    assert main(["peers", "list", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in PEERS)
    assert main(["peers", "remove", "opendp", "--folder", str(tmp_path)]) == 0
    assert "not installed: opendp" in capsys.readouterr().err
    assert main(["peers", "install", "nothing", "--folder", str(tmp_path)]) == 2
    assert main(["peers", "install"]) == 2


def test_without_a_network_one_line_says_so(tmp_path, capsys, monkeypatch):
    """venv goes through; pip ends with its own last error."""

    def run(command, **settings):
        is_pip = "pip" in command
        error = "WARNING: retry\nERROR: No matching distribution found for diffprivlib==0.6.6\n"
        return subprocess.CompletedProcess(command, int(is_pip), "", error if is_pip else "")

    monkeypatch.setattr(environments.subprocess, "run", run)
    assert main(["peers", "install", "diffprivlib", "--folder", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "peer diffprivlib cannot be installed: ERROR: No matching distribution" in err


@pytest.mark.slow
def test_an_environment_is_made_and_taken_away(tmp_path, monkeypatch):
    """A lock that is empty needs no network."""
    path = tmp_path / "mine.py"
    path.write_text("ABOUT = {}\n")
    path.with_suffix(".lock").write_text("")
    peer = type(find_peer("opendp"))("mine", {}, path)
    python = environments.install(peer, tmp_path / "peers")
    assert python.exists()
    assert environments.install(peer, tmp_path / "peers") == python
    path.with_suffix(".lock").write_text("# another\n")
    assert environments.find_python(peer, tmp_path / "peers") is None
    assert environments.remove(peer, tmp_path / "peers")
