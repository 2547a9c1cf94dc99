"""The command beside a line of the leaderboard asks for that cell, or that row of a peer."""

from __future__ import annotations

import json
import shlex

import pytest

from dperm_cli.cli import main
from dperm_cli.results.leaderboard.rerun_commands import write_peer_run, write_run
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.compose.study_plan import parse_request
from dperm_cli.runner.studies import experiment_file
from dperm_cli.runner.verbs import peers as verb
from dperm_cli.runner.verbs import reproduce

PARTS = {part.name: part for part in experiment_file.load("leaderboard", "small").parts}
LIGHT = "dataset=diabetes loss=squared constraint.radius=1 privacy=approx epsilon=1 trials=2"


def parse(command):
    program, name, *words = shlex.split(command)
    assert (program, name) == ("dperm", "run")
    [cell] = parse_request(words)[1].cells
    return cell


@pytest.mark.parametrize("name", PARTS)
def test_a_command_makes_the_cell_of_its_line(name):
    for cell in reproduce.cells_of(PARTS[name], Composer())[:3]:
        found = parse(write_run({"overrides": json.dumps(cell.config)}))
        assert found.config == cell.config
        assert (found.epsilon, found.delta, found.trials) == (cell.epsilon, cell.delta, cell.trials)


def test_settings_of_a_mechanism_and_of_a_choice_are_named():
    words = ["dataset=breast_cancer", "mechanism=private_selection", "mechanism.inner=noisy_gd",
             "mechanism.runs=5", "tune={constraint.radius: [1, 3]}", "epsilon=2", "seed=4",
             "trials=3"]  # fmt: skip
    [cell] = parse_request(words)[1].cells
    command = write_run({"overrides": cell.config})
    assert "mechanism.runs=5" in command
    assert "'tune={constraint.radius: [1, 3]}'" in command
    assert parse(command).config == cell.config


def test_the_command_of_a_peer_has_the_problem_and_no_mechanism():
    [cell] = parse_request([*LIGHT.split(), "mechanism=noisy_gd"])[1].cells
    command = write_peer_run("zcdp_gd", {"overrides": cell.config})
    assert command.startswith("dperm peers run zcdp_gd dataset=diabetes ")
    assert "mechanism" not in command
    assert "trials=2" in command


def test_a_peer_runs_on_one_problem(capsys):
    assert main(["peers", "run", "zcdp_gd", *LIGHT.split(), "format=json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["status"], row["trials"], row["n"]) == ("ok", 2, 354)
    assert row["excess_risk_per_record_median"] > 0.0
    assert main(["peers", "run", "zcdp_gd", *LIGHT.split()]) == 0
    assert row["key"] in capsys.readouterr().out


def test_the_row_of_a_peer_is_the_one_that_came_with_dperm(capsys):
    """The command of a kept line: its key is the same, and so is its excess risk."""
    command = "dataset=diabetes loss=squared constraint.radius=1 privacy=approx"
    assert main(["peers", "run", "zcdp_gd", *command.split(), "format=json"]) == 0
    row = json.loads(capsys.readouterr().out)
    kept = verb.find_kept(row["key"])
    assert kept is not None
    risk = "excess_risk_per_record_median"
    assert row[risk] == pytest.approx(kept[risk], rel=1e-3)


def test_a_peer_that_is_not_installed_or_refuses_says_so(tmp_path, capsys):
    words = ["peers", "run", "opacus", *LIGHT.split(), "--folder", str(tmp_path)]
    assert main(words) == 1
    assert "dperm peers install opacus" in capsys.readouterr().out
    assert main(["peers", "run", "zcdp_gd", *LIGHT.split(), "loss=absolute"]) == 0
    assert "losses are logistic, squared" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        "privacy=auto",
        "privacy=zcdp",
        "privacy=approx -m epsilon=[1,2]",
        "privacy=approx mechanism=noisy_gd",
    ],
)
def test_no_problem_or_several_are_refused(words, capsys):
    assert main(["peers", "run", "zcdp_gd", "dataset=diabetes", *words.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_settings_are_for_run_alone(capsys):
    assert main(["peers", "list", "epsilon=1"]) == 2
    assert "takes no settings" in capsys.readouterr().err
