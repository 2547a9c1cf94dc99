"""Forecasts that were filed before the runs that judged them, and what docs/plan.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import judge_plan

DIGESTS = {"1": "077ff5cd7d2dbbb5b3a63295c5028bb0c8ead98ceaceca9af5d888e532068042",
           "2": "219938fafc42166901f2613b769146199a994cd42f2f06602067b50a364f71b5"}  # fmt: skip
CELLS = {"1": 108, "2": 112}
PAGE = Path(__file__).parents[2] / "docs" / "plan.md"
ROUNDS = ["1"]  # judged


def read_parts(number):
    rows = judge_plan._read(number, "judgement.csv")
    names = judge_plan.PUBLISHED[number]
    published = [row for row in rows if row["problem"] in names]
    generated = [row for row in rows if row["problem"] not in names]
    return {"generated": generated, "published": published, "all": rows}


@pytest.mark.parametrize("number", ROUNDS)
def test_the_filed_predictions_are_those_that_were_judged(number):
    assert judge_plan._hash_predictions(number) == DIGESTS[number]
    predicted, judged = (
        judge_plan._read(number, f"{name}.csv") for name in ("predictions", "judgement")
    )
    assert len(predicted) == CELLS[number]
    assert [{key: row[key] for key in one} for row, one in zip(judged, predicted, strict=True)] == (
        predicted
    )
    assert all(float(row["measured"]) > 0.0 for row in judged)
    cells = {tuple(row[key] for key in judge_plan.KEYS[:4]) for row in judged}
    assert len(cells) == CELLS[number]
    assert {row["problem"] for row in judged} == set(judge_plan.list_problems(number))


def share(told, words):
    return float(re.findall(rf"{words} ([0-9.]+)", told)[0])


@pytest.mark.parametrize("number", ROUNDS)
def test_shares_with_public_records_are_those_aimed_at(number):
    told = judge_plan.tell(read_parts(number)["all"], "like")
    assert share(told, "within 1.5x") >= 0.8
    assert share(told, "within 2x") >= 0.95
    assert share(told, "band holds") >= 0.9


@pytest.mark.xfail(strict=True, reason="issue 20: .83 of .90, and .34 of .5, from n and p alone")
@pytest.mark.parametrize(("words", "aim"), [("band holds", 0.9), ("at most 6 in", 0.5)])
def test_shares_from_facts_alone(words, aim):
    assert share(judge_plan.tell(read_parts("1")["all"], "facts"), words) >= aim


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


def test_the_second_round_is_filed():
    rows = judge_plan._read("2", "predictions.csv")
    assert len(rows) == CELLS["2"]
    assert judge_plan._hash_predictions("2") == DIGESTS["2"]
    narrow = [row for row in rows if row["radius"] == "1.0"]
    assert max(float(row["facts_high"]) / float(row["facts_low"]) for row in narrow) <= 6.0
