"""What is asked before anything is released: plans, accounts, audits, descriptions, problems."""

from __future__ import annotations

import numpy as np
import pytest

import dperm_cli
from tests.api.conftest import SMALL


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch, capfd):
    """Nothing is written, and nothing is printed on stdout."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""


def test_plans_are_those_of_the_records(study):
    keys = {"mechanism": ["noisy_gd", "output_perturbation"], "epsilon": [1, 3], "ridge": 0.01}
    found = dperm_cli.plans(*SMALL, **keys)
    assert [plan.noise_scale for plan in found] == study.frame()["noise_scale"].tolist()
    assert all(isinstance(plan, dperm_cli.Plan) for plan in found)


def test_an_event_alone_and_a_sequence():
    event = dperm_cli.Gaussian(5.0, 1.0, gap=1.0)
    found = dperm_cli.account(event, delta=1e-6)
    assert found == dperm_cli.account([event], delta=1e-6, relation="replace_one")
    assert found.epsilon == pytest.approx(0.83412, rel=1e-4)
    pure = dperm_cli.account(dperm_cli.Laplace(2.0, 1.0))
    assert (pure.kind, pure.epsilon, pure.delta) == ("pure", pytest.approx(1.0), 0.0)


def test_an_account_of_keys_is_that_of_the_command_line():
    found = dperm_cli.account("mechanism=noisy_gd", epsilon=[0.5, 1], n=2000, delta=1e-6)
    assert [row["epsilon"] for row in found] == [0.5, 1.0]
    assert found[0]["noise_scale"] > found[1]["noise_scale"]
    assert len(found) == len(found.frame()) == 2
    assert "noisy_gd" in repr(found)
    assert "<table" in found._repr_html_()


def test_events_and_keys_do_not_mix():
    with pytest.raises(dperm_cli.InputError, match="beside events"):
        dperm_cli.account(dperm_cli.Laplace(2.0, 1.0), epsilon=1)


@pytest.mark.slow
def test_an_audit_of_a_run():
    report = dperm_cli.audit("--quick", *SMALL[:3], mechanism="noisy_gd", epsilon=2)
    assert report.passed
    assert {row["kind"] for row in report.rows} == {"adversary", "case"}
    assert repr(report).startswith("audit passed")
    assert len(report.frame()) == len(report.rows)
    assert report._repr_html_().startswith("<div>")


def test_an_audit_that_attacks_nothing_has_not_passed():
    report = dperm_cli.audit("--quick", *SMALL[:3], mechanism="output_perturbation")
    assert not report.passed
    assert "nothing was audited" in repr(report)


def test_an_audit_has_no_fuzz():
    with pytest.raises(dperm_cli.InputError, match="dperm audit"):
        dperm_cli.audit(fuzz="1s")


def test_a_description_has_facts_a_frame_and_a_figure():
    found = dperm_cli.describe(*SMALL[:3], mechanism=["noisy_gd", "output_perturbation"], epsilon=1)
    assert found.facts["n"] == 354
    frame = found.frame().set_index("mechanism")
    assert frame["supported"].to_dict() == {"noisy_gd": True, "output_perturbation": False}
    assert "noisy_gd" in repr(found)
    assert "diabetes" in found._repr_html_()
    assert found.plot().axes


def test_a_description_is_of_one_problem():
    with pytest.raises(dperm_cli.InputError, match="one problem"):
        dperm_cli.describe(*SMALL[:2], **{"constraint.radius": [1, 2]})


def test_a_problem_of_objects_has_a_certified_optimum():
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 1))
    data = dperm_cli.Data.of_records(
        "line", "regression", x, 0.5 * x[:, 0], 1.0, 1.0, fingerprint="line"
    )
    problem = dperm_cli.Problem(data, dperm_cli.Squared(), dperm_cli.L2Ball(radius=2.0, p=1))
    best = problem.optimum()
    assert best.theta == pytest.approx([0.5], abs=1e-2)
    assert 0.0 <= best.gap < 1e-3
    assert problem.certify(best) == pytest.approx(best.value - best.gap, abs=1e-9)


def test_the_problem_of_a_run_has_its_optimum(study):
    problem = dperm_cli.make_problem(*SMALL[:3], ridge=0.01)
    assert problem.optimum().value == pytest.approx(study.frame()["optimum"][0], rel=1e-5)
    assert problem.data.n == study.frame()["n"][0]
    for keys, said in (({"ridge": [0, 1]}, "2 cells"), ({"kernel": "rbf", "ridge": 1}, "rbf")):
        with pytest.raises(dperm_cli.InputError, match=said):
            dperm_cli.make_problem(*SMALL[:3], **keys)


def test_a_data_set_alone():
    assert dperm_cli.load_data("diabetes").n == 354
    clipped = dperm_cli.load_data("diabetes", rows="clip", row_bound=2)
    assert clipped.row_bound == 2.0
    with pytest.raises(dperm_cli.InputError, match="diabetes"):
        dperm_cli.load_data("diabetis")
