"""Tables that a reader asks for: columns, rows, rounding, and LaTeX that fits a column."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.chosen_table import (
    ChosenTable,
    Column,
    Group,
    TableRequest,
    build_table,
    choose_rows,
    read_request,
)
from dperm_cli.results.tables.latex_table import MOST_LINES, WIDTHS, measure_text, write_latex
from dperm_cli.results.tables.rounded_numbers import round_number, round_pair
from dperm_cli.results.tables.text_tables import write_html, write_markdown, write_terminal
from tests.results.conftest import refused, study_rows, trial_rows

LATEX = next((path for name in ("pdflatex", "lualatex") if (path := shutil.which(name))), None)
PAGE = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""


def summed(*groups):
    return summarise(normalise(row) for group in groups for row in group)


def table(found, join=False, **asked):
    request = read_request(**asked)
    return build_table(choose_rows(found, request, join), request)


def names(made):
    return [column.name for column in made.columns]


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (5.688, 1.275, "5.7"), (2.181, 0.12, "2.18"), (0.05793, 0.0003, "0.05793"),
        (1234.5, 260.0, "1230"), (12.3456, None, "12.3"), (1e-7, None, "1e-7"),
        (-0.0571, 0.02, "-0.057"), (207936, None, "2.08e5"), (354, None, "354"), (0.0, 0.1, "0"),
        (None, None, "-"), (float("nan"), None, "-"), (0.4, 7.0, "0.4"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_to_their_uncertainty(value, half, text):
    assert round_number(value, half) == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [(0.318, 0.891, "0.32 +- 0.89"), (-0.03, 2.71, "0.0 +- 2.7"), (0.24, 16.58, "0 +- 17"),
     (-1.426, 0.04, "-1.426 +- 0.040"), (1.0, 0.0, "1.00 +- 0")],
)  # fmt: skip
def test_a_number_and_its_uncertainty_end_at_one_digit(value, half, text):
    assert round_pair(value, half) == text


def test_what_tells_rows_apart_is_needed_and_stands_first(summary):
    made = table(summary)
    assert names(made)[:5] == ["mechanism", "calibration", "epsilon", "excess_risk", "band"]
    assert [c.name for c in made.columns if c.needed] == ["mechanism", "calibration", "epsilon"]
    assert "floor" not in names(made)  # all rows have the same one


def test_what_the_title_of_each_problem_says_is_no_column():
    """n, p and delta of two data sets differ, and are constant in each: their titles say them."""

    def rows(name, n):
        return [trial_rows(f"{name}-{n}-{epsilon}", (1.0, 2.0), dataset=name, n=n, delta=n**-2.0,
                           epsilon=epsilon) for epsilon in (1.0, 2.0)]  # fmt: skip

    made = table(summed(*rows("few", 100), *rows("many", 1000)))
    assert names(made)[:2] == ["mechanism", "epsilon"]
    assert [group.title for group in made.groups] == [
        "few, n 100, delta 0.0001", "many, n 1000, delta 1e-6"
    ]  # fmt: skip
    mixed = table(summed(*rows("few", 100), *rows("few", 50)))
    assert "n" in names(mixed)


def test_columns_stand_as_they_were_asked_for(summary):
    made = table(summary, columns="steps,mechanism,calibration,epsilon,excess_risk_median")
    assert names(made) == ["steps", "mechanism", "calibration", "epsilon", "excess_risk"]
    assert made.lines[0][1] == "noisy_gd"
    assert not any("Added" in note for note in made.notes)
    one = table(summary, columns="steps,excess_risk", rows="epsilon:2,calibration:tight")
    assert names(one) == ["steps", "excess_risk"]


def grid(*keys, **values):
    """A made-up study of cells with these columns, n in the configuration as data sets have it."""
    return summed(*(
        trial_rows(f"{i}", (1.0 + i, 2.0 + i), **{
            "overrides": {"dataset": {"name": "digits", "n": mine.get("n", 100)}},
            **values, **mine,
        }) for i, mine in enumerate(keys)
    ))  # fmt: skip


SWEPT = [
    ([{"n": 100, "delta": 1e-4}, {"n": 300, "delta": 1e-5}], ["n"]),  # delta follows n
    ([{"delta": 1e-4}, {"delta": 1e-5}], ["delta"]),
    ([{"overrides": {"mechanism": {"name": "noisy_gd", "steps": k}}} for k in (1, 2)],
     ["mechanism.steps"]),
    ([{"seed": k, "overrides": {"seed": k}} for k in (1, 2)], ["seed"]),
    ([{"calibration": "tight"}, {"calibration": "paper"}], ["calibration"]),
    ([{"p": p, "ridge": ridge} for p in (2, 3) for ridge in (0.0, 1.0)], ["p", "ridge"]),
    ([{"constraint_radius": 1}, {"constraint_radius": 2}], []),  # in the titles of the groups
    ([{"dataset": "digits"}, {"dataset": "adult"}], []),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "added"), SWEPT)
def test_columns_that_tell_lines_apart_are_added_to_those_asked_for(keys, added):
    made = table(grid(*keys), columns="mechanism,epsilon,excess_risk,band,test_metric")
    measured = ["excess_risk", "band", "test_metric"]
    assert names(made) == ["mechanism", "epsilon", *added, *measured]
    assert all(len(set(group.lines)) == len(group.lines) for group in made.groups)
    told = [note for note in made.notes if "Added" in note]
    assert len(told) == bool(added)
    assert all(name in "".join(told) for name in added)
    for written in (write_terminal(made), write_markdown(made), write_html(made)):
        assert all(column.head in written for column in made.columns)
    if added:
        assert "Added to the columns asked for" in write_latex(made)
        assert all(column.needed for column in made.columns if column.name in added)
    bare = table(grid(*keys), columns="excess_risk")
    assert names(bare) == [*added, "excess_risk"]


def test_a_key_that_repeats_n_is_no_column_beside_it():
    rows = grid({"n": 100}, {"n": 300})
    assert names(table(rows))[:3] == ["mechanism", "n", "epsilon"]
    held = grid({"n": 80, "overrides": {"dataset": {"name": "digits", "n": 100}}},
                {"n": 240, "overrides": {"dataset": {"name": "digits", "n": 300}}})  # fmt: skip
    assert "dataset.n" in names(table(held))  # records were held out: it says something else


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"columns": "mechanisms"}, "did you mean 'mechanism'"),
        ({"columns": "all,epsilon"}, "stands alone"),
        ({"rows": "mechanism"}, "COLUMN:VALUE"),
        ({"rows": {"mechanism": "noisy_gb"}}, "noisy_gd"),
        ({"rows": {"mechanisms": "noisy_gd"}}, "mechanism"),
        ({"aggregate": "seeds"}, "seed"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(summary, asked, said):
    with pytest.raises(InputError, match=said) as caught:
        table(summary, **asked)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [{"epsilon": [0.1, 2]}, "epsilon:0.1,epsilon:2.0"])
def test_rows_are_chosen_by_value(summary, rows):
    made = table(summary, columns="epsilon", rows=rows)
    assert {line[0] for line in made.lines} == {"0.1", "2"}


def test_seeds_are_joined_where_one_asks_and_the_band_is_over_them():
    rows = summed(*(
        trial_rows(f"{seed}", (risk,), seed=seed, overrides={"epsilon": 1})
        for seed, risk in ((0, 2.0), (1, 4.0), (2, 9.0))
    ))  # fmt: skip
    assert len(table(rows).lines) == 3
    made = table(rows, aggregate="seed", columns="excess_risk")
    assert made.lines == [("4.0",)]
    assert any("3 repetitions" in note for note in made.notes)
    assert table(rows, join=True).lines == table(rows, aggregate="seed").lines


def test_a_refusal_is_a_line_where_its_mechanism_ran():
    ran = trial_rows("a", (2.0,), mechanism="m")
    facts = {"calibration": ran[0]["calibration"], "relation": ran[0]["relation"]}
    other = [refused("b", mechanism="m", epsilon=9.0, **facts)]
    never = [refused("c", mechanism="k", epsilon=9.0, **facts)]
    made = table(summed(ran, other, never), columns="mechanism,epsilon,excess_risk")
    assert made.lines == [("m", "1", "2.00"), ("m", "9", "-")]
    assert sum("unsupported" in note for note in made.notes) == 2


def test_notes_follow_the_columns(summary):
    assert any("upper bound" in note for note in table(summary, columns="bound_upper").notes)
    assert not any("upper bound" in note for note in table(summary, columns="epsilon").notes)


# ---- LaTeX ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computer_modern():
    """The width of a text in ems of Computer Modern, from the font itself."""
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font, LoadFlags

    font = FT2Font(f"{get_data_path()}/fonts/ttf/cmr10.ttf")

    def measure(text):
        marks = text.replace(" ", "")
        units = (font.load_char(ord(mark), flags=LoadFlags.NO_SCALE) for mark in marks)
        return sum(glyph.horiAdvance for glyph in units) / 2048 + text.count(" ") / 3

    return measure


@pytest.mark.parametrize("text", ["output_perturbation", "test acc.", "12.3", "Wide WORDS (m)"])
def test_widths_are_those_of_computer_modern(text, computer_modern):
    assert measure_text(text) == pytest.approx(computer_modern(text), rel=0.01)


def printed(cell):
    """What is printed of a cell, with the room that ``phantom`` keeps."""
    cell = cell.replace(r"\cdot", "x").replace(r"\varepsilon", "e").replace(r"\pm", "+")
    return re.sub(r"\\[a-zA-Z]+|[{}$\\^]", "", cell).strip()


def measure_tables(text, computer_modern):
    """The width of each tabular in points: its cells at their size, and the gaps."""
    for body in re.findall(r"\\(\w+)\\setlength.*?\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        em = {"footnotesize": 8 * 1.063, "scriptsize": 7 * 1.139}[body[0]]
        lines = [line[:-2].split("&") for line in body[1].splitlines() if line.endswith(r"\\")]
        lines = [line for line in lines if len(line) > 1]
        spec = body[1].split("\n")[0].split("@{}")[1]
        sides = re.findall(r"p\{([\d.]+)pt\}|(l|r)", spec)
        total = 6.0 * (len(lines[0]) - 1)
        for i in range(len(lines[0])):
            wide = max(computer_modern(printed(line[i])) for line in lines) * em
            total += float(sides[i][0]) if sides[i][0] else wide
        yield total


def test_a_table_fits_a_column(summary, computer_modern):
    text = write_latex(table(summary))
    (width,) = measure_tables(text, computer_modern)
    assert 0.5 * WIDTHS["single"] < width <= WIDTHS["single"]
    assert "table*" not in text
    assert "% no room for: " in text


def test_over_both_columns_there_is_more_room(summary, computer_modern):
    text = write_latex(table(summary), "double")
    (width,) = measure_tables(text, computer_modern)
    assert WIDTHS["single"] < width <= WIDTHS["double"]
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == 1


@pytest.mark.parametrize(
    "name",
    ["high_probability(localization(approximate_minima_perturbation))", "x" * 90, "a_b" * 40],
)
def test_a_long_name_is_broken(name, computer_modern):
    text = write_latex(table(summed(trial_rows(mechanism=name))))
    (width,) = measure_tables(text, computer_modern)
    assert width <= WIDTHS["single"] + 0.1
    column = float(re.findall(r"p\{([\d.]+)pt\}", text)[0])
    line = next(line for line in text.splitlines() if line.startswith(r"\raggedright"))
    pieces = re.split(r"\\allowbreak\{\}", line.partition("&")[0].partition(" ")[2])
    assert max(computer_modern(printed(piece)) for piece in pieces) * 8 * 1.07 <= column


def test_caption_and_notes_stand_in_the_float(summary):
    text = write_latex(table(summary))
    inside = text[text.index(r"\begin{table}") : text.index(r"\end{table}")]
    assert "simulation" in inside
    assert [line for line in text.replace(inside, "").splitlines() if line[0] != "%"] == [
        r"\end{table}"
    ]


def test_points_of_numbers_stand_below_each_other():
    rows = summed(trial_rows("a", (12.0, 13.0)), trial_rows("b", (0.5, 0.61), epsilon=2.0))
    text = write_latex(table(rows, columns="epsilon,excess_risk"))
    assert r"12.5\phantom{00}" in text or r"12.50\phantom{0}" in text


def test_a_long_table_goes_on_in_another_float():
    lines = tuple((f"m{i}", f"{i}") for i in range(100))
    columns = (Column("mechanism", "mechanism", left=True, needed=True), Column("n", "n"))
    text = write_latex(ChosenTable("all", columns, (Group("", lines),), (("last", ""),)))
    floats = text.split(r"\end{table}")[:-1]
    assert len(floats) == 3
    assert all(part.count(r"\\") <= MOST_LINES + 1 for part in floats)
    assert ["Last." in part for part in floats] == [False, False, True]
    assert "(2 of 3)" in floats[1]
    assert sum(f"m{i} &" in text for i in range(100)) == 100


@pytest.mark.skipif(LATEX is None, reason="no LaTeX is installed")
def test_latex_has_no_overfull_box(tmp_path):
    rows = summed(study_rows(), trial_rows("z", mechanism="high_probability(localization(a_b))"))
    (tmp_path / "page.tex").write_text(PAGE % write_latex(table(rows)))
    done = subprocess.run(
        [LATEX, "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in (tmp_path / "page.log").read_text(errors="replace")


# ---- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [50, 80, 120])
def test_plain_text_fits_its_width(summary, width):
    text = write_terminal(table(summary), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.isascii()
    assert "columns=all shows" in " ".join(text.split())
    assert sum("noisy_gd" in line for line in text.splitlines()) >= 8


def test_all_columns_without_a_width(summary):
    text = write_terminal(table(summary), None)
    assert "no room" not in text
    assert "\x1b" not in text
    assert "\x1b[1m" in write_terminal(table(summary), 80, bold=True)


def test_html_is_text(summary):
    rows = summed(trial_rows(mechanism="<script>"))
    text = write_html(table(rows))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert text.count("<tr>") == text.count("</tr>") == 2


def test_markdown_has_a_head_for_each_problem():
    rows = summed(trial_rows("a"), trial_rows("b", dataset="other"))
    text = write_markdown(table(rows))
    assert "**other**" in text
    assert "**digits**" in text
    assert text.count("| mechanism |") == 2


def test_a_request_for_nothing_is_the_default():
    assert read_request("", "", "") == TableRequest()
    assert read_request(["all"]).columns == ("all",)
