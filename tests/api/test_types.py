"""A type checker follows the public names: an example of a user is clean, and a mistake is seen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = """
from dataclasses import dataclass

import numpy as np

import dperm_cli
from dperm_cli import Budget, Data, Guarantee, L2Ball, Logistic, Mechanism, Plan, Positive, Problem
from dperm_cli import CentralView, Gate, Gaussian, InputError, ProblemSpec, Release, Study


@dataclass(frozen=True)
class Mine(Mechanism):
    step_size: Positive = 0.1

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Gaussian, ...]:
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(view.spec.constraint.project(start - self.step_size * total))


def look(study: Study) -> int:
    figure = study.plot(theme="double", aggregate=["seed"])
    figure.savefig("figure.pdf")
    print(study.table(style="latex"), study.frame()["epsilon"].max(), study.ledger["releases"])
    return len(study.trials())


def solve(data: Data) -> float:
    problem = Problem(data, Logistic(), L2Ball(radius=1.0, p=data.p))
    best = problem.optimum(seconds=5.0)
    return best.value - problem.certify(best)


try:
    study: Study = dperm_cli.run("trials=2", mechanism=["noisy_gd", Mine], epsilon=[0.1, 1])
    plans: list[Plan] = dperm_cli.plans(X=np.zeros((3, 2)), y=[1, -1, 1])
    passed: bool = dperm_cli.audit("--quick", mechanism=Mine(step_size=0.2)).passed
    spent = dperm_cli.account(dperm_cli.Gaussian(5.0, 1.0), delta=1e-6)
    if isinstance(spent, Guarantee):
        print(spent.within(Budget(1.0, 1e-6)), dperm_cli.describe().facts["n"])
    print(look(study), solve(dperm_cli.load_data("diabetes")), dperm_cli.losses.Hinge)
except InputError as error:
    print(error.key, Release)
"""
MISTAKES = {
    "study.plott()": "plott",
    "study.table(style=3)": "style",
    "dperm_cli.no_such_name": "no_such_name",
    "dperm_cli.plans(epsilon=1).noise_scale": "noise_scale",
}


def list_errors(folder: Path, text: str) -> list[str]:
    """What pyright, asked strictly, says of a file; ``folder`` is where it is written."""
    root = Path(__file__).parents[2]
    (folder / "mine.py").write_text(text)
    rules = {
        "typeCheckingMode": "standard", "reportUntypedBaseClass": True, "reportPrivateUsage": True,
        "reportMissingTypeStubs": False, "reportUnknownParameterType": True,
        "reportPrivateImportUsage": True, "extraPaths": [str(root)],
    }  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(rules))
    command = [find_pyright(), "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=folder)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [one["message"] for one in found if one["severity"] == "error"]


def find_pyright() -> str:
    found = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("pyright is not installed")
    return found


@pytest.mark.slow
def test_the_file_of_a_user_is_clean(tmp_path):
    assert list_errors(tmp_path, EXAMPLE) == []


@pytest.mark.slow
def test_mistakes_are_seen(tmp_path):
    found = list_errors(tmp_path, "\n".join([EXAMPLE, *MISTAKES, ""]))
    for word in MISTAKES.values():
        assert any(word in message for message in found), (word, found)
