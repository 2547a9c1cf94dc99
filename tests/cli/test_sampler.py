"""The group `sampler` on the command line: chosen, swept, listed, completed, left out elsewhere."""

from __future__ import annotations

import json

import pytest

from dperm_cli.core import catalogue, completion, registry
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.compose.plugin_objects import uses_sampler

SMALL = ("dataset=median_cloud", "dataset.n=30", "dataset.p=2", "constraint.radius=1", "trials=2")


def cells(*words):
    return study_plan.plan_study(parse(list(words))).cells


def test_is_chosen_and_typed_like_the_other_groups():
    (cell,) = cells("mechanism=exponential", "sampler=proximal", "sampler.step_size=0.25")
    assert cell.mechanism.sampler == registry.load("sampler", "proximal")(step_size=0.25)
    assert cell.config["sampler"]["step_size"] == 0.25
    (cell,) = cells("mechanism=exponential")
    assert cell.mechanism.sampler == registry.load("sampler", "auto")()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("sampler=proximall",), "sampler"),
        (("sampler=proximal", "sampler.step_size=-1"), "sampler.step_size"),
        (("sampler=proximal", "sampler.stepsize=1"), "sampler.stepsize"),
        (("sampler.allow_heuristic=yes",), "sampler.allow_heuristic"),
        (("sampler.most_seconds=nan",), "sampler.most_seconds"),
    ],
)
@pytest.mark.parametrize("mechanism", ["exponential", "noisy_gd"])
def test_bad_values_are_named(words, key, mechanism):
    with pytest.raises(InputError) as caught:
        cells(f"mechanism={mechanism}", *words)
    assert caught.value.key == key


def test_counts_for_mechanisms_that_draw_from_a_law_alone():
    """Others keep their name, and their noise, whatever the sampler."""
    assert uses_sampler({"name": "exponential"})
    assert not uses_sampler({"name": "noisy_gd"})
    (plain,) = cells("mechanism=noisy_gd")
    (other,) = cells("mechanism=noisy_gd", "sampler=proximal", "sampler.step_size=0.25")
    assert "sampler" not in plain.config
    assert hash_facts(plain.config) == hash_facts(other.config)
    # the name that this configuration had before there were samplers
    found = cells("-m", "mechanism=noisy_gd,exponential", "sampler=proximal,tangent_cells")
    assert [cell.mechanism_name for cell in found] == ["noisy_gd", "exponential", "exponential"]
    one, two = (hash_facts(cell.identity()) for cell in found[1:])
    assert one != two


def test_is_listed_and_completed():
    words = completion.complete_words(["run", "--", "sampler=pro"], ("run",))
    assert words == ["sampler=proximal"]
    words = completion.complete_words(["run", "sampler=proximal", "--", "sampler.step"], ("run",))
    assert words == ["sampler.step_size="]
    assert set(catalogue.choices("sampler")) == set(registry.names("sampler"))
    for choice in catalogue.choices("sampler").values():
        assert len(choice.summary) > 20


def test_rows_of_a_run_are_pure_with_a_certificate(dperm, tmp_path):
    result = dperm("run", "mechanism=exponential", *SMALL, "format=json", "out=a")
    assert result.code == 0, result.err
    (row,) = result.rows
    assert row["guarantee"] == "pure"
    assert row["delta"] == 0
    assert row["epsilon_accounted"] == pytest.approx(1.0)
    (release,) = ledger(tmp_path / "a")["releases"]
    assert "tangent_cells: exact" in release["accounted"]["certificate"]
    assert release["settings"]["sampler"]["exact"] is True


def test_a_heuristic_is_refused_or_labelled(dperm, tmp_path):
    words = ("run", "mechanism=exponential", "sampler=hit_and_run", "sampler.steps=20", *SMALL)
    (refused,) = dperm(*words, "format=json", "out=a").rows
    assert refused["status"] == "unsupported"
    assert "sampler.allow_heuristic=true" in refused["reason"]
    result = dperm(*words, "sampler.allow_heuristic=true", "format=json", "out=b")
    assert result.code == 0, result.err
    (row,) = result.rows
    assert row["guarantee"] == "none"
    assert row["epsilon_accounted"] is None
    assert row["delta_accounted"] is None
    assert row["bound_lower"] is None
    assert result.err.splitlines()[-1] == "guarantee none: some of them are NOT private"
    found = ledger(tmp_path / "b")
    assert "Some releases are NOT private." in found["warnings"]
    assert "is NOT private" in found["releases"][0]["statement"]
    assert found["totals"][0]["all_trials"]["kind"] == "none"
    assert dperm("report", "b").code == 0


def test_describe_takes_the_sampler(dperm):
    words = (*SMALL[:-1], "mechanism=exponential", "sampler=rejection", "epsilon=1")
    result = dperm("describe", *words, "format=json")
    assert result.code == 0, result.err
    found = json.loads(result.out)["mechanisms"]["exponential"][0]
    assert found["supported"] is False
    assert "rejection" in found["reason"]


def ledger(folder):
    return json.loads((folder / "ledger.json").read_text())
