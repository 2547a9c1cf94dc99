"""docs/proofs/_statements.md against the code: no statement without its object, and none lost."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from dperm_cli.bounds import all_bounds
from dperm_cli.bounds.bst14_lemmas import LEMMAS
from dperm_cli.bounds.bst14_table1 import CELLS, COLUMNS, ROWS, TableInputs, cell
from tests.contract.test_proof_pages import resolve
from tests.theory.bounds_data import bare

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs" / "_statements.md"
LINES = re.findall(
    r"^\| (.+?) \| (\"[^\"]+\"|`[\w.]+`) \| (explicit|order) \|", PAGE.read_text(), re.MULTILINE
)
BY_ID = {bound.id: bound for bound in all_bounds.ALL}
# what the paper states, in its order
STATEMENTS = (
    """
Thm 2.1, Lemma 2.2, Lemma 2.3, Thm 2.4(1), Thm 2.4(2), Lemma 2.5, Lemma 2.6, Thm 3.1, Thm 3.2,
Thm 3.4, Thm 4.1, Lemma 4.2, Thm 4.3, Lemma 5.1(1), Lemma 5.1(2), Thm 5.2, Thm 5.3, Thm 5.4,
Thm 5.5, Lemma 6.1, Lemma 6.2, Lemma 6.3, Lemma 6.4, Lemma 6.5, Lemma 6.6, Thm A.1, Lemma A.2,
Lemma A.3, Thm B.1, Thm B.2, App. D, Thm E.1(1), Thm E.1(2), Thm E.2(1), Thm E.2(2), Thm F.1,
Eq. (17), Thm F.2(1), Thm F.2(2), Thm F.3(1), Thm F.3(2), Thm F.4(1), Thm F.4(2), Lemma F.5,
Thm F.6(1), Thm F.6(2)
""".replace("\n", " ")
    .strip()
    .split(", ")
)


def test_every_statement_of_the_paper_has_its_line():
    told = {statement for statement, *_ in LINES}
    assert len(STATEMENTS) == len(set(STATEMENTS)) == 46
    assert set(STATEMENTS) <= told
    assert told - set(STATEMENTS) == {"Note 2", "Thm E.1, E.2"}


@pytest.mark.parametrize(("statement", "name", "constant"), LINES)
def test_a_line_names_an_object_with_that_constant(statement, name, constant):
    if name.startswith("`"):
        found = resolve(name.strip("`"))
        assert callable(found)
        # a docstring says "order" where a constant is open
        assert ("order" in (found.__doc__ or "").split(":")[0]) == (constant == "order")
    else:
        assert BY_ID[name.strip('"')].constant == constant


def test_nothing_in_the_code_is_left_out():
    told = {name.strip('"`') for _, name, _ in LINES}
    assert {name for name in BY_ID if name.startswith("BST14")} <= told
    functions = {name.rpartition(".")[2] for name in told}
    assert {function.__name__ for function in LEMMAS.values()} - {"huberized_risk"} <= functions
    assert set(LEMMAS) - {"Thm A.1"} <= set(STATEMENTS)


def test_cells_of_table_i_are_those_of_their_theorems():
    """Up to logarithms: both grow alike in n, p and epsilon."""
    rows = dict(re.findall(r"^\| (\w+) \| ((?:cited|Thm).+) \|$", PAGE.read_text(), re.MULTILINE))
    assert set(rows) == set(ROWS)
    for row, line in rows.items():
        named = dict(zip(COLUMNS, line.split(" | "), strict=True))
        assert {column for column, name in named.items() if name == "-"} == {
            column for column in COLUMNS if (row, column) not in CELLS
        }
        for column, name in named.items():
            if name.startswith("Thm"):
                assert growth(row, column) == pytest.approx(growth_of(name, row, column), abs=0.35)


def growth(row: str, column: str) -> list[float]:
    """Exponents of 1e6 n, p and 1 / epsilon in a cell."""

    def at(n: float, p: int, epsilon: float) -> float:
        return cell(row, column, TableInputs(int(n), p, epsilon, 1e-9, 1.0, 2.0, 0.5)) or math.nan

    return exponents(at)


def growth_of(name: str, row: str, column: str) -> list[float]:
    bound = BY_ID[f"BST14 {name}"]
    curved = "strongly_convex" in row

    def at(n: float, p: int, epsilon: float) -> float:
        delta = 1e-9 if column.startswith("approx") else 0.0
        setting = bare(int(n), p, epsilon, delta, ridge=0.5 * curved)
        return bound.value(setting)

    return exponents(at)


def exponents(value) -> list[float]:
    base = value(1e9, 10, 0.1)
    moved = (value(1e12, 10, 0.1), value(1e9, 1000, 0.1), value(1e9, 10, 1e-3))
    steps = (math.log(1e3), math.log(100), math.log(100))
    return [math.log(there / base) / step for there, step in zip(moved, steps, strict=True)]


# --- [DJW12]

DJW12 = PAGE.with_name("_djw12.md").read_text()
DJW12_LINES = re.findall(
    r"^\| (.+?) \| (\"[^\"]+\"|`[\w.]+`) \| (explicit|order) \|", DJW12, re.MULTILINE
)


def test_every_statement_of_djw12_has_its_line():
    stated = {"Thm 1(a)", "Thm 1(b)", "Eq. (9)", "Thm 2", "Cor. 1", "Cor. 2", "Thm 3", "Prop. 1",
              "Prop. 2", "Cor. 3"}  # fmt: skip
    assert {statement for statement, *_ in DJW12_LINES} == stated


@pytest.mark.parametrize(("statement", "name", "constant"), DJW12_LINES)
def test_a_line_of_djw12_names_an_object_with_that_constant(statement, name, constant):
    found = resolve(name.strip("`")) if name.startswith("`") else BY_ID[name.strip('"')]
    assert constant == "explicit"
    assert callable(found) or found.constant == constant


def test_no_bound_of_djw12_is_left_out():
    told = {name.strip('"') for _, name, _ in DJW12_LINES}
    assert {name for name in BY_ID if name.startswith("DJW12")} <= told
    assert re.findall(r"`(?:dperm_cli|tests)/[\w/]+\.py`", DJW12)
