"""Ranks of mechanisms over problems, their critical difference and its picture; slopes."""

from __future__ import annotations

import math

import pytest
from matplotlib.text import Text

from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.rank_diagram import draw_ranks
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.rankings import (
    compute_critical_difference,
    fit_slopes,
    list_alike,
    rank_rows,
)
from tests.results.conftest import refused, trial_rows


def study(risks, **more):
    """Summary rows by mechanism and epsilon; None is a refusal."""
    groups = []
    for name, found in risks.items():
        for epsilon, risk in found.items():
            cell, facts = f"{name} {epsilon}", {"mechanism": name, "epsilon": epsilon, **more}
            (made,) = trial_rows(cell, (1.0 if risk is None else risk,), **facts)
            groups.append([made | refused(cell, **facts) if risk is None else made])
    return summarise(normalise(row) for rows in groups for row in rows)


def means(ranking):
    return {one.name: one.mean_rank for one in ranking.names}


# Table 5(a) of the paper of the test: q of alpha = 0.05 for 2 to 10 names
Q = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


@pytest.mark.parametrize(("names", "q"), Q.items())
def test_the_critical_difference_is_that_of_the_literature(names, q):
    expected = q * math.sqrt(names * (names + 1) / (6 * 30))
    assert compute_critical_difference(names, 30) == pytest.approx(expected, rel=5e-4)


def test_ranks_are_means_over_problems_and_the_best_is_first():
    found = rank_rows(study({"slow": {1.0: 9.0, 2.0: 3.0}, "fast": {1.0: 5.0, 2.0: 2.0}}))
    assert means(found) == {"fast": 1.0, "slow": 2.0}
    assert [one.name for one in found.names] == ["fast", "slow"]
    assert [one.wins for one in found.names] == [2, 0]
    assert found.problems == 2


def test_ties_share_the_mean_of_their_ranks():
    found = rank_rows(study({"a": {1.0: 5.0}, "b": {1.0: 5.0}, "c": {1.0: 7.0}}))
    assert means(found) == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert found.critical_difference is None  # of one problem nothing follows


def test_who_refuses_is_last_and_counted():
    risks = {"a": {1.0: 5.0, 2.0: 1.0}, "b": {1.0: 6.0, 2.0: None}, "c": {1.0: None, 2.0: None}}
    found = rank_rows(study(risks))
    assert means(found) == {"a": 1.0, "b": (2.0 + 2.5) / 2, "c": (3.0 + 2.5) / 2}
    assert {one.name: one.refusals for one in found.names} == {"a": 0, "b": 1, "c": 2}


def test_problems_that_were_not_given_to_all_are_left_out():
    found = rank_rows(study({"a": {1.0: 5.0, 2.0: 1.0}, "b": {1.0: 6.0}}))
    assert (found.problems, found.left_out) == (1, 1)
    with pytest.raises(InputError, match="no problem was given to all"):
        rank_rows(study({"a": {1.0: 5.0}, "b": {2.0: 6.0}}))


def test_friedman_is_that_of_scipy():
    from scipy.stats import friedmanchisquare

    columns = {"a": [1.0, 2.0, 4.0, 3.0], "b": [3.0, 2.0, 5.0, 1.0], "c": [9.0, 8.0, 7.0, 9.5]}
    risks = {name: dict(enumerate(found, 1)) for name, found in columns.items()}
    found = rank_rows(study(risks))
    assert found.p_value == pytest.approx(friedmanchisquare(*columns.values()).pvalue)


def test_names_that_do_not_differ_are_joined():
    twenty = range(1, 21)
    risks = {"a": {e: 1.0 + e % 2 for e in twenty}, "b": {e: 1.5 for e in twenty},
             "c": {e: 9.0 for e in twenty}}  # fmt: skip
    found = rank_rows(study(risks))
    assert means(found) == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert list_alike(found) == [(0, 1)]


def test_a_name_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="mechanism"):
        rank_rows(study({"a": {1.0: 5.0}}), by="no_such")


@pytest.mark.parametrize("theme", ["single", "double"])
@pytest.mark.parametrize("many", [2, 9])
def test_nothing_overlaps_in_the_picture(theme, many):
    names = [f"approximate_minima_perturbation_{i}" for i in range(many)]
    ranks = [1.0 + i for i in range(many)]
    drawn = draw_ranks(names, ranks, 1.3, [(0, 1)], theme)
    drawn.canvas.draw()
    assert drawn.get_figwidth() == pytest.approx(THEMES[theme].width)
    shown = [t for t in drawn.findobj(Text) if t.get_text().strip() and t.get_visible()]
    boxes = [text.get_window_extent() for text in shown]
    assert sum(text.get_text().replace("\n", "") in names for text in shown) == many
    assert not [1 for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    assert all(box.x0 >= 0 and box.x1 <= drawn.bbox.x1 for box in boxes)
    assert min(text.get_fontsize() for text in shown) >= 6.5


def test_a_slope_is_that_of_the_medians():
    risks = {"a": {e: 8.0 / e for e in (1.0, 2.0, 4.0)}, "b": {e: 3.0 / e**2 for e in (1.0, 2.0)}}
    (found,) = fit_slopes(study(risks))
    assert (found["mechanism"], found["axis"], found["points"]) == ("a", "epsilon", 3)
    assert found["slope"] == pytest.approx(-1.0)
    assert found["low"] <= -1.0 <= found["high"]


def test_saturated_points_have_no_slope():
    """The floor of these rows is 80."""
    risks = {"a": {0.1: 79.0, 1.0: 8.0, 2.0: 4.0, 4.0: 2.0}}
    (found,) = fit_slopes(study(risks))
    assert (found["points"], found["slope"]) == (3, pytest.approx(-1.0))


def test_slopes_over_n_follow_what_follows_n():
    """A delta that falls with n, and the key that n comes from, part no curve."""
    groups = [
        trial_rows(f"{n}", (float(n),), n=n, delta=1.0 / n**2,
                   overrides={"dataset": {"name": "drawn", "n": n}, "epsilon": 1})
        for n in (100, 200, 400)
    ]  # fmt: skip
    rows = summarise(normalise({**row, "floor_excess_risk": 1e9}) for g in groups for row in g)
    (found,) = fit_slopes(rows)
    assert (found["axis"], found["slope"]) == ("n", pytest.approx(1.0))


def test_several_data_sets_make_no_slope_over_n():
    groups = [trial_rows(name, (2.0,), n=n, dataset=name)
              for name, n in (("a", 10), ("b", 20), ("c", 40))]  # fmt: skip
    assert fit_slopes(summarise(normalise(row) for g in groups for row in g)) == []
