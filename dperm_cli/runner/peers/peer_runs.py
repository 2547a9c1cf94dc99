"""Rows of peers: their points on the problems of an experiment, scored as dperm's own are."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.files import open_atomically, write_atomically
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.core.read_errors import first_words
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.budget import Budget
from dperm_cli.results.leaderboard.peer_table import ABSENT, FILE, read_peers, write_peers
from dperm_cli.results.records.summary import summarise_cell
from dperm_cli.runner.cells import metrics, prepared_cell, run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.peers import environments
from dperm_cli.runner.peers.catalogue import MAIN, Peer, find_peer

KINDS = ("pure", "approx")
LARGEST = 5_000_000  # numbers of a table that a peer is given, as dense rows
_SECONDS = 900.0  # the most that an adapter may take on one problem
_PROBLEM = ("dataset", "loss", "constraint", "ridge", "lasso")  # keys of a cell's configuration

Row = dict[str, Any]


@dataclass(frozen=True)
class PeerProblem:
    """A problem with a budget, as every method of the table is given it."""

    prepared: Prepared
    kind: str
    budget: Budget

    def identify(self, peer: Peer) -> str:
        """The name of the peer's row."""
        cell, budget = self.prepared.cell, self.budget
        facts = [{key: cell.config.get(key) for key in _PROBLEM}, self.prepared.data.fingerprint]
        facts += [budget.epsilon, budget.delta, budget.relation, cell.trials, cell.seed]
        return hash_facts([peer.name, peer.digest, *facts])


def list_problems(cells: Iterable[Prepared]) -> list[PeerProblem]:
    """The problems of cells that name the kind of their guarantee, each once."""
    found: dict[str, PeerProblem] = {}
    for prepared in cells:
        cell = prepared.cell
        if cell.privacy not in KINDS:
            continue
        budget = prepared_cell.budget_of(prepared, cell.privacy)
        facts = [cell.config.get(key) for key in _PROBLEM]
        facts += [cell.privacy, budget.epsilon, budget.delta, budget.relation, cell.trials]
        found.setdefault(hash_facts(facts), PeerProblem(prepared, cell.privacy, budget))
    return list(found.values())


def update_table(
    names: Sequence[str],
    cells: Iterable[Prepared],
    out: Path,
    study: str,
    tell: Callable[[str], None],
    folder: Path | None = None,
) -> list[Row]:
    """Rows of all peers, written to ``out``: looked up, else made, else those that are kept.

    Args:
        names: Of the peers.
        cells: Prepared cells of the experiment, from which the problems are taken.
        out: The study's folder.
        study: The experiment's name; rows that came with dperm lie in its folder.
        tell: Is told what runs now.
        folder: Where the environments of peers are.
    """
    own = {row["key"]: row for row in read_peers(out / FILE)}
    shipped = Path(find_shipped("experiments")) / study / FILE
    kept = {row["key"]: row for row in read_peers(shipped)}
    solve, folder = make_solver(), folder or environments.find_folder()
    rows: list[Row] = []
    for problem in list_problems(cells):
        for peer in map(find_peer, names):
            key = problem.identify(peer)
            python = environments.find_python(peer, folder)
            row = own.get(key)
            if row is None or row["status"] == ABSENT:
                row = None
                if python is None and key in kept:
                    row = {**kept[key], "origin": "kept"}
            if row is None:
                tell(f"{peer.name} {problem.prepared.data.name} epsilon={problem.budget.epsilon:g}")
                row = make_row(peer, problem, python, solve) | {"key": key}
            rows.append(row)
        # after each problem, so that a run that was ended goes on there; with the rows of problems
        # that are still to come, which an earlier run made
        done = {row["key"] for row in rows}
        later = [row for key, row in own.items() if key not in done]
        write_atomically(out / FILE, write_peers([*rows, *later]).encode())
    write_atomically(out / FILE, write_peers(rows).encode())
    return rows


def make_row(
    peer: Peer, problem: PeerProblem, python: Path | None, solve: Callable[[Any], Any]
) -> Row:
    """The row of one peer on one problem, a refusal with its reason among them."""
    prepared, budget = problem.prepared, problem.budget
    common = run_cell.make_common_columns(prepared) | {
        "mechanism": peer.name, "delta": budget.delta, "guarantee": problem.kind,
        "epsilon_accounted": None, "delta_accounted": None,
    }  # fmt: skip
    data, target = prepared.data, prepared.problem
    reason = peer.find_reason(
        target.loss.name, problem.kind, budget.relation, target.constraint.name
    )
    made: Row = {"status": "unsupported", "reason": reason}
    if reason is None and python is None:
        made = {"status": ABSENT, "reason": f"not installed: dperm peers install {peer.name}"}
    elif reason is None and data.x.shape[0] * data.x.shape[1] > LARGEST:
        made = {"status": "unsupported", "reason": f"more than {LARGEST:,} numbers in dense rows"}
    elif reason is None and python is not None:
        made = run_adapter(peer, problem, python)
    trials: list[Row] = [common | {"status": made["status"], "reason": made.get("reason")}]
    if made["status"] == "ok":
        points = target.constraint.project(np.array(made["theta"], dtype=float))
        optimum = solve(target)
        facts = common | run_cell.describe_optimum(target, optimum) | {"seconds": made["seconds"]}
        if made["optimum"] is not None:
            moved = target.objective(target.constraint.project(np.array([made["optimum"]]))[0])
            made["optimum_shift"] = max(0.0, float(moved) - optimum.value) / data.n
        trials = []
        for point in points:
            excess = float(target.objective(point)) - optimum.value
            risk = {"excess_risk": excess, "excess_risk_per_record": excess / data.n}
            trials.append(facts | metrics.score(target, point) | risk | {"status": "ok"})
    about = {name: made.get(name) for name in ("memory", "versions", "optimum_shift")}
    return {**summarise_cell(trials), **about, "origin": "run"}


def run_adapter(peer: Peer, problem: PeerProblem, python: Path) -> Row:
    """What the adapter's program answers; ``failed`` where it does not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        with open_atomically(path, sync=False) as file:
            np.savez(file, **dict(_tell_problem(peer, problem)))
        command = [str(python), "-I", str(MAIN), str(peer.path), str(path)]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS,
                env={**os.environ, **threads},
            )  # fmt: skip
            answer = json.loads(done.stdout.splitlines()[-1])
        except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
            return {"status": "failed", "reason": first_words(error, 200)}
    if answer["status"] == "ok":
        points = [*answer["theta"], *([answer["optimum"]] if answer["optimum"] else [])]
        if not np.all(np.isfinite(np.array(points))):
            return {"status": "failed", "reason": "a point is not finite"}
    return answer


def make_dense(rows: Any) -> np.ndarray:
    """The rows as a peer is given them."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _tell_problem(peer: Peer, problem: PeerProblem) -> Iterator[tuple[str, Any]]:
    """What an adapter is given, by name: records, and public facts of the problem."""
    prepared, budget = problem.prepared, problem.budget
    target, cell, spec = prepared.problem, prepared.cell, prepared.problem.spec()
    seeds = [
        int(seed_sequence(cell.seed or 0, "peer", peer.name, problem.identify(peer), trial)
            .generate_state(1)[0])
        for trial in range(cell.trials)
    ]  # fmt: skip
    yield from (("x", make_dense(target.data.x)), ("y", target.data.y), ("seeds", np.array(seeds)))
    facts: Mapping[str, Any] = {
        "loss": target.loss.name, "constraint": target.constraint.name,
        "radius": target.constraint.radius, "epsilon": budget.epsilon, "delta": budget.delta,
        "relation": budget.relation, "row_bound": target.data.row_bound,
        "target_bound": target.data.target_bound or 1.0, "lipschitz": spec.lipschitz,
        "smoothness": spec.smoothness or 0.0, "width": cell.config["loss"].get("width", 0.0),
    }  # fmt: skip
    yield from ((name, np.array(value)) for name, value in facts.items())
