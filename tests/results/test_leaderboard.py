"""The leaderboard's lines, ranks, cards and page, from rows alone."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest
import yaml

from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard.entries import COLUMNS, list_entries
from dperm_cli.results.leaderboard.mean_ranks import rank_entries, write_ranks
from dperm_cli.results.leaderboard.method_cards import list_cards
from dperm_cli.results.leaderboard.peer_table import ABSENT, FILE, NUMBERS, TEXTS, write_peers
from dperm_cli.results.leaderboard.problem_winners import (
    list_winners,
    tell_winners,
    write_winners,
)
from dperm_cli.results.leaderboard.reference import read_reference
from dperm_cli.results.leaderboard.site import SCRIPTS, make_published, make_site
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


def test_an_audit_of_a_peer_becomes_a_line():
    audit = {"method": "canaries", "claim_epsilon": 1.0, "claim_delta": 1e-6, "runs": 16,
             "relation": "replace_one", "records": "numeric:p=2", "verdict": "not shown",
             "bound": 0.25, "refutable_from": 1.262}  # fmt: skip
    line = kept_audits.make_outside_line("near", audit)
    assert list(line) == list(kept_audits.COLUMNS)
    assert (line["claim"], line["delta"], line["bound"]) == ("1", "1e-06", "0.25")
    assert line["records"] == "logistic, numeric:p=2, by canaries"
    assert line["refutable_from"] == "1.26"
    blind = kept_audits.make_outside_line("near", audit | {"refutable_from": math.inf})
    assert blind["refutable_from"] == ""


def test_an_audit_of_no_number_is_kept_as_nan():
    audit = {"claim_epsilon": None, "claim_delta": 1e-6, "relation": "replace_one", "records": "r",
             "verdict": "not a function of its claim", "bound": 0.0, "runs": 20,
             "refutable_from": None}  # fmt: skip
    line = kept_audits.make_outside_line("mine", audit)
    assert (line["claim"], line["refutable_from"]) == ("nan", "")
    assert kept_audits.merge([], [line]) == [line]


def test_a_place_counts_who_is_better_on_the_problem():
    entries = list_entries([], ROWS)
    assert [one["place"] for one in entries] == [1, 2, None, 1, None]


def test_who_refuses_is_last_and_who_never_ran_is_not_ranked():
    [group] = rank_entries(list_entries([], ROWS))
    assert (group.level, group.left_out) == ("overall", ())
    assert [(one.name, one.mean_rank, one.refusals) for one in group.ranking.names] == [
        ("far", 1.5, 0), ("near", 1.5, 1)]  # fmt: skip


def make_study():
    """Two data sets at three epsilons: a is always first, c is asked on one data set alone."""
    rows = []
    for dataset in ("d", "e"):
        for epsilon in (1.0, 2.0, 3.0):
            risks = {"a": 0.1, "b": 0.2, **({"c": 0.3} if dataset == "d" else {})}
            rows += [make_row(name, risk, dataset=dataset, epsilon=epsilon)
                     for name, risk in risks.items()]  # fmt: skip
    return list_entries([], rows)


def test_ranks_are_overall_and_of_each_data_set():
    groups = rank_entries(make_study())
    assert [(one.level, one.title) for one in groups] == [
        ("overall", "all problems"), ("data set", "d"), ("data set", "e")]  # fmt: skip
    whole, first, second = groups
    assert [one.name for one in whole.ranking.names] == ["a", "b"]
    assert whole.left_out == ("c",)
    assert "Left out, as not asked on every problem: c" in whole.words
    assert [one.mean_rank for one in first.ranking.names] == [1.0, 2.0, 3.0]
    assert first.left_out == ()
    # q of three names over three problems, and ranks 1 and 3 are as far apart as ranks can be
    assert first.ranking.critical_difference == pytest.approx(2.343 * math.sqrt(2.0 / 3.0), 1e-3)
    assert first.letters == {"a": "a", "b": "ab", "c": "b"}
    assert second.letters == {"a": "a", "b": "a"}


def test_problems_at_one_epsilon_are_no_group_and_one_problem_has_no_difference():
    [group] = rank_entries(list_entries([], [make_row("a", 0.1), make_row("b", 0.2)]))
    assert group.ranking.critical_difference is None
    assert group.letters == {"a": "", "b": ""}
    assert "chance" in group.words
    assert rank_entries(list_entries([], [make_row("a", 0.1)])) == []


def test_kinds_of_problems_are_groups_where_a_data_set_has_several():
    rows = [make_row(name, risk, loss=loss, epsilon=epsilon)
            for loss in ("logistic", "squared") for epsilon in (1.0, 2.0)
            for name, risk in (("a", 0.1), ("b", 0.2))]  # fmt: skip
    groups = rank_entries(list_entries([], rows))
    assert [one.level for one in groups] == ["overall", "problem", "problem"]
    assert groups[1].title == "d, logistic, l2_ball of radius 1, replace_one, pure"


def test_the_table_of_ranks_has_the_difference_beside_each():
    lines = list(csv.DictReader(write_ranks(rank_entries(make_study())).splitlines()))
    assert len(lines) == 2 + 3 + 2
    assert {line["level"] for line in lines} == {"overall", "data set"}
    assert all(float(line["critical_difference"]) > 0.0 for line in lines)
    assert lines[0]["mean_rank"] == "1.0"


def test_the_first_of_each_problem_and_how_far_the_default_is():
    rows = [make_row("far", 0.1), make_row("near", 0.3)]
    entries = list_entries([], rows)
    entries[1] |= {"method": "auto", "origin": "dperm"}
    [found] = list_winners(entries)
    assert (found["first"], found["peer"], found["default_place"]) == ("far", "far", 2)
    assert found["ratio"] == pytest.approx(3.0)
    assert tell_winners([found]).endswith("is first on 0 and a method of others on 1.")
    assert write_winners([found]).count("\n") == 2
    assert list_winners(list_entries([], [make_row("near", None, "unsupported")])) == []


def test_a_card_says_whose_guarantee_it_is_and_what_an_audit_found():
    peers = {"far": {"title": "a method", "source": "a paper", "losses": ["logistic"]}}
    rows = [*ROWS, make_row("outer(inner)", 0.2)]
    cards = {one["method"]: one for one in list_cards(list_entries([], rows), peers, AUDITS)}
    far, near = cards["far"], cards["near"]
    assert far["facts"]["who vouches"].startswith("its authors")
    assert far["refuted"] == "norm 100: violated"
    assert far["audited"].startswith("1 audits, 1 of them against the claim")
    assert far["audits"] == [["1", "", "", "norm 100", "violated", "2.7", "72000", ""]]
    assert near["facts"]["who vouches"].startswith("dperm")
    assert near["facts"]["proof"] == "docs/proofs/near.md"
    assert near["facts"]["results on"] == "1 of 2 problems that it was asked"
    assert near["audited"] == "No audit of this method is kept."
    assert "curator" in near["facts"]["trust model"]
    assert cards["outer(inner)"]["facts"]["proof"] == "docs/proofs/outer.md, docs/proofs/inner.md"


def test_the_folder_has_the_page_and_its_tables(tmp_path):
    (tmp_path / FILE).write_text(write_peers(ROWS))
    made = make_site(tmp_path)
    assert set(made) == {"index.html", "table.csv", "winners.csv", "ranks.csv", "audits.csv"}
    lines = list(csv.DictReader(made["table.csv"].decode().splitlines()))
    assert [line["record"] for line in lines[:2]] == ["near-key", "far-key"]
    assert {line["file"] for line in lines} == {FILE}
    assert make_site(tmp_path) == made


def test_the_published_page_has_the_lines_that_come_with_dperm():
    """Each with the command that makes it again, and without a file that is not beside it."""
    made = make_published({"text": "all", "size": "full"})
    lines = list(csv.DictReader(made["table.csv"].decode().splitlines()))
    kept = read_reference()
    assert [line["record"] for line in lines] == [one["record"] for one in kept]
    assert {line["file"] for line in lines} == {""}
    assert [float(line["excess_risk"]) for line in lines if line["excess_risk"]] == [
        one["excess_risk"] for one in kept if one["excess_risk"] is not None
    ]
    assert sum(bool(line["command"]) for line in lines) > 0.9 * len(lines)


def test_the_page_loads_nothing_and_no_text_runs():
    entries = list_entries([], [make_row("<script>alert(1)</script>", 0.1)])
    made = {"title": "<b>", "lede": "", "rows": page_data.pack_rows(entries), "columns": COLUMNS,
            "shown": [], "details": [], "argv": [], "winners": [], "winning": "", "ranks": [],
            "cards": [], "enter": [], "tables": {}}  # fmt: skip
    text = html_page.page(made, "leaderboard.html", SCRIPTS).decode()
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "default-src 'none'" in text


def test_what_the_readme_says_of_risks_is_in_the_kept_results():
    folder = Path(find_shipped("experiments")) / "leaderboard"
    said = re.findall(r"`(\w+)` (0\.\d+)", (folder / "README.md").read_text())
    kept = {(one["method"], f"{one['excess_risk']:.3g}") for one in read_reference()
            if one["status"] == "ok"}  # fmt: skip
    assert len(said) >= 8
    assert set(said) <= kept


def test_what_the_readme_says_of_who_is_first():
    """Counts, and every problem on which a method of others is first."""
    text = (Path(find_shipped("experiments")) / "leaderboard" / "README.md").read_text()
    plain = " ".join(text.split())
    winners = list_winners(read_reference())
    near = sum(one["ratio"] is None or one["ratio"] <= 1.5 for one in winners)
    others = [one for one in winners if one["first"] == one["peer"]]
    first = sum(one["first"] == "auto" for one in winners)
    assert f"Of {len(winners)} problems, dperm's default, `auto`, is first on {first}" in plain
    assert f"within 1.5 times the first on {near}. A method of others is first on" in plain
    assert f"first on {len(others)}, all at ε 0.1 or 0.3" in plain
    assert {one["epsilon"] for one in others} == {0.1, 0.3}
    table = re.findall(r"\| (0\.[13]) \| `(\w+)` ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text)
    said = [(float(epsilon), name, *map(float, risks)) for epsilon, name, *risks in table]
    columns = ("first_risk", "default_risk", "floor")
    kept = [(one["epsilon"], one["first"], *(float(f"{one[c]:.3g}") for c in columns))
            for one in others]  # fmt: skip
    assert sorted(said) == sorted(kept)
    from_one = [one for one in winners if one["epsilon"] >= 1 and one["peer"] is not None]
    assert len(from_one) > 20
    assert all(one["default_risk"] <= one["peer_risk"] for one in from_one)
    larger = {"cal_housing", "yearpredictionmsd_10k", "a9a"}
    many = [one for one in winners if one["dataset"] in larger and one["peer"] is not None]
    assert {one["dataset"] for one in many} == larger
    assert all(one["default_risk"] <= one["peer_risk"] for one in many)


def test_how_far_the_default_is_from_the_best_at_full_size():
    """Of the README: medians of the kept table, on the larger data and on the L1 ball."""
    folder = Path(find_shipped("experiments")) / "leaderboard"
    text = " ".join((folder / "README.md").read_text().split())
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for line in csv.DictReader((folder / "table.csv").read_text().splitlines()):
        risk = float(line["excess_risk_per_record_median"])
        groups.setdefault((line["part"], line["epsilon"]), {})[line["mechanism"]] = risk
    claims = yaml.safe_load((folder / "claims.yaml").read_text())["claims"]
    [larger] = [claim["part"] for claim in claims if claim["id"] == "larger_first"]
    asked = {key: risks for key, risks in groups.items() if key[0] in larger}
    ratios = {key: risks["auto"] / min(risks.values()) for key, risks in asked.items()}
    far = {key: ratio for key, ratio in ratios.items() if ratio > 1.5}
    assert {part for part, _ in far} == {"cal_housing", "cal_housing_free"}
    assert f"up to {max(far.values()):.3g} times" in text
    l1 = groups["logistic_l1", "10.0"]
    assert f"it has {l1['auto'] / l1['noisy_gd']:.3g} times the risk of `noisy_gd`" in text
