"""The page of all claims, on verdicts that are known."""

from __future__ import annotations

import pytest

from dperm_cli.results.claims.claims import Finding, Verdict, parse
from dperm_cli.results.claims.claims_page import Entry, describe_expectation, page, verdict_record

CLAIMS = parse([
    {"id": "falls", "text": "it falls", "theorem": "Thm 1", "kind": "slope", "axis": "n",
     "expect": -1, "sizes": ["full"]},
    {"id": "order", "text": "a | b <c>", "theorem": "Thm 2", "kind": "order",
     "against": {"mechanism": "b_c"}, "expected": "fails", "reason": "the other *is* better"},
])  # fmt: skip


def verdicts(claims=CLAIMS):
    found = Finding("noisy_gd", True, "slope -0.98 +- 0.05 on 6 points")
    return (
        Verdict(claims[0], "confirmed", (found,)),
        Verdict(
            claims[1], "refuted", (Finding("", False, "3 against 2"),), "does not hold, as filed"
        ),
    )


def entry(sizes, claims=CLAIMS):
    return Entry("tiny", "[X15]", "a text", claims, sizes)


def test_verdicts_with_what_was_measured():
    text = page([entry({"full": verdict_record(verdicts(), "1.0")})])
    assert "| [tiny](#tiny) | 2 | not run here | 1 confirmed; 1 refuted, as filed |" in text
    assert "## tiny\n\n[X15]. a text.\n" in text
    assert ("| `falls`: it falls [Thm 1] | slope -1 ± 0.15 in n | full | confirmed "
            "| noisy\\_gd: slope -0.98 +- 0.05 on 6 points (holds) |") in text  # fmt: skip
    assert "| `order`: a \\| b &lt;c> [Thm 2] | at most that of b\\_c (*expected to fail*) " in text
    assert "|  |  | full | refuted, as filed | 3 against 2 (does not) |" in text
    assert "- `order` is expected to fail: the other \\*is\\* better\n" in text


def test_sizes_that_were_not_run_say_so_and_sizes_of_no_claim_are_left_out():
    text = page([entry({})])
    assert text.count("| falls") == 0
    assert text.count("| small | not run here |  |") == 1
    assert text.count("| full | not run here |  |") == 2


def test_a_claim_that_was_edited_after_its_verdict_has_none():
    sizes = {"full": verdict_record(verdicts(), "1.0")}
    stricter = parse([{"id": "falls", "text": "it falls", "theorem": "Thm 1", "kind": "slope",
                       "axis": "n", "expect": -2, "sizes": ["full"]}])  # fmt: skip
    text = page([entry(sizes, stricter)])
    assert "| full | changed since |  |" in text
    assert "1 changed since" in text
    # another wording is the same claim
    reworded = parse([{"id": "falls", "text": "down", "theorem": "Thm 9", "kind": "slope",
                       "axis": "n", "expect": -1, "sizes": ["full"]}])  # fmt: skip
    assert "| full | confirmed |" in page([entry(sizes, reworded)])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "slope", "axis": "p", "expect": 0.2, "sense": "at_most"},
         "slope at most 0.2 ± 0.15 in p"),
        ({"kind": "ratio", "against": {"mechanism": ["a", "b"]}, "best": "mechanism", "expect": 2,
          "sense": "at_most"}, "ratio at most 2 to the best of a, b"),
        ({"kind": "ratio", "against": {"mechanism": "a"}, "expect": 2, "tolerance": 0.1},
         "ratio 2 to a (tolerance 0.1 of what is expected)"),
        ({"kind": "order", "against": {"mechanism": "a"}, "tolerance": 0.1},
         "at most that of a (up to a factor 1 + 0.1)"),
        ({"kind": "below_bound", "bound": "upper"}, "at most upper"),
        ({"kind": "above_bound", "bound": "lower"}, "at least lower"),
        ({"kind": "below_floor"}, "at most the data-free floor"),
        ({"kind": "below_floor", "tolerance": 0.05},
         "at most the data-free floor (up to a factor 1 + 0.05)"),
        ({"kind": "value", "expect": 3, "tolerance": 0}, "3"),
        ({"kind": "value", "expect": 3}, "3 (tolerance 0.001 of what is expected)"),
        ({"kind": "value", "expect": 0}, "0 (tolerance 0.001)"),
        ({"kind": "collapse", "axis": "n", "expect": -0.5},
         "one line of slope -0.5 in n, within 0.2"),
        ({"kind": "value", "values": [{"at": {}, "expect": 1}], "tolerance": 0},
         "the values of 1 places"),
    ],
)  # fmt: skip
def test_expectations_in_words(fields, said):
    (claim,) = parse([{"id": "c", "text": "t", "theorem": "x", **fields}])
    assert describe_expectation(claim) == said


def test_the_checklist_counts_states_and_dates():
    filed = parse([
        {"id": "old", "text": "t", "theorem": "x", "kind": "below_floor", "known": "pilot",
         "filed": {"date": "2026-11-21", "commit": "abcdef0"}, "parameters": "theorem"},
        {"id": "again", "text": "t", "theorem": "x", "kind": "below_floor", "refiled": True,
         "filed": {"date": "2026-11-22", "commit": "abcdef1"}},
    ])  # fmt: skip
    kept = {"full": verdict_record((Verdict(filed[0], "undecided"),), "1.0")}
    text = page([entry(kept, filed)])
    assert "| full size | 2 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | 0 |" in text
    assert "- 2 claims. Filed: 0 before any run, 1 after a pilot, 1 with a history" in text
    assert "- 1 are about a theorem and run at its parameters, or are refused; 1 are about" in text
    assert "- On 2026-11-22 (1): tiny `again`." in text
    assert text.index("## Checklist") < text.index("## tiny")
