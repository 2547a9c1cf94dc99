"""Words of the glossary lead to it where a page first has them."""

from __future__ import annotations

import pytest

from website import build, glossary_links

TERMS = ["loss", "privacy loss", "release", "event", "set"]
TO = "../glossary.md#term"


def link(text):
    return glossary_links.link_terms(text, "proofs/x.md", TERMS)


def test_the_first_occurrence_is_linked_and_no_other():
    assert link("A loss, then a loss.") == f"A [loss]({TO}-loss){{.term}}, then a loss."
    assert link("Events.") == f"[Events]({TO}-event){{.term}}."


def test_of_two_words_the_longer_counts():
    found = link("The privacy loss of an event.")
    assert found == (
        f"The [privacy loss]({TO}-privacy-loss){{.term}} of an [event]({TO}-event){{.term}}."
    )


def test_a_word_of_other_meanings_is_linked_where_it_has_the_glossary_s():
    assert link("A data set, a test set, set out.") == "A data set, a test set, set out."
    assert link("A data set and a convex set.") == (
        f"A data set and a convex [set]({TO}-set){{.term}}."
    )


@pytest.mark.parametrize("text", [
    "# A loss\n", "| loss | 1 |\n", "`loss`", "```sh\nloss\n```\n", "$loss$", "    loss\n",
    "[a loss](x.md)", "[JT13] release", "loss=logistic", "lossless", "`mine.py`'s eventful",
    "<a href='release'>x</a>", "file.loss.py",
])  # fmt: skip
def test_nothing_else_is_touched(text):
    assert link(text) == text


def test_every_word_has_a_place_on_the_glossary_s_page():
    text = build.GLOSSARY.read_text("utf-8")
    terms = glossary_links.list_terms(text)
    assert len(terms) > 50
    marked = glossary_links.add_anchors(text)
    for term in terms:
        assert marked.count(f"**{term}**{{#{glossary_links.make_anchor(term)}}}:") == 1
    assert glossary_links.link_terms(text, "glossary.md", terms) == text
