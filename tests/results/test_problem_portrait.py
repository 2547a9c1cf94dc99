"""The picture of a problem: what its title says, and a legend that hides nothing."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from dperm_cli.results.charts import figure_drawing, problem_portrait


def facts(mechanisms, kernel=None):
    def rows(name):
        theorem = f"a bound of its own of {name}"
        return [{"epsilon": epsilon, "bound_upper": 9.0 / epsilon, "bound_upper_id": theorem}
                for epsilon in (0.1, 1.0)]  # fmt: skip

    losses = {name: [k / 100 for k in range(101)] for name in ("optimum", "centre")}
    names = [f"{k}_approximate_minima_perturbation" for k in range(mechanisms)]
    return {"dataset": "d", "loss": "logistic", "kernel": kernel, "constraint": "l2_ball", "n": 5,
            "p": 2, "losses": losses, "floor_excess_risk": 7.0, "optimum_gap": 1e-9,
            "mechanisms": {name: rows(name) for name in names}}  # fmt: skip


@pytest.mark.parametrize("mechanisms", [1, 12])
def test_the_legend_stands_below_the_panels(mechanisms, monkeypatch):
    monkeypatch.setattr(figure_drawing, "image_bytes", lambda drawn, ending: drawn)
    drawn = problem_portrait.draw_figure(facts(mechanisms))["pdf"]
    write = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    box = legend.get_window_extent(write)
    assert len(legend.get_texts()) == mechanisms + 4  # two curves, floor and gap
    assert box.y0 >= 0
    assert all(axes.get_tightbbox(write).y0 >= box.y1 for axes in drawn.axes)
    assert all(axes.get_window_extent(write).height > 1.5 * drawn.dpi for axes in drawn.axes)


@pytest.mark.parametrize(("kernel", "words"), [(None, "logistic, l2"), ("rbf", "kernel rbf, l2")])
def test_the_title_names_the_kernel(kernel, words, monkeypatch):
    monkeypatch.setattr(figure_drawing, "image_bytes", lambda drawn, ending: drawn)
    drawn = problem_portrait.draw_figure(facts(1, kernel))["png"]
    assert words in drawn.texts[0].get_text()
