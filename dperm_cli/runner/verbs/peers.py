"""``dperm peers list | install NAME | remove NAME | run NAME ...``: the methods of others."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError
from dperm_cli.core.operands import CONFIG_DIR, FORMATS, Syntax
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard import reference
from dperm_cli.results.leaderboard.peer_table import FILE, read_peers
from dperm_cli.results.records.row_facts import format_value
from dperm_cli.runner.peers import environments
from dperm_cli.runner.peers.catalogue import Peer, find_peer, list_peers

VERBS = ("list", "install", "remove", "run")
_TOLD = (
    "status", "reason", "dataset", "loss", "constraint", "constraint_radius", "relation",
    "guarantee", "epsilon", "delta", "n", "p", "trials", "excess_risk_per_record_median",
    "floor_excess_risk_per_record", "test_metric", "optimum_metric", "baseline_metric",
    "optimum_shift", "seconds", "memory", "versions", "key",
)  # fmt: skip


def peers(arguments: list[str]) -> int:
    """Dispatch; ``install`` ends with an error of one line where pip cannot install."""
    options = {"--folder": "--folder", **CONFIG_DIR}
    words = Syntax(options=options, keys=("format",), passes_on=True).split(arguments)
    verb, names = checks.choice("peers", (words.operands or ("",))[0], VERBS), words.operands[1:]
    given = words.options.get("--folder")
    folder = environments.find_folder(None if given is None else checks.folder("--folder", given))
    if verb != "run" and (words.passed_on or words.settings):
        typed = " ".join([*words.passed_on, *(f"{k}={v}" for k, v in words.settings.items())])
        raise InputError(f"peers {verb}", typed, "takes no settings")
    if verb == "list":
        if names:
            raise InputError("peers list", " ".join(names), "takes no arguments")
        print(f"{'name':<18}{'here':<12}{'losses':<36}method")
        for name, peer in list_peers().items():
            python = environments.find_python(peer, folder)
            state = "no need" if peer.lock is None else "installed" if python else "-"
            losses = ", ".join(peer.about["losses"])
            print(f"{name:<18}{state:<12}{losses:<36}{peer.about['title']}")
        return EXIT_OK
    if len(names) != 1:
        raise InputError(f"peers {verb}", " ".join(names), "needs the name of one peer")
    peer = find_peer(names[0])
    if verb == "run":
        home = words.options.get("--config-dir")
        asked = [*words.passed_on, *(["--config-dir", home] if home else [])]
        return _run(peer, asked, folder, words.choose("format", FORMATS))
    if verb == "install":
        print(environments.install(peer, folder))
    else:
        was_there = environments.remove(peer, folder)
        print(f"{'removed' if was_there else 'not installed'}: {peer.name}", file=sys.stderr)
    return EXIT_OK


def run_peer(peer: Peer, words: Sequence[str], folder: Path) -> dict[str, Any]:
    """The row of one peer on one problem, as the leaderboard has it.

    Args:
        peer: The method.
        words: The problem and its budget, as of ``dperm run``, with privacy=pure or approx.
        folder: Where the environments of peers are.

    Raises:
        InputError: The words name no such problem, or several.
    """
    from dperm_cli.runner.cells.optimum_cache import make_solver
    from dperm_cli.runner.compose.study_plan import parse_request
    from dperm_cli.runner.peers import peer_runs
    from dperm_cli.runner.verbs.run import hold_machine, prepare

    typed = next((word for word in words if word.startswith("mechanism")), None)
    if typed is not None:
        key, _, value = typed.partition("=")
        raise InputError(key, value, f"is for dperm's own mechanisms, and {peer.name} is a peer")
    _, study = parse_request(list(words))
    with hold_machine(study):
        problems = peer_runs.list_problems(prepare(study.cells))
        if len(problems) != 1:
            allowed = f"must be {' or '.join(peer_runs.KINDS)}, and everything of one value"
            raise InputError("privacy", study.cells[0].privacy, allowed)
        python = environments.find_python(peer, folder)
        row = peer_runs.make_row(peer, problems[0], python, make_solver())
        return row | {"key": problems[0].identify(peer)}


def find_kept(key: str) -> dict[str, Any] | None:
    """The row of a peer that came with dperm, by its key."""
    path = Path(find_shipped("experiments")) / reference.NAME / FILE
    return next((row for row in read_peers(path) if row["key"] == key), None)


def _run(peer: Peer, words: Sequence[str], folder: Path, form: str) -> int:
    row = run_peer(peer, words, folder)
    if form == "json":
        print(json.dumps({"mechanism": peer.name} | {name: row.get(name) for name in _TOLD}))
    else:
        print(_tell_row(peer, row, find_kept(row["key"])))
    return EXIT_OK if row["status"] in ("ok", "unsupported") else EXIT_FAILED


def _tell_row(peer: Peer, row: Mapping[str, Any], kept: Mapping[str, Any] | None) -> str:
    told = [(name, row.get(name)) for name in _TOLD]
    lines = [f"{peer.name}: {peer.about['title']}"]
    lines += [f"  {name:<30} {format_value(v)}" for name, v in told if v is not None]
    if kept is not None and kept["status"] == "ok":
        risk = format_value(kept["excess_risk_per_record_median"])
        lines.append(f"the row that came with dperm has {risk} a record, by {kept['versions']}")
    return "\n".join(lines)
