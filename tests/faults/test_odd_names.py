"""Studies and files of data whose names are odd."""

from __future__ import annotations

import random

import pytest

from tests.faults._program import SMALL, epsilons, leftovers, read_table

NAMES = {
    "space": "with space", "quote": "it's", "double quote": 'a"b', "comma": "a,b", "equals": "a=b",
    "dash": "-dash", "percent": "100%d", "umlaut": "näme", "newline": "line\nbreak",
    "tab": "a\tb", "dollar": "$HOME", "braces": "{x}", "brackets": "[x]", "backslash": "a\\b",
    "hash": "#a", "dots": "...", "long": "n" * 200, "emoji": "🙂", "colon": "a:b", "star": "*",
    "tilde": "~",
}  # fmt: skip
FEW = ("space", "equals")
CASES = [
    pytest.param(name, id=name, marks=[] if name in FEW else pytest.mark.slow) for name in NAMES
]


def quote(text) -> str:
    """A value with odd letters stands between quotes, with a backslash before a quote in it."""
    escaped = str(text).replace("\\'", "\\\\'").replace("'", "\\'")
    return f"'{escaped}'"


@pytest.fixture
def run(zygote):
    """Run words that have to end well."""

    def asked(*words: str) -> None:
        assert zygote(out="none", argv=list(words))["code"] == 0, zygote.log[-1000:]

    return asked


@pytest.mark.parametrize("name", CASES)
def test_a_study_with_an_odd_name(name, run, tmp_path):
    """It is run, looked up and read."""
    study = tmp_path / NAMES[name]
    words = ["run", "-m", *SMALL, epsilons(2), f"out={quote(study)}"]
    run(*words)
    run(*words)
    assert list(tmp_path.iterdir()) == [study]
    assert len(read_table(study)) == 2
    assert leftovers(study) == []
    for verb in ("status", "verify", "report"):
        run(verb, str(study))


@pytest.mark.slow
def test_workers_find_a_study_with_an_odd_name(run, tmp_path):
    study = tmp_path / "a b=c,d'%"
    run("run", "-m", *SMALL, epsilons(2), "workers=2", f"out={quote(study)}")
    assert len(read_table(study)) == 2
    assert leftovers(study) == []


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_data_with_an_odd_name(name, run, tmp_path):
    """What the file is called changes no number."""
    draw = random.Random(0)
    lines = [f"{draw.random()},{draw.random()},{draw.choice((-1, 1))}\n" for _ in range(40)]
    tables = []
    for place, file in (("here", "rows.csv"), ("there", f"{NAMES[name]}.csv")):
        (tmp_path / file).write_text("".join(lines))
        run("run", "dataset=csv", f"dataset.path={quote(tmp_path / file)}", "dataset.header=false",
            *SMALL[3:], f"out={tmp_path}/{place}")  # fmt: skip
        tables.append(read_table(tmp_path / place))
    for column in ("excess_risk_median", "data_fingerprint"):
        assert tables[0][0][column] == tables[1][0][column]
