"""The mechanism shown in CONTRIBUTING.md goes through check, run, audit and report as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dperm_cli import cli
from dperm_cli.audit.contracts import suite
from dperm_cli.audit.replay import replay
from dperm_cli.core import plugin_sources
from dperm_cli.core.new_plugin import fill_template
from dperm_cli.privacy.budget import RELATIONS, Budget

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
QUICK = ("dataset=diabetes", "loss=squared", "constraint.radius=1", "trials=2")


def write_recipe(folder) -> Path:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    path = folder / "one_step.py"
    path.write_text(block)
    return path


def test_the_recipe_keeps_every_promise(tmp_path):
    report = suite.check(write_recipe(tmp_path))
    assert not report.broken
    assert len(report.findings) > 15


def test_the_recipes_own_attack_reaches_what_is_claimed_and_no_more(tmp_path):
    with plugin_sources.use_plugins([write_recipe(tmp_path)]):
        mechanism = plugin_sources.find("mechanism", "one_step")()
    for relation in RELATIONS:
        budget = Budget(1.0, 1e-5, relation)
        adversary = mechanism.adversary(budget)
        plan = adversary.mechanism.plan(adversary.first.spec(), budget)
        verdict = replay(adversary.mechanism, plan, adversary.first, adversary.second)
        assert verdict.private
        assert verdict.worst == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("written", ["recipe", "new", "dp_ftrl"])
def test_from_check_to_report(written, tmp_path, monkeypatch, capsys):
    """The commands that the page names, on the page's mechanism, a new one and an example."""
    monkeypatch.chdir(tmp_path)
    if written == "new":
        assert cli.main(["new", "mechanism", "mine"]) == 0
        assert Path("mine.py").read_text() == fill_template("mechanism", "mine")
        file, name = "mine.py", "mine"
    elif written == "recipe":
        file, name = str(write_recipe(tmp_path)), "one_step"
    else:
        file, name = str(ROOT / "examples" / "plugins" / "dp_ftrl.py"), "dp_ftrl"
    assert cli.main(["check", file]) == 0
    run = ["run", "--plugin", file, "-m", f"mechanism={name},noisy_gd", "epsilon=0.1,1"]
    assert cli.main([*run, *QUICK, "out=study"]) == 0
    assert cli.main(["audit", "--plugin", file, f"mechanism={name}"]) == 0
    capsys.readouterr()
    assert cli.main(["report", "study", "format=json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["mechanism"], row["status"]) for row in rows] == [
        (name, "ok"), (name, "ok"), ("noisy_gd", "ok"), ("noisy_gd", "ok"),
    ]  # fmt: skip
