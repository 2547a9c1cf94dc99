"""What a reader asks of a study's figure: axes, colours, panels, joined seeds, lines beside."""

from __future__ import annotations

import itertools
import os

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.chart_model import HOLLOW_WORDS, HUES, LOOKS, Curve, index_mark
from dperm_cli.results.charts.marks import MARKS
from dperm_cli.results.charts.mechanism_looks import SHIPPED, choose_looks, choose_value_looks
from dperm_cli.results.charts.study_figure import build_figure, plot_study
from dperm_cli.results.charts.study_panels import panels
from dperm_cli.results.charts.study_view import StudyView, read_view
from dperm_cli.results.page import page_views
from dperm_cli.results.records.aggregate import aggregate_rows, find_repetitions
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.runner.verbs.report import report
from tests.results.conftest import stored, study_rows, trial_rows


def summed(*groups):
    return summarise(normalise(row) for group in groups for row in group)


def seeded(seeds=range(20), epsilons=(1.0, 10.0), names=("noisy_gd", "noisy_sgd")):
    """A study with repeated seeds; risks grow with the seed."""
    groups = []
    for seed, epsilon, name in itertools.product(seeds, epsilons, names):
        keys = {"seed": seed, "mechanism": {"name": name}}
        risks = tuple((10.0 + seed + k) / epsilon for k in (-0.1, 0.0, 0.1))
        groups.append(
            trial_rows(f"{seed}-{epsilon}-{name}", risks, seed=seed, epsilon=epsilon,
                       mechanism=name, overrides=keys)
        )  # fmt: skip
    return summed(*groups)


def swept(key, values, **more):
    group, _, name = key.partition(".")
    return summed(
        *(
            trial_rows(f"{value}", overrides={group: {"name": "noisy_gd", name: value}}, **more)
            for value in values
        )
    )


def test_twenty_seeds_are_one_panel_with_their_median_and_band():
    rows = seeded()
    (panel,) = panels(aggregate_rows(rows, ["seed"]))
    assert [curve.name for curve in panel.curves] == ["noisy_gd", "noisy_sgd"]
    first = panel.curves[0].points[0]
    assert (first.value, first.x) == (pytest.approx(19.5), 1.0)
    assert (first.low, first.high) == (pytest.approx(10.95), pytest.approx(28.05))
    assert first.trials == 60
    figure, note = build_figure(rows, StudyView(aggregate="seed"))
    assert len(figure.panels) == 1
    assert note is None
    assert "over 20 repetitions (seed; each the median of 3 trials)" in " ".join(figure.notes)
    # nobody has to ask for it
    assert build_figure(rows)[0].panels == figure.panels


def test_seeds_that_are_kept_apart_say_how_to_join_them():
    figure, note = build_figure(seeded(), StudyView(aggregate="none"))
    assert len(figure.panels) == 6
    assert "the first 6 of 20 problems" in note
    assert "aggregate=seed joins those that differ in seed" in note


def test_seeds_that_have_a_panel_or_a_colour_are_not_joined():
    rows = seeded(range(2))
    figure, _ = build_figure(rows, StudyView(facet="seed"))
    assert [panel.title for panel in figure.panels] == ["seed 0", "seed 1"]
    figure, _ = build_figure(rows, StudyView(facet="mechanism", hue="seed"))
    assert [panel.title for panel in figure.panels] == ["noisy_gd", "noisy_sgd"]
    assert [[curve.name for curve in panel.curves] for panel in figure.panels] == [
        ["seed 0", "seed 1"]
    ] * 2


def test_draws_of_data_and_splits_are_joined_like_seeds():
    for key in ("split_seed", "seed", "fold"):
        rows = summed(
            *(
                trial_rows(f"{k}", (1.0 + k,), overrides={"dataset": {"name": "digits", key: k}})
                for k in range(3)
            )
        )
        assert find_repetitions(rows) == [f"dataset.{key}"]
        (joined,) = aggregate_rows(rows, [f"dataset.{key}"])
        assert joined["excess_risk_median"] == 2.0
        assert joined["repetitions"] == 3


def test_cells_that_differ_in_more_than_a_seed_are_not_joined():
    rows = summed(
        *(trial_rows(f"{n}-{seed}", n=n, seed=seed) for n in (100, 200) for seed in (0, 1))
    )
    assert [row["n"] for row in aggregate_rows(rows, ["seed"])] == [100, 200]


@pytest.mark.parametrize(
    ("rows", "x", "label"),
    [
        (swept("mechanism.steps", [10, 40, 640]), [10.0, 40.0, 640.0], "steps"),
        (swept("dataset.signal", [0.5, 1, 2]), [0.5, 1.0, 2.0], "dataset.signal"),
        (
            summed(*(trial_rows(f"{r}", constraint_radius=r) for r in (1, 3, 9))),
            [1.0, 3.0, 9.0],
            "radius of the constraint set",
        ),
        (summed(*(trial_rows(f"{r}", ridge=r) for r in (0.0, 0.5, 1.0))), [0.0, 0.5, 1.0], "ridge"),
    ],
    ids=["steps", "signal", "radius", "ridge"],
)
def test_the_only_number_that_was_swept_is_the_axis(rows, x, label):
    (panel,) = panels(rows)
    assert panel.x.label == label
    assert panel.x.scale == ("linear" if label == "ridge" else "log")
    (curve,) = panel.curves
    assert [point.x for point in curve.points] == x


def test_an_axis_can_be_asked_for():
    rows = summed(
        *(
            trial_rows(f"{r}-{e}", constraint_radius=r, epsilon=e)
            for r in (1, 3, 9)
            for e in (0.1, 1.0)
        )
    )
    assert [panel.x.label for panel in panels(rows)] == ["epsilon"] * 3
    found = panels(rows, StudyView(x="constraint.radius", hue="epsilon"))
    assert [[curve.name for curve in panel.curves] for panel in found] == [
        ["epsilon 0.1", "epsilon 1"]
    ]
    (panel,) = panels(summed(trial_rows("a"), trial_rows("b", mechanism="newton")),
                      StudyView(x="mechanism", hue="dataset"))  # fmt: skip
    assert panel.x.names == ("noisy_gd", "newton")
    assert [point.x for point in panel.select_points(panel.curves[0])] == [0.0, 1.0]


def crossed(mechanisms=("noisy_gd", "newton"), epsilons=(0.5, 2.0), sizes=(100,), **more):
    """Cells of all pairs; the key dataset.n says what n does."""
    return summed(*(
        trial_rows(f"{name}-{epsilon}-{n}", (1.0 / epsilon, 2.0 / epsilon), mechanism=name, n=n,
                   epsilon=epsilon, delta=1.0 / n**2,
                   overrides={"mechanism": {"name": name}, "dataset": {"n": n}}, **more)
        for name in mechanisms for epsilon in epsilons for n in sizes
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("given", "view", "label", "names"),
    [
        ({}, {"hue": "epsilon"}, "mechanism", ("noisy_gd", "newton")),
        ({"sizes": (100, 300)}, {"hue": "epsilon"}, "number of records n", ()),
        ({"epsilons": (1.0,), "sizes": (100, 300)}, {"hue": "n"}, "mechanism",
         ("noisy_gd", "newton")),
        ({}, {"facet": "epsilon"}, "mechanism", ("noisy_gd", "newton")),
        ({"mechanisms": ("newton",)}, {"hue": "epsilon"}, "mechanism", ("newton",)),
        ({}, {"hue": "epsilon", "facet": "mechanism"}, "epsilon", ()),
        ({}, {"hue": "mechanism"}, "epsilon", ()),
    ],
)  # fmt: skip
def test_a_colour_of_the_axis_takes_another_axis(given, view, label, names):
    found = panels(crossed(**given), StudyView(**view))
    assert {panel.x.label for panel in found} == {label}
    assert all(panel.x.names == names for panel in found)
    assert sum(len(panel.points) for panel in found) == len(crossed(**given))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("view", [{}, {"hue": "epsilon"}, {"x": "mechanism", "hue": "epsilon"},
                                  {"hue": "epsilon", "facet": "mechanism"},
                                  {"y": "train_metric"}])  # fmt: skip
@pytest.mark.parametrize("rows", [
    crossed(), crossed(epsilons=(1.0,)), crossed(("newton",), sizes=(100, 300)),
    summed(trial_rows("a", (1.0, 2.0)), trial_rows("b", (0.0, 2.0), epsilon=2.0, dataset="b")),
    summed(*(trial_rows(f"{k}", (0.0, 2.0), ridge=k) for k in (4e20, 4e20 + 1e5))),
], ids=["crossed", "one epsilon", "sizes", "a place a panel", "huge"])  # fmt: skip
def test_no_warning_of_matplotlib_reaches_the_user(rows, view):
    assert plot_study(rows, StudyView(**view)).axes


@pytest.mark.filterwarnings("error")
def test_curves_of_one_point_are_drawn_without_a_warning(monkeypatch):
    monkeypatch.setattr(StudyView, "check", lambda view, rows: None)
    rows = crossed(epsilons=(0.1, 1.0, 10.0), sizes=(100, 300))
    assert plot_study(rows, StudyView(x="epsilon", hue="epsilon")).axes


def list_handles(drawn):
    (legend,) = drawn.legends
    names = [text.get_text() for text in legend.get_texts()]
    return dict(zip(names, legend.legend_handles, strict=True))


@pytest.mark.parametrize(
    ("given", "view", "lined"),
    [
        ({}, {"x": "mechanism", "hue": "epsilon"}, False),
        ({}, {}, True),
        ({"sizes": (100, 300)}, {"hue": "epsilon"}, True),  # patterns are mechanisms
        ({}, {"hue": "epsilon", "facet": "mechanism"}, False),  # one point a curve
        ({"sizes": (100, 300)}, {"x": "dataset", "hue": "epsilon", "facet": "n"}, False),
    ],
)
def test_the_legend_has_lines_where_the_figure_has_them(given, view, lined):
    drawn = plot_study(crossed(**given), StudyView(**view, show=("none",)))
    handles = list_handles(drawn)
    assert len(handles) >= 2
    for text, handle in handles.items():
        assert (handle.get_linestyle() != "None") == (lined and "hollow" not in text), text
    through = [line for place in drawn.axes for line in place.lines
               if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"]  # fmt: skip
    assert bool(through) == lined


def test_marks_stand_in_the_middle_above_their_name():
    rows = [*crossed(epsilons=(1.0,), sizes=(100,)),
            *crossed(("noisy_sgd",), (1.0,), calibration="paper"),
            *crossed(("noisy_sgd",), (1.0,))]  # fmt: skip
    (place,) = plot_study(rows, StudyView(x="mechanism", show=("none",))).axes
    marks = [line.get_xdata()[0] for line in place.lines if len(line.get_xdata())]
    assert sorted(marks) == pytest.approx([0.0, 1.0, 1.85, 2.15])
    assert [text.get_text() for text in place.get_xticklabels()] == [
        "noisy_gd", "newton", "noisy_sgd"
    ]  # fmt: skip


JUDGED = {"test_metric": 0.8, "baseline": "majority", "baseline_metric": 0.6,
          "optimum_metric": 0.95, "floor_metric": 0.5}  # fmt: skip


@pytest.mark.parametrize(
    ("view", "judged", "labels"),
    [
        ({"y": "test_metric"}, {}, ["non-private optimum", "baseline (majority)"]),
        ({"y": "test_metric", "show": ("floor",)}, {},
         ["non-private optimum", "baseline (majority)"]),
        ({"y": "test_metric", "x": "mechanism"}, {},
         ["non-private optimum", "baseline (majority)"]),
        ({"y": "test_metric", "show": ("none",)}, {}, []),
        ({"y": "test_metric", "show": ("bounds",)}, {}, []),
        ({"y": "test_metric"}, {"optimum_metric": None}, ["baseline (majority)"]),
        ({"y": "test_metric"}, {"baseline_metric": None}, []),
        ({"y": "train_metric"}, {}, []),  # the references are of held-out records
        ({"y": "train_metric"}, {"test_metric": None},
         ["non-private optimum", "baseline (majority)"]),
        ({"y": "noise_scale"}, {}, []),
    ],
)  # fmt: skip
def test_a_metric_has_lines_of_what_it_is_judged_by(view, judged, labels):
    rows = crossed(**{**JUDGED, **judged})
    panel, *others = build_figure(rows, StudyView(**view))[0].panels
    assert bool(others) == (view.get("x") == "mechanism")  # a panel for each epsilon then
    assert [line.label for line in panel.lines] == labels
    assert all(panel.limits[0] < y < panel.limits[1] for line in panel.lines for y in line.ys)
    drawn = plot_study(rows, StudyView(**view))
    heights = {line.get_ydata()[0] for line in drawn.axes[0].lines if line.get_label() in labels}
    assert heights == {y for line in panel.lines for y in line.ys}
    assert set(labels) <= set(list_handles(drawn))


def test_rows_of_one_panel_that_are_judged_by_several_have_no_line():
    rows = [
        *crossed(("noisy_gd",), **JUDGED),
        *crossed(("newton",), **JUDGED | {"baseline_metric": 0.7}),
    ]
    (panel,) = panels(rows, StudyView(y="test_metric"))
    assert panel.lines == ()


@pytest.mark.parametrize(
    ("y", "value", "low"),
    [("excess_risk", 2.0, 1.1), ("excess_risk_per_record", 0.02, 0.011), ("train_metric", 0.9, 0.9),
     ("noise_scale", 2.5, 2.5), ("steps", 30, 30)],
)  # fmt: skip
def test_the_vertical_axis_can_be_chosen(y, value, low):
    (panel,) = panels(summed(trial_rows()), StudyView(y=y))
    (point,) = panel.curves[0].points
    assert (point.value, point.low) == (pytest.approx(value), pytest.approx(low))
    assert bool(panel.lines) == y.startswith("excess_risk")
    assert panel.y.scale == ("linear" if "metric" in y else "log")


def test_the_band_of_a_negative_metric_does_not_go_up_to_0():
    low = {"metric": "R2", "train_metric": -0.5}
    rows = summed(trial_rows("a", epsilon=1.0, **low), trial_rows("b", epsilon=4.0, **low))
    (place,) = plot_study(rows, StudyView(y="train_metric")).axes
    (band,) = place.collections
    assert [y for path in band.get_paths() for _, y in path.vertices] == pytest.approx([-0.5] * 7)


def test_lines_are_shown_where_they_are_asked_for(summary):
    def kinds(*show):
        figure, _ = build_figure(summary, StudyView(show=show or None))
        return {line.kind for line in figure.panels[0].lines}

    assert kinds() == {"floor"}  # some points are near it
    assert kinds("none") == set()
    assert kinds("bounds") == {"bound_upper", "bound_lower"}
    assert kinds("orders", "floor") == {"order_upper", "floor"}
    far = summed(trial_rows(risks=(1.0, 2.0), floor_excess_risk=80.0))
    assert build_figure(far)[0].panels[0].lines == ()


def test_the_legend_has_each_mechanism_and_the_paper_once(summary):
    figure, _ = build_figure(summary)
    assert {curve.legend for curve in figure.panels[0].curves} == {"noisy_gd"}
    tight, paper = figure.panels[0].curves
    assert (tight.hue, tight.mark) == (paper.hue, paper.mark)
    assert (tight.dashes, tight.fill) != (paper.dashes, paper.fill)
    assert figure.patterns == (("paper's calibration", paper.pattern),)
    drawn = plot_study(summary)
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert texts == ["noisy_gd", "data-free floor", HOLLOW_WORDS, "paper's calibration"]


def test_no_two_curves_of_a_figure_look_alike():
    keys = [{"name": name, "steps": steps, "average": average}
            for name in ("noisy_gd", "mine", "yours") for steps in (1, 2, 3, 4)
            for average in ("last", "mean")]  # fmt: skip
    rows = summed(
        *(trial_rows(f"{i}", mechanism=key["name"], overrides={"mechanism": key})
          for i, key in enumerate(keys))
    )  # fmt: skip
    (panel,) = panels(rows)
    assert len(panel.curves) == 24
    looks = {(curve.hue, curve.mark, curve.dashes, curve.fill) for curve in panel.curves}
    assert len(looks) == 24
    assert len({(curve.hue, curve.mark) for curve in panel.curves}) == 3


def test_every_shipped_mechanism_has_a_look_of_its_own():
    names = registry.names("mechanism")
    assert set(names) <= set(SHIPPED) | {"localization", "huberized", "high_probability"}
    assert len({choose_looks(names)[name] for name in names}) == len(names)
    full = [name for name in SHIPPED if "(" in name or f"{name}(" not in "".join(SHIPPED)]
    assert len({SHIPPED[name] for name in full}) == len(full)
    # those that stand together most often differ in colour too
    usual = ("noisy_gd", "noisy_sgd", "one_pass_sgd", "objective_perturbation",
             "output_perturbation", "newton", "frank_wolfe", "mirror_descent")  # fmt: skip
    assert len({SHIPPED[name] % len(HUES) for name in usual}) == len(usual)


def list_marks(names):
    return [index_mark(look) for look in choose_looks(names).values()]


def test_a_look_does_not_depend_on_the_company():
    alone = {name: choose_looks([name])[name] for name in ("mine", "yours", "exponential/net")}
    for name, look in SHIPPED.items():
        assert choose_looks([name, *alone]) == alone | {name: look}
    assert not set(alone.values()) & set(SHIPPED.values())
    many = choose_looks([f"own_{i}" for i in range(LOOKS)])
    assert len(set(many.values())) == LOOKS


@pytest.mark.parametrize("count", [2, 5, 10, 24])
def test_names_of_a_figure_differ_by_mark_and_not_by_colour_alone(count):
    """Plug-ins, shipped mechanisms and both together, as in a print without colours."""
    own = [f"plugin_{i}" for i in range(60)]
    for names in (own, [*SHIPPED], [x for pair in zip(own, SHIPPED, strict=False) for x in pair]):
        for start in range(0, len(names) - count, 3):
            marks = list_marks(names[start : start + count])
            assert len(set(marks)) == count


@pytest.mark.parametrize("count", [1, 2, 6, 24])
def test_a_value_never_looks_like_a_mechanism(count):
    """In colour, and below eleven values in mark: ``hue=epsilon`` beside a figure of mechanisms."""
    looks = choose_value_looks([f"epsilon {i}" for i in range(count)])
    drawn = [Curve(name, (), look) for name, look in looks.items()]
    shipped = [Curve(name, (), look) for name, look in SHIPPED.items()]
    assert not {curve.hue for curve in drawn} & set(HUES)
    assert not {curve.mark for curve in drawn} & {curve.mark for curve in shipped}
    assert len({(curve.hue, curve.mark) for curve in drawn}) == count
    rows = summed(*(trial_rows(f"{e}", epsilon=e, constraint_radius=e) for e in (0.1, 1.0, 10.0)))
    (panel,) = panels(rows, StudyView(x="constraint.radius", hue="epsilon"))
    assert [curve.look for curve in panel.curves] == list(choose_value_looks("abc").values())


def test_every_mark_is_another_shape():
    assert len(MARKS) == 24  # as many as curves in a panel
    assert len({mark.path for mark in MARKS}) == len({mark.drawn for mark in MARKS}) == len(MARKS)
    assert sorted({(look % len(HUES), index_mark(look)) for look in range(LOOKS)}) == [
        (hue, mark) for hue in range(len(HUES)) for mark in range(len(MARKS))
    ]


def test_figure_and_page_agree_on_looks(summary):
    rows = [*summary, *summed(trial_rows("m", mechanism="mine"))]
    drawn = {curve.name: (curve.look, curve.dashes) for curve in panels(rows)[0].curves
             if curve.calibration == "tight"}  # fmt: skip
    for curve in page_views.curves(page_views.select_drawn(rows), "epsilon"):
        if curve["calibration"] == "tight":
            assert curve["look"] == drawn[curve["mechanism"]][0]
            assert curve["pattern"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"theme": "tripple"}, "single"),
        ({"y": "excess_rsk"}, "did you mean 'excess_risk'"),
        ({"x": "epsilom"}, "did you mean 'epsilon'"),
        ({"hue": "mechansim"}, "did you mean 'mechanism'"),
        ({"facet": "no_such"}, "must be one of epsilon"),
        ({"aggregate": "trial_"}, "must be seed"),
        ({"aggregate": "epsilon"}, "must be seed"),
        ({"show": "bound"}, "did you mean 'bounds'"),
        ({"x": "epsilon", "hue": "epsilon"}, "is the axis already"),
        ({"x": "epsilon", "facet": "epsilon"}, "is the axis already"),
        ({"x": "constraint.radius", "hue": "constraint.radius"}, "is the axis already"),
    ],
)
def test_a_name_that_is_not_there_is_refused_and_nothing_written(words, said, tmp_path):
    stored(tmp_path, study_rows())
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=said) as told:
        report([str(tmp_path), *(f"{key}={value}" for key, value in words.items())])
    assert "\n" not in str(told.value)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_report_writes_the_asked_figure_and_its_caption(tmp_path, capsys):
    stored(tmp_path, study_rows())
    words = ("theme=single", "x=epsilon", "y=excess_risk_per_record", "show=bounds", "formats=svg")
    report([str(tmp_path), *words, "html=false"])
    assert "figure.caption.md" in capsys.readouterr().err
    caption = (tmp_path / "figure.caption.md").read_text()
    for word in ("Excess risk (per record) against epsilon", "digits", "Median", "a simulation"):
        assert word in caption
    svg = (tmp_path / "figure.svg").read_text()
    assert f'width="{72 * 3.3:g}pt"' in svg
    assert "<!-- upper bound [BST14, Thm 2.4] -->" in svg
    assert not os.path.exists(tmp_path / "report.html")


def test_words_become_a_view():
    view = read_view({"x": "n", "show": "floor,bounds", "out": "elsewhere", "hue": ""})
    assert view == StudyView(x="n", show=("floor", "bounds"))
    assert read_view({"theme": "slide"}).is_default
    assert not read_view({"aggregate": "none"}).is_default
