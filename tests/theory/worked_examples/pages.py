"""The section ``Worked example`` of a proof page: its numbers, its code, and what is wrong with it.

A page's function gives its inputs and its results. Results are computed twice: from the page's
theorem with NumPy and SciPy, and by the package. ``agree`` compares the two.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROOFS = Path(__file__).resolve().parents[3] / "docs" / "proofs"
NAMES = sorted(path.stem for path in PROOFS.glob("*.md"))
HEADING = re.compile(r"^## (?:\d+\. )?Worked example$", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?!\d)(?:\.\d+)?(?:e[-+]?\d+)?")
LEFT_OUT = re.compile(
    r"\[[^\]]*\](?:\([^)]*\))?|Th(?:eorems?|m) [\d.]+|Lemmas? \d+|[Ss]ections? \d+"
)
COUNT = 12  # whole numbers up to this are counts, exponents and factors, and are not looked up
DIGITS = 3  # a result has at least so many, unless it is exact


@dataclass(frozen=True)
class Worked:
    """What a worked example is made of.

    Attributes:
        inputs: The numbers that it begins with, as printed.
        results: The numbers that come out, to all digits.
    """

    inputs: tuple[float, ...]
    results: tuple[float, ...]


FUNCTIONS: dict[str, Callable[[], Worked]] = {}


def works_out(page: str) -> Callable[[Callable[[], Worked]], Callable[[], Worked]]:
    """Enter a function as that of a page."""

    def enter(function: Callable[[], Worked]) -> Callable[[], Worked]:
        assert page not in FUNCTIONS, page
        FUNCTIONS[page] = function
        return function

    return enter


def agree(by_hand: float, by_package: float, relative: float = 1e-9) -> float:
    """The number by hand, once the package has been seen to give it too."""
    assert by_package == pytest.approx(by_hand, rel=relative, abs=1e-300)
    return float(by_hand)


def read_page(name: str) -> str:
    """The text of a proof page."""
    return (PROOFS / f"{name}.md").read_text()


def read_section(page: str) -> str:
    """The section's text; nothing where it is missing or another section follows."""
    found = HEADING.search(page)
    text = page[found.end() :] if found else ""
    return "" if re.search(r"^## ", text, re.MULTILINE) else text


def list_numbers(section: str) -> list[str]:
    """The numbers of a section as printed, without those of references and small whole ones.

    >>> list_numbers("By Theorem 1 of [a](b.md#2) 4 of 1,000 at 1e-6 have 0.25 (l_2: 1_300).")
    ['1,000', '1e-6', '0.25', '1,300']
    """
    plain = re.sub(r"(?<=\d)_(?=\d{3})", ",", LEFT_OUT.sub(" ", section))
    found = NUMBER.findall(plain)
    return [number for number in found if not _is_count(float(number.replace(",", "")))]


def _is_count(value: float) -> bool:
    return value <= COUNT and value == int(value)


def find_step(number: str) -> float:
    """What the last digit of a printed number stands for: 0.01 of 3.14, 1e-7 of 1.2e-6."""
    mantissa, _, power = number.replace(",", "").partition("e")
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def is_rounded(number: str, value: float) -> bool:
    """Whether a printed number is the value rounded to its digits, and has enough of them."""
    told, step = float(number.replace(",", "")), find_step(number)
    if abs(told - value) <= 1e-12 * abs(value):
        return True
    digits = len(re.sub(r"\D", "", number.partition("e")[0]).lstrip("0"))
    return digits >= DIGITS and abs(told - value) <= 0.5 * step * (1.0 + 1e-6)


def find_faults(section: str, worked: Worked) -> list[str]:
    """What is wrong with a section, in words."""
    if not section:
        return ["no worked example at the end of the page"]
    numbers = list_numbers(section)
    told = {float(number.replace(",", "")) for number in numbers}
    faults = [
        f"{value:g} is an input and does not stand there"
        for value in worked.inputs
        if value not in told and not _is_count(value)
    ]
    faults += [
        f"{value:.8g} does not stand there"
        for value in worked.results
        if not any(is_rounded(number, value) for number in re.findall(NUMBER, section))
    ]
    faults += [
        f"nothing computes {number}"
        for number in numbers
        if float(number.replace(",", "")) not in worked.inputs
        and not any(is_rounded(number, value) for value in worked.results)
    ]
    return faults


def find_false_comments(section: str) -> list[str]:
    """Run the section's Python blocks: each line printed is the comment of its ``print``."""
    faults = []
    for code in CODE.findall(section):
        promised = re.findall(r"^print\(.*\)  # (\S+)$", code, re.MULTILINE)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "worked example", "exec"), {})
        printed = out.getvalue().split()
        if not promised or len(promised) != len(printed):
            faults.append(f"{len(promised)} comments for {len(printed)} lines that are printed")
        faults += [
            f"{number} stands beside what prints {value}"
            for number, value in zip(promised, printed, strict=False)
            if not is_rounded(number, float(value))
        ]
    return faults
