"""The page clicked through in a real browser: nothing complains, nothing is loaded."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import fields

import pytest

from dperm_cli.results.charts.chart_model import Axis, Panel, ReferenceLine
from dperm_cli.results.charts.chart_model import Curve as ChartCurve
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.records.row_facts import number
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.summary_table import csv_text, format_exact
from tests.browser.chrome import Chrome
from tests.results import html_study
from tests.results.html_study import EVIL

pytestmark = pytest.mark.browser

CELLS = "[data-grid=cells]"
CURVE = "#curves .figure svg"


def column(page: Chrome, grid: str, head: str) -> list[str]:
    """The texts of a column as they stand on the page, by the start of its heading."""
    return page.run(
        f"""(() => {{ const grid = document.querySelector({json.dumps(grid)});
        const heads = [...grid.querySelectorAll('thead th')].map((th) => th.textContent);
        const at = heads.findIndex((text) => text.startsWith({json.dumps(head)}));
        const lines = [...grid.querySelectorAll('tbody tr.row')];
        return lines.map((tr) => tr.cells[at].textContent); }})()"""
    )


def sort_state(page: Chrome, key: str) -> str:
    return page.run(f"document.querySelector('{CELLS} [data-key={key}]').parentNode.ariaSort")


def count(page: Chrome) -> str:
    return page.run("document.querySelector('#table [role=status]').textContent")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_opens_within_two_seconds_and_loads_nothing(browser, large_page):
    """Processor time of the page's thread, so that a busy machine does not decide."""
    assert large_page.stat().st_size < 6_000_000
    browser.view(1280, 900)
    browser.open(html_study.blank(large_page.parent))
    before = browser.busy()
    browser.open(large_page)
    spent = browser.busy() - before
    print(f"opening took {spent:.2f} s of processor time")
    assert 0.0 < spent < 2.0
    asked = [e["params"]["request"]["url"] for e in browser.events
             if e.get("method") == "Network.requestWillBeSent"]  # fmt: skip
    assert set(asked) == {large_page.resolve().as_uri()}


def test_a_request_would_be_seen_and_is_refused(browser, large_page):
    browser.open(large_page)
    browser.run("fetch('https://127.0.0.1:9/x').catch(() => 0)")
    assert any("Content Security Policy" in text for text in browser.complaints())


def test_the_table_shows_the_numbers_of_the_terminal(page, study):
    page.run("document.querySelector('#table .below button').click()")
    shown = column(page, CELLS, "excess risk\nmedian")
    assert len(shown) == len(study) == 501
    assert shown == [number(row["excess_risk_median"]) for row in study]
    for head, name in (("noise", "noise_scale"), ("delta", "delta"), ("n", "n"),
                       ("excess risk\nper record", "excess_risk_per_record_median")):  # fmt: skip
        assert column(page, CELLS, head) == [number(row[name]) for row in study]


def test_numbers_are_written_as_python_writes_them(page):
    values = [0.1, 1 / 3, 1e-5, 1.5e-7, 1234.5, 1235.5, 99999.6, 123456.0, 1e16, 1e15, 1e-300,
              0.00099, 0.0009996, 2.5, -0.25, 1e22, 123456789.125, 5e-324, 0.5, 100.0]  # fmt: skip
    records = [
        {**row, "noise_scale": value, "cell": f"v{i}"}
        for i, value in enumerate(values)
        for row in html_study.large(1, 1)[:1]
    ]
    rows = summarise(records)
    path = page.downloads.parent / "numbers.html"
    path.write_text(html_study.page(records), "utf-8")
    page.open(path)
    assert column(page, CELLS, "noise") == [number(value) for value in values]
    _, text = page.downloaded("#save-table")
    assert text == csv_text(rows)


def test_sorting_by_a_heading_and_back(page, study):
    median = f"{CELLS} [data-key=excess_risk_median]"
    before = column(page, CELLS, "excess risk\nmedian")
    assert sort_state(page, "excess_risk_median") == "none"
    ranked = sorted(r["excess_risk_median"] for r in study if r["excess_risk_median"] is not None)
    page.click(median)
    assert sort_state(page, "excess_risk_median") == "ascending"
    up = column(page, CELLS, "excess risk\nmedian")
    assert up == [number(value) for value in ranked[: len(up)]]
    page.click(median)
    assert sort_state(page, "excess_risk_median") == "descending"
    down = column(page, CELLS, "excess risk\nmedian")
    assert down == [number(value) for value in ranked[::-1][: len(down)]]
    assert page.run("document.activeElement.dataset.key") == "excess_risk_median"
    page.key("Enter")
    assert sort_state(page, "excess_risk_median") == "none"
    assert column(page, CELLS, "excess risk\nmedian") == before


def test_filtering_by_names_epsilon_and_words(page):
    page.choose("#table [data-filter=mechanism]", "noisy_sgd")
    assert count(page) == "101 of 501 rows"
    page.choose("#table [data-filter=dataset]", "data3")
    assert count(page) == "20 of 501 rows"
    page.choose("#table [data-filter=epsilon]", "0.3")
    assert count(page) == "4 of 501 rows"
    assert set(column(page, CELLS, "mechanism")) == {"noisy_sgd"}
    assert set(column(page, CELLS, "epsilon\n(nominal)")) == {"0.3"}
    _, text = page.downloaded("#save-table")
    assert [(row["dataset"], row["epsilon"]) for row in rows_of(text)] == [("data3", "0.3")] * 4
    for name in ("mechanism", "dataset", "epsilon"):
        page.choose(f"#table [data-filter={name}]", "")
    page.type("#table input[type=search]", "DATA4 frank")
    assert count(page) == "20 of 501 rows"
    assert set(column(page, CELLS, "dataset")) == {"data4"}
    page.type("#table input[type=search]", " nothing-like-it")
    assert count(page) == "0 of 501 rows"


def test_the_downloaded_table_is_table_csv(page, study):
    name, text = page.downloaded("#save-table")
    assert name == "large-cells.csv"
    assert text == csv_text(study)


def test_a_row_opens_to_everything_known(page, study):
    page.click(f"{CELLS} .opener")
    assert page.run(f"document.querySelector('{CELLS} .opener').ariaExpanded") == "true"
    told = page.run(f"document.querySelector('{CELLS} .more-of').textContent")
    for name in ("cell", "accountant", "data_fingerprint", "bound_upper_id"):
        assert study[0][name] in told
    assert format_exact(study[0]["excess_risk_median"]) in told
    page.click(f"{CELLS} .opener")
    assert page.run(f"document.querySelector('{CELLS} .more-of')") is None


def figure(page: Chrome) -> list[dict[str, str]]:
    return rows_of(page.downloaded("#save-figure")[1])


def test_the_figure_follows_axis_setting_and_switch(page, study):
    by_cell = {row["cell"]: row for row in study}
    first = figure(page)
    assert page.run(f"document.querySelectorAll('{CURVE} .curve').length") == 5
    assert page.run(f"document.querySelectorAll('{CURVE} .dot').length") == 25 == len(first)
    for row in first:
        mine = by_cell[row["cells"]]
        assert row["value"] == format_exact(mine["excess_risk_median"])
        assert row["q95"] == format_exact(mine["excess_risk_q95"])
        assert (row["axis"], row["x"]) == ("epsilon", format_exact(mine["epsilon"]))
    page.choose("#axis", "n")
    along_n = figure(page)
    assert len(along_n) == 20
    assert {row["axis"] for row in along_n} == {"n"}
    assert {by_cell[row["cells"]]["epsilon"] for row in along_n} == {1.0}
    assert "delta changes as well" in page.run(
        "document.querySelector('#curves .caption').innerText"
    )
    page.choose("#curves [data-held=epsilon]", "10")
    assert {by_cell[row["cells"]]["epsilon"] for row in figure(page)} == {10.0}
    page.choose("#curves [data-held=epsilon]", "*")
    assert page.run(f"document.querySelectorAll('{CURVE} .curve').length") == 25
    page.choose("#curves [data-held=epsilon]", "10")
    page.click("#curves .risk [data-each='1']")
    each = figure(page)
    assert {row["quantity"] for row in each} == {"excess_risk_per_record"}
    for row in each:
        mine = by_cell[row["cells"]]
        assert row["value"] == format_exact(mine["excess_risk_per_record_median"])
        assert row["floor"] == format_exact(mine["floor_excess_risk_per_record"])
        for name, of in (("q05", "excess_risk_q05"), ("bound_upper", "bound_upper")):
            assert float(row[name]) == pytest.approx(mine[of] / mine["n"], rel=1e-12)
    # one switch for the page: ranking and slopes follow
    assert page.run("[...document.querySelectorAll('.risk [data-each=\"1\"]')]"
                    ".every((b) => b.ariaPressed === 'true')")  # fmt: skip
    page.choose("#source", "p3")
    assert {by_cell[row["cells"]]["dataset"] for row in figure(page)} == {"data3"}


def test_lines_and_curves_can_be_hidden(page):
    def seen(kind: str) -> int:
        return page.run(f"document.querySelectorAll('{CURVE} {kind}').length")

    assert [seen(kind) for kind in (".band", ".ref.floor", ".ref.upper", ".ref.lower")] == [
        5,
        1,
        1,
        1,
    ]
    for i, kind in enumerate((".band", ".ref.floor", ".ref.upper")):
        page.run(f"document.querySelectorAll('#curves .below .check input')[{i}].click()")
        assert seen(kind) == 0
    page.click("#curves .legend button")
    assert seen(".curve") == 4
    assert page.run("document.querySelector('#curves .legend button').ariaPressed") == "false"
    assert len(figure(page)) == 20


def test_hovering_tells_where_a_point_comes_from(page, study):
    place = page.run(
        f"""(() => {{ document.querySelector('#curves').scrollIntoView({{behavior: 'instant'}});
        const r = document.querySelectorAll('{CURVE} .dot')[7].getBoundingClientRect();
        return [r.left + r.width / 2, r.top + r.height / 2]; }})()"""
    )
    page.move(*place)
    tip = page.run("document.querySelector('#curves .tip').innerText")
    row = next(r for r in study if r["cell"] in tip)
    assert f"records/{row['cell']}.parquet" in tip
    for word in ("seed, version", "dperm 0.1.0", "analytic Gaussian", "200 x a sum over all",
                 number(row["excess_risk_median"], 5), row["mechanism"]):  # fmt: skip
        assert word in tip
    page.click_at(*place)
    pinned = page.run("document.querySelector('#pinned').innerText")
    assert row["cell"] in pinned
    assert html_study.WORDS in pinned
    assert row["overrides"] in pinned
    page.move(5, 5)
    assert page.run("document.querySelector('#curves .tip').hidden")
    assert row["cell"] in page.run("document.querySelector('#pinned').innerText")


def test_points_are_reached_by_keyboard(page):
    page.run(f"document.querySelector('{CURVE} .dot[tabindex=\"0\"]').focus()")
    label = "document.activeElement.getAttribute('aria-label')"
    first = page.run(label)
    assert first.startswith("noisy_gd, epsilon 0.1:")
    page.key("ArrowRight")
    assert page.run(label).startswith("noisy_gd, epsilon 0.3:")
    page.key("ArrowDown")
    assert page.run(label).startswith("noisy_sgd, epsilon 0.3:")
    assert not page.run("document.querySelector('#curves .tip').hidden")
    page.key("Enter")
    assert "noisy_sgd" in page.run("document.querySelector('#pinned').innerText")


def test_the_ranking_is_that_of_the_medians(page, study):
    n = page.run("document.querySelector('#ranking [data-held=n]').value")
    _, text = page.downloaded("#save-ranking")
    rows = rows_of(text)
    mine = [row for row in study if row["dataset"] == "data0" and str(row["n"]) == n]
    for epsilon in html_study.EPSILONS:
        ranked = sorted((row for row in mine if row["epsilon"] == epsilon),
                        key=lambda row: row["excess_risk_median"])  # fmt: skip
        told = sorted((row for row in rows if float(row["epsilon"]) == epsilon),
                      key=lambda row: int(row["rank"]))  # fmt: skip
        assert [row["cell"] for row in told] == [row["cell"] for row in ranked]
    assert page.run("document.querySelectorAll('#ranks td.best').length") == 5
    best = page.run("document.querySelector('#ranks td.best').textContent")
    assert best.startswith("#1")
    assert "not a release" in page.run("document.querySelector('#ranking').innerText")


def test_slopes_are_listed_and_switch(page, records):
    made = html_study.payload(records)
    _, text = page.downloaded("#save-slopes")
    rows = rows_of(text)
    fits = [c["fit"] for axis in made["axes"] for c in axis["curves"]]
    assert [row["slope"] for row in rows] == [format_exact(fit["slope"]) for fit in fits]
    assert [row["half_width_95"] for row in rows] == [format_exact(fit["half"]) for fit in fits]
    page.click("#slopes .risk [data-each='1']")
    _, text = page.downloaded("#save-slopes")
    each = [c["fit_each"] for axis in made["axes"] for c in axis["curves"]]
    assert [row["slope"] for row in rows_of(text)] == [format_exact(fit["slope"]) for fit in each]


def test_the_ledger_lists_every_release(page, records):
    text = page.run("document.querySelector('#ledger').innerText")
    assert "NOT FOR RELEASE" in text
    assert "all 300 releases" in text
    page.click("#ledger .opener")
    told = page.run("document.querySelector('#ledger .more-of').innerText")
    for word in ("was released 3 times", html_study.WORDS, "analytic Gaussian", "averaging"):
        assert word in told
    _, saved = page.downloaded("#save-ledger")
    rows = rows_of(saved)
    assert len(rows) == 500
    assert sum(int(row["trials"]) for row in rows) == 1500
    assert {row["events"] for row in rows} == {html_study.WORDS}
    assert "pure is not offered" in page.run("document.querySelector('#ledger').textContent")


def test_the_page_draws_the_panel_that_the_figure_draws(browser, experiment_page):
    """Points and lines as the model has them; the ends of the axis are those of matplotlib's."""
    made = html_study.embedded(experiment_page.read_text("utf-8"))
    panel = made["figures"][0]
    model = read_panel(panel)
    browser.view(1280, 900)
    browser.open(experiment_page)
    assert browser.run(f"document.querySelectorAll('{CURVE} .dot').length") == len(model.points)
    lines = browser.run(f"document.querySelectorAll('{CURVE} .ref').length")
    assert lines == len(model.lines) > 1
    low, high = browser.run(
        f"""(() => {{ const box = document.querySelector('{CURVE} clipPath rect');
        const top = Number(box.getAttribute('y')), tall = Number(box.getAttribute('height'));
        const height = (dot) => Number(dot.getAttribute('transform').match(/ ([-0-9.]+)\\)/)[1]);
        const share = [...document.querySelectorAll('{CURVE} .dot')].map((dot) =>
          1 - (height(dot) - top) / tall);
        return [Math.min(...share), Math.max(...share)]; }})()"""
    )
    ends = [math.log(limit) for limit in model.limits]
    for share, point in ((low, min), (high, max)):
        value = math.log(point(p.value for p in model.points))
        assert share == pytest.approx((value - ends[0]) / (ends[1] - ends[0]), abs=1e-3)


def read_panel(made: dict) -> Panel:
    """The panel behind its JSON."""
    names = {field.name for field in fields(Point)}
    curves = [
        ChartCurve(c["label"], tuple(Point(**{k: p[k] for k in names}) for p in c["points"]))
        for c in made["curves"]
    ]
    lines = [
        ReferenceLine(ln["kind"], "", tuple(ln["xs"]), tuple(ln["ys"])) for ln in made["lines"]
    ]
    return Panel("", Axis(**made["x"]), Axis(**made["y"]), tuple(curves), tuple(lines),
                 shows_all_lines=made["shows_all_lines"])  # fmt: skip


def test_an_experiment_shows_figures_verdicts_and_its_table(browser, experiment_page):
    browser.view(1280, 900)
    browser.open(experiment_page)
    sections = browser.run("[...document.querySelectorAll('main section')].map((s) => s.id)")
    assert sections[:3] == ["curves", "claims", "points"]
    _, text = browser.downloaded("#points .controls button")
    assert text == (experiment_page.parent / "table.csv").read_text()
    told = [(row["curve"], row["x"], row["value"]) for row in figure(browser)]
    assert told == [(row["curve"], row["x"], row["value"]) for row in rows_of(text)]
    assert "falls" in browser.run("document.querySelector('#claims').innerText")
    browser.click("#curves .risk [data-each='1']")
    first = figure(browser)[0]
    assert float(first["value"]) == pytest.approx(float(told[0][2]) / float(told[0][1]), rel=1e-12)
    assert (browser.complaints(), browser.requests()) == ([], [])


def test_hostile_names_are_text(browser, records, tmp_path):
    hostile = [{**row, "dataset": EVIL, "mechanism": EVIL, "reason": EVIL, "accountant": EVIL}
               for row in records[:15]]  # fmt: skip
    path = tmp_path / "evil.html"
    path.write_text(html_study.page(hostile, study=EVIL, argv=[EVIL]), "utf-8")
    browser.view(1280, 900)
    browser.open(path)
    assert browser.run("document.title").startswith("</script>")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.querySelector('h1').textContent") == EVIL
    assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_can_be_read(browser, large_page, width, dark):
    browser.view(width, 900, dark)
    browser.open(large_page)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(CONTRAST) == []
    unnamed = browser.run(
        "[...document.querySelectorAll('button,select,input,a')].filter((e) => !(e.ariaLabel ||"
        " e.textContent.trim() && e.tagName !== 'SELECT' || e.labels && e.labels.length)).length"
    )
    assert unnamed == 0
    ids = browser.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


# Texts whose colour differs too little from what is behind them (WCAG AA: 4.5).
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { while (e) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; e = e.parentElement; } return [255, 255, 255]; };
  const found = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.closest('svg, script, style, noscript, .skip')) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(e.tagName + '.' + e.className);
  }
  return [...found];
})()"""
