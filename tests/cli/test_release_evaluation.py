"""``dperm release ... evaluate=``: metrics on held-out records, from one release of noisy sums."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.cli import main
from dperm_cli.privacy.gate import install_tape
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.models import model_file
from dperm_cli.runner.models.evaluated_release import IDLE
from dperm_cli.runner.models.held_out_records import add_columns
from dperm_cli.runner.verbs import release as releasing
from tests.cli.test_release import (
    COST,
    PERSONS,
    SCHEMA,
    THREE,
    read_folder,
    records,
    release,
    write,
)

WORDS = "out=here", "format=json"


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    Path("s.yaml").write_text(SCHEMA)


@pytest.fixture
def _short(monkeypatch):
    """Releases without their statements, which take most of the time of a small one."""
    monkeypatch.setattr(releasing, "STATEMENTS", {})


def read_evaluation():
    return json.loads(Path("here/release/evaluation.json").read_text())


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("words", [["delta=0"], ["mechanism=noisy_gd", "delta=1e-6"]])
def test_a_model_is_evaluated_on_records_it_was_not_fitted_to(words, capsys):
    lines = records(2000)
    write(lines=lines)
    code, out, _ = release(capsys, *WORDS, "epsilon=3", "evaluate=0.3", "metrics=accuracy", *words)
    assert code == 0
    told, found = json.loads(out), read_evaluation()
    assert found["records"] == 600
    assert list(found["metrics"]) == ["accuracy"]
    assert json.loads(Path("here/release/ledger.json").read_text())["population"] == 1400
    low, high = found["metrics"]["accuracy"]["interval_for_the_population"]
    assert low < told["accuracy"] < high
    assert told["accuracy_interval"] == f"[{low:.4f}, {high:.4f}]"
    assert found["membership_advantage"] <= math.tanh(1.5) * (1 + 1e-9)
    exact = json.loads(Path("here/private/diagnostics.json").read_text())["metric_of_the_optimum"]
    assert low - 0.06 < exact < high + 0.06


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    ("schema", "names"),
    [(SCHEMA, ["confusion", "log_loss", "auc", "calibration"]), (THREE, ["confusion", "log_loss"]),
     (COST, ["r2", "mae"])],
    ids=["two", "three", "cost"],
)  # fmt: skip
def test_the_metrics_of_a_task_are_released_by_default(schema, names, capsys):
    Path("s.yaml").write_text(schema)
    lines = records(900)
    costs = [line.replace("yes", "500").replace("no", "5") for line in lines]
    write(lines=costs if schema is COST else lines)
    code, *_ = release(capsys, *WORDS, "epsilon=20", "evaluate=0.4", "diagnostics=false")
    assert code == 0
    found = read_evaluation()["metrics"]
    assert list(found) == names
    if "confusion" in found:
        counts = np.array(found["confusion"]["noisy_counts_by_label_and_prediction"])
        assert counts.sum() == pytest.approx(360, abs=15)
        assert 0.7 < found["confusion"]["accuracy"]["estimate"] <= 1.0
        assert found["confusion"]["majority_baseline"]["estimate"] < 0.7
    else:
        unit = 0.5 * math.log(1000)
        assert found["mae"]["errors_cut_at"] == pytest.approx(unit / 2)
        assert 0.0 < found["mae"]["estimate"] < unit / 2
    if "auc" in found:
        assert 0.8 < found["auc"]["estimate"] <= 1.0


@pytest.mark.usefixtures("_short")
def test_figures_are_those_of_the_model_on_the_held_out_records(capsys):
    """At a large epsilon beside predictions of the saved model."""
    write(lines=records(900))
    words = ["epsilon=200", "evaluate=0.4", "groups=sex", "diagnostics=false"]
    assert release(capsys, *WORDS, *words)[0] == 0
    model, found = model_file.read("here/release/model.npz"), read_evaluation()
    groups = found["metrics"]["accuracy_by_group"]
    assert list(groups) == ["f", "m", "other", "none of them"]
    cells = list(csv.DictReader(["age,weight,sex,sick", *records(900)]))
    raw, _ = model.schema.table.encode(
        {name: [cell[name] for cell in cells] for name in ("age", "weight", "sex")}
    )
    right = (model.values(raw) >= 0) == np.array([cell["sick"] == "yes" for cell in cells])
    # which of the records are held out is not told: all have about the same share
    assert found["metrics"]["confusion"]["accuracy"]["estimate"] == pytest.approx(
        right.mean(), abs=0.06
    )
    for name in ("f", "m"):
        mine = np.array([cell["sex"] == name for cell in cells])
        assert groups[name]["estimate"] == pytest.approx(right[mine].mean(), abs=0.09)
    assert abs(groups["other"]["noisy_number_of_records"]) <= 3


class Playback:
    """A tape: what is drawn the first time is put in the place of what is drawn the second time."""

    def __init__(self):
        self.heard, self.again = [], None

    def take_draw(self, stream, value, drawn, public):
        if self.again is None:
            self.heard.append((public, drawn))
            return drawn
        first, same = self.heard[self.again]
        assert first == public
        self.again += 1
        return same


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    ("schema", "words"),
    [(SCHEMA, ["groups=sex"]), (THREE, []), (COST, []), (PERSONS, []),
     (SCHEMA, ["metrics=accuracy", "mechanism=noisy_gd", "delta=1e-6"]),
     (SCHEMA, ["metrics=coefficients", "mechanism=objective_perturbation"]),
     (COST, ["metrics=[r2,coefficients]", "mechanism=output_perturbation", "ridge=0.01"])],
    ids=["two", "three", "cost", "persons", "gaussian", "logistic", "squared"],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, pytest.param(-1, marks=pytest.mark.slow), 150])
def test_neighbours_with_the_same_noisy_sums_give_the_same_bytes(
    schema, words, place, capsys, monkeypatch
):
    """Everything that leaves, with the noise on tape: wherever sums and point are the same."""
    Path("s.yaml").write_text(schema)
    monkeypatch.setattr(run_cell, "read_points", lambda *given: np.full((1, given[3].p), 0.01))
    neighbour = records()
    neighbour[place] = "99,199,m,yes"
    tape, seen = Playback(), []
    for lines in (records(), neighbour):
        write(lines=lines)
        with install_tape(tape):
            said = release(capsys, "out=here", "evaluate=0.3", "diagnostics=false", *words)
        seen.append((said, read_folder("here")))
        shutil.rmtree("here")
        played, tape.again = tape.again, 0
    assert seen[0] == seen[1]
    assert seen[0][0][0] == 0
    assert played == len(tape.heard) > 1


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    ("schema", "words"),
    [(SCHEMA, ["mechanism=objective_perturbation", "delta=0", "ridge=0.01"]),
     (SCHEMA, ["mechanism=output_perturbation", "ridge=0.01"]),
     (COST, ["mechanism=sufficient_statistics", "delta=1e-6", "ridge=0.01"])],
    ids=["objective", "output", "moments"],
)  # fmt: skip
def test_coefficients_have_intervals(schema, words, capsys):
    Path("s.yaml").write_text(schema)
    lines = records(3000)
    if schema is COST:
        ages = [int(line.split(",")[0]) for line in lines]
        cells = (line.rsplit(",", 1)[0] for line in lines)
        lines = [f"{cell},{10 ** (age / 50)}" for cell, age in zip(cells, ages, strict=True)]
    write(lines=lines)
    asked = ["epsilon=8", "evaluate=0.4", "metrics=coefficients", "diagnostics=false", *words]
    assert release(capsys, *WORDS, *asked)[0] == 0
    found, model = (
        read_evaluation()["metrics"]["coefficients"],
        model_file.read("here/release/model.npz"),
    )
    assert list(found["coefficients"]) == list(model.schema.columns)
    assert [one["released"] for one in found["coefficients"].values()] == model.theta.tolist()
    low, high = found["coefficients"]["age"]["interval_for_the_population"]
    assert 0.0 < low < found["coefficients"]["age"]["released"] < high


@pytest.mark.usefixtures("_short")
def test_a_mechanism_of_no_minimiser_has_no_intervals_for_coefficients(capsys):
    write()
    words = ["evaluate=0.3", "metrics=coefficients", "mechanism=noisy_gd", "delta=1e-6"]
    code, out, err = release(capsys, "out=here", *words)
    assert (code, out) == (1, "")
    assert "mechanism=output_perturbation, objective_perturbation" in err
    assert not Path("here").exists()


def test_the_statement_has_the_figures_on_three_pages(capsys):
    write(lines=records(900))
    words = ["epsilon=5", "evaluate=0.4", "groups=sex", "diagnostics=false"]
    code, out, _ = release(capsys, *WORDS, *words)
    assert code == 0
    page = Path("here/release/statement.html").read_text()
    assert "How well it predicts" in page
    told = json.loads(out)
    shown = f"{told['accuracy']:.4g}"
    assert f"{shown} (95% interval for the population:" in page
    assert Path("here/release/statement.pdf").read_bytes().count(b"/Type /Page\n") <= 3


def test_a_figure_whose_interval_is_everything_says_so(capsys):
    write(lines=records(300))
    words = ["epsilon=0.3", "evaluate=0.2", "diagnostics=false"]
    code, out, _ = release(capsys, *WORDS, *words)
    assert code == 0
    told, found = json.loads(out), read_evaluation()
    low, high = found["metrics"]["auc"]["interval_for_the_population"]
    assert high - low > 0.9  # 60 records
    assert told["area_under_the_curve_remark"] == IDLE
    rows = found["metrics"]["calibration"]["rows"]
    ends = [row["interval_for_the_population"] for row in rows]
    idle = sum(high - low >= 0.9 for low, high in ends)
    assert told["rows_of_8_whose_interval_says_nothing"] == idle > 0
    assert IDLE in found["in_words"]["Area under the curve"]
    assert "noisy count of its class" in found["metrics"]["confusion"]["note"]
    page = Path("here/release/statement.html").read_text()
    assert IDLE in page
    assert "Metrics, optima" not in page
    assert "the model file alone" not in page
    main(["statement", "here/release/model.npz"])
    text = " ".join(capsys.readouterr().out.split())
    assert " ".join(found["in_words"]["Area under the curve"].split()) in text


@pytest.mark.usefixtures("_short")
def test_a_figure_that_is_known_has_no_remark(capsys):
    write(lines=records(2000))
    words = ["epsilon=5", "evaluate=0.4", "metrics=accuracy,auc", "diagnostics=false"]
    code, out, _ = release(capsys, *WORDS, *words)
    assert code == 0
    assert not [key for key in json.loads(out) if key.endswith("_remark")]


@pytest.mark.usefixtures("_short")
def test_the_printed_level_is_rounded_up_and_json_has_the_exact_one(capsys):
    write(lines=records(300))
    code, out, _ = release(capsys, "out=here", "diagnostics=false", "mechanism=noisy_gd")
    assert code == 0
    told = dict(line.split(None, 1) for line in out.splitlines())
    exact = json.loads(Path("here/release/ledger.json").read_text())["epsilon"]
    assert told["epsilon"] == "1"
    assert 0.999 < exact <= 1.0


def test_scores_of_a_row_do_not_follow_other_rows():
    rng = np.random.default_rng(6)
    x, theta = rng.normal(size=(257, 19)), rng.normal(size=(19, 3))
    whole = add_columns(x, theta)
    assert whole == pytest.approx(x @ theta)
    for row in range(257):
        assert (add_columns(x[row : row + 1], theta) == whole[row]).all()


@pytest.mark.parametrize(
    ("words", "told"),
    [(["evaluate=2"], "evaluate=2"), (["evaluate=some"], "evaluate=some"),
     (["evaluate=0.001"], "holds out no record"),
     (["evaluate=0.2", "privacy.relation=add_remove", "privacy.population=400"],
      "needs a public number of held-out records"),
     (["evaluate=0.2", "metrics=r2"], "metrics=r2"),
     (["evaluate=0.2", "metrics=[auc,auc]"], "metrics=auc"),
     (["evaluate=0.2", "metrics=confusoin"], "did you mean 'confusion'"),
     (["evaluate=0.2", "metrics=log_loss", "loss=huberized_hinge"], "needs a loss with prob"),
     (["evaluate=0.2", "metrics=coefficients", "loss=huberized_hinge"], "is for loss=logistic"),
     (["evaluate=0.2", "metrics=coefficients", "lasso=0.01"], "without lasso"),
     (["evaluate=0.2", "groups=age"], "must be a category of the schema: sex"),
     (["metrics=auc"], "needs a share of the records"), (["groups=sex"], "needs a share")],
)  # fmt: skip
def test_an_evaluation_that_cannot_be_is_refused(words, told, capsys):
    write()
    code, out, err = release(capsys, "out=here", *words)
    assert (code, out) == (2, "")
    assert told in err
    assert not Path("here").exists()
