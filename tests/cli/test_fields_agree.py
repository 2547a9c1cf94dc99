"""Help, completion, pages and error lines say the same of a field: one declaration is behind them.

Only what a user can type is used here: ``dperm list``, ``dperm completion``, ``dperm run``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GROUPS = ("dataset", "loss", "constraint", "privacy", "mechanism", "sampler", "kernel")
# Fields that take words: what else is typed, the key, and whether numbers are taken as well
WORDED = [
    ("mechanism=noisy_sgd", "mechanism.sampling", False),
    ("mechanism=noisy_sgd", "mechanism.learning_rate", False),
    ("mechanism=noisy_sgd", "mechanism.output", False),
    ("mechanism=noisy_gd", "mechanism.averaging", False),
    ("mechanism=frank_wolfe", "mechanism.oracle", False),
    ("mechanism=objective_perturbation", "mechanism.noise", False),
    ("dataset=breast_cancer", "dataset.rows", False),
    ("dataset=breast_cancer", "dataset.centred", False),
    ("privacy=auto", "privacy.relation", False),
    ("mechanism=kernel_interactive", "mechanism.calibration", False),
    ("mechanism=frank_wolfe", "mechanism.steps", True),
]
# The same of the keys without a group
TOP_LEVEL = ["calibration", "noise", "format", "backend", "on_error"]
# Numbers: what else is typed, the key, values just inside and just outside of the range
NUMBERS = [
    ("mechanism=noisy_gd", "mechanism.steps", "1", "0"),
    ("mechanism=noisy_gd", "mechanism.steps", "10000000", "10000001"),
    ("mechanism=noisy_gd", "mechanism.momentum", "0", "1"),
    ("constraint=l2_ball", "constraint.radius", "1e-3", "0"),
    ("dataset=breast_cancer", "dataset.test_fraction", "0", "1"),
    ("mechanism=high_probability", "mechanism.selection", "0.999", "1"),
]


@pytest.fixture
def offered(dperm):
    """The words that completion offers behind a key, without the key."""

    def take(choice: str, key: str) -> set[str]:
        lines = dperm("completion", "--words", "run", choice, "--", f"{key}=").out.split()
        return {line.partition("=")[2] for line in lines}

    return take


@pytest.fixture
def listed(dperm):
    """What ``dperm list`` says of the keys of one choice: default and meaning by key."""

    def take(group: str, name: str) -> dict[str, str]:
        keys: dict[str, str] = {}
        inside = False
        for line in dperm("list", group).out.splitlines():
            head = re.match(r"  (\S+)", line)
            if head:
                inside = head[1] == name
            key = re.match(rf"      {group}\.(\S+): ?(.*)", line)
            if inside and key:
                keys[f"{group}.{key[1]}"] = key[2]
            elif inside and keys:
                keys[list(keys)[-1]] += f" {line.strip()}"
        return keys

    return take


def read_allowed(line: str) -> set[str]:
    """The words that an error line allows."""
    found = re.search(r"must be (?:one of )?(.*?)(?: \(did you mean|$)", line.strip())
    assert found, line
    return set(re.split(r", or |, | or ", found[1]))


@pytest.mark.parametrize(("choice", "key", "numbers"), WORDED, ids=lambda value: str(value))
def test_words(choice, key, numbers, dperm, offered, listed):
    words = offered(choice, key)
    assert len(words) > 1
    done = dperm("run", choice, f"{key}=no_such_word")
    assert done.code == 2
    assert done.err.startswith(f"dperm: {key}=no_such_word: must be ")
    allowed = read_allowed(done.err)
    assert words <= allowed if numbers else words == allowed
    text = listed(*choice.split("="))[key]
    if words != {"true", "false"}:
        assert words <= set(re.findall(r"\w+", text)), text
    for word in words:
        assert dperm("run", "--cfg", "job", choice, f"{key}={word}").code == 0, word


@pytest.mark.parametrize(
    ("choice", "key"),
    [
        ("mechanism=kernel_semi_interactive", "mechanism.norm_share"),
        ("mechanism=kernel_semi_interactive", "mechanism.radius"),
        ("sampler=rejection", "sampler.fixed_tries"),
    ],
)
def test_completion_offers_nothing_that_is_refused(choice, key, dperm, offered):
    done = dperm("run", choice, f"{key}=no_such_word")
    assert done.code == 2
    assert offered(choice, key) <= read_allowed(done.err)


@pytest.mark.parametrize("key", TOP_LEVEL)
def test_words_of_keys_without_a_group(key, dperm, offered):
    words = offered("mechanism=noisy_gd", key)
    assert len(words) > 1
    assert words == read_allowed(dperm("run", f"{key}=no_such_word").err)
    (line,) = (line for line in dperm("run", "--help").out.splitlines() if f"  {key}: " in line)
    assert words <= set(re.findall(r"\w+", line))


@pytest.mark.parametrize(("choice", "key", "inside", "outside"), NUMBERS)
def test_ranges(choice, key, inside, outside, dperm, listed):
    assert key in listed(*choice.split("="))
    assert dperm("run", "--cfg", "job", choice, f"{key}={inside}").code == 0
    done = dperm("run", "--cfg", "job", choice, f"{key}={outside}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"dperm: {key}={outside}: must be ")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("group", GROUPS)
def test_keys_are_those_of_help_completion_and_error_line(group, dperm, listed):
    """Of three choices of each group, the unknown key's line names the keys that there are."""
    names = re.findall(r"^  (\w+)", dperm("list", group).out, re.MULTILINE)
    for name in [name for name in names if name != "auto"][:3]:
        keys = set(listed(group, name))
        lines = dperm("completion", "--words", "run", f"{group}={name}", "--", f"{group}.").out
        assert {line.removesuffix("=") for line in lines.split()} == keys
        done = dperm("run", f"{group}={name}", f"{group}.no_such_key=1")
        assert (done.code, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1
        known = done.err.partition("known: ")[2]
        assert {word for word in known.strip().split(", ") if word} == keys


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("epsilno=1", "epsilon"),
        ("mechanism.stps=3", "steps"),
        ("constraint.radios=1", "radius"),
        ("dataset.row=unit", "rows"),
        ("privacy.relatoin=add_remove", "relation"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest(word, nearest, dperm):
    done = dperm("run", word)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"dperm: {word.partition('=')[0]}: unknown key (did you mean ")
    assert nearest in done.err.partition("known:")[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mechanism.width=0.2",), "it belongs to mechanism=huberized"),
        (("constraint.power=2",), "it belongs to constraint=lp_ball"),
        (("mechanism.stps=3",), "did you mean 'steps'?"),
        (("mechanism.stps=3",), "noisy_gd, noisy_sgd"),
        (("mechanism=huberized", "mechanism.inner.degree=2"), "known: mechanism.inner."),
    ],
)
def test_a_key_of_another_choice_is_answered_with_that_choice(words, told, dperm):
    """With mechanism=auto by default, a key of a mechanism has to say whose key it is."""
    done = dperm("run", *words)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert told in done.err


def test_every_key_on_a_page_is_known(dperm):
    known: set[str] = set()
    for group in GROUPS:
        known |= set(re.findall(rf"{group}\.\w+", dperm("list", group).out))
    name = rf"(?:{'|'.join(GROUPS)})\.[a-z]\w*"
    used = {
        (page.name, key)
        for page in PAGES
        # an assignment; `dataset.path` and the like in prose are covered by those of commands
        for key in re.findall(rf"(?<![\w/.])({name})=", page.read_text(encoding="utf-8"))
    }
    assert len(used) > 20
    assert {(page, key) for page, key in used if key not in known} == set()
