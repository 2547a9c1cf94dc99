"""Where nothing that was asked for is supported: exit code 1, and a mechanism that is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dperm_cli.core.help import help_page

RUNS = {
    "pure": ("mechanism=noisy_gd", "privacy=pure"),
    "relation": ("mechanism=local_sgd", "privacy.relation=add_remove"),
    "secure": ("mechanism=regularized_exponential", "ridge=0.1", "noise=secure"),
    "local": ("mechanism=noisy_gd", "privacy=local"),
    "loss": ("mechanism=objective_perturbation", "loss=hinge"),
    "set": ("mechanism=frank_wolfe", "privacy=pure", "constraint=l2_ball"),
}


def named(err):
    words = r"^dperm: every \w+ is unsupported; mechanism=(\w+) has a plan"
    (found,) = re.findall(words, err, re.MULTILINE)
    return found


@pytest.mark.parametrize("case", list(RUNS))
def test_the_mechanism_that_a_run_names_runs(dperm, case):
    mechanism, *words = RUNS[case]
    done = dperm("run", mechanism, *words, "trials=1", "format=json", "out=o")
    assert done.code == 1
    assert [row["status"] for row in done.rows] == ["unsupported"]
    found = named(done.err)
    assert f"mechanism={found}" != mechanism
    again = dperm("run", f"mechanism={found}", *words, "trials=1", "format=json", "out=p")
    assert again.code == 0, again.err
    assert again.rows[0]["status"] == "ok"
    # looked up, it is said again
    assert named(dperm("run", mechanism, *words, "trials=1", "out=o").err) == found


def test_one_supported_cell_is_enough(dperm):
    words = ("-m", "mechanism=noisy_gd,output_perturbation", "privacy=pure", "ridge=0.1")
    done = dperm("run", *words, "trials=1")
    assert done.code == 0, done.err
    assert "every cell" not in done.err


def test_nothing_fits(dperm):
    words = ("privacy=pure", "epsilon=1e-8", "noise=secure", "trials=1")
    done = dperm("run", "mechanism=noisy_gd", *words)
    assert done.code == 1
    assert "every cell is unsupported, and no mechanism is known" in done.err


@pytest.mark.parametrize("mechanism", ["auto", "local_sgd", "noisy_gd"])
def test_no_choice_under_local_trust(dperm, mechanism):
    words = (f"mechanism={mechanism}", "privacy=local", "tune={ridge: [0.1, 1]}", "trials=1")
    done = dperm("run", *words, "format=json")
    assert done.code == 1
    # also a local mechanism refuses the choice, so that none is named
    assert "every cell is unsupported, and no mechanism is known" in done.err
    assert done.rows[0]["reason"] == (
        "private_selection gives no local guarantee; take mechanism=local_sgd or "
        "local_mirror_descent, without tune=: nothing is chosen under local trust"
    )


def test_a_choice_names_what_can_be_chosen_among(dperm):
    words = ("tune={ridge: [0.1, 1]}", "trials=1", "format=json")
    done = dperm("run", "mechanism=local_sgd", *words, "out=o")
    assert done.code == 1
    assert done.rows[0]["reason"] == (
        "private_selection gives approx guarantees as its inner mechanism does, and local_sgd "
        "gives local only; set mechanism=noisy_gd or noisy_sgd"
    )
    again = dperm("run", f"mechanism={named(done.err)}", *words, "out=p")
    assert again.code == 0, again.err


def test_no_guarantee_is_called_so(dperm):
    done = dperm("run", "mechanism=non_private", "privacy=pure", "trials=1", "format=json")
    assert done.rows[0]["reason"] == "non_private gives no guarantee"


KERNEL = ("kernel=rbf", "dataset=breast_cancer", "ridge=0.1", "epsilon=3", "trials=2")


def test_a_kernel_is_learned_with_secure_noise_on_the_span_of_its_queries(dperm):
    own = ("mechanism=kernel_release", "kernel.queries=20", "noise=secure", "format=json")
    rows = dperm("run", *KERNEL, *own, "out=o").rows
    assert [row["status"] for row in rows] == ["ok"]
    assert rows[0]["p"] == 20
    assert rows[0]["arithmetic"].startswith("grid 2^")
    assert '"prediction_noise"' in rows[0]["settings"]
    assert 0.0 < rows[0]["excess_risk_median"] < rows[0]["floor_excess_risk"]


@pytest.mark.parametrize("kernel", ["polynomial", "histogram_intersection"])
def test_secure_noise_works_on_features_of_any_kernel_of_ours(dperm, kernel):
    words = (f"kernel={kernel}", *KERNEL[1:], "mechanism=noisy_gd", "noise=secure", "format=json")
    rows = dperm("run", *words, "kernel.size=10", "kernel.features=landmarks", "out=o").rows
    assert [row["status"] for row in rows] == ["ok"]


def test_a_mechanism_of_a_kernel_without_a_secure_form_names_what_has_one(dperm):
    done = dperm("run", *KERNEL, "mechanism=kernel_interactive", "noise=secure", "format=json")
    assert done.code == 1
    assert "use mechanism=kernel_release" in done.rows[0]["reason"]
    assert named(done.err) == "noisy_gd"


def test_describe_names_what_fits_a_kernel(dperm):
    done = dperm("describe", *KERNEL[:4], "mechanism=noisy_gd", "privacy=pure")
    assert done.code == 0, done.err
    assert named(done.err) == "output_perturbation"


def test_the_ball_of_a_released_function_holds_its_minimiser(dperm):
    own = ("mechanism=kernel_release", "noise=secure", "kernel.radius=1")
    done = dperm("run", *KERNEL, *own, "out=o")
    assert done.code == 2
    assert "kernel.radius=1.0: must be auto or paper here" in done.err


@pytest.mark.parametrize("asked", [("kernel.queries=5", "kernel.landmarks=z.npy"),
                                   ("kernel.queries=z.npy", "kernel.landmarks=auto")])  # fmt: skip
def test_a_model_says_whether_its_points_are_of_held_out_people(dperm, asked, tmp_path):
    np.save("z.npy", np.random.default_rng(0).standard_normal((6, 30)))
    own = ("mechanism=kernel_release", "noise=secure", "trials=1", "save=m.npz")
    assert dperm("run", *KERNEL[:4], *asked, *own, "out=o").code == 0
    np.save("rows.npy", np.zeros((1, 30)))
    done = dperm("predict", "m.npz", "rows.npy", "columns=position")
    assert ("inputs of held-out records" in done.err) == ("z.npy" not in asked[0])


def test_a_kernel_mechanism_asks_for_a_kernel(dperm):
    done = dperm("run", "mechanism=kernel_release", "ridge=0.1", "noise=secure", "format=json")
    assert done.code == 1
    assert "set kernel=linear, polynomial, rbf" in done.rows[0]["reason"]


def test_account_and_describe_say_the_same(dperm):
    done = dperm("account", "mechanism=noisy_gd", "privacy=pure", "figure=false", "format=json")
    assert done.code == 0
    found = named(done.err)
    again = dperm("account", f"mechanism={found}", "privacy=pure", "figure=false", "format=json")
    assert again.code == 0
    assert again.rows[0]["guarantee"] == "pure"
    done = dperm("describe", "mechanism=noisy_gd", "privacy=pure")
    assert done.code == 0, done.err
    assert named(done.err) != "noisy_gd"


def test_help_knows_the_exit_code():
    assert "1 a cell failed or none is supported" in help_page("dperm")
