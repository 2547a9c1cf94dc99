"""Forecasts that were filed before the runs that judged them, and what docs/plan.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import judge_plan

DIGESTS = {"1": "077ff5cd7d2dbbb5b3a63295c5028bb0c8ead98ceaceca9af5d888e532068042",
           "2": "64b8de4a30d78a08a2514c9dfa73dbf68b645f928652ae1c459be1de63c7ead3"}  # fmt: skip
FILED, JUDGED = {"1": 108, "2": 120}, {"1": 108, "2": 112}
PAGE = Path(__file__).parents[2] / "docs" / "plan.md"
ROUNDS = sorted(DIGESTS)


def read_parts(number):
    rows = judge_plan._read(number, "judgement.csv")
    names = judge_plan.PUBLISHED[number]
    published = [row for row in rows if row["problem"] in names]
    generated = [row for row in rows if row["problem"] not in names]
    return {"generated": generated, "published": published, "all": rows}


@pytest.mark.parametrize("number", ROUNDS)
def test_the_filed_predictions_are_those_that_were_judged(number):
    assert judge_plan._hash_predictions(number) == DIGESTS[number]
    filed, judged = (
        judge_plan._read(number, f"{name}.csv") for name in ("predictions", "judgement")
    )
    assert len(filed) == FILED[number]
    filed = [row for row in filed if number == "1" or judge_plan.can_be_judged(row)]
    assert len(filed) == JUDGED[number]
    assert [{key: row[key] for key in one} for row, one in zip(judged, filed, strict=True)] == filed
    assert all(float(row["measured"]) > 0.0 for row in judged)
    cells = {tuple(row[key] for key in judge_plan.KEYS[:4]) for row in judged}
    assert len(cells) == JUDGED[number]
    assert {row["problem"] for row in judged} == set(judge_plan.list_problems(number))


def share(told, words):
    return float(re.findall(rf"{words} ([0-9.]+)", told)[0])


def measure_widths(rows):
    return [float(row["facts_high"]) / float(row["facts_low"]) for row in rows]


def test_shares_with_public_records_are_those_aimed_at():
    rows = [row for number in ROUNDS for row in read_parts(number)["all"]]
    told = judge_plan.tell(rows, "like")
    assert share(told, "within 1.5x") >= 0.8
    assert share(told, "within 2x") >= 0.95
    assert share(told, "band holds") >= 0.9


def test_ranges_from_facts_alone_hold_the_medians():
    """In the second round: the ranges of the first did not, and were made anew."""
    assert share(judge_plan.tell(read_parts("2")["all"], "facts"), "band holds") >= 0.9


def test_ranges_from_facts_alone_are_narrow_in_half_of_the_forecasts():
    """Those at radius 1. A forecast below what can be judged counts with the others here."""
    rows = judge_plan._read("2", "predictions.csv")
    narrow = [width <= 6.0 for width in measure_widths(rows)]
    assert sum(narrow) >= 0.5 * len(rows)
    assert narrow == [row["radius"] == "1.0" for row in rows]


@pytest.mark.parametrize("number", ROUNDS)
def test_the_page_has_the_shares(number):
    text = PAGE.read_text()
    assert f"`{DIGESTS[number][:8]}...{DIGESTS[number][-4:]}`" in text
    for name, rows in read_parts(number).items():
        for way, words in (("like", "with `like=`"), ("facts", "from n and p alone")):
            (line,) = re.findall(rf"\| {number} \| {name}, {re.escape(words)} \|(.+)\|", text)
            count, *told = (float(one) for one in line.split("|"))
            found = [float(one) for one in re.findall(r"[ ]([0-9]+\.[0-9]+)\b(?!x)",
                                                      judge_plan.tell(rows, way))]  # fmt: skip
            assert count == len(rows)
            assert told == found
