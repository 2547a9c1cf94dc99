"""The estimators: scikit-learn's own checks, and what is private about a fit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from dperm_cli import cli, estimators
from dperm_cli.core.errors import PrivacyError
from dperm_cli.estimators import (
    PrivateKernelClassifier,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
    PrivateRidge,
    PrivateSoftmaxRegression,
)
from dperm_cli.privacy.accounting.budget_filter import BudgetFilter
from dperm_cli.runner.models import budget_ledger, model_file

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = X @ [1.0, -0.5, 0.25]
LABELS = np.where(Y > 0, "yes", "no")
TWO = {"bounds": (-1, 1), "classes": ["no", "yes"], "epsilon": 5.0}
NUMBER = {"bounds": (-1, 1), "target_bounds": (-2, 2), "epsilon": 5.0}
CLASSIFIERS = (PrivateLogisticRegression, PrivateLinearSVC, PrivateSoftmaxRegression,
               PrivateKernelClassifier)  # fmt: skip
REGRESSORS = (PrivateRidge, PrivateLasso, PrivateQuantileRegressor)


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


# --- scikit-learn's checks ----------------------------------------------------------------------


class DeclaresClasses:
    """What a user does: declare the classes that there are, here those of the check."""

    def _find_classes(self, y):
        found = np.unique(y)
        if len(found) < 2:
            raise ValueError("Classifier can't train when only one class is present")
        return found


class Logistic(DeclaresClasses, PrivateLogisticRegression):
    pass


class LinearSVC(DeclaresClasses, PrivateLinearSVC):
    pass


class Softmax(DeclaresClasses, PrivateSoftmaxRegression):
    pass


class Kernel(DeclaresClasses, PrivateKernelClassifier):
    pass


WIDE = {"bounds": (-10.0, 10.0), "noise": "research", "epsilon": 100.0, "delta": 1e-5}
WIDE_TARGET = WIDE | {"target_bounds": (-500.0, 500.0)}


@parametrize_with_checks([Logistic(**WIDE), PrivateRidge(**WIDE_TARGET)])
def test_scikit_learn_finds_nothing(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [LinearSVC(**WIDE), Softmax(**WIDE), Kernel(**WIDE, size=5), PrivateLasso(**WIDE_TARGET),
     PrivateQuantileRegressor(**WIDE_TARGET)]
)  # fmt: skip
def test_scikit_learn_finds_nothing_in_the_others(estimator, check):
    check(estimator)


# --- what a fit is ------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_classifier_says_what_it_promises(cls):
    model = cls(**TWO).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.75
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.privacy_["epsilon"] <= 5.0 * (1 + 1e-9)
    assert model.privacy_["noise"] == "secure"
    assert model.privacy_["mechanism"] != "auto"
    assert all(entry["event"] for entry in model.ledger_)
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_regressor_answers_in_its_own_unit(cls):
    radius = {"radius": 3.0} if cls is PrivateLasso else {}
    model = cls(**NUMBER, **radius).fit(X, Y)
    assert model.score(X, Y) > 0.4
    assert model.coef_.shape == (3,)
    assert isinstance(model.intercept_, float)


def test_several_classes():
    labels = np.digitize(Y, [-0.4, 0.4])
    model = PrivateSoftmaxRegression(20.0, bounds=(-1, 1), classes=[0, 1, 2]).fit(X, labels)
    assert model.score(X, labels) > 0.6
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    assert model.predict_proba(X[:5]).shape == (5, 3)


def test_a_saved_model_predicts_the_same(capsys):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = PrivateLogisticRegression(**TWO).fit(frame, LABELS)
    model.save("m.npz")
    assert model_file.read("m.npz").guarantee.epsilon <= 5.0 * (1 + 1e-9)
    np.save("rows.npy", X[:4])
    assert cli.main(["predict", "m.npz", "rows.npy", "columns=position"]) == 0
    scores = [float(line.split(",")[0]) for line in capsys.readouterr().out.splitlines()[1:]]
    np.testing.assert_allclose(scores, model.decision_function(frame[:4]), rtol=1e-12)


def test_pipelines_frames_and_copies():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "k": np.where(X[:, 2] > 0, "u", "v")})
    known = OneHotEncoder(categories=[["u", "v"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("k", known, ["k"])], remainder="passthrough")
    pipe = make_pipeline(columns, FunctionTransformer(), PrivateLogisticRegression(**TWO))
    assert pipe.fit(frame, LABELS).score(frame, LABELS) > 0.75
    model = PrivateLogisticRegression(**TWO).fit(frame[["a", "b"]], LABELS)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert not hasattr(clone(model), "release_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict(frame[["a", "b"]]), model.predict(frame[["a", "b"]])
    )


def test_research_noise_is_seeded_and_secure_noise_is_fresh():
    seeded = {"noise": "research", "random_state": 3}
    first, second = (PrivateLogisticRegression(**TWO, **seeded).fit(X, LABELS) for _ in range(2))
    assert np.array_equal(first.theta_, second.theta_)
    first, second = (PrivateLogisticRegression(**TWO).fit(X, LABELS) for _ in range(2))
    assert not np.array_equal(first.theta_, second.theta_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_is_refused_with_its_price(n_jobs):
    model = PrivateLogisticRegression(**TWO)
    price = f"5 folds would spend epsilon {4 * TWO['epsilon']:g} for each"
    with pytest.raises(ValueError, match=price):
        cross_val_score(model, X, LABELS, error_score="raise", n_jobs=n_jobs)
    with pytest.raises(ValueError, match="each fold is a release"):
        GridSearchCV(model, {"radius": [1, 3]}, error_score="raise", n_jobs=n_jobs).fit(X, LABELS)


def test_a_choice_is_paid_for_within_epsilon():
    tune = {"constraint.radius": [0.5, 5.0]}
    model = PrivateLogisticRegression(**TWO, noise="research", mechanism="noisy_gd", tune=tune)
    model.fit(X, LABELS)
    assert model.privacy_["epsilon"] <= 5.0 * (1 + 1e-9)


def test_fits_share_a_budget():
    budget_ledger.create_budget("people", BudgetFilter.open(8.0, 0.0))
    pure = {"delta": 0.0, "budget": "people", "mechanism": "objective_perturbation"}
    model = PrivateLogisticRegression(**TWO, **pure).fit(X, LABELS)
    with pytest.raises(PrivacyError, match="does not fit; left: epsilon"):
        model.fit(X, LABELS)
    (entry,) = budget_ledger.read_budget("people").entries
    assert entry.finished
    assert entry.what == "a fit of PrivateLogisticRegression"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"bounds": None}, "bounds=None: must be declared"),
        ({"classes": None}, "classes=None: must be declared"),
        ({"bounds": [(0, 1)]}, "3 such pairs"),
        ({"classes": ["no"]}, "only one class"),
        ({"classes": ["no", "yes", "perhaps"]}, "use PrivateSoftmaxRegression"),
        ({"classes": ["no", "maybe"]}, "a label that is not among"),
        ({"noise": "none"}, "noise=none: must be secure or research"),
        ({"random_state": 1}, "random_state=1: cannot be given with noise='secure'"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"relation": "add_remove"}, "privacy.population"),
        ({"mechanism": "noisy_dg"}, "did you mean 'noisy_gd'"),
        ({"mechanism": "regularized_exponential"}, "use mechanism=approximate_minima_perturbation"),
        ({"mechanism": "non_private"}, "gives no guarantee"),
        ({"noise": "research", "budget": "people"}, "it needs noise='secure'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(changes, told):
    with pytest.raises(ValueError, match=r".") as caught:
        PrivateLogisticRegression(**(TWO | changes)).fit(X, LABELS)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_name_is_offered():
    assert sorted(estimators.__all__) == sorted(cls.__name__ for cls in (*CLASSIFIERS, *REGRESSORS))


def test_the_page_shows_code_that_runs(tmp_path):
    page = Path(__file__).resolve().parents[2] / "docs" / "estimators.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, str(page), "exec"), {})
    assert (tmp_path / "model.npz").is_file()
