"""The leaderboard's lines, ranks, cards and page, from rows alone."""

from __future__ import annotations

import re

from dperm_cli.results.leaderboard.entries import COLUMNS, list_entries
from dperm_cli.results.leaderboard.peer_table import ABSENT, NUMBERS, TEXTS
from dperm_cli.results.leaderboard.site import SCRIPTS, list_cards, rank_groups
from dperm_cli.results.page import html_page, page_data
from tests import kept_audits


def make_row(method, risk, status="ok", **others):
    row = dict.fromkeys((*TEXTS, *NUMBERS))
    row |= {"key": f"{method}-key", "mechanism": method, "status": status, "dataset": "d",
            "loss": "logistic", "constraint": "l2_ball", "constraint_radius": 1.0,
            "relation": "replace_one", "guarantee": "pure", "epsilon": 1.0, "delta": 0.0, "n": 10,
            "origin": "kept", "excess_risk_per_record_median": risk,
            "floor_excess_risk_per_record": 0.5}  # fmt: skip
    if risk is not None:
        row |= {"excess_risk_q05": 5.0 * risk, "excess_risk_q95": 20.0 * risk}
    return row | others


ROWS = [
    make_row("far", 0.4), make_row("near", 0.1), make_row("not_here", None, ABSENT),
    make_row("far", 0.2, epsilon=3.0), make_row("near", None, "unsupported", epsilon=3.0),
]  # fmt: skip
AUDITS = [{"method": "far", "claim": "1", "records": "norm 100", "verdict": "violated",
           "bound": "2.7", "runs": "72000"}]  # fmt: skip


def test_lines_stand_by_problem_the_best_first():
    entries = list_entries([], ROWS, AUDITS)
    assert [one["method"] for one in entries] == ["near", "far", "not_here", "far", "near"]
    near, far = entries[:2]
    assert near["floor_share"] == 0.8
    assert (near["low"], near["high"]) == (0.05, 0.2)
    assert far["epsilon_audited"] == 2.7
    assert near["epsilon_audited"] is None
    assert all(list(one) == list(COLUMNS) for one in entries)


def test_an_audit_is_of_its_relation_and_its_kind_of_delta():
    audit = AUDITS[0] | {"method": "near", "bound": "0.8"}
    entries = {}
    for relation, delta in (("replace_one", "0"), ("add_remove", "0"), ("replace_one", "1e-6"),
                            ("", "")):  # fmt: skip
        found = list_entries([], ROWS, [audit | {"relation": relation, "delta": delta}])
        entries[relation, delta] = found[0]["epsilon_audited"]
    assert list(entries.values()) == [0.8, None, None, 0.8]


def test_lines_of_audits_are_kept_by_what_they_are_about():
    row = {"mechanism": "near", "epsilon": 1.0, "delta": 0.0, "relation": "add_remove",
           "claim": 1.0, "bound": 0.81234, "runs": 100}  # fmt: skip
    line = kept_audits.make_line(row)
    assert (line["bound"], line["verdict"]) == ("0.812", "not shown")
    assert kept_audits.make_line(row | {"bound": 1.1})["verdict"] == "violated"
    later = line | {"bound": "0.9"}
    found = kept_audits.merge([AUDITS[0], line], [later, line | {"claim": "10"}])
    assert [(one["method"], one["claim"], one["bound"]) for one in found] == [
        ("far", "1", "2.7"), ("near", "1", "0.9"), ("near", "10", "0.812")]  # fmt: skip
    kept = kept_audits.read_kept()
    assert kept_audits.merge(kept, []) == kept
    assert {one["relation"] for one in kept} == {"", "add_remove", "replace_one"}


def test_who_refuses_is_last_and_who_never_ran_is_not_ranked():
    [group] = rank_groups(list_entries([], ROWS))
    assert [(one["name"], one["mean_rank"], one["refusals"]) for one in group["names"]] == [
        ("far", 1.5, 0), ("near", 1.5, 1)]  # fmt: skip


def test_a_card_says_whose_guarantee_it_is_and_what_an_audit_found():
    peers = {"far": {"title": "a method", "source": "a paper", "losses": ["logistic"]}}
    cards = {one["method"]: one for one in list_cards(list_entries([], ROWS), peers, AUDITS)}
    assert cards["far"]["facts"]["trust"].startswith("as its authors state")
    assert cards["far"]["refuted"] == "norm 100: violated"
    assert cards["near"]["facts"]["trust"] == "dperm's accountant"


def test_the_page_loads_nothing_and_no_text_runs():
    entries = list_entries([], [make_row("<script>alert(1)</script>", 0.1)])
    made = {"title": "<b>", "lede": "", "rows": page_data.pack_rows(entries), "columns": COLUMNS,
            "shown": [], "details": [], "ranks": [], "cards": [], "enter": []}  # fmt: skip
    text = html_page.page(made, "leaderboard.html", SCRIPTS).decode()
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "default-src 'none'" in text
