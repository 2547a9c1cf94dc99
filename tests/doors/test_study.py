"""A study in Python: frames, ranks, slopes, ledger, comparison, and how it shows itself."""

from __future__ import annotations

import html.parser
import json
import shutil

import numpy as np
import pytest

from tests.doors._doors import SMALL, column, public, table

RISK = ("excess_risk", "excess_risk_median")


def test_the_frame_has_one_row_a_cell(study, study_folder):
    frame = study.frame()
    rows = table(study_folder)
    assert len(frame) == len(rows) == 16
    assert frame["epsilon"].dtype.kind == "f"
    assert [str(value) for value in frame["cell"]] == [row["cell"] for row in rows]
    risks = [float(row["excess_risk_median"]) for row in rows]
    assert list(frame[column(frame, *RISK)]) == pytest.approx(risks)


def test_trials_have_one_row_a_trial(study):
    frame, trials = study.frame(), study.trials()
    assert len(trials) == 2 * len(frame)
    medians = trials.groupby("cell")["excess_risk"].median()
    found = frame.set_index("cell")[column(frame, *RISK)]
    assert dict(medians) == pytest.approx(dict(found))


def test_names_of_columns_are_tidy_and_explained(study):
    from tests.doors._doors import ROOT

    pages = " ".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    for name in study.frame().columns:
        assert name == name.lower().strip(), name
        assert name.replace("_", "").replace(".", "").isalnum(), name
        assert f"`{name}`" in pages, name


def test_a_frame_is_the_callers_own(study):
    study.frame().drop(study.frame().index, inplace=True)
    first = study.frame()
    first["epsilon"] = -1.0
    assert (study.frame()["epsilon"] > 0).all()


def test_the_mean_rank_is_that_of_the_risks(study):
    """Two mechanisms: their mean ranks are 1 + the share of problems at which the other is ahead.

    Seeds are repetitions of one problem, or problems of their own: both ways are mean ranks.
    """
    frame = study.frame()
    risk = column(frame, *RISK)
    expected = []
    for problem in (["epsilon", "seed"], ["epsilon"]):
        wide = frame.pivot_table(index=problem, columns="mechanism", values=risk, aggfunc="median")
        expected.append(pytest.approx(dict(wide.rank(axis=1).mean(axis=0))))
    ranks = study.rank()
    mean = column(ranks, "mean_rank", "rank")
    found = {name: float(r) for name, r in zip(names_of(ranks), ranks[mean], strict=True)}
    assert any(found == way for way in expected), (found, expected)
    assert list(ranks[mean]) == sorted(ranks[mean])


def names_of(ranks):
    return list(ranks["mechanism"]) if "mechanism" in ranks.columns else list(ranks.index)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """One mechanism cannot work without a ridge: it refuses, and says why."""
    return public("run")(
        *SMALL,
        mechanism=["noisy_gd", "noisy_sgd", "output_perturbation"],
        epsilon=[3, 30],
        out=tmp_path_factory.mktemp("rank") / "study",
    )


def test_who_refuses_is_last_and_counted(ranked):
    ranks = ranked.rank()
    assert names_of(ranks)[-1] == "output_perturbation"
    refusals = column(ranks, "refusals", "refused", "unsupported")
    counted = dict(zip(names_of(ranks), ranks[refusals], strict=True))
    assert counted == {"noisy_gd": 0, "noisy_sgd": 0, "output_perturbation": 2}
    mean = column(ranks, "mean_rank", "rank")
    assert float(ranks[mean].iloc[-1]) == pytest.approx(3.0)


def test_slopes_are_those_of_the_medians(study):
    """A least-squares line through log medians against log epsilon, of one curve."""
    frame = study.frame()
    risk = column(frame, *RISK)
    slopes = study.slopes()
    assert "slope" in slopes.columns
    assert set(slopes["mechanism"]) <= {"noisy_gd", "noisy_sgd"}
    assert len(slopes) >= 1
    fits = set()
    for _, curve in frame[~frame["saturated"].astype(bool)].groupby(["mechanism", "seed"]):
        if len(curve) >= 3:
            fits.add(round(np.polyfit(np.log(curve["epsilon"]), np.log(curve[risk]), 1)[0], 3))
    both = frame[~frame["saturated"].astype(bool)].groupby(["mechanism", "epsilon"])[risk]
    for _, curve in both.median().groupby("mechanism"):
        if len(curve) >= 3:
            x = np.log(curve.index.get_level_values("epsilon"))
            fits.add(round(np.polyfit(x, np.log(curve.to_numpy()), 1)[0], 3))
    found = {round(float(value), 3) for value in slopes["slope"]}
    assert found & fits, (found, fits)


def test_the_ledger_is_that_of_the_folder(study, study_folder):
    stored = json.loads((study_folder / "ledger.json").read_text())
    assert json.loads(json.dumps(dict(study.ledger))) == stored


def test_a_study_equals_itself_and_differs_from_another(study, other_order, capfd):
    same, different = study.compare(study), study.compare(other_order)
    assert "noisy_gd" in str(different)
    assert str(same) != str(different)
    assert capfd.readouterr().out == ""


def test_the_repr_is_short_and_says_what_is_inside(study):
    text = repr(study)
    assert len(text) < 600
    assert "16" in text
    for word in ("noisy_gd", "noisy_sgd", "diabetes"):
        assert word in text
    assert " at 0x" not in text


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("img", "br", "hr", "meta", "col", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag


def test_the_html_is_well_formed_and_runs_nothing(study_folder, tmp_path):
    """A name of a folder is text: it must not become a tag."""
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    shutil.copytree(study_folder, folder)
    tags = _Tags()
    tags.feed(public("load")(folder)._repr_html_())
    tags.close()
    assert tags.open == []
    names = {tag for tag, _ in tags.seen}
    assert "table" in names
    assert not names & {"script", "iframe", "link", "object"}
    assert not [attrs for tag, attrs in tags.seen if any(key.startswith("on") for key in attrs)]
    assert not [1 for tag, attrs in tags.seen if tag == "img" and attrs.get("src") == "x"]


def test_loading_writes_nothing(study_folder):
    before = {path: path.stat().st_mtime_ns for path in study_folder.rglob("*")}
    study = public("load")(study_folder)
    study.frame(), study.plot(), study.rank(), study.slopes(), study.table(style="latex")
    assert before == {path: path.stat().st_mtime_ns for path in study_folder.rglob("*")}


@pytest.mark.parametrize(
    ("call", "keys", "said"),
    [
        ("plot", {"x": "epsilom"}, "epsilon"),
        ("plot", {"theme": "tripple"}, "single|double|slide"),
        ("plot", {"aggregate": "nothing"}, "seed"),
        ("plot", {"x": "mechanism", "hue": "no_such"}, "no_such"),
        ("table", {"style": "word"}, "latex"),
        ("table", {"columns": ["mechanism", "excess_rsk"]}, "excess_risk"),
        ("rank", {"by": "no_such"}, "mechanism"),
    ],
)
def test_a_bad_name_is_one_clear_error(study, call, keys, said):
    with pytest.raises(Exception, match=said) as caught:
        getattr(study, call)(**keys)
    assert not isinstance(caught.value, AttributeError | SystemExit)
    assert "\n" not in str(caught.value)
    from dperm_cli import __all__ as names

    assert {kind.__name__ for kind in type(caught.value).__mro__} & set(names)
