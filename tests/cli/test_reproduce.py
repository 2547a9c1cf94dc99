"""``dperm reproduce`` from the command line: the quickest experiment, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def table(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()]


def test_the_quickest_experiment_and_its_golden_table(dperm, tmp_path):
    done = dperm("reproduce", "bst14_accounting")
    assert done.code == 0, done.err
    assert "confirmed       certified" in done.out
    assert "(does not hold, as filed)" in done.out
    assert "not judged      certified_large" in done.out
    lines = done.out.splitlines()
    head = next(i for i, line in enumerate(lines) if "epsilon chain repaired" in line)
    assert lines[head + 1].startswith("---")  # one line of names, no empty one below
    out = tmp_path / "outputs" / "bst14_accounting"
    verdicts = json.loads((out / "claims.json").read_text())
    assert verdicts["size"] == "small"
    assert {claim["verdict"] for claim in verdicts["claims"]} == {
        "confirmed",
        "refuted",
        "not judged",
    }
    # no random draw is in these numbers
    golden = table(ROOT / "experiments" / "bst14_accounting" / "table.csv")
    found = table(out / "table.csv")
    assert found[0] == golden[0]
    assert len(found) == len(golden)
    for mine, theirs in zip(found[1:], golden[1:], strict=True):
        assert mine[0] == theirs[0]
        assert [float(v) for v in mine[1:]] == pytest.approx([float(v) for v in theirs[1:]], 1e-6)


def test_the_verdicts_as_json(dperm):
    done = dperm("reproduce", "bst14_accounting", "format=json")
    assert done.code == 0
    assert {row["id"] for row in done.rows} >= {"certified", "chain_as_printed"}


def test_list_names_the_experiments(dperm):
    done = dperm("list", "experiment")
    assert done.code == 0
    for path in (ROOT / "conf" / "experiment").glob("*.yaml"):
        assert path.stem in done.out
    assert "parts:" not in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bst14_tabel1",), "did you mean 'bst14_table1'"),
        (("leak", "size=tiny"), "size=tiny: must be one of small, full"),
        (("leak", "epsilon=1"), "epsilon: unknown key"),
        (("leak", "verdicts="), "verdicts=: must be the name of a folder"),
        (("leak", "verdicts=" + 300 * "v"), "is too long"),
        (("leak", "verdicts=/dev/null"), "is a file; it must be a folder"),
        (("leak", "verdicts=/dev/null/v"), "lies in /dev/null, which is no folder"),
        (("leak", "out=/dev/null/o"), "lies in /dev/null, which is no folder"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(dperm, tmp_path, words, said):
    done = dperm("reproduce", *words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "outputs").exists()


def test_help_and_completion(dperm):
    assert "size=small|full" in dperm("reproduce", "--help").out
    assert dperm("reproduce").code == 2
    assert dperm("completion", "--words", "reproduce", "--", "lea").out.split() == [
        "leaderboard",
        "leak",
    ]
