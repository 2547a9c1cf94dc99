"""``docs/glossary.md`` explains the words of the code, each once and briefly."""

from __future__ import annotations

import re

import pytest

from tests.structure.drawings import PACKAGE, ROOT

PAGE = ROOT / "docs" / "glossary.md"
WORDS = """
accountant, adversary, audit, axis, barrier, baseline, batch, budget, calibration, cell,
certificate, channel, clipping, delta, diameter, dominating pair, dual point, duality gap, epsilon,
event, excess risk, fingerprint, gate, gradient gap, grid, group privacy, guarantee, kernel, ledger,
linear oracle, Lipschitz constant, loss, margin, mechanism, meter, minimiser, noise scale, optimum,
oscillation, partition, plan, post-processing, predicted risk, privacy loss, private selection,
projection, radius, record, relation, release, ridge, sampler, seed, sensitivity, set, settings,
smoothness, spec, stream, study, tape, trial, trust, view
"""


def list_words() -> list[str]:
    """The words that the page explains, and no others."""
    return re.split(r",\s+", WORDS.strip())


def read_entries(page: str) -> list[tuple[str, str]]:
    """The words of a page and what it says of them, in its order."""
    found = re.findall(r"^- \*\*(.+?)\*\*: (.+?)(?=^- |\Z)", page, re.MULTILINE | re.DOTALL)
    return [(word, " ".join(text.split())) for word, text in found]


def count_sentences(text: str) -> int:
    """How many sentences a text has; each ends in a full stop, and begins with a capital."""
    return len(re.findall(r"\.(?= [A-Z]|$)", text))


@pytest.fixture(scope="module")
def entries() -> list[tuple[str, str]]:
    return read_entries(PAGE.read_text("utf-8"))


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(path.read_text("utf-8") for path in (ROOT / PACKAGE).rglob("*.py")).lower()


def test_every_word_stands_there_once(entries):
    assert sorted(word for word, _ in entries) == sorted(list_words())


def test_words_are_in_order(entries):
    words = [word.casefold() for word, _ in entries]
    assert words == sorted(words)


def test_entries_are_one_or_two_sentences(entries):
    assert {word: count_sentences(text) for word, text in entries if _is_long(text)} == {}


def test_the_code_uses_every_word(entries, code):
    assert [word for word, text in entries if not _is_used(word, text, code)] == []


def test_lines_are_short():
    lines = PAGE.read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > 120] == []


def test_faults_are_seen():
    page = "- **a**: One. Two, as i.e. here.\n- **b**: One.\n  Two. Three.\n- **c**: no end\n"
    found = read_entries(page)
    assert [word for word, _ in found] == ["a", "b", "c"]
    assert [_is_long(text) for _, text in found] == [False, True, True]
    assert not _is_used("warp core", "See `nacelle`.", "def engage(): ...")
    assert _is_used("warp core", "See `warp`.", "def warp(): ...")


def _is_long(text: str) -> bool:
    return not (text.endswith(".") and 1 <= count_sentences(text) <= 2)


def _is_used(word: str, text: str, code: str) -> bool:
    """Whether the code has the word, or a name in backticks that the entry gives it."""
    spelled = [re.sub(r"[ -]", "[ _-]", word), *re.findall(r"`(\w+)`", text)]
    return any(re.search(rf"(?<![a-z]){name.lower()}", code) for name in spelled)
