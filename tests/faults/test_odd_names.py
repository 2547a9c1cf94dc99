"""Studies and files of data whose names are odd."""

from __future__ import annotations

import random

import pytest

from tests.faults._program import SMALL, epsilons, leftovers, read_table, run_dperm

NAMES = {
    "space": "with space", "quote": "it's", "double quote": 'a"b', "comma": "a,b", "equals": "a=b",
    "dash": "-dash", "percent": "100%d", "umlaut": "näme", "newline": "line\nbreak",
    "tab": "a\tb", "dollar": "$HOME", "braces": "{x}", "brackets": "[x]", "backslash": "a\\b",
    "hash": "#a", "dots": "...", "long": "n" * 200, "emoji": "🙂", "colon": "a:b", "star": "*",
    "tilde": "~",
}  # fmt: skip
CASES = [
    pytest.param(name, id=name, marks=pytest.mark.faults if name not in ("space", "equals")
                 else [pytest.mark.faults, pytest.mark.faults_quick])
    for name in NAMES
]  # fmt: skip


def quote(text: str) -> str:
    """As in docs/sweeps.md: what has odd letters stands between quotes, with \\ before a quote."""
    escaped = text.replace("\\'", "\\\\'").replace("'", "\\'")
    return f"'{escaped}'"


@pytest.mark.parametrize("name", CASES)
def test_a_study_with_an_odd_name(name, tmp_path):
    """It is run with workers, and each verb that reads studies finds it."""
    study = NAMES[name]
    words = ["run", "-m", *SMALL, epsilons(2), "workers=2", f"out={quote(study)}"]
    ended = run_dperm(words, tmp_path)
    assert ended.code == 0, ended.err[-1000:]
    assert [path.name for path in tmp_path.iterdir()] == [study]
    assert len(read_table(tmp_path / study)) == 2
    assert leftovers(tmp_path / study) == []
    for verb in ("status", "verify", "report"):
        ended = run_dperm([verb, f"./{study}"], tmp_path)
        assert ended.code == 0, ended.err + ended.out


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_data_with_an_odd_name(name, tmp_path):
    """What the file is called changes no byte of the table."""
    draw = random.Random(0)
    lines = [f"{draw.random()},{draw.random()},{draw.choice((-1, 1))}\n" for _ in range(40)]
    tables = []
    for place, file in (("here", "rows.csv"), ("there", f"{NAMES[name]}.csv")):
        (tmp_path / file).write_text("".join(lines))
        words = ["run", "dataset=csv", f"dataset.path={quote(file)}", "dataset.header=false",
                 *SMALL[3:], f"out={place}"]  # fmt: skip
        ended = run_dperm(words, tmp_path)
        assert ended.code == 0, ended.err[-1000:]
        tables.append(read_table(tmp_path / place))
    assert tables[0][0]["excess_risk_median"] == tables[1][0]["excess_risk_median"]
    assert tables[0][0]["data_fingerprint"] == tables[1][0]["data_fingerprint"]
