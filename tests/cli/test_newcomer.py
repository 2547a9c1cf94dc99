"""What somebody meets who types a mechanism that cannot be what was meant."""

from __future__ import annotations

import os

import pytest

TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "run constraint=l1_ball radius=3",
            "radius: unknown key (did you mean 'constraint.radius'?)",
        ),
        ("run dataset=digits row_bound=2 ", "(did you mean 'dataset.row_bound'?)"),
        ("run steps=3", "(did you mean 'mechanism.steps'?)"),
        ("run mechanism=projected m=100", "(did you mean 'mechanism.m'?)"),
        ("run -m mechanism=[projected,noisy_gd] m=100", "(did you mean 'mechanism.m'?)"),
        ("audit constraint=l1_ball radius=3", "(did you mean 'constraint.radius'?)"),
        ("account relation=add_remove", "(did you mean 'privacy.relation'?)"),
        ("run trails=3", "(did you mean 'trials'?)"),
        (
            "run --epsilon=1",
            "option=--epsilon=1: settings have no dashes (did you mean 'epsilon=1'?)",
        ),
        ("run --epsilon 1", "(did you mean 'epsilon=1'?)"),
        ("run --dataset.n=5", "(did you mean 'dataset.n=5'?)"),
        ("run --config-dri=x", "(did you mean '--config-dir'?)"),
        ("run dataset=mine.csv", "is the name of a file: say dataset=csv dataset.path=mine.csv"),
        ("run dataset=a.svm.bz2", "say dataset=svmlight dataset.path=a.svm.bz2"),
        ("run dataset=digitz", "(did you mean 'digits'?)"),
        ("run dataset=mine.txt", "must be one of"),
        ("run hydra.sweep.dir=here", "hydra.sweep.dir: unknown key (did you mean 'out=here'?)"),
        ("describe hydra.run.dir=here", "(did you mean 'out=here'?)"),
        ("run +hydra.sweep.dir=here", "(did you mean 'out=here'?)"),
        ("run hydra/launcher=joblib", "(did you mean 'workers=auto'?)"),
        ("run hydra/launcher=submitit_slurm", "(did you mean 'backend=submitit'?)"),
        ("run hydra.launcher.n_jobs=4", "(did you mean 'workers=4'?)"),
        ("run hydra.mode=MULTIRUN", "(did you mean '-m'?)"),
        ("run hydra.callbacks.x=1", "hydra.callbacks.x: unknown key"),
        ("run --config-path conf", "is an option of Hydra: say --config-dir conf"),
        ("run --config-path=conf", "say --config-dir conf"),
        ("run --config-name=mine", "say GROUP=NAME"),
        ("run -cp conf", "say --config-dir conf"),
        ("run --multirrun epsilon=1,2", "(did you mean '--multirun'?)"),
        ("run --constraint-radius 2", "(did you mean 'constraint.radius=2'?)"),
        ("run --dataset-test-fraction=0.5", "(did you mean 'dataset.test_fraction=0.5'?)"),
        ("run --on-error stop", "(did you mean 'on_error=stop'?)"),
        ("run epsilon 1", "argument=epsilon: has no value: say epsilon=1"),
        ("run mechanism.steps 5 seed=1", "say mechanism.steps=5"),
        ("run epsilon", "say epsilon=VALUE"),
        ("run epsilon seed=1", "say epsilon=VALUE"),
        ("run noisy_sgd", "argument=noisy_sgd: has no key: say mechanism=noisy_sgd"),
        ("run -m digits epsilon=1,2", "say dataset=digits"),
        ("run +epsilon=1", "nothing is added: say epsilon=1"),
        ("run ++dataset.n=5", "say dataset.n=5"),
        ("account --epsilon 1", "settings have no dashes (did you mean 'epsilon=1'?)"),
        ("account epsilon 1", "say epsilon=1"),
        ("audit --epsilon 1", "(did you mean 'epsilon=1'?)"),
        ("audit --seed=3", "(did you mean 'seed=3'?)"),
        ("report outputs --format json", "(did you mean 'format=json'?)"),
        ("merge a b --out c", "(did you mean 'out=c'?)"),
        ("ask --mechanism kernel_release rows.csv", "(did you mean 'mechanism=kernel_release'?)"),
        ("reproduce leak --size full", "(did you mean 'size=full'?)"),
    ],
)
def test_what_was_meant_is_named(dperm, tmp_path, words, said):
    """A key one level down, a setting with dashes, a file for a data set: one line, exit code 2."""
    done = dperm(*words.split())
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("outer", ["localization", "huberized", "high_probability"])
def test_an_inner_mechanism_needs_a_guarantee(dperm, tmp_path, outer):
    words = (f"mechanism={outer}", "mechanism.inner=non_private", "ridge=0.01")
    done = dperm("run", *TINY, *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "mechanism.inner=non_private: must be a mechanism with a guarantee" in done.err
    assert os.listdir(tmp_path) == []
    inside = ("mechanism=localization", f"mechanism.inner={outer}")
    deep = dperm("run", *TINY, *inside, "mechanism.inner.inner=non_private")
    assert deep.code == 2
    assert "mechanism.inner.inner=non_private: must be" in deep.err


def test_a_misspelt_inner_mechanism(dperm):
    done = dperm("run", *TINY, "mechanism=localization", "mechanism.inner=exponental")
    assert done.code == 2
    assert "did you mean 'exponential'?" in done.err


def test_a_mechanism_without_keys(dperm):
    for word in ("mechanism.inner=noisy_gd", "mechanism.inner.steps=3"):
        done = dperm("run", *TINY, "mechanism=exponential", word)
        assert done.code == 2
        assert "exponential has no keys of its own" in done.err
    done = dperm("account", "mechanism=exponential", "mechanism.inner=noisy_gd")
    assert done.code == 2
    assert "known: \n" not in done.err


def test_a_sampler_that_nothing_draws_by(dperm):
    done = dperm("run", *TINY, "sampler=mala")
    assert done.code == 2
    assert "sampler=mala: auto draws from no law" in done.err
    done = dperm("run", *TINY, "sampler.most_seconds=3")
    assert "sampler.most_seconds=3: auto draws from no law" in done.err
    for words in (("sampler=auto",), ("sampler=mala", "mechanism=[noisy_gd,exponential]")):
        assert dperm("run", *TINY, *words, "--cfg", "job").code == 0


@pytest.mark.parametrize("outer", ["localization", "high_probability", "huberized"])
def test_pure_guarantees_that_the_inner_mechanism_does_not_give(dperm, outer):
    words = (f"mechanism={outer}", "mechanism.inner=noisy_gd", "ridge=0.1", "trials=1")
    done = dperm("run", *TINY, *words, "delta=0", "format=json", "out=here")
    (row,) = done.rows
    assert row["status"] == "unsupported"
    assert "noisy_gd gives approx only" in row["reason"]
    assert "set mechanism.inner=output_perturbation or exponential" in row["reason"]
    inside = ("mechanism=localization", f"mechanism.inner={outer}")
    done = dperm("run", *TINY, *inside, "delta=0", "format=json", "out=deep")
    if outer != "huberized":  # whose own inner mechanism gives both kinds
        assert "set mechanism.inner.inner=output_perturbation" in done.rows[0]["reason"]


def test_pure_guarantees_where_the_advice_is_taken(dperm):
    words = ("mechanism=localization", "mechanism.inner=output_perturbation", "ridge=0.1")
    done = dperm("run", *TINY, *words, "delta=0", "trials=1", "format=json", "out=here")
    assert (done.rows[0]["status"], done.rows[0]["guarantee"]) == ("ok", "pure")


def test_nothing_to_round(dperm):
    words = ("mechanism=huberized", "trials=1", "format=json")
    (row,) = dperm("run", *TINY, *words, "out=smooth").rows
    assert "nothing to round: logistic has no kinks" in str(row["settings"])
    (row,) = dperm("run", *TINY, *words, "loss=hinge", "out=kinked").rows
    assert "nothing to round" not in str(row["settings"])


def test_a_loss_that_cannot_be_rounded(dperm):
    done = dperm("run", "dataset=diabetes", "loss=absolute", "mechanism=huberized", "trials=1",
                 "format=json", "out=here")  # fmt: skip
    assert "losses that have: hinge, positive_part" in done.rows[0]["reason"]


KINKED = ("newton", "objective_perturbation", "frank_wolfe", "huberized")


@pytest.mark.parametrize("mechanism", KINKED)
def test_what_to_set_where_there_is_no_loss(dperm, mechanism):
    words = ("account", f"mechanism={mechanism}", "n=1000", "format=json", "figure=false")
    (row,) = dperm(*words).rows
    assert row["status"] == "unsupported"
    assert "set smoothness= (0.25 for logistic loss with unit rows)" in row["reason"]
    assert "kinks" not in row["reason"]
    (row,) = dperm(*words, "smoothness=0.25").rows
    assert row["status"] == "ok"
    assert row["epsilon_accounted"] <= 1.0


def test_noise_of_a_law_that_no_sampler_takes_on(dperm):
    words = ("account", "n=1000", "format=json", "figure=false")
    (row,) = dperm(*words, "mechanism=exponential", "delta=0").rows
    # 1 / c with c times the range 2 L D of a difference of two losses, halved, at epsilon 1
    assert (row["status"], row["guarantee"]) == ("ok", "pure")
    assert row["noise_scale"] == pytest.approx(4.0, rel=1e-6)
    assert 1.0 - 1e-6 <= row["epsilon_accounted"] <= 1.0
    assert "no sampler suits this law" in row["note"]
    (row,) = dperm(*words, "mechanism=regularized_exponential").rows
    assert (row["status"], row["guarantee"]) == ("ok", "approx")
    assert 0.999 <= row["epsilon_accounted"] <= 1.0


def test_describe_and_run_agree(dperm):
    words = ("mechanism=objective_perturbation", "trials=1", "format=json", "epsilon=0.7")
    for level in (("delta=auto",), ("delta=0",), ("privacy=pure",)):
        (facts,) = dperm("describe", *TINY, *words, *level, "out=d").rows
        (row,) = dperm("run", *TINY, *words, *level, "out=r").rows
        ((found,),) = facts["mechanisms"].values()
        for key in ("epsilon", "guarantee", "noise_scale", "steps", "bound_upper", "bound_lower"):
            assert found[key] == row[key]
        assert facts["delta"] == row["delta"]


def test_describe_shows_what_was_asked(dperm):
    words = ("mechanism=[localization,noisy_gd]", "epsilon=[2,0.5]", "ridge=0.1", "format=json")
    (facts,) = dperm("describe", *TINY, *words, "out=a").rows
    assert facts["epsilons"] == [0.5, 2]
    assert list(facts["mechanisms"]) == ["localization", "noisy_gd"]
    inner = ("mechanism=localization", "mechanism.inner=[noisy_gd,output_perturbation]")
    (facts,) = dperm("describe", *TINY, *inner, *words[1:], "delta=0", "out=b").rows
    one, other = facts["mechanisms"].values()
    assert [row["supported"] for row in (*one, *other)] == [False, False, True, True]
    (facts,) = dperm("describe", *TINY, "privacy=pure", "format=json", "epsilon=3", "out=c").rows
    assert len(facts["mechanisms"]) > 10
    (row,) = facts["mechanisms"]["noisy_gd"]
    assert row == {
        "epsilon": 3, "supported": False, "reason": "noisy_gd gives approx guarantees, not pure",
    }  # fmt: skip


def test_a_pure_mechanism_under_an_approximate_budget_says_what_to_set(dperm):
    words = (*TINY, "mechanism=exponential", "trials=1", "format=json")
    (row,) = dperm("run", *words, "privacy=approx", "out=a").rows
    assert row["status"] == "unsupported"
    assert row["reason"].endswith(
        "not approx; a pure guarantee is a stronger one: set privacy=pure"
    )
    (row,) = dperm("run", *words, "privacy=pure", "out=b").rows
    assert (row["status"], row["guarantee"]) == ("ok", "pure")


@pytest.mark.parametrize(("trials", "told"), [(1, False), (2, True), (9, True), (10, False)])
def test_bands_of_few_trials(dperm, trials, told):
    words = ("mechanism=noisy_gd", "mechanism.steps=3", f"trials={trials}", "format=json", "out=a")
    done = dperm("run", *TINY, *words)
    assert done.code == 0
    assert (f"5-95 % bands of {trials} trials" in done.err) == told
