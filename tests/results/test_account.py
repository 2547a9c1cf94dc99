"""What `dperm account` prints and draws, from made-up rows."""

from __future__ import annotations

import csv
import io

from dperm_cli.results.charts import account_figure
from dperm_cli.results.tables import account_table


def row(**values):
    return {
        "mechanism": "noisy_sgd", "calibration": "paper", "relation": "replace_one", "n": 1000,
        "p": 10, "lipschitz": 1.0, "epsilon": 1.0, "delta": 1e-6, "epsilon_accounted": 0.07504259,
        "guarantee": "approx", "accountant": "a theorem", "noise_scale": 95716.66,
        "noise_over_nl": 95.71666, "steps": 10**6, "gradients": 10**6, "note": None,
        "epsilon_chain": None, "status": "ok", "reason": None, **values,
    }  # fmt: skip


def refused(**values):
    return row(status="unsupported", reason="no such scale", epsilon_accounted=None, **values)


def point(panel, **values):
    kept = {key: row().get(key) for key in account_figure.COLUMNS}
    return kept | {"panel": panel, **values}


POINTS = [
    *(point("noise", noise_scale=10.0**k, epsilon=None, epsilon_accounted=10.0**-k)
      for k in range(3)),
    *(point("certified", epsilon=e, epsilon_accounted=e / 13) for e in (0.1, 1.0, 10.0)),
]  # fmt: skip


def test_the_table_says_what_it_must():
    text = account_table.format_table([row(), refused(epsilon=2.0), refused(epsilon=3.0)])
    head, *_ = text.splitlines()
    assert head == "no data are read | n 1000 | p 10 | L 1 | replace_one | delta 1e-6"
    (line,) = [line for line in text.splitlines() if line.startswith("noisy_sgd")]
    assert line.split() == ["noisy_sgd", "paper", "1", "0.075043", "approx", "95716.7",
                            "95.7167", "1000000", "1000000", "a", "theorem"]  # fmt: skip
    assert "unsupported: noisy_sgd (paper), epsilon 2, 3: no such scale" in text
    assert "lemmas" not in text


def test_what_varies_becomes_a_column():
    text = account_table.format_table([row(), row(n=50, calibration=None, note="a warning")])
    assert "| n 1000" not in text
    assert " n " in text.splitlines()[2]
    assert "noisy_sgd at epsilon 0.07504: a warning." in text


def test_lemmas_stand_beside_what_is_certified():
    text = account_table.format_table([row(epsilon_chain=1.5222, epsilon_chain_repaired=0.9058)])
    (line,) = [line for line in text.splitlines() if line.startswith("noisy_sgd")]
    assert line.split()[9:11] == ["1.522", "0.9058"]
    assert "no valid proof" in text


def test_nothing_but_refusals_is_still_a_text():
    assert "unsupported:" in account_table.format_table([refused()])


def test_equal_points_give_equal_bytes():
    first = account_figure.draw_files([row()], POINTS)
    assert set(first) == {"account.csv", "account.pdf", "account.svg", "account.png"}
    assert account_figure.draw_files([row()], POINTS) == first
    table = list(csv.DictReader(io.StringIO(first["account.csv"].decode())))
    assert [float(line["epsilon_accounted"]) for line in table[:3]] == [1.0, 0.1, 0.01]
    assert table[0]["epsilon"] == ""


def test_without_points_there_is_no_figure():
    assert set(account_figure.draw_files([refused()], [])) == {"account.csv"}
